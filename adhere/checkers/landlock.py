"""Which files a check may open: installed libraries and a few devices, for reading.

Three system calls (landlock(7), linux/landlock.h) with the same numbers on every architecture,
called directly: a package for them would load more modules into the server than it saves lines.
"""

import ctypes
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from os import close
from typing import Final

from adhere.checkers.libc import syscall

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1

_WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = 1 << 2
_READ_DIR: Final = 1 << 3
# What may be denied, by the version of Landlock that knows it first. Files: opening, executing,
# creating, removing, and later moving (2), truncating (3), device ioctls (5).
_FILES: Final = ((1, (1 << 13) - 1), (2, 1 << 13), (3, 1 << 14), (5, 1 << 15))
_TCP: Final = ((4, 0b11),)
# Abstract sockets of, and signals to, processes outside.
_SCOPES: Final = ((6, 0b11),)
# Denials need no line in the system's log, of which a checker could make millions.
_QUIET: Final = ((7, 1 << 0),)

# Where the dynamic loader looks for what extension modules need, and what time zones are read from.
_SYSTEM: Final = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/nix/store",
    "/gnu/store",
    "/usr/share/zoneinfo",
    "/etc/mime.types",
    "/etc/ld.so.cache",
)
_DEVICES: Final = ("/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

# A shared library as the loader knows it: libx.so, libx.so.1, libx.so.1.0.2k.
_LIBRARY: Final = re.compile(r".+\.so(?:\.\d\w*)*")
# Bounds on what LD_LIBRARY_PATH costs, which may hold anything: entries looked at in each folder (a
# server's start, 5 ms), and libraries allowed in all (the start, 30 ms; every check, 0.2 ms).
_MOST_ENTRIES: Final = 10_000
_MOST_LIBRARIES: Final = 1_500


class _Ruleset(ctypes.Structure):
    """``struct landlock_ruleset_attr``."""

    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    """``struct landlock_path_beneath_attr``, which is packed: its 12 bytes are read."""

    _fields_ = (("access", ctypes.c_uint64), ("folder", ctypes.c_int32))


class Landlock:
    """The rules for checks: made once, enforced in every check's process by ``step``.

    Everything that this kernel's Landlock knows is denied but reading what ``_readable`` and
    ``_libraries`` name, and writing to /dev/null.
    """

    def __init__(self) -> None:
        """Make the rules. Raises OSError where the kernel has no Landlock."""
        self._version = _call(_CREATE_RULESET, None, 0, _VERSION)
        handled = _Ruleset(self._known(_FILES), self._known(_TCP), self._known(_SCOPES))
        self._rules = _call(_CREATE_RULESET, ctypes.byref(handled), ctypes.sizeof(handled), 0)
        readable = dict.fromkeys(_readable())
        for path in (*readable, *islice(_libraries(readable), _MOST_LIBRARIES)):
            self._allow(path, _READ_FILE)
        self._allow(os.devnull, _READ_FILE | _WRITE_FILE)

    def step(self) -> Callable[[], None]:
        """Return a function that holds a forked process to the rules for good (see confine.py)."""
        rules = self._rules
        arguments = (_RESTRICT_SELF, rules, self._known(_QUIET))

        def enforce() -> None:
            if syscall(*arguments) != 0:
                raise _refused()
            close(rules)

        return enforce

    def _known(self, rights: tuple[tuple[int, int], ...]) -> int:
        return sum(bits for since, bits in rights if since <= self._version)

    def _allow(self, path: str, access: int) -> None:
        """Allow access to a file, or to all that is in a folder; what is not there is passed."""
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        try:
            if os.path.isdir(path):  # noqa: PTH112 - pathlib would be loaded into the server
                access |= _READ_DIR
            beneath = _Beneath(access, handle)
            _call(_ADD_RULE, self._rules, _PATH_BENEATH, ctypes.byref(beneath), 0)
        finally:
            os.close(handle)


def _readable() -> Iterator[str]:
    yield from sys.path
    # Where a Python that brings its own libraries (conda, a build of one's own) has them.
    yield sys.base_prefix + "/lib"
    yield from _SYSTEM
    yield from _DEVICES


def _libraries(readable: Collection[str]) -> Iterator[str]:
    """Yield the shared libraries in the folders of LD_LIBRARY_PATH that are not readable anyway.

    Nothing else in them, nor what they hold: a user's home may be one. A library that is a link
    counts where it leads to one.
    """
    folders = re.split("[:;]", os.environ.get("LD_LIBRARY_PATH", ""))
    for folder in dict.fromkeys(filter(None, folders)):
        if any(f"{folder}/".startswith(f"{place}/") for place in readable):
            continue
        try:
            with os.scandir(folder) as entries:
                for entry in islice(entries, _MOST_ENTRIES):
                    if _is_library(entry):
                        yield entry.path
        except OSError:
            continue


def _is_library(entry: os.DirEntry[str]) -> bool:
    if not _LIBRARY.fullmatch(entry.name) or not entry.is_file():
        return False
    if not entry.is_symlink():
        return True
    target = os.path.realpath(entry.path)
    return _LIBRARY.fullmatch(os.path.basename(target)) is not None  # noqa: PTH119 - as above


def _call(number: int, *arguments: object) -> int:
    """Make a system call. Raises OSError."""
    result = int(syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        raise _refused()
    return result


def _refused() -> OSError:
    return OSError("the kernel refuses Landlock")
