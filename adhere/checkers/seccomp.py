"""Which system calls there are: a list of what is allowed for the server and everything below it,
and a short list of what only the server may do.

The long list is installed once, in the server; a child adds the short one, which costs little.
What is not on the list does not exist for either: sockets, execve, io_uring, ptrace, chmod, mount,
shared memory that persists, and whatever the kernel is given next.
"""

import errno
import fcntl
import os
from collections.abc import Callable
from typing import Final

from adhere.checkers.bpf import ALLOW, DENY, UNKNOWN, Filter, Rule, argument, assemble, null
from adhere.checkers.syscalls import machine

_READING: Final = """
    read readv pread64 preadv preadv2 lseek close close_range dup dup2 dup3 pipe pipe2
    poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2
    open openat access faccessat faccessat2 stat lstat fstat newfstatat statx statfs fstatfs
    getdents64 readlink readlinkat getcwd chdir fchdir umask fadvise64
"""
# To descriptors that are open already: pipes, /dev/null, the result's pipe.
_WRITING: Final = "write writev pwrite64 pwritev pwritev2"
_MEMORY: Final = "brk mmap munmap mremap mprotect madvise mincore msync"
_KNOWING: Final = """
    getpid gettid getppid getpgid getpgrp getsid getuid geteuid getgid getegid getresuid getresgid
    getgroups sched_getaffinity sched_yield getrusage times getrlimit uname sysinfo getcpu
    clock_gettime clock_getres gettimeofday time getrandom
"""
_WAITING: Final = """
    nanosleep clock_nanosleep getitimer setitimer alarm pause futex set_robust_list set_tid_address
    rseq restart_syscall exit exit_group wait4 waitid rt_sigaction rt_sigprocmask rt_sigreturn
    rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack
"""
# What the server needs to run checks, and what a check gives up with the second filter.
_SERVING: Final = """
    fork clone kill tkill tgkill setsid prctl prlimit64 landlock_restrict_self
"""

_FCNTL: Final = (
    fcntl.F_DUPFD,
    fcntl.F_DUPFD_CLOEXEC,
    fcntl.F_GETFD,
    fcntl.F_SETFD,
    fcntl.F_GETFL,
    fcntl.F_SETFL,
)
# FIOCLEX, FIONCLEX, FIONBIO, FIONREAD, TCGETS, TIOCGWINSZ, and a family of sockets. As numbers,
# since termios and socket would be loaded into the server for them.
_IOCTL: Final = (0x5451, 0x5450, 0x5421, 0x541B, 0x5401, 0x5413)
_AF_UNIX: Final = 1
_PR_GET_DUMPABLE: Final = 3
_PR_SET_NAME: Final = 15
_PR_GET_NAME: Final = 16
# Stands in the prepared program where each check's own process id will be; no process has it.
_SELF: Final = 0xFFFFFFF1


def prepare(*, writing: bool) -> Callable[[], None]:
    """Install the list of what is allowed, in the server and all below it.

    Return a function that takes from a forked process what only the server may do. ``writing``
    leaves it to Landlock which files may be opened for writing; without Landlock none may. Raises
    OSError where the kernel, or whoever confined this process, has no seccomp, and where the
    architecture is unknown.
    """
    name = machine()
    if name is None:
        raise OSError(errno.ENOSYS, f"system calls of {os.uname().machine} are not known")
    step = Filter(check(name, _SELF)).step(_SELF)
    Filter(base(name, writing=writing)).install()
    return step


def base(machine: str, *, writing: bool) -> bytes:
    """Return the program of the server and all below it."""
    names = " ".join((_READING, _WRITING, _MEMORY, _KNOWING, _WAITING, _SERVING)).split()
    rules: dict[str, Rule] = dict.fromkeys(names, ALLOW)
    rules["clone3"] = UNKNOWN
    rules["fcntl"] = (argument(1, *_FCNTL),)
    rules["ioctl"] = (argument(1, *_IOCTL),)
    # A pair within the process, which asyncio makes; nothing can be connected or sent elsewhere.
    rules["socketpair"] = (argument(0, _AF_UNIX),)
    if not writing:
        forbidden = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC
        rules["open"] = (argument(1, 0, mask=forbidden),)
        rules["openat"] = (argument(2, 0, mask=forbidden),)
    return assemble(machine, rules, DENY)


def check(machine: str, pid: int) -> bytes:
    """Return the program that a check adds: it may signal nobody but itself, ``pid``."""
    rules: dict[str, Rule] = dict.fromkeys(_SERVING.split(), DENY)
    rules["kill"] = rules["tkill"] = rules["tgkill"] = (argument(0, pid),)
    rules["prctl"] = (argument(0, _PR_SET_NAME, _PR_GET_NAME, _PR_GET_DUMPABLE),)
    rules["prlimit64"] = (argument(0, 0, pid), *null(2))
    return assemble(machine, rules, ALLOW)
