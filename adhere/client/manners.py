"""When a client may send: within its share of the endpoint's limits, and as the provider asks."""

import asyncio
import logging
import random
import time
from contextlib import suppress
from dataclasses import dataclass

from adhere.client.endpoint import ClientCounts, Endpoint
from adhere.client.pacing import Backoff, Pace, TokenEstimate
from adhere.client.reply import Failure, Reply
from adhere.client.sharing import FOLDER_VARIABLE, Membership, Share, folder_of
from adhere.client.slots import Slots
from adhere.costs.tokens import tokens_of

_EXCHANGE_S = 0.5
# A client that may send nothing looks again sooner, as does one whose look was in another's way.
_SOON_S = 0.1
_BUSY_S = 0.01
# Longest sleep before a rate is looked at again.
_STEP_S = 0.1
# After a pause requests do not set out all at once.
_SPREAD_S = 0.25
_LOG = logging.getLogger("adhere")


@dataclass(frozen=True, slots=True)
class Turn:
    """Leave to send one request: the back-off's round, and the tokens booked for it."""

    round: int
    tokens: int


class Manners:
    """What one client observes; an async context manager.

    A request is in flight inside ``slots``; before each attempt it awaits its ``turn``, and
    ``learn`` takes what became of it.
    """

    def __init__(self, endpoint: Endpoint, counts: ClientCounts) -> None:
        now = time.monotonic()
        self._endpoint = endpoint
        self._counts = counts
        self.slots = Slots(endpoint.concurrency)
        self._share = endpoint.concurrency
        self._backoff = Backoff(endpoint.concurrency, counts)
        self._estimate = TokenEstimate(endpoint.budget)
        rpm, tpm = endpoint.requests_per_minute, endpoint.tokens_per_minute
        self._requests = Pace(rpm, now) if rpm is not None else None
        self._tokens = Pace(tpm, now) if tpm is not None else None
        self._paces = [pace for pace in (self._requests, self._tokens) if pace is not None]
        self._line = asyncio.Lock()
        self._paused_until = now
        self._membership: Membership | None = None
        self._exchanges: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Manners":
        if self._endpoint.shared:
            try:
                self._begin_to_share()
            except (OSError, RuntimeError) as error:  # the latter where there is no home
                self._go_alone(error)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._exchanges is not None:
            self._exchanges.cancel()
        if self._membership is not None:
            self._membership.leave()

    async def turn(self, size: int) -> Turn:
        """Wait until a request of ``size`` bytes may be sent, and count it as sent."""
        if not self._paces:
            while (rest := self._paused_until - time.monotonic()) > 0:
                await asyncio.sleep(rest + random.uniform(0, min(rest, _SPREAD_S)))
            return Turn(self._backoff.round, 0)
        async with self._line:
            while (rest := self._longest_wait()) > 0:
                # In steps: the share changes, and replies correct what was booked.
                await asyncio.sleep(min(rest, _STEP_S))
            # Estimated only now, when more replies are known.
            tokens = self._estimate.of(size) if self._tokens is not None else 0
            if self._requests is not None:
                self._requests.book(1)
            if self._tokens is not None:
                self._tokens.book(tokens)
        return Turn(self._backoff.round, tokens)

    def learn(self, turn: Turn, outcome: Reply | Failure) -> None:
        """Take note of what a request came to."""
        refused = isinstance(outcome, Failure) and _asks_for_less(outcome)
        tells = refused or isinstance(outcome, Reply)
        if tells and self._backoff.learn(turn.round, refused=refused):
            self._resize()
        if isinstance(outcome, Reply):
            self._correct(turn, outcome)
        elif refused:
            self._counts.throttled += 1
            self._pause(outcome.retry_after_s or 0.0)

    def _correct(self, turn: Turn, reply: Reply) -> None:
        if self._tokens is None:
            return
        took = tokens_of(reply.usage)
        if not took.unmetered:
            self._tokens.book(took.total - turn.tokens)
            self._estimate.learn(took.completion)

    def _pause(self, seconds: float) -> None:
        """Send nothing for so long, as far as the configured patience goes."""
        now = time.monotonic()
        until = now + min(seconds, self._endpoint.retry.max_wait_s)
        longer = until - max(now, self._paused_until)
        if longer > 0:
            self._counts.throttled_s += longer
            self._paused_until = until

    def _longest_wait(self) -> float:
        now = time.monotonic()
        return max(self._paused_until - now, *(pace.delay(now) for pace in self._paces))

    def _resize(self) -> None:
        self.slots.size = min(self._share, self._backoff.size)

    def _begin_to_share(self) -> None:
        folder = folder_of(self._endpoint.base_url, self._endpoint.api_key)
        self._membership = membership = Membership(folder, self._endpoint.concurrency)
        self._take(Share(0, 0.0))
        wait_s = self._exchange(membership)
        self._exchanges = asyncio.create_task(self._keep_exchanging(membership, wait_s))

    async def _keep_exchanging(self, membership: Membership, wait_s: float) -> None:
        while True:
            await asyncio.sleep(random.uniform(0.8, 1.2) * wait_s)
            # A share that cannot be renewed just now stays as it is: the others know it.
            with suppress(OSError):
                wait_s = self._exchange(membership)

    def _exchange(self, membership: Membership) -> float:
        """Learn this client's share; return the seconds until it is to be looked at again."""
        share = membership.exchange(self.slots.taken, self.slots.demand())
        if share is None:
            return _BUSY_S
        self._take(share)
        return _EXCHANGE_S if share.slots else _SOON_S

    def _take(self, share: Share) -> None:
        self._share = share.slots
        now = time.monotonic()
        for pace in self._paces:
            pace.take_share(share.part, now)
        self._resize()

    def _go_alone(self, error: OSError | RuntimeError) -> None:
        self._take(Share(self._endpoint.concurrency, 1.0))
        _LOG.warning(
            "warning: %s: its limits are not shared with other jobs that call %s: %s: name a "
            "folder that can be written and has locks in %s",
            self._endpoint.owner,
            self._endpoint.base_url,
            error,
            FOLDER_VARIABLE,
        )


def _asks_for_less(failure: Failure) -> bool:
    """Whether a provider means that too much is asked of it; a 503 alone may mean anything."""
    overloaded = failure.status == 529 or (
        failure.status == 503 and failure.retry_after_s is not None
    )
    return failure.kind == "rate_limited" or overloaded
