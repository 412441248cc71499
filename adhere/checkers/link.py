"""The judging process's end of the socket to one server."""

import asyncio
from typing import Final, NamedTuple

from adhere.checkers.frames import FROM_CHILD, MAX_DETAIL, REPLY, Kind

# What a server may answer.
_KINDS: Final = {int(kind): kind for kind in Kind if kind not in (Kind.CHECK, Kind.CANCEL)}


class Reply(NamedTuple):
    """A server's answer: a kind from Kind and its payload."""

    kind: Kind
    payload: bytes


class LostError(Exception):
    """The server is gone, or answered nonsense."""


class Link(asyncio.Protocol):
    """Sends requests and reads answers, one at a time.

    A protocol, not asyncio's streams, since a stream wakes its reader several times an answer: this
    is most of what a check costs the judging process.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._data = bytearray()
        self._answer: asyncio.Future[Reply] | None = None
        self._lost = asyncio.get_running_loop().create_future()

    def send(self, data: bytes) -> None:
        """Send a request; where the server is gone, waiting for its answer says so."""
        assert self._transport is not None
        self._transport.write(data)

    async def receive(self) -> Reply:
        """Wait for the next answer. Raises LostError."""
        self._answer = asyncio.get_running_loop().create_future()
        self._deliver()
        try:
            return await self._answer
        finally:
            self._answer = None

    async def end(self) -> None:
        """Tell the server that no request will come, and wait until it has closed its side."""
        assert self._transport is not None
        self._transport.write_eof()
        await asyncio.shield(self._lost)

    def close(self) -> None:
        """Close the socket at once."""
        assert self._transport is not None
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the socket."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        self._data += data
        self._deliver()

    def connection_lost(self, _error: Exception | None) -> None:
        """Note that nothing will come any more."""
        self._lost.set_result(None)
        self._deliver()

    def _deliver(self) -> None:
        """Hand over the answer that is there, or that there will be none, if someone waits."""
        answer = self._answer
        if answer is None or answer.done():
            return
        data = self._data
        if len(data) >= REPLY.size:
            number, size = REPLY.unpack_from(data)
            kind = _KINDS.get(number)
            if kind is None or size > FROM_CHILD.get(kind, MAX_DETAIL):
                answer.set_exception(LostError())
                return
            whole = REPLY.size + size
            if len(data) >= whole:
                answer.set_result(Reply(kind, bytes(data[REPLY.size : whole])))
                del data[:whole]
                return
        if self._lost.done():
            answer.set_exception(LostError())
