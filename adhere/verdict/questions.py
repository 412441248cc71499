"""Questions and labels that a word answers, which may not be about the verdict."""

import re
from typing import Final

from adhere.verdict.labels import NOUNS
from adhere.verdict.polarity import ASKS_FOR_VERDICT
from adhere.verdict.quoting import introduced
from adhere.verdict.words import conditional, denied, is_inverted

SPACES_AND_MARKS: Final = " \t\n*_\"'`"
# "Any emojis? No": one thing among others.
ASKS_ASIDE: Final = re.compile(
    r"(?:\A|[\n.!?:*-])[^\w\n]{0,6}(?:are there )?any\b[^\n.!?]{0,80}\?\W{0,6}\Z"
)


def answers(plain: str, start: int) -> bool:
    """Whether a line answers or completes what stands above, which may not be about the verdict."""
    before = plain[max(start - 300, 0) : start].rstrip(SPACES_AND_MARKS)
    return before.endswith("?") or (before.endswith(":") and not names_verdict(before))


def names_verdict(before: str) -> bool:
    """Whether a label that ends a text is about the judge's verdict."""
    above, _, line = before.rpartition("\n")
    if denied(above, "", len(above)) or conditional(above, len(above)) or is_inverted(line):
        return False
    return re.search(NOUNS, line) is not None and not introduced(before)


def answers_aside(plain: str, start: int) -> bool:
    """Whether a word answers a question on its line, other than that for the verdict."""
    before = plain[max(start - 200, 0) : start]
    asked = before.rstrip(SPACES_AND_MARKS).endswith("?")
    return asked and ASKS_FOR_VERDICT.search(before) is None
