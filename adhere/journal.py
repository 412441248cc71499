"""Journals: one JSON line for each finished unit of paid work, kept whatever happens to the job.

A line is ``{"fp": FINGERPRINT, …}``. The fingerprint covers everything that can change the unit's
result, so a line is either exactly what is needed or ignored; the last line of a fingerprint
counts. Lines are appended with one write each; a torn last line is cut before appending.
"""

import logging
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from adhere.errors import JournalError
from adhere.jsonio import dumps, lines, loads
from adhere.locks import lock

Entry = dict[str, Any]
# Says what is wrong with an entry, beyond its being none; None where nothing is.
Check = Callable[[Entry], object | None]
_LOG = logging.getLogger("adhere")


class Journal:
    """An open journal; a context manager that holds an exclusive lock on its file.

    Raises JournalError when another process holds the journal for ``patience_s`` seconds, or when
    it cannot be written (a full disk): what had been written before stays intact.

    ``lines_read`` is the number of lines found on opening, ``problems`` says what is wrong with
    those of them that are passed over, since they are no journal lines or do not pass ``check``.
    """

    def __init__(
        self, path: Path, check: Check | None = None, *, patience_s: float = 3600.0
    ) -> None:
        self.path = path
        self._check = check
        self._patience_s = patience_s
        self.lines_read = 0
        self.problems: list[str] = []
        self._entries: dict[str, Entry] = {}
        self._handle = -1
        self._end = 0

    def __enter__(self) -> "Journal":
        try:
            self._open()
        except BlockingIOError:
            raise JournalError(
                f"{self.path}: another process has been writing this journal for "
                f"{self._patience_s:.0f} s: wait until it ends, and start again"
            ) from None
        except OSError as error:
            raise JournalError(
                f"{self.path}: cannot be opened: {error.strerror}: correct the path or its rights"
            ) from error
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self._handle)

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._wait_for_lock()
            self._recover()
        except BaseException:
            os.close(self._handle)
            raise

    def _wait_for_lock(self) -> None:
        """Wait for another job that shares the journal, such as that of a limited run."""
        # Where the file system has no locks, the workflow's own lock must do.
        deadline = time.monotonic() + self._patience_s
        told = False
        while True:
            try:
                lock(self._handle, wait=False)
                return
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise
            if not told:
                _LOG.info("waiting for another job that writes %s", self.path)
                told = True
            time.sleep(0.1)

    def _recover(self) -> None:
        """Read every line; end or cut what a killed writer left unfinished at the end."""
        whole = self.path.read_bytes()
        tail = whole[whole.rfind(b"\n") + 1 :]
        # A JSON object that is closed is complete: only its newline is missing.
        complete = not tail or bool(parse(tail)[0])
        kept = whole if complete else whole[: -len(tail)]
        self.lines_read = sum(1 for _ in lines(kept))
        self._entries, self.problems = parse(kept, self._check)
        self._refuse_if_hardly_readable()
        if tail and complete:
            os.pwrite(self._handle, b"\n", len(whole))
        elif tail:
            os.ftruncate(self._handle, len(kept))
        self._end = os.lseek(self._handle, 0, os.SEEK_END)
        if self.problems:
            _LOG.warning(
                "warning: %s: %d of its lines are passed over (what they held is asked again where "
                "it is wanted); the first: %s",
                self.path,
                len(self.problems),
                self.problems[0],
            )

    def _refuse_if_hardly_readable(self) -> None:
        """Raise JournalError before what a damaged file holds is paid for once more."""
        if 2 * len(self.problems) > self.lines_read:
            raise JournalError(
                f"{self.path}: {len(self.problems)} of its {self.lines_read} lines cannot be read "
                f"({self.problems[0]}), and what they hold would be asked again: bring back a copy "
                "of the file, or move it away if all is to be asked again"
            )

    def get(self, fp: str) -> Entry | None:
        """Return the last entry of a fingerprint, or None."""
        return self._entries.get(fp)

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, fp: str, entry: Mapping[str, Any]) -> Entry:
        """Write one finished unit and return its entry."""
        line: Entry = {"fp": fp, **entry}
        data = dumps(line) + b"\n"
        try:
            _write_all(self._handle, data)
        except OSError as error:
            # A partial line would swallow the next one.
            os.ftruncate(self._handle, self._end)
            os.lseek(self._handle, self._end, os.SEEK_SET)
            raise JournalError(
                f"{self.path}: cannot be written: {error.strerror}; everything answered before "
                "is kept: make room and start again"
            ) from error
        self._end += len(data)
        self._entries[fp] = line
        return line


def _write_all(handle: int, data: bytes) -> None:
    """Write everything; a disk that takes only a part says why at the next attempt."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def parse(raw: bytes, check: Check | None = None) -> tuple[dict[str, Entry], list[str]]:
    """Return the last entry of each fingerprint, and what is wrong with each line passed over."""
    entries: dict[str, Entry] = {}
    problems = []
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = loads(line)
        except (ValueError, RecursionError) as error:
            problems.append(f"line {number}: is no JSON: {error}")
            continue
        if not isinstance(entry, dict) or not isinstance(entry.get("fp"), str):
            problems.append(f"line {number}: is no object with a text 'fp'")
        elif check and (wrong := check(entry)):
            problems.append(f"line {number}: {wrong}")
        else:
            entries[entry["fp"]] = entry
    return entries, problems


def read(path: Path, check: Check | None = None) -> dict[str, Entry]:
    """Return a journal's entries without opening it for writing; empty where there is none."""
    try:
        return parse(path.read_bytes(), check)[0]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise JournalError(f"{path}: cannot be read: {error.strerror}") from error
