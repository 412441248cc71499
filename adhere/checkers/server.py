"""The fork server: one interpreter that forks once per check and leaves nothing behind.

worker.py starts it with an empty environment and its end of a socket as standard input; it serves
that one judging process and ends when the socket or its parent is gone. Nothing that comes from a
checker is unpickled, parsed or compared here: bytes go through.
"""

import fcntl
import importlib
import os
import select
import signal
from collections.abc import Callable
from os import read, write
from typing import Final

from adhere.checkers.child import rehearse
from adhere.checkers.confine import Limits, prepare
from adhere.checkers.frames import REQUEST, Kind, encode, reply
from adhere.checkers.memory import settle
from adhere.checkers.supervise import Check, end, end_descendants, start, watch

# Loaded once for all checks: what many checkers import (of AgentIF's, two of three re, one of ten
# ast, one of fifteen json, one of a hundred anything else). Each further module costs every check
# some pages; a check that imports it itself pays one or two milliseconds.
_PRELOADED: Final = ("ast", "json", "re")
# Sent to whole jobs by terminals and schedulers: the judging process decides what they mean.
_IGNORED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PARENT_CHECK_MS: Final = 5000
_CHUNK: Final = 1 << 20
_CHECK: Final = int(Kind.CHECK)


class _GoneError(Exception):
    """The judging process is gone."""


class _Control:
    """The server's end of the socket to the judging process."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._parent = os.getppid()
        self.poller = select.poll()
        self.poller.register(descriptor, select.POLLIN)

    def check_parent(self) -> None:
        """Raise _GoneError when the judging process has died though its socket is still open."""
        if os.getppid() != self._parent:
            raise _GoneError

    def cancelled(self) -> bool:
        """Read the request that arrived during a check; it can only be to cancel it."""
        return self.receive() is None

    def receive(self) -> Check | None:
        """Wait for the next request; None where it is to cancel. Raises _GoneError at the end."""
        kind, timeout_s, memory_mb, size, text_size = REQUEST.unpack(self._exactly(REQUEST.size))
        if kind != _CHECK:
            return None
        both = self._exactly(size + text_size)
        return Check(timeout_s, memory_mb, both[:size], both[size:])

    def send(self, data: bytes) -> None:
        """Send everything."""
        while data:
            data = data[write(self.descriptor, data) :]

    def _exactly(self, size: int) -> bytes:
        """Read ``size`` bytes; in most cases all are there at once."""
        data = b""
        pieces = []
        while size:
            while not self.poller.poll(_PARENT_CHECK_MS):
                self.check_parent()
            data = read(self.descriptor, min(size, _CHUNK))
            if not data:
                raise _GoneError
            size -= len(data)
            pieces.append(data)
        return data if len(pieces) < 2 else b"".join(pieces)


def main() -> None:
    """Serve checks until the judging process is gone."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for name in _PRELOADED:
        importlib.import_module(name)
    control = _Control(os.dup(0))
    _silence_standard_streams()
    confine = prepare()
    rehearse()
    settle()
    try:
        control.send(reply(Kind.READY))
        while True:
            _serve(control, confine)
    except (_GoneError, ConnectionError):
        return
    finally:
        end_descendants()


def _serve(control: _Control, confine: Callable[[Limits], None]) -> None:
    """Answer one request; a CANCEL that came too late for its check is passed over.

    When the answer goes out no process of the check lives; also none does when this raises.
    """
    check = control.receive()
    if check is None:
        return
    try:
        process = start(check, control.descriptor, confine)
    except OSError as error:
        control.send(reply(Kind.KILLED, encode(f"no process could be started for it: {error}")))
        return
    try:
        answer = reply(*watch(process, control))
    finally:
        end(process)
        # The three standard streams are one open file, and a check may set its flags.
        fcntl.fcntl(0, fcntl.F_SETFL, os.O_RDWR)
    control.send(answer)


def _silence_standard_streams() -> None:
    """Point descriptors 0 to 2 at /dev/null, for this process and every check."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.close(null)
