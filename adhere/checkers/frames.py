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

# The most bytes: of a source and of a text that go down, each; of a text that a checker returns,
# which stands in results and in the next judge's prompt; of what people are told of a failure.
MAX_REQUEST: Final = 64 << 20
MAX_TEXT: Final = 1 << 20
MAX_DETAIL: Final = 4 << 10
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
    TIMEOUT = 11
    KILLED = 12
    PROTOCOL = 13
    CANCELLED = 14
    # child to server, and on to the judge
    TRUE = 20
    FALSE = 21
    NONE = 22
    TEXT = 23
    ERROR = 24
    NOT_DEFINED = 25


# What a check's process may send: kinds, and the most bytes of each one's payload.
FROM_CHILD: Final[dict[int, int]] = {
    int(Kind.TRUE): 0,
    int(Kind.FALSE): 0,
    int(Kind.NONE): 0,
    int(Kind.TEXT): MAX_TEXT,
    int(Kind.ERROR): MAX_DETAIL,
    int(Kind.NOT_DEFINED): MAX_DETAIL,
}
# The longest result, with all that stands before its payload.
MAX_RESULT: Final = NONCE_BYTES + REPLY.size + MAX_TEXT


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
    if len(data) - start != size or size > FROM_CHILD.get(kind, -1):
        return None
    return kind, bytes(data[start:])
