"""How much of the ideal the verifier's service reaches: concurrent verifies against a slow judge.

Run with ``make bench-service``. Each verify asks the judge 12 questions, and the judge takes
50 ms for each and as many at once as there are clients: the ideal is rounds × 12 × 50 ms. Server,
clients and the judge run in processes of their own; the load of the machine is shown, since with
fewer free cores than these three need the figure says something about the machine. For
comparison the same questions are sent by aiohttp alone, each time right after.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import orjson
import psutil

from bench.mock import Behaviour, running

ROOT = Path(__file__).resolve().parents[1]
LATENCY_MS = 50
CONSTRAINTS = 12
_TEXT = "Some words of an answer. " * 80
_HEADERS = {"Content-Type": "application/json"}
_GLOBAL = {"datasets": {"own": "data.json"}, "default_datasets": ["own"], "default_judge": "mock"}


def main() -> None:
    """Measure and print one line a round of measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=64, help="verifies at once")
    parser.add_argument("--rounds", type=int, default=10, help="verifies of each client")
    parser.add_argument("--repeats", type=int, default=3, help="measurements; the best one counts")
    options = parser.parse_args()
    clients, rounds = options.clients, options.rounds
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Behaviour(latency_ms=LATENCY_MS)) as mock,
        _served(Path(folder), mock.judge_url, clients) as (url, server),
    ):
        asyncio.run(_many(url, clients, 1))
        best = 0.0
        for _ in range(options.repeats):
            best = max(best, _measured(url, server, clients, rounds))
            print(f"    aiohttp alone: {_plain(mock.judge_url, clients, rounds):.1%}")
    print(f"best: {best:.1%} of the ideal")


def _measured(url: str, server: psutil.Process, clients: int, rounds: int) -> float:
    """Return the share of the ideal that one measurement reached."""
    cpu, load = _cpu(server), os.getloadavg()[0]
    began = time.perf_counter()
    asyncio.run(_many(url, clients, rounds))
    took = time.perf_counter() - began
    ideal = rounds * CONSTRAINTS * LATENCY_MS / 1000
    calls = clients * rounds * CONSTRAINTS
    print(
        f"{clients} clients × {rounds} verifies × {CONSTRAINTS} constraints: {took:.2f} s, ideal "
        f"{ideal:.2f} s: {ideal / took:.1%}; {calls / took:.0f} verdicts/s, server "
        f"{(_cpu(server) - cpu) / calls * 1000:.2f} ms of processor a verdict; load {load:.1f} on "
        f"{os.cpu_count()} cores"
    )
    return ideal / took


def _plain(judge_url: str, clients: int, rounds: int) -> float:
    """Return the share of the ideal that the questions alone reach at this moment."""
    messages = [{"role": "user", "content": "Is it well said? " + _TEXT}]
    payload = orjson.dumps({"model": "m", "messages": messages})
    calls = iter(range(clients * rounds * CONSTRAINTS))

    async def main() -> float:
        connector = aiohttp.TCPConnector(limit=clients)
        async with aiohttp.ClientSession(connector=connector, headers=_HEADERS) as session:

            async def ask() -> None:
                for _ in calls:
                    async with session.post(f"{judge_url}/chat/completions", data=payload) as got:
                        orjson.loads(await got.read())

            began = time.perf_counter()
            await asyncio.gather(*(ask() for _ in range(clients)))
            return rounds * CONSTRAINTS * LATENCY_MS / 1000 / (time.perf_counter() - began)

    return asyncio.run(main())


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def _many(url: str, clients: int, rounds: int) -> None:
    connector = aiohttp.TCPConnector(limit=clients)
    async with aiohttp.ClientSession(connector=connector, headers=_HEADERS) as session:

        async def client(number: int) -> None:
            for turn in range(rounds):
                body = _body(number, turn)
                async with session.post(f"{url}/verify", data=body) as answer:
                    found = orjson.loads(await answer.read())
                if answer.status != 200 or found["n_true"] + found["n_false"] != CONSTRAINTS:
                    raise SystemExit(f"bench: not judged: {str(found)[-300:]}")

        await asyncio.gather(*(client(number) for number in range(clients)))


def _body(client: int, turn: int) -> bytes:
    text = f"[{client} {turn}] {_TEXT}"
    constraints = [
        {"evaluation": [{"type": "llm", "exec": f"[{n}] Is it well said? {{response}}"}]}
        for n in range(CONSTRAINTS)
    ]
    message = {"type": "message", "content": [{"type": "output_text", "text": text}]}
    task = [{"role": "user", "content": "Say something. " * 200}]
    return orjson.dumps(
        {
            "responses_create_params": {"input": task},
            "response": {"output": [message]},
            "verifier_metadata": {"constraints": constraints},
        }
    )


@contextmanager
def _served(folder: Path, judge_url: str, connections: int) -> Iterator[tuple[str, psutil.Process]]:
    """Run the service as a process of its own, with a judge at this address."""
    judge = {"base_url": judge_url, "model": "m", "api_key_env": None, "concurrency": connections}
    for name, content in (("configs/global.yaml", _GLOBAL), ("judge_configs/mock.yaml", judge)):
        path = folder / name
        path.parent.mkdir()
        path.write_text(json.dumps(content))
    script = ROOT / "scripts" / "serve_verifier.py"
    with subprocess.Popen(
        [sys.executable, str(script), "--port", "0"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            url = json.loads(process.stderr.readline())["url"]
            # Its log must go somewhere.
            drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
            yield url, psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait()
            drain.wait()


if __name__ == "__main__":
    main()
