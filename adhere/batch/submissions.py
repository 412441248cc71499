"""What was submitted in batches and is not in a journal yet: one small file beside the journal.

It is written before each step that a killed job must not forget: before a file is uploaded, before
a batch is created from it, and when one is created. So the next call finds every batch that is
paid for, and submits none of its requests again.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from adhere.errors import JournalError
from adhere.jsonio import read_bytes, write_json

# Endpoints delete a batch's files after 30 days.
_KEPT_S = 29 * 24 * 3600.0


@dataclass(slots=True)
class Submission:
    """One file of requests: ``ids`` in its order, and what the endpoint calls file and batch.

    ``name`` is the file's own, which no other has; ``done`` are the ids that were received.
    """

    ids: list[str]
    name: str = field(default_factory=lambda: f"adhere-{uuid4().hex}.jsonl")
    file_id: str | None = None
    batch_id: str | None = None
    since: float = field(default_factory=time.time)
    done: list[str] = field(default_factory=list)

    @property
    def open(self) -> set[str]:
        """The ids that were not received yet."""
        return set(self.ids).difference(self.done)


_SUBMISSIONS = TypeAdapter(list[Submission])


class Submissions:
    """All submissions of one journal. Whoever holds the journal's lock may use them.

    Raises JournalError for a file that cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._all = [s for s in _read(path) if time.time() - s.since < _KEPT_S]
        self._by_id = {i: s for s in self._all for i in s.open}

    def holding(self, request_id: str) -> Submission | None:
        """Return the submission of a request that is in a batch and was not received yet."""
        found = self._by_id.get(request_id)
        return found if found is not None and found.batch_id is not None else None

    def unfinished(self) -> list[Submission]:
        """Return those without a batch: their upload, or what should follow it, was cut short."""
        return [s for s in self._all if s.batch_id is None]

    def add(self, ids: Sequence[str]) -> Submission:
        """Note a file that is about to be uploaded."""
        submission = Submission(list(ids))
        self._all.append(submission)
        self._by_id |= dict.fromkeys(ids, submission)
        self.save()
        return submission

    def received(self, submission: Submission, ids: Sequence[str]) -> None:
        """Let go of what was received; ``save`` makes it last, once it is journaled."""
        submission.done.extend(ids)
        for request_id in ids:
            if self._by_id.get(request_id) is submission:
                del self._by_id[request_id]
        if len(submission.done) == len(submission.ids):
            self.drop(submission)

    def drop(self, submission: Submission) -> None:
        """Forget a submission; ``save`` makes it last."""
        self._all = [s for s in self._all if s is not submission]
        self._by_id = {i: s for i, s in self._by_id.items() if s is not submission}

    def save(self) -> None:
        """Write the file; without submissions there is none."""
        if self._all:
            write_json(self._path, [asdict(s) for s in self._all], indent=False)
        else:
            self._path.unlink(missing_ok=True)


def _read(path: Path) -> list[Submission]:
    if not path.exists():
        return []
    try:
        return _SUBMISSIONS.validate_json(read_bytes(path))
    except ValidationError as error:
        raise JournalError(
            f"{path}: is no list of submitted batches ({error.error_count()} problems): repair it, "
            "or delete it, and what the endpoint has not answered yet is asked and paid for again"
        ) from None
