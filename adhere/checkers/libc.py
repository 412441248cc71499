"""Functions of the C library that the server and its checks call at each check.

They are called with the interpreter's lock held (PyDLL), and tell of a failure by what they return:
the server has one thread, and a lock let go or an exception made is memory written for nothing.
"""

import ctypes
import os
from typing import Final

_libc: Final = ctypes.PyDLL(None, use_errno=True)
_quiet: Final = ctypes.PyDLL(None)

setsid: Final = _quiet.setsid
prctl: Final = _quiet.prctl
syscall: Final = _quiet.syscall
syscall.restype = ctypes.c_long
kill: Final = _quiet.kill
write: Final = _quiet.write
waitpid: Final = _quiet.waitpid
_fork: Final = _libc.fork

# Ways to allocate, and the sizes that each has free blocks of in lists: Python's own up to 512
# bytes, the C library beyond.
_ALLOCATORS: Final = (
    (ctypes.pythonapi.PyObject_Malloc, range(16, 513, 16)),
    (_quiet.malloc, (1 << 15, 1 << 14, 1 << 13, 1 << 12, 1 << 11, *range(1 << 10, 512, -16))),
)
for _allocate, _ in _ALLOCATORS:
    _allocate.argtypes = (ctypes.c_size_t,)
    _allocate.restype = ctypes.c_size_t
_HEADER: Final = 16  # bytes that malloc puts before a block
_IN_A_ROW: Final = 5
_MOST_BYTES: Final = 1 << 18  # of each size


def fork() -> int:
    """Fork without what ``os.fork`` does for threads, of which there are none here.

    Return 0 in the new process, its id in the other. Raises OSError.
    """
    pid: int = _fork()
    if pid < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return pid


def use_up_free_memory() -> None:
    """Take the blocks that were freed and lie scattered, for good.

    What a forked process allocates then comes from pages of its own, one block after the other: it
    copies fewer. Blocks of each size are taken until some come in a row.
    """
    for allocate, sizes in _ALLOCATORS:
        for size in sizes:
            last = row = 0
            for _ in range(_MOST_BYTES // size):
                address = allocate(size)
                row = row + 1 if 0 <= address - last - size <= _HEADER else 0
                if row == _IN_A_ROW:
                    break
                last = address
