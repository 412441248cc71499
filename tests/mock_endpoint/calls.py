"""A chat request as the mock reads it."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import orjson
from aiohttp import web

from mock_endpoint.config import Json
from mock_endpoint.texts import digest


@dataclass(slots=True)
class Call:
    """One chat request as it arrived, and what became of it.

    ``body`` is None where it is no JSON object; ``prompt`` is UTF-8. Both are dropped once the
    request is dealt with: ``raw`` is what the log keeps.
    """

    path: str
    raw: bytes
    authorization_sha256: str | None
    digest: bytes
    is_object: bool
    body: Json | None
    model: str
    prompt: bytes
    judge: bool
    status: int | None = None
    answered: bool = False

    @classmethod
    def read(cls, request: web.BaseRequest, raw: bytes) -> Self:
        """Parse a request."""
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError:
            value = None
        body = value if isinstance(value, dict) else None
        model = str(body.get("model", "")) if body else ""
        path = request.path
        return cls(
            path=path,
            raw=raw,
            authorization_sha256=_secret_digest(request.headers.get("Authorization")),
            digest=digest(raw),
            is_object=body is not None,
            body=body,
            model=model,
            prompt="\n".join(_message_texts(body)).encode() if body else b"",
            judge="/judge/" in path.rpartition("v1/chat")[0] or "judge" in model.lower(),
        )

    def entry(self) -> Json:
        """Return the fields of a LogEntry, its body still serialised."""
        return {
            "path": self.path,
            "model": self.model,
            "body": orjson.Fragment(self.raw if self.is_object else b"{}"),
            "has_authorization": self.authorization_sha256 is not None,
            "authorization_sha256": self.authorization_sha256,
            "status": self.status,
            "answered": self.answered,
        }


def _message_texts(body: Json) -> Iterator[str]:
    """Yield the texts of all messages: string contents, and the text parts of lists."""
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else []:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            for part in content:
                if isinstance(part, dict) and isinstance(part.get("text"), str):
                    yield part["text"]


def _secret_digest(value: str | None) -> str | None:
    if value is None:
        return None
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


def text_key(prompt: bytes, body: Json) -> bytes:
    """Return what the default text depends on: the messages' roles and texts, and the seed."""
    messages = body.get("messages")
    listed = messages if isinstance(messages, list) else []
    roles = [message.get("role") for message in listed if isinstance(message, dict)]
    return digest(prompt + orjson.dumps([roles, body.get("seed")]))


def output_limit(body: Json) -> int | None:
    """Return how many tokens the request lets a reply have; None: it says nothing."""
    for name in ("max_completion_tokens", "max_tokens"):
        if isinstance(body.get(name), int):
            return int(body[name])
    return None
