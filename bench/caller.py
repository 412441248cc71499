"""One client in a process of its own: ``python -m bench.caller KIND URL REQUESTS CONNECTIONS``.

Prints one JSON line: seconds from the first request to the last result, processor seconds in that
time, peak memory in MiB, and how many requests were answered.
"""

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from adhere import loop
from adhere.checkers import CheckerPool
from adhere.cli import collect_garbage_rarely
from adhere.client import ChatClient, Endpoint
from adhere.config import JudgeConfig
from adhere.data import Row, as_dataset
from adhere.journal import Journal
from adhere.judging import Judge, judge_rows
from adhere.judging.asking import Asker
from adhere.plan import Cell
from adhere.prediction import Mode, Places, make_task, run_tasks
from adhere.progress import Progress
from bench import workload

Measured = tuple[float, float, int]


async def judge(url: str, rows: Sequence[Row], connections: int) -> Measured:
    """Run the judging stage as its job does: chains, parsing and journal included."""
    config = JudgeConfig(model="mock", base_url=url, api_key_env=None)
    endpoint = Endpoint(url, "bench", concurrency=connections)
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "j.jsonl") as journal:
        async with ChatClient(endpoint) as client, CheckerPool(workers=1) as pool:
            asker = Asker(Judge("mock", config), client, journal)
            with Progress("judge", "constraints") as progress:
                clock = _Clock()
                run = await judge_rows(rows, asker, pool, progress)
                return clock.read(run.counts["followed"] + run.counts["violated"])


async def predict(url: str, rows: Sequence[Row], connections: int) -> Measured:
    """Run the prediction stage as its job does."""
    mode = Mode("mock", "plain", False, "mock", {"temperature": 0.0}, 4096, "max_tokens", {})
    endpoint = Endpoint(url, "bench", concurrency=connections)
    with tempfile.TemporaryDirectory() as folder:
        data = as_dataset("bench", Path("bench"), rows, "bench")
        places = Places(Path(folder) / "p.json", Path(folder) / "p.jsonl", None)
        task = make_task(Cell("mock", "plain", 1, "bench"), mode, data, places)
        async with ChatClient(endpoint) as client:
            with Progress("predict", "items") as progress:
                clock = _Clock()
                await run_tasks([task], [client], progress)
                return clock.read(client.counts.answered)


async def plain_aiohttp(url: str, rows: Sequence[Row], connections: int) -> Measured:
    """Send the same requests with aiohttp and nothing else."""
    connector = aiohttp.TCPConnector(limit=connections)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def send(payload: dict[str, Any]) -> str:
            body = orjson.dumps(payload)
            headers = {"Content-Type": "application/json"}
            async with session.post(
                f"{url}/chat/completions", data=body, headers=headers
            ) as response:
                answer = orjson.loads(await response.read())
            text: str = answer["choices"][0]["message"]["content"]
            return text

        return await _all(_payloads(rows), connections, send)


async def openai(url: str, rows: Sequence[Row], connections: int) -> Measured:
    """Send the same requests with openai's own client, its limits raised to what is asked for."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=600) as client:

        async def send(payload: dict[str, Any]) -> str:
            answer = await client.chat.completions.create(**payload)
            return answer.choices[0].message.content or ""

        return await _all(_payloads(rows), connections, send)


def _payloads(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the requests that the judging stage makes of these rows."""
    return [
        {
            "model": "mock",
            "messages": [
                {
                    "role": "user",
                    "content": raw["evaluation"][0]["exec"].replace(
                        "{response}", row["output"]["content"]
                    ),
                }
            ],
        }
        for row in rows
        for raw in row["constraints"]
    ]


async def _all(
    payloads: list[dict[str, Any]],
    connections: int,
    send: Callable[[dict[str, Any]], Awaitable[str]],
) -> Measured:
    queue = iter(payloads)
    answered = 0

    async def work() -> None:
        nonlocal answered
        for payload in queue:
            text = await send(payload)
            answered += bool(text)

    clock = _Clock()
    await asyncio.gather(*(work() for _ in range(connections)))
    return clock.read(answered)


class _Clock:
    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self, answered: int) -> Measured:
        return time.perf_counter() - self._wall, time.process_time() - self._cpu, answered


KINDS: dict[str, Callable[[str, Sequence[Row], int], Awaitable[Measured]]] = {
    "judge": judge,
    "predict": predict,
    "aiohttp": plain_aiohttp,
    "openai": openai,
}
OURS = frozenset({"judge", "predict"})


def main() -> None:
    """Measure the client that the command line names."""
    kind, url = sys.argv[1:3]
    requests, connections = map(int, sys.argv[3:5])
    collect_garbage_rarely()
    rows = workload.prompts(requests) if kind == "predict" else workload.questions(requests)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = loop.run if kind in OURS else asyncio.run
    wall, cpu, answered = run(KINDS[kind](url, rows, connections))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures = {"wall_s": wall, "cpu_s": cpu, "answered": answered}
    memory = {"peak_mib": peak / 1024, "grown_mib": (peak - base) / 1024}
    sys.stdout.buffer.write(orjson.dumps(figures | memory) + b"\n")


if __name__ == "__main__":
    main()
