"""The server's memory, put in order before its first fork."""

import ctypes
import gc
from typing import Final

_libc: Final = ctypes.PyDLL(None)
# Ways to allocate, and sizes of which each keeps lists of free blocks: Python's own up to 512
# bytes, the C library's beyond (there a larger free block is cut up for a smaller one).
_ALLOCATORS: Final = (
    (_libc.PyObject_Malloc, range(16, 513, 16)),
    (_libc.malloc, (1 << 15, 1 << 14, 1 << 13, 1 << 12, 1 << 11, *range(1 << 10, 512, -16))),
)
for _allocate, _ in _ALLOCATORS:
    _allocate.argtypes = (ctypes.c_size_t,)
    _allocate.restype = ctypes.c_size_t
_HEADER: Final = 16  # the most bytes between two blocks in a row
_ROW: Final = 5
_MOST_BYTES: Final = 1 << 18  # of each size


def settle() -> None:
    """Collect garbage, use up what is free in pieces, and keep the collector off what is left.

    What a forked process allocates then lies in few pages, and its collector writes to none that
    it shares.
    """
    gc.collect()
    _use_up_free_blocks()
    gc.freeze()


def _use_up_free_blocks() -> None:
    """Take blocks of each size, for good, until some come in a row: those were never used."""
    for allocate, sizes in _ALLOCATORS:
        for size in sizes:
            last = row = 0
            for _ in range(_MOST_BYTES // size):
                address = allocate(size)
                row = row + 1 if 0 <= address - last - size <= _HEADER else 0
                if row == _ROW:
                    break
                last = address
