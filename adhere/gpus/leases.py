"""Leases of devices: one lock file for each device, in a folder that all users share.

A lease is a ``flock`` and ends with the last process that holds its descriptor: the job, and the
guardian of the server, which gets the descriptor and ends only after everything of the server has.
So a device is free as soon as nothing uses it any more, however the job died, and not before.
"""

import contextlib
import getpass
import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from adhere import jsonio
from adhere.errors import AdhereError
from adhere.gpus.devices import Device
from adhere.locks import lock

# A fixed place: users whose TMPDIR differs share the GPUs all the same.
_FOLDER = Path("/tmp/adhere-gpus")
# Another folder, for tests and for machines where the fixed one will not do.
FOLDER_VARIABLE = "ADHERE_LEASES"
# Whoever holds all devices together gets them, so this lock is held for moments only.
_POOL = "pool.lock"
_POLL_S = 0.5
_REMINDER_S = 600.0


@dataclass(frozen=True, slots=True)
class Lease:
    """Devices that this process holds, and the open lock files that hold them."""

    devices: tuple[Device, ...]
    handles: tuple[int, ...]

    def release(self) -> None:
        """Give the devices back, once the processes that share the handles end, too."""
        for handle in self.handles:
            os.close(handle)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a job would lease: ``step`` devices, or a multiple of it up to ``most``; ``owner`` is
    what others are told that have to wait."""

    candidates: tuple[Device, ...]
    step: int
    most: int
    owner: str


def _say(message: str) -> None:
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


@contextlib.contextmanager
def leased(wish: Wish, say: Callable[[str], None] = _say) -> Iterator[Lease]:
    """Lease devices for the ``with`` block; wait while too few are free, saying who holds them.

    All or nothing: while it waits a job holds no device. Raises AdhereError where the shared
    folder cannot be trusted.
    """
    lease = _wait(wish, say)
    try:
        yield lease
    finally:
        lease.release()


def _wait(wish: Wish, say: Callable[[str], None]) -> Lease:
    folder = _folder()
    said: tuple[float, list[str]] | None = None
    while True:
        lease, holders = _attempt(folder, wish)
        if lease is not None:
            if said is not None:
                say(f"{wish.owner}: has its GPUs now: {_names(lease.devices)}")
            return lease
        if said is None or said[1] != holders or time.monotonic() - said[0] > _REMINDER_S:
            say(
                f"{wish.owner}: waits for {wish.step} of the GPUs {_names(wish.candidates)}; "
                f"in use: {'; '.join(holders)}"
            )
            said = time.monotonic(), holders
        time.sleep(_POLL_S)


def _attempt(folder: Path, wish: Wish) -> tuple[Lease | None, list[str]]:
    """Lease as many as are free and wanted, or none where these are too few; and say who holds
    the others."""
    taken: dict[Device, int] = {}
    holders: list[str] = []
    pool = _open(folder / _POOL)
    try:
        lock(pool, wait=True)
        for device in wish.candidates:
            if len(taken) == wish.most:
                break
            handle = _open(folder / _file_name(device))
            taken[device] = handle
            try:
                lock(handle, wait=False)
            except BlockingIOError:
                holders.append(f"{device.name} by {_holder(handle)}")
                os.close(taken.pop(device))
        kept = list(taken.items())[: len(taken) // wish.step * wish.step]
        for device, handle in kept:
            _sign(handle, device, wish.owner)
            del taken[device]
        if not kept:
            return None, holders
        devices, handles = zip(*kept, strict=True)
        return Lease(devices, handles), holders
    finally:
        for handle in (pool, *taken.values()):
            os.close(handle)


def _sign(handle: int, device: Device, owner: str) -> None:
    """Write into a lock file who holds it."""
    entry = {"device": device.key, "pid": os.getpid(), "user": _user(), "owner": owner}
    os.ftruncate(handle, 0)
    os.pwrite(handle, jsonio.dumps(entry), 0)


def _holder(handle: int) -> str:
    """Say who holds a lock file, as far as it can be read."""
    try:
        entry = jsonio.loads(os.pread(handle, 4096, 0))
        return f"process {entry['pid']} of {entry['user']} ({entry['owner']})"
    except (ValueError, KeyError, TypeError):
        return "a process that has just begun"


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())


def _names(devices: Sequence[Device]) -> str:
    return ", ".join(device.name for device in devices)


def _file_name(device: Device) -> str:
    """Return a name that no device can turn into a path, and that a person recognises."""
    readable = re.sub(r"[^A-Za-z0-9-]", "_", device.key)[:40]
    return f"{readable}.{hashlib.sha256(device.key.encode()).hexdigest()[:12]}.lock"


def _folder() -> Path:
    """Return the shared folder, made where it is missing: anybody may add files, nobody remove
    others' ones."""
    folder = Path(os.environ.get(FOLDER_VARIABLE) or _FOLDER)
    if not os.path.lexists(folder):
        _make(folder)
    # Whoever made it first may have made a link, or a folder that keeps others out.
    facts = folder.lstat()
    open_to_all = facts.st_mode & 0o1002 == 0o1002
    if not stat.S_ISDIR(facts.st_mode) or not (open_to_all or facts.st_uid == os.getuid()):
        raise AdhereError(
            f"{folder}: must be a folder that all users may write to, with the sticky bit "
            f"(chmod 1777): correct it, or name another one in {FOLDER_VARIABLE}"
        )
    return folder


def _make(folder: Path) -> None:
    """Make the shared folder; it appears with its rights, or was made by somebody else just now."""
    try:
        made = Path(mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
        made.chmod(0o1777)
        try:
            made.rename(folder)
        except OSError:
            made.rmdir()
            if not os.path.lexists(folder):
                raise
    except OSError as error:
        raise AdhereError(
            f"{folder}: cannot be made: {error.strerror}: GPUs are leased through files in it; "
            f"correct its rights, or name another folder in {FOLDER_VARIABLE}"
        ) from error


def _open(path: Path) -> int:
    """Open a lock file of whoever made it first, never through a link, nor anything but a file.

    Without O_CREAT where it exists: Linux refuses that flag for others' files in a shared folder.
    """
    for _ in range(100):
        try:
            handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                return _create(path)
            continue
        except PermissionError:
            time.sleep(0.02)  # its maker has not opened it to others yet
            continue
        except OSError as error:
            raise AdhereError(f"{path}: is no lock file: {error.strerror}: remove it") from error
        facts = os.fstat(handle)
        if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1:
            return handle
        os.close(handle)
        if facts.st_nlink:
            raise AdhereError(f"{path}: is no lock file but a link or a device: remove it")
    raise AdhereError(f"{path}: cannot be opened: remove it, or correct its rights (chmod 666)")


def _create(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(path, flags, 0o600)
    os.fchmod(handle, 0o666)
    return handle
