"""Following one batch at the endpoint until it has ended, and what each of its requests came to."""

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adhere.batch.lines import UNANSWERED, read_results, rejection
from adhere.batch.provider import Provider
from adhere.batch.submissions import Submission
from adhere.client import Failure, Reply
from adhere.client.error_body import ErrorBody

if TYPE_CHECKING:
    from openai.types import Batch

_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_LOG = logging.getLogger("adhere")


@dataclass(frozen=True, slots=True)
class Pace:
    """Waits in seconds.

    quiet_s: without a new request, before those that wait are sent. first_s: before a batch is
    asked about for the second time; half as long again each time, up to longest_s.
    """

    quiet_s: float = 1.0
    first_s: float = 1.0
    longest_s: float = 60.0


async def results_of(
    provider: Provider, submission: Submission, pace: Pace, owner: str
) -> dict[str, Reply | Failure]:
    """Wait until a batch has ended; return what every one of its requests came to.

    Raises EndpointError when the endpoint refuses or stays away.
    """
    assert submission.batch_id is not None, "a batch is followed once it is created"
    batch = await _ended(provider, submission.batch_id, pace, owner)
    found: dict[str, Reply | Failure] = {}
    told = f"batch {submission.batch_id} "
    if batch is None:
        told += "is gone at the endpoint"
    else:
        told += f"is {batch.status} without an answer to it"
        for file_id in filter(None, (batch.error_file_id, batch.output_file_id)):
            found |= read_results(await provider.content(file_id))
        found |= _rejections(submission, batch)
    missing = Failure(UNANSWERED, told, retryable=True)
    return {request_id: found.get(request_id, missing) for request_id in submission.ids}


async def _ended(provider: Provider, batch_id: str, pace: Pace, owner: str) -> "Batch | None":
    wait, shown = pace.first_s, ""
    while (batch := await provider.batch(batch_id)) is not None:
        counts = batch.request_counts
        answered = f"{counts.completed} of {counts.total} answered" if counts else ""
        failed = f"{counts.failed} failed" if counts and counts.failed else ""
        standing = ", ".join(filter(None, (batch.status.replace("_", " "), answered, failed)))
        if standing != shown:
            _LOG.info("%s: batch %s: %s", owner, batch_id, standing)
            shown = standing
        if batch.status in _ENDED:
            break
        await asyncio.sleep(wait)
        wait = min(1.5 * wait, pace.longest_s)
    return batch


def _rejections(submission: Submission, batch: "Batch") -> dict[str, Failure]:
    """Return what validation found: about single lines, else about all of them alike."""
    if batch.status != "failed":
        return {}
    errors = (batch.errors.data if batch.errors else None) or []
    named = {
        error.line: rejection(
            ErrorBody(error.message or "", label=error.code or "", param=error.param or ""),
            of_line=error.line is not None,
        )
        for error in errors
    }
    lines = {
        submission.ids[line - 1]: failure
        for line, failure in named.items()
        if line is not None and 1 <= line <= len(submission.ids)
    }
    if lines or not named:
        return lines
    return dict.fromkeys(submission.ids, next(iter(named.values())))
