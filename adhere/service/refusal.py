"""Refusals: every answer that is no result has a status, a kind for programs and a message."""

from collections.abc import Mapping

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field


class Refusal(HTTPException):
    """A request that gets no result."""

    def __init__(
        self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message, headers)
        self.kind = kind


def content(kind: str, message: str) -> dict[str, dict[str, str]]:
    """Return the body of a refusal."""
    return {"error": {"kind": kind, "message": message}}


class Problem(BaseModel):
    """Why there is no result."""

    model_config = ConfigDict(extra="forbid")

    kind: str = Field(description="For programs: what was wrong, out of a small set.")
    message: str = Field(description="For people: where, what was found, what is allowed.")


class Refused(BaseModel):
    """The body of every refusal."""

    model_config = ConfigDict(extra="forbid")

    error: Problem


REASONS = {
    400: "The body is no strict JSON",
    401: "The bearer token is missing or wrong",
    403: "The server is asked by a name that is not a loopback one, and has no token",
    408: "The body did not arrive in time",
    413: "The body is longer than allowed",
    415: "The body is not said to be JSON by its Content-Type",
    422: "The body is JSON and not what is taken here",
    429: "The queue is full: ask again after Retry-After seconds",
    503: "The server is about to end, or its checkers cannot be run",
    504: "The deadline passed: the work was cancelled",
}
RESPONSES: dict[int | str, dict[str, object]] = {
    status: {"model": Refused, "description": text} for status, text in REASONS.items()
}
