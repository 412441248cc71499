"""A client whose requests travel in batches: those that wait at the same time go out together.

Stages use it like any other client, with as many chains waiting as there are requests. When no new
request has come for a moment, what waits is uploaded as one file (or several); a chain's next
question, and a reply that has to be asked for again, go with the next one. A rest that is too small
for a batch is asked live.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adhere.batch.courier import Courier, Outcomes
from adhere.batch.follow import Pace
from adhere.batch.lines import MOST_REQUESTS, QUEUE_FULL, Request, request_of
from adhere.client import Endpoint, Failure, Reply
from adhere.client.chat import NOT_REPEATED
from adhere.costs.budget import Allowance, MeteredClient

# How often a request goes into a batch before a failure counts, by its kind.
_ROUNDS = 3
_MORE_ROUNDS = {QUEUE_FULL: 30}


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A request and whoever waits for it; None in the future says that it is to be asked live."""

    request: Request
    future: asyncio.Future[Reply | Failure | None]


class BatchClient(MeteredClient):
    """Asks through the endpoint's batches; ``path`` is the file that remembers them.

    A budget is kept by setting aside, before a batch is created, the most that its requests can
    take; what does not fit waits until an earlier batch took less, or is asked live.
    """

    def __init__(
        self, endpoint: Endpoint, allowance: Allowance | None, path: Path, pace: Pace | None = None
    ) -> None:
        super().__init__(endpoint, allowance)
        self._path = path
        self._pace = pace or Pace()
        self._waiting: dict[str, _Waiting] = {}
        self._unsent: list[str] = []
        self._sending = False
        self._made: Courier | None = None

    async def __aexit__(self, *error: object) -> None:
        if self._made is not None:
            await self._made.close()
        await super().__aexit__(*error)

    @property
    def width(self) -> int:
        """As many requests as fit into a file."""
        return MOST_REQUESTS

    @property
    def _courier(self) -> Courier:
        # Made with the first request: by then the stage holds its journal's lock.
        if self._made is None:
            self._made = Courier(self.endpoint, self._allowance, self._path, self._pace, self)
        return self._made

    async def complete(self, payload: Mapping[str, Any], key: str = "", /) -> Reply | Failure:
        """Have one chat request answered by a batch, again while that may help, or live."""
        request = request_of(payload, key)
        rounds: Counter[str] = Counter()
        # Requests that are the same to the last bit, their key included, cannot share a file.
        while request.id not in self._waiting:
            outcome = await self._by_batch(request)
            if outcome is None:
                break
            if isinstance(outcome, Reply) or not _again(outcome, rounds):
                return self._settled(outcome)
            self.counts.retries += 1
        return await super().complete(payload, key)

    async def _by_batch(self, request: Request) -> Reply | Failure | None:
        """Wait for the batch that a request is in, or will be in."""
        future: asyncio.Future[Reply | Failure | None] = asyncio.get_running_loop().create_future()
        self._waiting[request.id] = _Waiting(request, future)
        if not self._courier.join(request):
            self._unsent.append(request.id)
            if not self._sending:
                self._sending = True
                self._courier.start(self._send_when_quiet())
        try:
            return await future
        finally:
            del self._waiting[request.id]

    async def _send_when_quiet(self) -> None:
        while seen := len(self._unsent):
            await asyncio.sleep(self._pace.quiet_s)
            if seen == len(self._unsent):
                ids, self._unsent = self._unsent, []
                waiting = [self._waiting[i].request for i in ids if i in self._waiting]
                await self._courier.send(waiting)
        self._sending = False

    def hand_out(self, outcomes: Outcomes) -> list[str]:
        """Give outcomes to whoever waits for them; return the ids of those."""
        wanted = [i for i in outcomes if i in self._waiting]
        for request_id in wanted:
            future = self._waiting[request_id].future
            if not future.done():
                future.set_result(outcomes[request_id])
        return wanted

    def fail(self, error: BaseException) -> None:
        """Raise an error for everyone who waits."""
        for waiting in self._waiting.values():
            if not waiting.future.done():
                waiting.future.set_exception(error)


def _again(failure: Failure, rounds: Counter[str]) -> bool:
    """Whether a failed request goes into another batch; ``rounds`` counts its failures by kind."""
    rounds[failure.kind] += 1
    passes = failure.retryable and not failure.fatal and failure.kind not in NOT_REPEATED
    return passes and rounds[failure.kind] < _MORE_ROUNDS.get(failure.kind, _ROUNDS)
