"""Fork one check, watch it to its end, and kill and reap whatever it left.

After a fork server and check share their memory, and the first of them to write to a page has it
copied: also the count of references to an object is written. Each such page costs microseconds, and
together they are most of what a check costs. So what runs for every check is few plain functions
over descriptors, which find each other by name, make few objects and raise nothing.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from os import _exit, close, pipe, read, urandom
from time import monotonic
from typing import Final, NamedTuple, NoReturn, Protocol

from adhere.checkers import child
from adhere.checkers.confine import Limits, limits
from adhere.checkers.frames import MAX_RESULT, NONCE_BYTES, Kind, encode, parse_result
from adhere.checkers.libc import fork, kill, waitpid, write

_CHUNK: Final = 1 << 16
# How long an end that no descriptor announces may go unnoticed: first figure while the pipe is
# open (only a process that a checker left behind holds it then), second once it is closed.
_TICK_MS: Final = 50
_CLOSED_TICK_MS: Final = 1
_REAP_S: Final = 10.0
_POLLIN: Final = select.POLLIN
_SIGKILL: Final = int(signal.SIGKILL)


class Check(NamedTuple):
    """What one check needs: seconds, MiB, and the UTF-8 of source and text."""

    timeout_s: float
    memory_mb: int
    source: bytes
    text: bytes


class Control(Protocol):
    """The connection over which a check can be cancelled."""

    descriptor: int
    poller: select.poll
    """Has this descriptor registered, and none else between two checks."""

    def check_parent(self) -> None:
        """Raise when the judging process has died."""

    def cancelled(self) -> bool:
        """Read what has come and say whether it cancels the check; raise when the peer is gone."""


class Process(NamedTuple):
    """A check that runs: its process, the pipe for its result, what marks it, and when to end."""

    pid: int
    result: int
    nonce: bytes
    deadline: float


def start(check: Check, control: int, confine: Callable[[Limits], None]) -> Process:
    """Fork a process that runs the check and then exits. Raises OSError where none can be made.

    ``control`` is the server's socket, ``confine`` what confine.prepare returned.
    """
    timeout_s, memory_mb, source, text = check
    deadline = monotonic() + timeout_s
    allowance = limits(timeout_s, memory_mb)
    pipes: list[int] = []
    try:
        # The nonce goes down the first, one result should come up the second.
        pipes += pipe()
        pipes += pipe()
        pid = fork()
    except OSError:
        for descriptor in pipes:
            close(descriptor)
        raise
    question, nonce, result, answer = pipes
    if pid == 0:
        _run((control, nonce, result), confine, allowance, question, answer, source, text)
    close(question)
    close(answer)
    return Process(pid, result, _mark(nonce), deadline)


def _run(
    servers: tuple[int, ...],
    confine: Callable[[Limits], None],
    allowance: Limits,
    question: int,
    answer: int,
    source: bytes,
    text: bytes,
) -> NoReturn:
    """Be the check's process: give up what is the server's, and more, and run the source."""
    code = child.EXIT_UNCONFINED
    try:
        for descriptor in servers:
            close(descriptor)
        confine(allowance)
        code = child.EXIT_UNREPORTED
        child.run(question, answer, source, text)
    finally:
        _exit(code)


def _mark(descriptor: int) -> bytes:
    """Make a check's nonce and leave it in its pipe.

    Made after the fork: the check has no copy but the one that waits there. Where its process has
    died by now nothing is written.
    """
    nonce = urandom(NONCE_BYTES)
    write(descriptor, nonce, NONCE_BYTES)
    close(descriptor)
    return nonce


def watch(process: Process, control: Control) -> tuple[int, bytes]:
    """Wait until a result is in, the process has ended or its time is up.

    Return what it sent, or why it sent nothing: a kind and its payload. Raises what ``control``
    raises when the judging process is gone.
    """
    pid, result, nonce, deadline = process
    poller = control.poller
    poller.register(result, _POLLIN)
    open_ended = True
    data = bytearray()
    try:
        while (left := deadline - monotonic()) > 0:
            tick = _TICK_MS if open_ended else _CLOSED_TICK_MS
            ready = dict(poller.poll(min(tick, left * 1000)))
            if control.descriptor in ready:
                if control.cancelled():
                    return Kind.CANCELLED, b""
            elif ready:
                piece = read(result, _CHUNK)
                data += piece
                if not piece:
                    poller.unregister(result)
                    open_ended = False
                elif found := parse_result(data, nonce):
                    return found
                elif len(data) > MAX_RESULT:
                    return _no_result(pid, data)
            elif os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                _drain(result, data)
                return parse_result(data, nonce) or _no_result(pid, data)
            else:
                control.check_parent()
    finally:
        if open_ended:
            poller.unregister(result)
    return Kind.TIMEOUT, b""


def end(process: Process) -> None:
    """Kill and reap a check's process and everything it started."""
    pid, result, *_ = process
    close(result)
    kill(pid, _SIGKILL)
    kill(-pid, _SIGKILL)
    waitpid(pid, None, 0)
    # That there is no child, as is usual, is an exception to os.waitpid.
    if waitpid(-1, None, os.WNOHANG) >= 0:
        end_descendants()


def _drain(result: int, data: bytearray) -> None:
    """Read what is in the pipe without waiting for more."""
    os.set_blocking(result, False)
    with contextlib.suppress(BlockingIOError):
        while len(data) <= MAX_RESULT and (piece := os.read(result, _CHUNK)):
            data += piece


def _no_result(pid: int, data: bytearray) -> tuple[int, bytes]:
    """Say why there is no result, from what was written and how the process ended."""
    if data:
        return Kind.PROTOCOL, encode(f"wrote {len(data)} bytes that are no result")
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    if ended is None or ended.si_code == os.CLD_EXITED:
        code = ended.si_status if ended else 0
        told = f"exited with code {code} before it had a result"
        if code == child.EXIT_UNCONFINED:
            # A checker can do so as well, and nothing tells the two apart.
            told += ", which it also does when it cannot be confined"
        return Kind.KILLED, encode(told)
    # Also by SIGXCPU: one thread's processor time reaches its limit only after the deadline.
    return Kind.KILLED, encode(f"killed by {_signal_name(ended.si_status)}")


def end_descendants() -> None:
    """Kill and reap everything below this process, daemons included (it is their subreaper).

    Gives up after some seconds by ending this process: the judging side starts a new server.
    """
    deadline = time.monotonic() + _REAP_S
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid != 0:
            continue
        for orphan in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(orphan, signal.SIGKILL)
        if time.monotonic() > deadline:
            os._exit(child.EXIT_UNREPORTED)
        time.sleep(0.001)


def _children() -> Iterator[int]:
    """Yield the pids of this process's children, adopted ones included, from /proc."""
    me = str(os.getpid())
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            handle = os.open(f"/proc/{entry.name}/stat", os.O_RDONLY)
        except OSError:
            continue
        try:
            # pid (command) state ppid …; the command may contain blanks and brackets
            fields = os.read(handle, 4096).rpartition(b")")[2].split()
        except ProcessLookupError:
            continue
        finally:
            os.close(handle)
        if fields[1].decode() == me:
            yield int(entry.name)


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
