"""Carries requests to an endpoint in batches, keeps to the budget, and brings their outcomes back.

A batch that was created is paid for. So it is noted before anything can be lost, joined by every
later call that wants one of its requests, and let go only when its outcomes are in the journal.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from adhere.batch import lines
from adhere.batch.follow import Pace, results_of
from adhere.batch.lines import QUEUE_FULL, Request, in_files
from adhere.batch.provider import Provider
from adhere.batch.submissions import Submission, Submissions
from adhere.client import Endpoint, Failure, Reply
from adhere.costs.budget import Allowance
from adhere.costs.ledger import Amount

# A batch of fewer requests saves too little to wait for it.
LEAST = 20
# By request id: what it came to, or None where it is to be asked live.
Outcomes = Mapping[str, Reply | Failure | None]
_LOG = logging.getLogger("adhere")


class Receiver(Protocol):
    """Whoever waits for what the courier brings."""

    def hand_out(self, outcomes: Outcomes, /) -> list[str]:
        """Take outcomes; return the ids of those that somebody waited for."""

    def fail(self, error: BaseException, /) -> None:
        """Take an error of the endpoint that concerns every request."""


class Courier:
    """The batches of one stage; ``path`` is the file that remembers them."""

    def __init__(
        self,
        endpoint: Endpoint,
        allowance: Allowance | None,
        path: Path,
        pace: Pace,
        receiver: Receiver,
    ) -> None:
        self._endpoint = endpoint
        self._allowance = allowance
        self._pace = pace
        self._receiver = receiver
        self._one_sends = asyncio.Lock()
        self._submissions = Submissions(path)
        self._provider = Provider(endpoint)
        self._tasks: set[asyncio.Task[None]] = set()
        # What is set aside for each submission on its way, by the name of its file.
        self._on_the_way: dict[str, Amount] = {}
        self._most = lines.MOST_REQUESTS
        # Requests that wait until a batch on the way has ended.
        self._held: list[Request] = []

    async def close(self) -> None:
        """Stop following; what was submitted goes on at the endpoint, and is noted."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._on_the_way:
            owner, number = self._endpoint.owner, len(self._on_the_way)
            left = f"{owner}: batches that go on at the endpoint: {number}: start again to collect"
            _LOG.warning("%s them", left)
        await self._provider.close()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work beside the stage."""

        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                self._receiver.fail(error)

        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(done)

    def join(self, request: Request) -> bool:
        """Wait for a batch that holds the request already; False where none does."""
        submission = self._submissions.holding(request.id)
        if submission is None:
            return False
        self._join(submission, [request])
        return True

    def _join(self, submission: Submission, requests: Sequence[Request]) -> None:
        aside = Amount()
        if self._allowance is not None:
            aside = self._allowance.set_aside([request.bound for request in requests])
        if submission.name in self._on_the_way:
            self._on_the_way[submission.name] += aside
        else:
            _LOG.info("%s: batch %s is joined", self._endpoint.owner, submission.batch_id)
            self._see_through(submission, requests, aside)

    async def send(self, requests: Sequence[Request]) -> None:
        """Submit requests; hold back what earlier batches leave no room for.

        Too few for a batch, or for what is left of the budget, are handed back to be asked live.
        """
        async with self._one_sends:
            for group in in_files(await self._taken_up(requests), self._most):
                self._send_group(group)

    def _send_group(self, group: Sequence[Request]) -> None:
        narrow = self._most < lines.MOST_REQUESTS and bool(self._on_the_way)
        fitting, aside = (0, Amount()) if narrow else self._reserve(group)
        if fitting >= LEAST:
            submission = self._submissions.add([request.id for request in group[:fitting]])
            self._see_through(submission, group[:fitting], aside)
            self._held += group[fitting:]
            return
        self._release(aside)
        if len(group) >= LEAST and self._on_the_way:
            self._held += group
        else:
            self._receiver.hand_out({request.id: None for request in group})

    async def _taken_up(self, requests: Sequence[Request]) -> list[Request]:
        """Go on with what a killed job left between two steps; return the requests in none of it.

        A file of which no batch was made yet is used where all of its requests are wanted.
        """
        left = {request.id: request for request in requests}
        for submission in self._submissions.unfinished():
            if submission.name in self._on_the_way:
                continue
            await self._look_for(submission)
            wanted = [left[i] for i in submission.ids if i in left]
            if submission.batch_id is not None:
                if wanted:
                    self._join(submission, wanted)
            elif not await self._reused(submission, wanted):
                continue
            for request in wanted:
                del left[request.id]
        self._submissions.save()
        return list(left.values())

    async def _look_for(self, submission: Submission) -> None:
        """Find out how far a submission came."""
        if submission.file_id is None:
            submission.file_id = await self._provider.uploaded(submission.name)
        if submission.file_id is not None:
            submission.batch_id = await self._provider.submitted(submission.file_id)

    async def _reused(self, submission: Submission, wanted: Sequence[Request]) -> bool:
        """Make a batch of an uploaded file, or delete it where it holds what nobody wants."""
        if submission.file_id is not None and len(wanted) == len(submission.ids):
            fitting, aside = self._reserve(wanted)
            if fitting == len(wanted):
                self._see_through(submission, wanted, aside)
                return True
            self._release(aside)
        if submission.file_id is not None:
            await self._provider.delete(submission.file_id)
        self._submissions.drop(submission)
        return False

    def _see_through(
        self, submission: Submission, requests: Sequence[Request], aside: Amount
    ) -> None:
        self._on_the_way[submission.name] = aside
        self.start(self._to_the_end(submission, requests))

    async def _to_the_end(self, submission: Submission, requests: Sequence[Request]) -> None:
        """Upload, create, wait and hand out, from wherever a submission stands."""
        if submission.file_id is None:
            content = b"".join(request.line for request in requests)
            submission.file_id = await self._provider.upload(submission.name, content)
            self._submissions.save()
        if submission.batch_id is None:
            submission.batch_id = await self._provider.submit(submission.file_id)
            self._submissions.save()
        owner = self._endpoint.owner
        outcomes = await results_of(self._provider, submission, self._pace, owner)
        if _queue_full(outcomes.values()):
            # The endpoint takes less at a time: smaller files, one after the other.
            self._most = max(LEAST, len(submission.ids) // 2)
            await asyncio.sleep(self._pace.longest_s)
        await self._settle(submission, outcomes)
        held, self._held = self._held, []
        await self.send(held)

    async def _settle(
        self, submission: Submission, outcomes: Mapping[str, Reply | Failure]
    ) -> None:
        # What came to nothing is let go even where nobody waits for it in this call.
        lost = [i for i, outcome in outcomes.items() if isinstance(outcome, Failure)]
        replies = {i: outcome for i, outcome in outcomes.items() if isinstance(outcome, Reply)}
        self._submissions.received(submission, lost)
        received = self._receiver.hand_out(replies)
        self._submissions.received(submission, received)
        if self._allowance is not None:
            for request_id in received:
                self._allowance.take(replies[request_id].usage)
        self._release(self._on_the_way.pop(submission.name))
        # Replies first: a failure may end the stage, and they are journaled by then.
        await asyncio.sleep(0)
        self._submissions.save()
        self._receiver.hand_out({i: outcomes[i] for i in lost})

    def _reserve(self, requests: Sequence[Request]) -> tuple[int, Amount]:
        """Set aside what requests may take; return for how many of them that could be done."""
        if self._allowance is None:
            return len(requests), Amount()
        if self._allowance.refusal() is not None:
            return 0, Amount()
        amounts = self._allowance.reserve([request.bound for request in requests])
        return len(amounts), sum(amounts, Amount())

    def _release(self, aside: Amount) -> None:
        if self._allowance is not None:
            self._allowance.release(aside)


def _queue_full(outcomes: Iterable[Reply | Failure]) -> bool:
    return any(isinstance(o, Failure) and o.kind == QUEUE_FULL for o in outcomes)
