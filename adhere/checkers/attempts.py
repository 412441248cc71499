"""What a confined check must not be able to do, attempted.

At the start of each server this file's text runs as a checker, in a process of its own that is
confined as a check's is: what succeeds here would succeed for any checker. Nothing is harmed where
it does. The names are those of ``isolation.DEEDS``.
"""

import ctypes
import json
import mmap
import os
import resource
import socket
import stat
from collections.abc import Callable
from pathlib import Path

_IPC_RMID = 0
_ALLOWED_ENVIRONMENT = {
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PYTHONHASHSEED",
    "TZ",
}
_libc = ctypes.CDLL(None, use_errno=True)


def check_following(response: str) -> str:
    """Try everything; ``response`` is JSON: a file of the user's ("file"), the limit ("bytes").

    Returns the names of what succeeded, as a JSON list.
    """
    given = json.loads(response)
    file = Path(given["file"])
    attempts: dict[str, Callable[[], object]] = {
        "memory": lambda: mmap.mmap(-1, given["bytes"] + 1),
        "environment": _see_environment,
        "socket": _open_socket,
        "process": _start_process,
        "program": _start_program,
        "signal": lambda: os.kill(os.getppid(), 0),
        "limits": lambda: resource.setrlimit(resource.RLIMIT_CORE, (1, 1)),
        "create": lambda: _create(file.with_suffix(".new")),
        "write": lambda: file.open("ab").close(),
        "mode": lambda: file.chmod(stat.S_IMODE(file.stat().st_mode)),
        "shared": _share_memory,
        "peek": _read_parents_memory,
        "read": file.read_bytes,
        "system": Path("/etc/passwd").read_bytes,
        "proc": Path(f"/proc/{os.getppid()}/environ").read_bytes,
    }
    return json.dumps([name for name, attempt in attempts.items() if _succeeds(attempt)])


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def _see_environment() -> None:
    if not os.environ.keys() - _ALLOWED_ENVIRONMENT:
        raise OSError("nothing but what is given to it")


def _open_socket() -> None:
    families = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK)
    errors = []
    for family in families:
        try:
            socket.socket(family, socket.SOCK_DGRAM).close()
        except OSError as error:
            errors.append(error)
    if len(errors) == len(families):
        raise errors[0]


def _start_process() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _start_program() -> None:
    try:
        os.execv("/dev/null/no-such-program", ["program"])
    except (FileNotFoundError, NotADirectoryError):
        # Only a system call that was let through gets as far as looking for the file.
        return


def _create(file: Path) -> None:
    file.touch(exist_ok=False)
    file.unlink()


def _share_memory() -> None:
    """Make a segment that would outlive the process; remove it at once where that succeeds."""
    segment = _libc.shmget(0, ctypes.c_size_t(4096), 0o600)
    if segment == -1:
        raise OSError(ctypes.get_errno(), "shmget")
    _libc.shmctl(segment, _IPC_RMID, None)


def _read_parents_memory() -> None:
    """Read a byte of the server, which has the same code at the same address as its child."""
    address = ctypes.cast(_libc.getpid, ctypes.c_void_p).value
    buffer = ctypes.create_string_buffer(1)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 1)
    remote = (ctypes.c_void_p * 2)(address, 1)
    count = _libc.process_vm_readv(
        os.getppid(), local, ctypes.c_ulong(1), remote, ctypes.c_ulong(1), ctypes.c_ulong(0)
    )
    if count != 1:
        raise OSError(ctypes.get_errno(), "process_vm_readv")
