"""What texts and replies take that are not there yet: ranges, and where each comes from. Pure."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Characters that a token stands for, at most and at least. English prose has 4 to 5 with today's
# tokenizers, code, JSON and other alphabets 2.5 to 4; a Chinese character is half a token to a
# little over one.
_ASCII_PER_TOKEN = (5.0, 2.5)
_WIDE_PER_TOKEN = (2.0, 0.9)
# Tokens that a chat template puts around a message.
_AROUND = (0, 12)
# A mean of earlier replies is taken to hold within this part of it, or two standard errors.
_TRUST = 0.1


@dataclass(frozen=True, slots=True)
class Span:
    """A number that is expected between two others."""

    low: float = 0.0
    high: float = 0.0

    def __add__(self, other: "Span") -> "Span":
        return Span(self.low + other.low, self.high + other.high)

    def times(self, other: "Span") -> "Span":
        """Multiply with another span; both are of numbers from 0."""
        return Span(self.low * other.low, self.high * other.high)

    def capped(self, most: float | None) -> "Span":
        """Return the span with no number above ``most``."""
        return self if most is None else Span(min(self.low, most), min(self.high, most))


def exactly(value: float) -> Span:
    """Return a span of one number."""
    return Span(value, value)


def tokens_in(text: str) -> Span:
    """Return how many tokens a text is likely to be, by its characters.

    What UTF-8 takes beyond one byte a character tells how many are Chinese, at two a character.
    """
    extra = len(text.encode("utf-8", "replace")) - len(text)
    wide = min(extra / 2, len(text))
    plain = len(text) - wide
    low, high = (
        plain / plain_per + wide / wide_per
        for plain_per, wide_per in zip(_ASCII_PER_TOKEN, _WIDE_PER_TOKEN, strict=True)
    )
    return Span(low, high)


def message_tokens(texts: Iterable[str]) -> Span:
    """Return how many tokens messages are likely to be as a prompt."""
    return sum((tokens_in(text) + Span(*_AROUND) for text in texts), Span())


def mean_of(earlier: Sequence[float], further: float) -> Span | None:
    """Return the mean that so many further values are likely to have; None without earlier ones.

    Few of them vary about the true mean as few of the earlier ones do, so both numbers count.
    """
    if not earlier:
        return None
    mean = statistics.fmean(earlier)
    spread = statistics.stdev(earlier) if len(earlier) > 1 else mean
    error = spread * math.sqrt(1 / len(earlier) + 1 / max(further, 1))
    margin = max(_TRUST * mean, 2 * error)
    return Span(max(0.0, mean - margin), mean + margin)
