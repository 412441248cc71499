"""Advisory locks, held through open files so that the kernel releases them with the process."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adhere.errors import AdhereError

# What flock answers on file systems (of networks, mostly) that have no locks.
_WITHOUT_LOCKS = frozenset({errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK})


def lock(handle: int, *, wait: bool) -> bool:
    """Lock an open file exclusively; it is released when the file is closed.

    Returns False where its file system has no locks. Raises BlockingIOError without ``wait`` when
    somebody else holds it.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise
        return False
    return True


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on a folder; waits for others, which hold it only for moments.

    Where the file system has no locks nothing is held.
    """
    # NFS locks only what is open for writing, which a folder itself cannot be.
    handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        lock(handle, wait=True)
        yield
    finally:
        os.close(handle)


def claim(path: Path, refusal: str, owner: str = "") -> int | None:
    """Take a lock file for as long as this process lives; the handle stays open.

    The file then holds this process's pid and ``owner``, also afterwards, until the next claim.
    Raises AdhereError with ``refusal`` and the holder's pid when another process has it, and when
    the file cannot be made. Returns None where the file system has no locks.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise AdhereError(
            f"{path}: cannot be made: {error.strerror}: correct the path or its rights"
        ) from error
    try:
        held = lock(handle, wait=False)
    except BlockingIOError:
        holder = os.read(handle, 32).decode("ascii", "replace").partition("\n")[0] or "unknown"
        os.close(handle)
        raise AdhereError(f"{path}: held by process {holder}: {refusal}") from None
    os.ftruncate(handle, 0)
    os.write(handle, f"{os.getpid()}\n{owner}\n".encode())
    os.fsync(handle)  # other hosts read it
    if not held:
        os.close(handle)
        return None
    return handle


def claimed_by(path: Path) -> str:
    """Return the owner that the last claim of a lock file named; empty where none can be read."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[1] if len(lines) > 1 else ""
