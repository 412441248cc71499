"""Fork one check, watch it to its end, and kill and reap whatever it left."""

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from adhere.checkers import child
from adhere.checkers.confine import Confinement, limits
from adhere.checkers.frames import MAX_BYTES, NONCE_BYTES, REPLY, Kind, encode, parse_result

_MAX_RESULT: Final = NONCE_BYTES + REPLY.size + MAX_BYTES
_CHUNK: Final = 1 << 16
# How long an end that no descriptor announces may go unnoticed: first figure while the channel is
# open (only a process that a checker left behind holds it then), second once it is closed.
_TICK_MS: Final = 50
_CLOSED_TICK_MS: Final = 1
_REAP_S: Final = 10.0


class Check(NamedTuple):
    """What one check needs: seconds, MiB, and the UTF-8 of source and text."""

    timeout_s: float
    memory_mb: int
    source: bytes
    text: bytes


class Closable(Protocol):
    """A descriptor of the server's that a check must not hold."""

    def close(self) -> None:
        """Close this process's copy of it."""


class Control(Closable, Protocol):
    """The connection over which a check can be cancelled."""

    def fileno(self) -> int:
        """Return the descriptor, readable when something has come."""

    def check_parent(self) -> None:
        """Raise when the judging process has died."""

    def cancelled(self) -> bool:
        """Read what has come and say whether it cancels the check; raise when the peer is gone."""


class _Process:
    """A forked check and its channel: the nonce goes in, one result should come out."""

    def __init__(self, check: Check, control: Control, confinement: Confinement) -> None:
        self.deadline = time.monotonic() + check.timeout_s
        self.data = bytearray()
        self.channel, theirs = socket.socketpair()
        with theirs:
            self.pid = _fork(check, confinement, (control, self.channel), theirs)
        # Made after the fork: the child has no copy but the one that waits in its channel.
        self.nonce = os.urandom(NONCE_BYTES)
        with contextlib.suppress(ConnectionError):
            self.channel.sendall(self.nonce)
            self.channel.shutdown(socket.SHUT_WR)

    def watch(self, control: Control) -> tuple[Kind, bytes]:
        """Read the channel until a result is in, the process has ended or its time is up."""
        poller = select.poll()
        poller.register(self.channel, select.POLLIN)
        poller.register(control.fileno(), select.POLLIN)
        tick = _TICK_MS
        while (left := self.deadline - time.monotonic()) > 0:
            ready = {number for number, _ in poller.poll(min(tick, left * 1000))}
            if control.fileno() in ready and control.cancelled():
                return Kind.CANCELLED, b""
            if self.channel.fileno() in ready:
                if not self._read():
                    if result := parse_result(bytes(self.data), self.nonce):
                        return result
                    poller.unregister(self.channel)
                    tick = _CLOSED_TICK_MS
                if len(self.data) > _MAX_RESULT:
                    return self._no_result()
            elif os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                self._drain()
                return parse_result(bytes(self.data), self.nonce) or self._no_result()
            else:
                control.check_parent()
        return Kind.TIMEOUT, b""

    def end(self) -> None:
        """Kill and reap the process and everything it started."""
        self.channel.close()
        for kill in (os.kill, os.killpg):
            with contextlib.suppress(ProcessLookupError):
                kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        end_descendants()

    def _read(self) -> bool:
        """Read one piece; False at the end of the channel."""
        try:
            piece = self.channel.recv(_CHUNK)
        except ConnectionError:
            return False
        self.data += piece
        return bool(piece)

    def _drain(self) -> None:
        """Read what is in the channel without waiting for more."""
        self.channel.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while len(self.data) <= _MAX_RESULT and self._read():
                pass

    def _no_result(self) -> tuple[Kind, bytes]:
        """Say why there is no result, from what was written and how the process ended."""
        if self.data:
            return Kind.PROTOCOL, encode(f"wrote {len(self.data)} bytes that are no result")
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        if ended is None or ended.si_code == os.CLD_EXITED:
            code = ended.si_status if ended else 0
            if code == child.EXIT_NO_NONCE:
                return Kind.PROTOCOL, b"took the mark that its result must carry"
            if code == child.EXIT_UNCONFINED:
                return Kind.KILLED, b"not run: its process could not be confined"
            return Kind.KILLED, encode(f"exited with code {code} before it had a result")
        if ended.si_status == signal.SIGXCPU:
            return Kind.TIMEOUT, b""
        return Kind.KILLED, encode(f"killed by {_signal_name(ended.si_status)}")


def supervise(check: Check, control: Control, confinement: Confinement) -> tuple[Kind, bytes]:
    """Run one check; return what it sent, or why it sent nothing.

    When this returns, or raises because the judging process is gone, no process of the check lives.
    """
    try:
        process = _Process(check, control, confinement)
    except OSError as error:
        return Kind.KILLED, encode(f"no process could be started for it: {error}")
    try:
        return process.watch(control)
    finally:
        process.end()


def _fork(
    check: Check, confinement: Confinement, servers: Iterable[Closable], theirs: socket.socket
) -> int:
    """Return the pid of a process that runs the check and then exits; it closes the server's."""
    allowance = limits(check.timeout_s, check.memory_mb)
    pid = os.fork()
    if pid != 0:
        return pid
    code = child.EXIT_UNCONFINED
    try:
        for descriptor in servers:
            descriptor.close()
        confinement.enter(allowance)
        code = child.EXIT_UNREPORTED
        child.run(theirs.fileno(), check.source, check.text)
    finally:
        os._exit(code)


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
