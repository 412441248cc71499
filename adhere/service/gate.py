"""The gate: how much is taken in at once. What is over that is refused at once, with when to ask
again, so that a queue never grows without bound."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from adhere.service.refusal import Refusal
from adhere.service.settings import Limits

_LONGEST_RETRY_S = 60


class Gate:
    """Counts requests, the items of them that run, and the bytes of their bodies.

    ``open`` are the requests that were taken in and not answered, ``running`` the items.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.open = 0
        self.running = 0
        self.held = 0
        self.draining = False
        # What is under way is cancelled, and nobody waits for it.
        self.ended = False
        self._slots = asyncio.Semaphore(limits.running)
        # Seconds that an item took, the latest ones counting most.
        self._usual_s = 1.0

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Take in one request. Raises Refusal (429) where too many are open, 503 on the way out."""
        if self.draining:
            raise Refusal(503, "draining", "the server is about to end: ask another one")
        if self.open >= self.limits.running + self.limits.waiting:
            raise self.busy(f"{self.open} requests are open, which is as many as are taken")
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1

    @contextmanager
    def holding(self) -> Iterator["Held"]:
        """Account for the bytes of one body until its request is answered."""
        held = Held(self)
        try:
            yield held
        finally:
            self.held -= held.bytes

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a place to judge one item."""
        async with self._slots:
            self.running += 1
            began = time.monotonic()
            try:
                yield
            finally:
                self.running -= 1
                self._usual_s += (time.monotonic() - began - self._usual_s) / 16

    def busy(self, why: str) -> Refusal:
        """Return the refusal that says when to ask again."""
        rounds = max(1, self.open) / self.limits.running
        wait = min(max(1, math.ceil(rounds * self._usual_s)), _LONGEST_RETRY_S)
        return Refusal(429, "busy", f"{why}: ask again in {wait} s", {"Retry-After": str(wait)})


class Held:
    """The bytes of one body."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.bytes = 0

    def check(self, count: int) -> None:
        """Raise Refusal where so many more could not be held: 413 for one body, 429 for all."""
        limits = self._gate.limits
        if self.bytes + count > limits.body_bytes:
            raise Refusal(
                413, "too_large", f"the body is longer than {limits.body_bytes} bytes: split it"
            )
        if self._gate.held + count > limits.held_bytes:
            raise self._gate.busy("the bodies of open requests fill the memory set aside for them")

    def add(self, count: int) -> None:
        """Hold more of it. Raises Refusal as ``check`` does."""
        self.check(count)
        self.bytes += count
        self._gate.held += count
