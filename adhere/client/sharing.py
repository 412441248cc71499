"""Jobs that call one endpoint at the same time share its limits.

Each client keeps one small file in a folder of the endpoint, locked for as long as it lives, and
about twice a second writes into it how many requests it may have in flight. It never takes more
than the others leave, so together they stay within the limit at every moment; a client that was
killed holds no lock any more, and the others take its part.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from adhere.locks import lock

# Another folder, for machines whose home is read-only, has no locks, or is not shared by nodes.
FOLDER_VARIABLE = "ADHERE_SHARES"
# Who comes first changes this often: where there are more clients than slots, each has its turn.
_TURN_S = 5.0
_LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Share:
    """A client's part: requests it may have in flight, and its part of the rates (0 to 1)."""

    slots: int
    part: float


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a client's file says, as numbers of requests in flight.

    ``held`` may be in flight, ``wanted`` would be, ``limit`` is what its configuration allows.
    """

    held: int
    wanted: int
    limit: int

    def text(self) -> bytes:
        """Return a line of a fixed width, which one write replaces."""
        return b"%10d %10d %10d\n" % (self.held, self.wanted, self.limit)

    @classmethod
    def read(cls, text: bytes) -> "_Entry | None":
        """Read such a line; None for anything else."""
        words = text.split()
        numbers = [int(word) for word in words if word.isdigit()]
        return cls(*numbers) if len(numbers) == len(words) == 3 else None


def folder_of(base_url: str, api_key: str | None) -> Path:
    """Return the folder of an endpoint and an account there, which hold for all of a user's jobs.

    Its name tells neither: it is a hash of both.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(named) if named else cache / "adhere" / "endpoints"
    account = f"{base_url.rstrip('/')}\0{api_key or ''}".encode()
    return root / hashlib.sha256(account).hexdigest()[:32]


def allot(limit: int, wants: Sequence[int], first: int = 0) -> list[int]:
    """Divide ``limit`` slots among clients that want so many each; the sum is ``limit``.

    Nobody gets more while somebody who wants more has less, and each gets one where there are
    enough; what cannot be divided goes to the client number ``first`` and those after it. Slots
    that nobody wants are divided, too, so that they lie ready.
    """
    order = [(first + n) % len(wants) for n in range(len(wants))]
    least = 1 if len(wants) <= limit else 0
    shares, left = [0] * len(wants), limit
    hungry = [n for n in order if max(wants[n], least)]
    while left and hungry:
        part = max(1, left // len(hungry))
        for n in hungry:
            given = min(part, left, max(wants[n], least) - shares[n])
            shares[n] += given
            left -= given
        hungry = [n for n in hungry if shares[n] < wants[n]]
    for place, n in enumerate(order):
        shares[n] += left // len(wants) + (place < left % len(wants))
    return shares


class Membership:
    """One client among those that call an endpoint. Nothing here waits for anybody."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._file = folder / uuid4().hex
        self._handle: int | None = None

    def exchange(self, taken: int, wanted: int) -> Share | None:
        """Tell the others what is in flight and wanted; return what this client may have now.

        None where another client is just doing the same: try again in a moment. Raises OSError
        where the folder cannot be used, ``BlockingIOError`` apart.
        """
        handle = self._open_lock()
        try:
            if not lock(handle, wait=False):
                raise OSError(f"{self._folder}: its file system has no locks")
            self._join()
            entries = self._others()
            share, entry = self._divide(entries, taken, min(wanted, self._limit))
            self._write(entry)
        except BlockingIOError:
            return None
        finally:
            os.close(handle)
        return share

    def leave(self) -> None:
        """Give everything back to the others."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _divide(self, others: dict[str, _Entry], taken: int, wanted: int) -> tuple[Share, _Entry]:
        mine = self._file.name
        everybody = others | {mine: _Entry(0, wanted, self._limit)}
        names = sorted(everybody)
        total = max(entry.limit for entry in everybody.values())
        turn = int(time.time() / _TURN_S) % len(names)
        shares = allot(total, [everybody[name].wanted for name in names], turn)
        left = max(0, total - sum(entry.held for entry in others.values()))
        slots = min(shares[names.index(mine)], self._limit, left)
        # Requests in flight are not taken back: they count until they have come home.
        held = max(slots, taken)
        return Share(slots, held / total), _Entry(held, wanted, self._limit)

    def _open_lock(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        with suppress(FileNotFoundError):
            return os.open(self._folder / _LOCK, flags, 0o600)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(self._folder / _LOCK, flags, 0o600)

    def _join(self) -> None:
        """Have a file of one's own, and hold its lock; again, where somebody removed it."""
        if self._handle is not None and self._file.exists():
            return
        self.leave()
        self._handle = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        lock(self._handle, wait=False)

    def _write(self, entry: _Entry) -> None:
        # Opened anew, since a network's file system writes through on closing.
        handle = os.open(self._file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(handle, entry.text(), 0)
        finally:
            os.close(handle)

    def _others(self) -> dict[str, _Entry]:
        """Return what the other living clients hold; files of dead ones are removed."""
        entries = {}
        for path in self._folder.iterdir():
            if path.name in (_LOCK, self._file.name):
                continue
            with suppress(FileNotFoundError):
                entry = _living(path)
                if entry is not None:
                    entries[path.name] = entry
        return entries


def _living(path: Path) -> _Entry | None:
    """Read a client's file; None where the client has ended, and the file with it."""
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        lock(handle, wait=False)
    except BlockingIOError:
        return _Entry.read(os.pread(handle, 64, 0))
    finally:
        os.close(handle)
    path.unlink(missing_ok=True)
    return None
