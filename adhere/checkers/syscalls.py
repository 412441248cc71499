"""Numbers of the system calls that checkers and their server use, by architecture.

From the kernel's ``arch/x86/entry/syscalls/syscall_64.tbl`` and
``include/uapi/asm-generic/unistd.h`` (used by aarch64); they never change. "-": there is none.
"""

import os
import sys
from typing import Final

_MACHINES: Final = ("x86_64", "aarch64")
# As audit and seccomp name them: linux/audit.h.
_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_TABLE: Final = """
read 0 63               write 1 64              readv 19 65             writev 20 66
pread64 17 67           pwrite64 18 68          preadv 295 69           pwritev 296 70
preadv2 327 286         pwritev2 328 287        lseek 8 62              close 3 57
close_range 436 436     dup 32 23               dup2 33 -               dup3 292 24
pipe 22 -               pipe2 293 59            fcntl 72 25             ioctl 16 29
poll 7 -                ppoll 271 73            select 23 -             pselect6 270 72
epoll_create 213 -      epoll_create1 291 20    epoll_ctl 233 21        epoll_wait 232 -
epoll_pwait 281 22      eventfd2 290 19         open 2 -                openat 257 56
access 21 -             faccessat 269 48        faccessat2 439 439      stat 4 -
lstat 6 -               fstat 5 80              newfstatat 262 79       statx 332 291
statfs 137 43           fstatfs 138 44          getdents64 217 61       readlink 89 -
readlinkat 267 78       getcwd 79 17            chdir 80 49             fchdir 81 50
umask 95 166            fadvise64 221 223       brk 12 214              mmap 9 222
munmap 11 215           mremap 25 216           mprotect 10 226         madvise 28 233
mincore 27 232          msync 26 227            getpid 39 172           gettid 186 178
getppid 110 173         getpgid 121 155         getpgrp 111 -           getsid 124 156
getuid 102 174          geteuid 107 175         getgid 104 176          getegid 108 177
getresuid 118 148       getresgid 120 150       getgroups 115 158       uname 63 160
sched_getaffinity 204 123                       sched_yield 24 124      getrusage 98 165
times 100 153           getrlimit 97 163        prlimit64 302 261       sysinfo 99 179
getcpu 309 168          clock_gettime 228 113   clock_getres 229 114    nanosleep 35 101
clock_nanosleep 230 115                         gettimeofday 96 169     time 201 -
getitimer 36 102        setitimer 38 103        alarm 37 -              getrandom 318 278
rt_sigaction 13 134     rt_sigprocmask 14 135   rt_sigreturn 15 139     rt_sigpending 127 136
rt_sigsuspend 130 133   rt_sigtimedwait 128 137                         sigaltstack 131 132
pause 34 -              kill 62 129             tkill 200 130           tgkill 234 131
futex 202 98            set_robust_list 273 99  set_tid_address 218 96  rseq 334 293
restart_syscall 219 128                         exit 60 93              exit_group 231 94
fork 57 -               clone 56 220            clone3 435 435          wait4 61 260
waitid 247 95           socketpair 53 199       prctl 157 167           setsid 112 157
landlock_create_ruleset 444 444                 landlock_add_rule 445 445
landlock_restrict_self 446 446                  seccomp 317 277         socket 41 198
"""


def table(machine: str) -> dict[str, int]:
    """Return name → number of the calls that a machine ("x86_64" or "aarch64") has."""
    words = _TABLE.split()
    numbers = words[1 + _MACHINES.index(machine) :: 1 + len(_MACHINES)]
    names = words[:: 1 + len(_MACHINES)]
    pairs = zip(names, numbers, strict=True)
    return {name: int(number) for name, number in pairs if number != "-"}


def machine() -> str | None:
    """Return this process's architecture; None where its system calls are not known here."""
    name = os.uname().machine
    return name if name in _MACHINES and sys.maxsize > 1 << 32 else None


def audit_arch(machine: str) -> int:
    """Return the number by which seccomp knows an architecture."""
    return _AUDIT_ARCH[machine]
