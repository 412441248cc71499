"""What the mock counts and logs about requests, and waiting for a count."""

import asyncio
from collections import Counter, deque

import orjson
from pydantic import Field

from mock_endpoint.calls import Call
from mock_endpoint.config import Json, MockConfig, Strict

NO_STATUS = 0
"""Stands for the status of a request that got no status line: reset, or abandoned by its client."""


class Stats(Strict):
    """Counts of chat requests since the start or the last reset."""

    requests: int = 0
    finished: int = 0
    """Requests that are no longer in flight, however they ended."""
    in_flight: int = 0
    max_in_flight: int = 0
    answered: int = 0
    """Whole chat completions sent with 200 (not cut, not raw, not without choices)."""
    distinct_bodies: int = 0
    resent_after_ok: int = 0
    """Requests whose identical body had been answered (as above) before they arrived."""
    models: dict[str, int] = Field(default_factory=dict)
    statuses: dict[int, int] = Field(default_factory=dict)
    """Requests by status sent; NO_STATUS where none was."""


class LogEntry(Strict):
    """One chat request. ``body`` is empty where the request was no JSON object."""

    path: str
    model: str
    body: Json
    has_authorization: bool
    authorization_sha256: str | None
    """SHA-256 of the header's value, which itself is kept nowhere."""
    status: int | None
    """None while the request is in flight."""
    answered: bool


def parse_log(data: bytes) -> list[LogEntry]:
    """Return the entries of a log that was sent."""
    return [LogEntry.model_validate(entry) for entry in orjson.loads(data)]


_COUNTS = Stats.model_fields.keys() - {"models", "statuses"}
_Waiter = tuple[dict[str, int], asyncio.Future[Stats]]


class Book:
    """Counts requests, keeps the bounded log and wakes whoever waits for a count."""

    def __init__(self, waiters: list[_Waiter] | None = None) -> None:
        self._waiters: list[_Waiter] = waiters if waiters is not None else []
        self._requests = self._finished = self._max_in_flight = 0
        self._answered = self._resent = 0
        self._models: Counter[str] = Counter()
        self._statuses: Counter[int] = Counter()
        self._bodies: set[bytes] = set()
        self._completed: set[bytes] = set()
        self._log: deque[Call] = deque()
        self._log_bytes = 0

    def successor(self) -> "Book":
        """Return an empty book for whoever waits on this one."""
        return Book(self._waiters)

    def arrive(self, call: Call, config: MockConfig) -> None:
        """Count a request that has arrived and log it."""
        self._requests += 1
        self._max_in_flight = max(self._max_in_flight, self._requests - self._finished)
        self._models[call.model] += 1
        self._bodies.add(call.digest)
        self._resent += call.digest in self._completed
        self._log.append(call)
        self._log_bytes += len(call.raw)
        while self._log and (
            len(self._log) > config.log_entries or self._log_bytes > config.log_bytes
        ):
            self._log_bytes -= len(self._log.popleft().raw)
        self._wake()

    def depart(self, call: Call) -> None:
        """Count what became of a request."""
        self._finished += 1
        call.body, call.prompt = None, b""
        if call.status is None:
            call.status = NO_STATUS
        self._statuses[call.status] += 1
        if call.answered:
            self._answered += 1
            self._completed.add(call.digest)
        self._wake()

    def stats(self) -> Stats:
        return Stats(
            requests=self._requests,
            finished=self._finished,
            in_flight=self._requests - self._finished,
            max_in_flight=self._max_in_flight,
            answered=self._answered,
            distinct_bodies=len(self._bodies),
            resent_after_ok=self._resent,
            models=dict(self._models),
            statuses=dict(self._statuses),
        )

    def log_json(self) -> bytes:
        return orjson.dumps([call.entry() for call in self._log])

    async def until(self, minimums: dict[str, int]) -> Stats:
        """Return the stats as soon as every named count is at least its minimum."""
        unknown = minimums.keys() - _COUNTS
        if unknown:
            raise ValueError(f"no such count: {sorted(unknown)}; there are {sorted(_COUNTS)}")
        if self._reached(minimums):
            return self.stats()
        future: asyncio.Future[Stats] = asyncio.get_running_loop().create_future()
        waiter = (minimums, future)
        self._waiters.append(waiter)
        try:
            return await future
        finally:
            self._waiters.remove(waiter)

    def _reached(self, minimums: dict[str, int]) -> bool:
        stats = self.stats()
        return all(getattr(stats, name) >= minimum for name, minimum in minimums.items())

    def _wake(self) -> None:
        for minimums, future in self._waiters:
            if not future.done() and self._reached(minimums):
                future.set_result(self.stats())
