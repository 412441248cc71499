"""Jobs end with the workflow that started them, and clean up when they are told to end.

Five parts, each of use alone:

- ``export_workflow_pid`` in the Snakefile's main process and ``watch_workflow`` in every job: a
  job ends by itself when Snakemake is gone, however Snakemake ended; on a cluster's node, where
  that cannot be seen, ``watch_claim`` ends it when a later call has taken its results over;
- ``pass_on_sigterm`` in the main process: a SIGTERM to it alone ends its running jobs, too;
- ``raise_on_signals``: SIGTERM, SIGINT and SIGHUP become an exception, so that ``with`` blocks
  clean up;
- ``die_with_parent`` and ``adopt_orphans``: what the kernel (Linux) can do for children.
"""

import asyncio
import ctypes
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

import psutil

from adhere.locks import claimed_by

_LOG = logging.getLogger("adhere")
WORKFLOW_VARIABLE = "ADHERE_WORKFLOW"

# From <linux/prctl.h>.
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class Terminated(SystemExit):
    """A signal asked this process to end; the exit status is 128 + its number."""

    def __init__(self, signum: int) -> None:
        super().__init__(128 + signum)
        self.signum = signum


def export_workflow_pid() -> None:
    """Name this process in ``ADHERE_WORKFLOW`` (``host:pid:start time``) for the jobs it starts."""
    os.environ[WORKFLOW_VARIABLE] = f"{_host()}:{os.getpid()}:{_start_time(os.getpid())}"


def watch_workflow(
    on_death: Callable[[], None] | None = None, *, poll_s: float = 0.5, grace_s: float = 20.0
) -> None:
    """End this process when the workflow named by ``ADHERE_WORKFLOW`` is gone.

    A daemon thread looks every ``poll_s`` seconds. When the process is gone (a zombie, or another
    process under its number, counts as gone) it calls ``on_death`` in that thread, sends SIGTERM
    to this process, and ``grace_s`` seconds later SIGKILL. Without the variable, or when it names
    another host (a job on a cluster's node), nothing is watched.
    """
    host, _, process = workflow_name().partition(":")
    pid, _, start_time = process.partition(":")
    if host != _host() or not pid.isdecimal():
        return

    def watch() -> None:
        while _start_time(int(pid)) == start_time:
            time.sleep(poll_s)
        _end_this_process(on_death, grace_s)

    threading.Thread(target=watch, name="watch-workflow", daemon=True).start()


def watch_claim(claim: Path, *, poll_s: float = 5.0, grace_s: float = 20.0) -> None:
    """End this process when ``claim`` names another workflow than ``ADHERE_WORKFLOW`` does.

    For jobs on another host than their workflow's: they go on when it is killed, since all they
    finish is kept, and end as above, within ``poll_s`` seconds, when a later call has claimed the
    same results (``adhere.locks.claim``) and starts them anew. On the workflow's own host, or
    without the variable, nothing is watched.
    """
    own = workflow_name()
    if own.partition(":")[0] in ("", _host()):
        return

    def watch() -> None:
        # A claim that is being written is empty for a moment.
        while claimed_by(claim) in (own, ""):
            time.sleep(poll_s)
        _LOG.error("a later call has taken over %s: this job of an earlier one ends", claim.parent)
        _end_this_process(None, grace_s)

    threading.Thread(target=watch, name="watch-claim", daemon=True).start()


def workflow_name() -> str:
    """Return the workflow that this process belongs to, as in ``ADHERE_WORKFLOW``, or nothing."""
    return os.environ.get(WORKFLOW_VARIABLE, "")


def _end_this_process(before: Callable[[], None] | None, grace_s: float) -> None:
    try:
        if before is not None:
            before()
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(grace_s)
        os.kill(os.getpid(), signal.SIGKILL)


def pass_on_sigterm() -> None:
    """Have SIGTERM reach this process's jobs, too, as it does where a whole group is signalled.

    For Snakemake's main process, once its own handler is installed: that one starts nothing more
    and waits until the running jobs have ended, which may be tomorrow.
    """
    own = signal.getsignal(signal.SIGTERM)

    def handle(signum: int, frame: FrameType | None) -> None:
        for child in psutil.Process().children(recursive=True):
            # Servers and checkers, in sessions of their own, are their jobs' to end.
            with suppress(ProcessLookupError, psutil.NoSuchProcess):
                if os.getpgid(child.pid) == os.getpgrp():
                    child.terminate()
        if callable(own):
            own(signum, frame)

    signal.signal(signal.SIGTERM, handle)


@contextmanager
def raise_on_signals() -> Iterator[None]:
    """Turn SIGTERM, SIGINT and SIGHUP into ``Terminated`` inside the block (main thread only).

    The first signal raises; later ones are ignored, so that they cannot interrupt the cleaning up.
    SIGINT and SIGHUP stay ignored where they were (``nohup``).

    While an asyncio loop runs in the main thread the exception is raised between two callbacks of
    the loop, never in the middle of a task. It leaves ``asyncio.run``, which cancels every task
    and waits for their ``finally`` blocks on the way. Use it around the run, as in::

        with raise_on_signals(), LocalServer(...) as server:
            asyncio.run(main(server))

    and do not block inside a coroutine: the loop could not raise before it gets its turn.
    """
    received: list[int] = []

    def handle(signum: int, _frame: FrameType | None) -> None:
        if received:
            return
        received.append(signum)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise Terminated(signum) from None
        loop.call_soon_threadsafe(_terminate, signum)

    handled = [signal.SIGTERM]
    for stop in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(stop) is not signal.SIG_IGN:
            handled.append(stop)
    previous = {signum: signal.signal(signum, handle) for signum in handled}
    try:
        yield
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)
        # A loop that was just ending may have dropped the callback, and an error met while
        # cleaning up may have replaced the exception: the signal still decides how this ends.
        if received:
            _terminate(received[0])


def die_with_parent(parent: int | None = None, signum: int = signal.SIGKILL) -> None:
    """Have the kernel send ``signum`` to this process when its parent ends (Linux; else nothing).

    For the first act of a child. ``parent`` is the expected parent's pid: if it is gone already,
    the signal is sent at once. The signal survives exec but not fork, and it is sent when the
    *thread* that forked this process ends: the parent must fork from its main thread.
    """
    if _prctl(_PR_SET_PDEATHSIG, signum) and parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), signum)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends (Linux; elsewhere nothing)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _terminate(signum: int) -> NoReturn:
    raise Terminated(signum)


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")
    return True


def _host() -> str:
    """Return what pids are valid in: the host and, on Linux, its pid namespace (containers)."""
    namespace = Path("/proc/self/ns/pid")
    inode = f"/{namespace.stat().st_ino}" if namespace.exists() else ""
    return socket.gethostname() + inode


def _start_time(pid: int) -> str | None:
    """Return when a living process started, None when there is none.

    On Linux in clock ticks since boot: unlike a date it is the same for every reader, also after
    the clock was set.
    """
    if sys.platform != "linux":
        try:
            return str(psutil.Process(pid).create_time())
        except psutil.NoSuchProcess:
            return None
    try:
        # proc(5): the command's name, in parentheses, may hold anything; state and start time
        # are the third and the 22nd field.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]
