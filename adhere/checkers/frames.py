"""The bytes that travel between the judging process, its server and a check's process.

Request, judge to server: REQUEST header (kind, seconds, MiB, bytes of source, bytes of text), then
source and text. Answer, server to judge: REPLY header (kind, bytes of payload), then the payload.
Result, child to server: NONCE_BYTES of nonce, then as an answer. All texts are UTF-8 in which lone
surrogates may pass, so that every Python string arrives as it left.

Everything here is imported by the server: keep it small.
"""

import struct
from enum import IntEnum
from typing import Final

MAX_BYTES: Final = 64 << 20
NONCE_BYTES: Final = 16
REQUEST: Final = struct.Struct("!BdIQQ")
REPLY: Final = struct.Struct("!BQ")


class Kind(IntEnum):
    """What a request asks for, and what an answer says."""

    # judge to server
    CHECK = 1
    CANCEL = 2
    # server to judge
    READY = 10
    ACCEPTED = 11
    TIMEOUT = 12
    KILLED = 13
    PROTOCOL = 14
    CANCELLED = 15
    # child to server, and on to the judge
    TRUE = 20
    FALSE = 21
    NONE = 22
    TEXT = 23
    ERROR = 24
    NOT_DEFINED = 25


FROM_CHILD: Final = frozenset(
    map(int, (Kind.TRUE, Kind.FALSE, Kind.NONE, Kind.TEXT, Kind.ERROR, Kind.NOT_DEFINED))
)


def encode(text: str) -> bytes:
    """Return the bytes of any Python string."""
    return text.encode("utf-8", "surrogatepass")


def decode(data: bytes) -> str:
    """Return the string that ``encode`` made these bytes from; UnicodeDecodeError for others."""
    return data.decode("utf-8", "surrogatepass")


def reply(kind: int, payload: bytes = b"") -> bytes:
    """Return an answer."""
    return REPLY.pack(kind, len(payload)) + payload


def parse_result(data: bytearray, nonce: bytes) -> tuple[int, bytes] | None:
    """Return kind and payload if ``data`` is exactly one result with this nonce, else None."""
    start = NONCE_BYTES + REPLY.size
    if len(data) < start or data[:NONCE_BYTES] != nonce:
        return None
    kind, size = REPLY.unpack_from(data, NONCE_BYTES)
    if kind not in FROM_CHILD or len(data) - start != size:
        return None
    return kind, bytes(data[start:])
