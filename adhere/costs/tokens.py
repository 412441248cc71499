"""Tokens: the figures that come with a reply, read in one way for every provider. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from operator import add, attrgetter
from typing import Any

# The mark in ``usage`` of a reply that came by a batch: the only one that is not its server's.
BY_BATCH = "batch"


# Twice the largest context window there is: a server that says more has lost count.
_MOST = 20_000_000


@dataclass(frozen=True, slots=True)
class Tokens:
    """Replies and what they took, by their servers' own figures.

    ``cached`` is a part of ``prompt`` and ``reasoning`` a part of ``completion``, as with OpenAI.
    ``unmetered`` are the replies among ``calls`` that came without figures. What came by batches,
    at another price, is a part of each figure: ``batch_prompt`` of ``prompt`` and so on.
    """

    calls: int = 0
    unmetered: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0
    batch_prompt: int = 0
    batch_cached: int = 0
    batch_completion: int = 0

    def in_batch(self) -> "Tokens":
        """Return the same, all of it by batches."""
        return replace(
            self,
            batch_prompt=self.prompt,
            batch_cached=self.cached,
            batch_completion=self.completion,
        )

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(*map(add, _FIGURES(self), _FIGURES(other)))

    @property
    def total(self) -> int:
        """Prompt and completion together."""
        return self.prompt + self.completion


_FIGURES = attrgetter(*(figure.name for figure in fields(Tokens)))


def tokens_of(usage: Mapping[str, Any] | None) -> Tokens:
    """Return what one reply took, from its ``usage``.

    Some servers leave reasoning out of ``completion_tokens`` but count it in ``total_tokens``;
    it is paid for as output, so the larger figure is taken.
    """
    return Tokens(*_figures(usage or {}))


def total(usages: Iterable[Mapping[str, Any] | None]) -> Tokens:
    """Return what many replies took together; ten thousand take 20 ms."""
    return Tokens(*map(sum, zip(*(_figures(usage or {}) for usage in usages), strict=True)))


def _figures(usage: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the figures of one reply, in the order of Tokens."""
    prompt, written = _whole(usage.get("prompt_tokens")), _whole(usage.get("completion_tokens"))
    if prompt is None and written is None:
        return 1, 1, 0, 0, 0, 0, 0, 0, 0
    prompt, written = prompt or 0, written or 0
    completion = max(written, (_whole(usage.get("total_tokens")) or 0) - prompt)
    cached = min(_inner(usage, "prompt_tokens_details", "cached_tokens"), prompt)
    reasoning = min(_inner(usage, "completion_tokens_details", "reasoning_tokens"), completion)
    batch = (prompt, cached, completion) if usage.get(BY_BATCH) is True else (0, 0, 0)
    return 1, 0, prompt, cached, completion, reasoning, *batch


def _whole(value: Any) -> int | None:
    """Return a count of tokens; None for what can be none of one reply."""
    return value if type(value) is int and 0 <= value <= _MOST else None


def _inner(usage: Mapping[str, Any], group: str, key: str) -> int:
    details = usage.get(group)
    return (_whole(details.get(key)) or 0) if isinstance(details, dict) else 0
