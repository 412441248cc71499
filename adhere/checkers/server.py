"""The fork server: one interpreter that forks once per check and leaves nothing behind.

worker.py starts it with an empty environment and its end of a socket as standard input; it serves
that one judging process and ends when the socket or its parent is gone. Nothing that comes from a
checker is unpickled, parsed or compared here: bytes go through.
"""

import gc
import importlib
import os
import select
import signal
import socket
from typing import Final, NamedTuple

from adhere.checkers.confine import Confinement
from adhere.checkers.frames import REPLY, REQUEST, Kind, reply
from adhere.checkers.supervise import Check, end_descendants, supervise

# What checkers import, loaded once so that it costs a check nothing.
_PRELOADED: Final = (
    "ast",
    "collections",
    "datetime",
    "functools",
    "itertools",
    "json",
    "math",
    "re",
    "string",
    "typing",
    "unicodedata",
)
# Sent to whole jobs by terminals and schedulers: the judging process decides what they mean.
_IGNORED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PARENT_CHECK_MS: Final = 5000


class _GoneError(Exception):
    """The judging process is gone."""


class _Request(NamedTuple):
    kind: Kind
    timeout_s: float
    memory_mb: int
    source: bytes
    text: bytes


class _Control:
    """The server's end of the socket to the judging process."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._parent = os.getppid()
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)

    def fileno(self) -> int:
        """Return the descriptor, for polling."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close this process's copy of the descriptor."""
        self._socket.close()

    def check_parent(self) -> None:
        """Raise _GoneError when the judging process has died though its socket is still open."""
        if os.getppid() != self._parent:
            raise _GoneError

    def cancelled(self) -> bool:
        """Read the request that arrived during a check; it can only be to cancel it."""
        return self.receive().kind is Kind.CANCEL

    def receive(self) -> _Request:
        """Wait for the next request. Raises _GoneError when there will be none."""
        kind, timeout_s, memory_mb, source, text = REQUEST.unpack(self._exactly(REQUEST.size))
        body = self._exactly(source + text)
        return _Request(Kind(kind), timeout_s, memory_mb, body[:source], body[source:])

    def send(self, data: bytes) -> None:
        """Send everything."""
        self._socket.sendall(data)

    def _exactly(self, size: int) -> bytes:
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            while not self._poll.poll(_PARENT_CHECK_MS):
                self.check_parent()
            count = self._socket.recv_into(view)
            if count == 0:
                raise _GoneError
            view = view[count:]
        return bytes(buffer)


def main() -> None:
    """Serve checks until the judging process is gone."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for name in _PRELOADED:
        importlib.import_module(name)
    control = _Control(socket.socket(fileno=os.dup(0)))
    _silence_standard_streams()
    confinement = Confinement()
    gc.collect()
    gc.freeze()
    try:
        control.send(reply(Kind.READY))
        while True:
            _serve(control, confinement)
    except (_GoneError, ConnectionError):
        return
    finally:
        end_descendants()


def _serve(control: _Control, confinement: Confinement) -> None:
    """Answer one request; a CANCEL that came too late for its check is passed over."""
    request = control.receive()
    if request.kind is not Kind.CHECK:
        return
    control.send(reply(Kind.ACCEPTED))
    check = Check(request.timeout_s, request.memory_mb, request.source, request.text)
    kind, payload = supervise(check, control, confinement)
    control.send(REPLY.pack(kind, len(payload)) + payload)


def _silence_standard_streams() -> None:
    """Point descriptors 0 to 2 at /dev/null, for this process and every check."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.close(null)
