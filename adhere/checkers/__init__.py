"""Run a dataset's checkers (``check_following(response)``) outside the judging process.

    pool.py       CheckerPool, what the judge uses: hands each check to a free server
    worker.py     one server as the judging process sees it: start, request, cancel, stop
    link.py       the judging process's end of the socket to it
    spawn.py      the interpreter that the server runs in, and what it is given
    server.py     the fork server, alone in its interpreter
    supervise.py  one fork per check: time limit, kill, reap
    child.py      the forked process: runs the source, converts the result, sends one frame
    confine.py    what the server and each child give up before they run foreign code, with
                  landlock.py (files), seccomp.py (system calls), bpf.py, syscalls.py
    isolation.py  how well that isolates here, found by attempts.py
    libc.py, memory.py
                  what keeps a check cheap: calls that write little, memory in order
    frames.py     the bytes that travel between them
    source.py     what is mended in a checker's source
    result.py     CheckResult

The server starts in a small interpreter of its own and imports its modules from this package, so
the names below are loaded on first use: the judging side brings asyncio and much else with it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adhere.checkers.pool import CheckerPool
    from adhere.checkers.result import CheckResult

__all__ = ["CheckResult", "CheckerPool"]


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    if name == "CheckerPool":
        from adhere.checkers.pool import CheckerPool

        return CheckerPool
    if name == "CheckResult":
        from adhere.checkers.result import CheckResult

        return CheckResult
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
