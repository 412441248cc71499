"""Checks per second in the sandbox beside the same checks executed in this process.

Run with ``make bench-sandbox``. Everything takes turns in one run, so that whatever else the
machine does touches all alike. "1 core" means that the judging process, its server and the server's
checks share one core, and so on: what is gained by working on two cores at once is not counted as
speed of one. What other processes, and the host of a virtual machine, took of the cores is shown
too: a run says what quiet cores do where that is little.
"""

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Final

import psutil

from adhere.checkers import CheckerPool

TARGET: Final = 400  # checks/s per quiet core
SOURCE: Final = (
    "import re\n"
    "def check_following(response):\n"
    "    words = re.findall(r'\\w+', response)\n"
    "    return len(words) > 10 and response.startswith('#')\n"
)
TEXT: Final = "# Title\n" + "Some words here and there. " * 80


def main() -> None:
    """Measure and print a table."""
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="rounds of each kind")
    parser.add_argument("--checks", type=int, default=100, help="checks a round and core")
    parser.add_argument("--cores", type=int, default=cores, help="cores, each with a server")
    options = parser.parse_args()
    if not 1 <= options.cores <= cores:
        parser.error(f"--cores {options.cores}: this process may use 1 to {cores}")
    asyncio.run(measure(options.rounds, options.checks, options.cores))


async def measure(rounds: int, checks: int, cores: int) -> None:
    """Run all kinds in turn; print the best and the median round of each."""
    in_process_rates: list[float] = []
    rates: dict[int, list[float]] = {count: [] for count in sorted({1, cores})}
    cpu: list[float] = []
    async with AsyncExitStack() as stack:
        pools = {count: await started(stack, count) for count in rates}
        started_at, busy, own = time.perf_counter(), busy_seconds(), own_seconds(pools.values())
        for _ in range(rounds):
            with on_cores(1):
                start = time.perf_counter()
                in_process(checks)
                in_process_rates.append(checks / (time.perf_counter() - start))
            for count, pool in pools.items():
                with on_cores(count):
                    before, start = own_seconds([pool]), time.perf_counter()
                    await many(pool, count * checks)
                    rates[count].append(count * checks / (time.perf_counter() - start))
                    if count == 1:
                        cpu.append((own_seconds([pool]) - before) / checks)
        wall = time.perf_counter() - started_at
        others = busy_seconds() - busy - (own_seconds(pools.values()) - own)
        level = pools[1].isolation.level
    print(f"isolation {level}, {rounds} rounds of {checks} checks a core")
    print(f"{'checks/s':24}{'best':>10}{'median':>10}{'median a core':>16}")
    row("in this process", in_process_rates, 1)
    for count, measured in rates.items():
        row(f"sandbox, {count} core{'s' * (count > 1)}", measured, count)
    slower = statistics.median(in_process_rates) / statistics.median(rates[1])
    print(f"in this process / sandbox, in the median: {slower:.1f}")
    print(f"processor time a check, judging process included: {1000 * min(cpu):.2f} ms at best")
    print(f"taken by others meanwhile: {others / wall:.2f} of {os.cpu_count()} cores")
    met = statistics.median(rates[1]) >= TARGET
    print(f"target: {TARGET} on a quiet core, in the median: {'met' if met else 'not met'}")


async def started(stack: AsyncExitStack, count: int) -> CheckerPool:
    """Start a pool of ``count`` servers on as many cores, and let it become warm."""
    with on_cores(count):
        pool = await stack.enter_async_context(CheckerPool(workers=count))
        await many(pool, 20 * count)
    return pool


@contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Keep this process, and what it starts, to the first ``count`` of its cores."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def in_process(checks: int) -> None:
    """What everybody else does: compile and execute each time, here."""
    for _ in range(checks):
        namespace: dict[str, Callable[[str], object]] = {}
        exec(SOURCE, namespace)
        assert namespace["check_following"](TEXT) is True


async def many(pool: CheckerPool, checks: int) -> None:
    """Run checks as the judge does, many at once."""
    results = await asyncio.gather(*(pool.check(SOURCE, TEXT) for _ in range(checks)))
    assert all(result.value is True for result in results), results[0]


def row(name: str, rates: list[float], cores: int) -> None:
    """Print one line of the table."""
    median = statistics.median(rates)
    print(f"{name:24}{max(rates):10,.0f}{median:10,.0f}{median / cores:16,.0f}")


def own_seconds(pools: Iterable[CheckerPool]) -> float:
    """Return the seconds of processor time of this process, of pools' servers and their checks."""
    servers = [pid for pool in pools for pid in pool.server_pids]
    return time.process_time() + sum(sum(psutil.Process(pid).cpu_times()[:4]) for pid in servers)


def busy_seconds() -> float:
    """Return the seconds that all cores of the machine have worked, or were kept from it."""
    times = psutil.cpu_times()
    return sum(times) - times.idle - times.iowait - times.guest - times.guest_nice


if __name__ == "__main__":
    main()
