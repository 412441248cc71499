"""A seccomp filter from a table of rules: assembled here and handed to the kernel.

The filter is a classic BPF program over ``struct seccomp_data`` {int nr; u32 arch; u64 ip;
u64 args[6]}. It is written here rather than by libseccomp, which would be a C library to install
beside the Python packages. Both architectures are little endian. See seccomp(2), linux/filter.h.
"""

import ctypes
import errno
import struct
from collections.abc import Callable, Iterable, Mapping
from os import getpid
from typing import Final, NamedTuple

from adhere.checkers.libc import prctl
from adhere.checkers.syscalls import audit_arch, table

ALLOW: Final = 0x7FFF0000
_KILL_PROCESS: Final = 0x80000000
_ERRNO: Final = 0x00050000
DENY: Final = _ERRNO | errno.EPERM
# glibc takes this for an old kernel, and tries the call's predecessor.
UNKNOWN: Final = _ERRNO | errno.ENOSYS

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_INSTRUCTION: Final = struct.Struct("=HBBI")
_FULL: Final = 0xFFFFFFFF
_NR, _ARCH, _ARGS = 0, 4, 16

_PR_SET_SECCOMP: Final = 22
_SECCOMP_MODE_FILTER: Final = 2


class Among(NamedTuple):
    """A condition: one 32-bit word of the arguments, masked, is one of ``values``.

    ``word`` counts from the first argument, two to each, the low one first.
    """

    word: int
    values: tuple[int, ...]
    mask: int = _FULL


def argument(index: int, *values: int, mask: int = _FULL) -> Among:
    """The low half of an argument (counted from 0), masked, is one of ``values``."""
    return Among(2 * index, values, mask)


def null(index: int) -> tuple[Among, Among]:
    """An argument is 0 in all its 64 bits."""
    return Among(2 * index, (0,)), Among(2 * index + 1, (0,))


# What a call comes to: an action, or the conditions that must all hold for it to be allowed.
Rule = int | tuple[Among, ...]


class _Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class Filter:
    """A program in memory, ready to be installed."""

    def __init__(self, program: bytes) -> None:
        """Take a program."""
        self._words = (ctypes.c_uint32 * (len(program) // 4)).from_buffer_copy(program)
        length = len(program) // _INSTRUCTION.size
        self._program = _Program(length, ctypes.addressof(self._words))

    def install(self) -> None:
        """Put the current thread, and all it starts, under this filter for good.

        Needs no_new_privs or CAP_SYS_ADMIN. Raises OSError where the kernel refuses.
        """
        self.step()()

    def step(self, blank: int | None = None) -> Callable[[], None]:
        """Return a function that does so in a forked process (see confine.py).

        ``blank`` is the operand that stands for that process's own id.
        """
        words = self._words
        places = [place for place in range(1, len(words), 2) if words[place] == blank]
        arguments = (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(self._program), 0, 0)

        def install() -> None:
            pid = getpid()
            for place in places:
                words[place] = pid
            if prctl(*arguments) != 0:
                raise OSError("the kernel refuses a seccomp filter")

        return install


def assemble(machine: str, rules: Mapping[str, Rule], default: int) -> bytes:
    """Return the program for a machine; calls that the machine lacks are passed over.

    A call made for another architecture (32-bit code on a 64-bit kernel) ends the process.
    """
    numbers = table(machine)
    code = [
        _op(_LOAD, _ARCH),
        _op(_EQUAL, audit_arch(machine), jump_true=1),
        _op(_RETURN, _KILL_PROCESS),
        _op(_LOAD, _NR),
    ]
    for name, rule in rules.items():
        if name in numbers:
            body = [_op(_RETURN, rule)] if isinstance(rule, int) else _conditions(rule)
            code += [_op(_EQUAL, numbers[name], jump_false=len(body)), *body]
    return b"".join([*code, _op(_RETURN, default)])


def _conditions(tests: Iterable[Among]) -> list[bytes]:
    """Return code that allows where all tests hold and refuses otherwise."""
    code = []
    for test in tests:
        code.append(_op(_LOAD, _ARGS + 4 * test.word))
        if test.mask != _FULL:
            code.append(_op(_AND, test.mask))
        # Each comparison that holds jumps over those that follow it, and over the refusal.
        code += [
            _op(_EQUAL, value, jump_true=len(test.values) - place)
            for place, value in enumerate(test.values)
        ]
        code.append(_op(_RETURN, DENY))
    return [*code, _op(_RETURN, ALLOW)]


def _op(code: int, operand: int, *, jump_true: int = 0, jump_false: int = 0) -> bytes:
    return _INSTRUCTION.pack(code, jump_true, jump_false, operand)
