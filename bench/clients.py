"""The client beside others on the same requests: share of the ideal, processor time, memory."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from bench.figures import Figure
from bench.mock import Behaviour, running

LATENCY_MS = 200
# What one results file of AgentIF asks a judge.
REQUESTS = 7_069
PREDICTIONS = 1_414
_BESIDE = ("aiohttp", "openai")
_SHARES = {64: 0.95, 256: 0.90}


@dataclass(frozen=True, slots=True)
class Called:
    """What a client did: see ``bench.caller``; ``share`` is the ideal time over its own."""

    wall_s: float
    cpu_s: float
    answered: int
    peak_mib: float
    grown_mib: float
    requests: int
    connections: int
    escapes: int

    @property
    def share(self) -> float:
        """Ideal duration, all connections always waiting for an answer, over the real one."""
        return self.requests * LATENCY_MS / 1000 / self.connections / self.wall_s

    @property
    def cpu_ms(self) -> float:
        """Processor milliseconds a request."""
        return 1000 * self.cpu_s / self.requests


def call(kind: str, requests: int, connections: int) -> Called:
    """Run one client against a mock of its own. Raises SystemExit where it answers not all."""
    with running(Behaviour(latency_ms=LATENCY_MS)) as mock:
        url = mock.base_url if kind == "predict" else mock.judge_url
        command = [sys.executable, "-m", "bench.caller", kind, url, str(requests), str(connections)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        escapes = int(mock.stats()["escapes"])
    measured = Called(
        **orjson.loads(done.stdout), requests=requests, connections=connections, escapes=escapes
    )
    if measured.answered != requests:
        raise SystemExit(f"bench: {kind} answered {measured.answered} of {requests} requests")
    return measured


def figures() -> Iterator[Figure]:
    """Measure the judging stage beside aiohttp alone and openai's client, then predictions."""
    ours: dict[int, Called] = {}
    for connections, wanted in _SHARES.items():
        where = f"of the ideal, {connections} connections"
        ours[connections] = call("judge", REQUESTS, connections)
        yield Figure(f"judge calls: share {where}", ours[connections].share, "", wanted, least=True)
        yield Figure("processor time a judge call", ours[connections].cpu_ms, "ms", 0.5)
        for kind in _BESIDE:
            other = call(kind, REQUESTS, connections)
            yield Figure(f"{kind} alone: share {where}", other.share)
            yield Figure(f"{kind} alone: processor time a call", other.cpu_ms, "ms")
    predicted = call("predict", PREDICTIONS, 64)
    yield Figure("predictions of 30 KB: share of the ideal, 64 connections", predicted.share)
    yield Figure("processor time a prediction of 30 KB", predicted.cpu_ms, "ms", 2)
    few, many = (called.grown_mib for called in ours.values())
    yield Figure("memory of 7,069 judge calls, 64 connections", few, "MiB")
    yield Figure("the same at 256 connections, more than at 64", many - few, "MiB", 16)
    escapes = predicted.escapes + sum(called.escapes for called in ours.values())
    yield Figure("requests with ASCII escapes", escapes, "", 0)
