"""Functions of the C library that the server and its checks call at each check.

They are called with the interpreter's lock held (PyDLL), and tell of a failure by what they return:
the server has one thread, and a lock let go or an exception made is memory written for nothing.
"""

import ctypes
import os
from typing import Final

_libc: Final = ctypes.PyDLL(None)
kill: Final = _libc.kill
prctl: Final = _libc.prctl
setsid: Final = _libc.setsid
syscall: Final = _libc.syscall
syscall.restype = ctypes.c_long
waitpid: Final = _libc.waitpid
write: Final = _libc.write

_fork: Final = ctypes.PyDLL(None, use_errno=True).fork


def fork() -> int:
    """Fork without what ``os.fork`` does for threads, of which there are none here.

    Return 0 in the new process, its id in the other. Raises OSError.
    """
    pid: int = _fork()
    if pid < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return pid
