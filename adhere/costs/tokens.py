"""Tokens: the figures that come with a reply, read in one way for every provider. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

# The mark in ``usage`` of a reply that came by a batch: the only one that is not its server's.
BY_BATCH = "batch"


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
        return Tokens(
            self.calls + other.calls,
            self.unmetered + other.unmetered,
            self.prompt + other.prompt,
            self.cached + other.cached,
            self.completion + other.completion,
            self.reasoning + other.reasoning,
            self.batch_prompt + other.batch_prompt,
            self.batch_cached + other.batch_cached,
            self.batch_completion + other.batch_completion,
        )

    @property
    def total(self) -> int:
        """Prompt and completion together."""
        return self.prompt + self.completion


def tokens_of(usage: Mapping[str, Any] | None) -> Tokens:
    """Return what one reply took, from its ``usage``.

    Some servers leave reasoning out of ``completion_tokens`` but count it in ``total_tokens``;
    it is paid for as output, so the larger figure is taken.
    """
    usage = usage or {}
    prompt, written = _whole(usage.get("prompt_tokens")), _whole(usage.get("completion_tokens"))
    if prompt is None and written is None:
        return Tokens(calls=1, unmetered=1)
    prompt, written = prompt or 0, written or 0
    completion = max(written, (_whole(usage.get("total_tokens")) or 0) - prompt)
    cached = _inner(usage, "prompt_tokens_details", "cached_tokens")
    reasoning = _inner(usage, "completion_tokens_details", "reasoning_tokens")
    tokens = Tokens(1, 0, prompt, min(cached, prompt), completion, min(reasoning, completion))
    return tokens.in_batch() if usage.get(BY_BATCH) is True else tokens


def _whole(value: Any) -> int | None:
    """Return a count of tokens; None for what is none."""
    counts = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if counts else None


def _inner(usage: Mapping[str, Any], group: str, key: str) -> int:
    details = usage.get(group)
    return (_whole(details.get(key)) or 0) if isinstance(details, Mapping) else 0
