"""What the server and each check's process give up before foreign code runs.

This is the one place where isolation is installed. ``prepare`` runs once, in the server, before its
first fork, and everything that it sets is inherited; what it returns runs in each forked process.
Resource limits and the ties between processes are here; landlock.py says which files there are,
seccomp.py which system calls. Either may be missing: attempts.py finds out what that allows. What
was there when the server started is required of every check. Linux only.
"""

import ctypes
import math
import os
import resource
import signal
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from os import _exit, getppid
from resource import setrlimit
from typing import Final

from adhere.checkers import seccomp
from adhere.checkers.landlock import Landlock
from adhere.checkers.libc import prctl, setsid

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38

# What the server needs no more of than a check: no file grows, no core is written.
_LIMITS: Final = {
    resource.RLIMIT_STACK: 8 << 20,
    resource.RLIMIT_NOFILE: 64,
    resource.RLIMIT_FSIZE: 0,
    resource.RLIMIT_CORE: 0,
    # Signals that wait are counted by user: a check may not use up what others need.
    resource.RLIMIT_SIGPENDING: 64,
}

# The first of these that exists is the current folder of every check. The first is empty on every
# Linux, nobody can write to it, root included, and its name is the same everywhere: a verdict that
# depends on os.getcwd() must not depend on the machine.
_EMPTY_FOLDERS: Final = ("/proc/tty/ldisc", "/var/empty", "/")

# (which, (soft, hard)), as resource.setrlimit takes them.
Limits = tuple[tuple[int, tuple[int, int]], ...]

# Root's power to read files that others own (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH), which an
# installation in another user's folder may need; every other capability is given up.
_KEPT_CAPABILITIES: Final = 1 << 1 | 1 << 2
_CAPABILITY_VERSION: Final = 0x20080522


def prepare() -> Callable[[Limits], None]:
    """Prepare the server, and return what confines a process just forked from it.

    When the judging process dies the server reads the end of its socket and ends with everything
    below it; SIGCONT on the parent's death wakes a server that a checker has stopped. As subreaper
    it becomes the parent of daemons that checkers leave behind, and can kill them. The last steps
    take from it root's powers, which it does not need, and the system calls that it has no use for.
    What a check inherits is set here, since each step after a fork costs every check.
    """
    prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(_PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)
    _prefer_for_oom_kill()
    _enter_first(_EMPTY_FOLDERS)
    os.umask(0o077)
    _limit(_LIMITS)
    # Nothing for other processes of this user, checks above all, to look into.
    prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    _drop_capabilities()
    files = _step(lambda: Landlock().step())
    calls = _step(lambda: seccomp.prepare(writing=files is not None))
    return _confining(os.getpid(), [step for step in (files, calls) if step])


def _confining(server: int, steps: Collection[Callable[[], None]]) -> Callable[[Limits], None]:
    """Return a function that confines a process just forked from ``server``.

    The process gets a session of its own, dies with the server, keeps to the limits, and has the
    files and system calls of a check. The function raises OSError where something cannot be given
    up. Like its steps it keeps what it needs in variables of its own, made one after the other and
    thus in few pages: attributes of objects are looked up in many.
    """
    die_with_parent = (_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)

    def confine(limits: Limits) -> None:
        if setsid() < 0 or prctl(*die_with_parent) != 0:
            raise OSError("no session of its own, or no tie to its server")
        if getppid() != server:
            _exit(1)
        for which, pair in limits:
            setrlimit(which, pair)
        for step in steps:
            step()

    return confine


@cache
def limits(timeout_s: float, memory_mb: int) -> Limits:
    """Return the resource limits of a check: seconds of processor time, MiB of address space.

    No further process or thread starts (root is exempt from that one). The limit on processor time
    is a second line: the server watches the clock, and a check's single thread reaches it later.
    """
    seconds = math.ceil(timeout_s) + 1
    wanted = {
        resource.RLIMIT_CPU: (seconds, seconds + 1),
        resource.RLIMIT_NPROC: (0, 0),
        resource.RLIMIT_AS: (memory_mb << 20, memory_mb << 20),
    }
    return tuple((which, _at_most(which, pair)) for which, pair in wanted.items())


def _step(prepare: Callable[[], Callable[[], None]]) -> Callable[[], None] | None:
    """Return a step of every check; None where this machine does not offer it."""
    try:
        return prepare()
    except OSError:
        return None


def _drop_capabilities() -> None:
    """Give up root's powers, for this process and all below it; ordinary users have none."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    # Twice effective, permitted, inheritable: the low 32 capabilities, then the high ones.
    sets = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None)
    if libc.capget(header, sets) != 0:
        return
    kept = (ctypes.c_uint32 * 6)(*(bits & _KEPT_CAPABILITIES for bits in sets[:2]))
    libc.capset(header, kept)


def _limit(limits: Mapping[int, int]) -> None:
    """Set limits of this process, soft and hard."""
    for which, value in limits.items():
        resource.setrlimit(which, _at_most(which, (value, value)))


def _at_most(which: int, pair: tuple[int, int]) -> tuple[int, int]:
    """Lower a soft and a hard limit to the hard limit that is already there."""
    ceiling = resource.getrlimit(which)[1]
    if ceiling == resource.RLIM_INFINITY:
        return pair
    return min(pair[0], ceiling), min(pair[1], ceiling)


def _prefer_for_oom_kill() -> None:
    """When memory runs out on the machine, let a checker be the one to go."""
    try:
        handle = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(handle, b"1000")
    except OSError:
        return
    finally:
        os.close(handle)


def _enter_first(folders: Iterable[str]) -> None:
    """Make the first of ``folders`` that can be entered the current one."""
    for folder in folders:
        try:
            os.chdir(folder)
        except OSError:
            continue
        return
