"""Checks per second in the sandbox beside the same checks executed in this process.

Run with ``make bench-sandbox``. Both kinds take turns in one run, so that whatever else the
machine does touches both alike; the best round of each is what it can do on quiet cores.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Callable
from typing import Final

import psutil

from adhere.checkers import CheckerPool

SOURCE: Final = (
    "import re\n"
    "def check_following(response):\n"
    "    words = re.findall(r'\\w+', response)\n"
    "    return len(words) > 10 and response.startswith('#')\n"
)
TEXT: Final = "# Title\n" + "Some words here and there. " * 80


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="rounds of each kind")
    parser.add_argument("--checks", type=int, default=100, help="checks a round")
    parser.add_argument("--servers", type=int, default=os.cpu_count() or 1, help="servers at most")
    options = parser.parse_args()
    asyncio.run(measure(options.rounds, options.checks, options.servers))


async def measure(rounds: int, checks: int, servers: int) -> None:
    """Run all kinds in turn; print the best and the median round of each."""
    counts = sorted({1, servers})
    pools = [CheckerPool(workers=count) for count in counts]
    rates: dict[str, list[float]] = {}
    cpu: list[float] = []
    try:
        for pool in pools:
            await pool.__aenter__()
            await many(pool, 20)
        for _ in range(rounds):
            rates.setdefault("in this process", []).append(rate(in_process, checks))
            for count, pool in zip(counts, pools, strict=True):
                before, start = cpu_of(pool), time.perf_counter()
                await many(pool, checks)
                name = f"sandbox, {count} server{'s' * (count > 1)}"
                rates.setdefault(name, []).append(checks / (time.perf_counter() - start))
                if count == 1:
                    cpu.append((cpu_of(pool) - before) / checks)
    finally:
        for pool in pools:
            await pool.__aexit__(None, None, None)
    print(f"isolation {pools[0].isolation.level}, {rounds} rounds of {checks} checks each")
    print(f"{'':24}{'best':>10}{'median':>10}  checks/s")
    for name, measured in rates.items():
        print(f"{name:24}{max(measured):10,.0f}{sorted(measured)[len(measured) // 2]:10,.0f}")
    best = {name: max(measured) for name, measured in rates.items()}
    print(f"in process / one server: {best['in this process'] / best['sandbox, 1 server']:.1f}")
    print(f"processor time a check, server and check: {1000 * min(cpu):.2f} ms at best")


def in_process(checks: int) -> None:
    """What everybody else does: compile and execute each time, here."""
    for _ in range(checks):
        namespace: dict[str, Callable[[str], object]] = {}
        exec(SOURCE, namespace)
        assert namespace["check_following"](TEXT) is True


def rate(work: Callable[[int], None], checks: int) -> float:
    """Return checks per second."""
    start = time.perf_counter()
    work(checks)
    return checks / (time.perf_counter() - start)


async def many(pool: CheckerPool, checks: int) -> None:
    """Run checks as the judge does, many at once."""
    results = await asyncio.gather(*(pool.check(SOURCE, TEXT) for _ in range(checks)))
    assert all(result.value is True for result in results), results[0]


def cpu_of(pool: CheckerPool) -> float:
    """Return the seconds of processor time that a pool's servers and their checks have used."""
    return sum(sum(psutil.Process(pid).cpu_times()[:4]) for pid in pool.server_pids)


if __name__ == "__main__":
    main()
