"""What must occur, must not, and how often: keywords, patterns, letters.

Keywords are compared without case and width (``％`` is ``%``), as pieces of text: ``cat`` occurs in
``category``. With ``whole_words`` a letter or digit must not follow or precede, which is of use in
scripts with spaces; Chinese and Japanese characters on either side do not matter.
"""

from functools import lru_cache
from typing import Annotated, Any

import regex
from pydantic import Field

from adhere.rules import patterns
from adhere.rules.arguments import (
    Count,
    Keywords,
    Letter,
    Pattern,
    Words,
    bounds,
    shown,
    within,
)
from adhere.rules.measure import fold
from adhere.rules.registry import Outcome, example
from adhere.rules.text import rule

_NO_LETTER_BEFORE = r"(?<![\p{L}\p{N}_--[\p{Han}\p{Hiragana}\p{Katakana}]])"
_NO_LETTER_AFTER = r"(?![\p{L}\p{N}_--[\p{Han}\p{Hiragana}\p{Katakana}]])"


@lru_cache(maxsize=512)
def _matcher(keyword: str, whole_words: bool) -> Any:
    pattern = r"\s+".join(regex.escape(part) for part in fold(keyword).split())
    return regex.compile(
        _NO_LETTER_BEFORE + pattern + _NO_LETTER_AFTER if whole_words else pattern, regex.V1
    )


def occurrences(text: str, keyword: str, *, whole_words: bool = False) -> int:
    """Return how often a keyword occurs."""
    return sum(1 for _ in _matcher(keyword, whole_words).finditer(fold(text)))


def _missing(text: str, keywords: list[str], whole_words: bool) -> list[str]:
    folded = fold(text)
    return [word for word in keywords if not _matcher(word, whole_words).search(folded)]


def _names(keywords: list[str]) -> str:
    return ", ".join(shown(keyword) for keyword in keywords)


@rule(
    "contains",
    passes=[example("A green tea.", keyword="Green"), example("降价50％。", keyword="50%")],
    fails=[
        example("A tea.", keyword="green"),
        example("category", keyword="cat", whole_words=True),
    ],
)
def contains(text: str, keyword: Words, whole_words: bool = False) -> Outcome:
    """A keyword occurs."""
    return contains_all(text, [keyword], whole_words)


@rule(
    "contains_all",
    passes=[
        example("Tea and coffee.", keywords=["coffee", "tea"]),
        example("苹果和梨", keywords=["苹果"]),
    ],
    fails=[example("Tea only.", keywords=["coffee", "tea"]), example("苹果", keywords=["梨"])],
)
def contains_all(text: str, keywords: Keywords, whole_words: bool = False) -> Outcome:
    """All keywords occur."""
    missing = _missing(text, keywords, whole_words)
    return Outcome(not missing, f"missing: {_names(missing)}" if missing else "all occur")


@rule(
    "contains_any",
    passes=[
        example("Tea only.", keywords=["coffee", "tea"]),
        example("我不能这样做。", keywords=["无法", "不能"]),
    ],
    fails=[example("Water.", keywords=["coffee", "tea"]), example("好的。", keywords=["无法"])],
)
def contains_any(text: str, keywords: Keywords, whole_words: bool = False) -> Outcome:
    """At least one of the keywords occurs."""
    missing = _missing(text, keywords, whole_words)
    present = [keyword for keyword in keywords if keyword not in missing]
    return Outcome(bool(present), f"found: {_names(present)}" if present else "none occurs")


@rule(
    "not_contains",
    passes=[
        example("Water.", keywords=["coffee", "tea"]),
        example("A classic.", keywords=["class"], whole_words=True),
    ],
    fails=[example("Tea, please.", keywords=["tea"]), example("很抱歉。", keywords=["抱歉"])],
)
def not_contains(text: str, keywords: Keywords, whole_words: bool = False) -> Outcome:
    """None of the keywords occurs."""
    missing = _missing(text, keywords, whole_words)
    present = [keyword for keyword in keywords if keyword not in missing]
    return Outcome(not present, f"found: {_names(present)}" if present else "none occurs")


@rule(
    "keyword_count",
    valid=bounds,
    passes=[
        example("tea, tea, Tea", keyword="tea", min=3),
        example("tea in a teapot", keyword="tea", max=1, whole_words=True),
    ],
    fails=[example("tea, tea", keyword="tea", min=3), example("茶和茶", keyword="茶", max=1)],
)
def keyword_count(
    text: str,
    keyword: Words,
    min: Count | None = None,
    max: Count | None = None,
    whole_words: bool = False,
) -> Outcome:
    """How often a keyword occurs."""
    found = occurrences(text, keyword, whole_words=whole_words)
    return within(found, f"occurrence of {shown(keyword)}", min, max)


@rule(
    "keyword_counts",
    passes=[
        example("Tea, tea, milk", counts={"tea": 2, "milk": 1}),
        example("茶", counts={"茶": 1, "奶": 0}),
    ],
    fails=[
        example("Tea, milk", counts={"tea": 2, "milk": 1}),
        example("茶、茶", counts={"茶": 1}),
    ],
)
def keyword_counts(
    text: str, counts: Annotated[dict[Words, Count], Field(min_length=1)]
) -> Outcome:
    """Every keyword occurs exactly so often."""
    found = {keyword: occurrences(text, keyword) for keyword in counts}
    listed = ", ".join(f"{shown(keyword)} {number} times" for keyword, number in found.items())
    return Outcome(found == counts, listed)


@rule(
    "letter_count",
    valid=bounds,
    passes=[example("Banana", letter="a", min=3), example("是是非非", letter="是", max=2)],
    fails=[example("Banana", letter="A", max=2), example("Lemon!", letter="!", min=2)],
)
def letter_count(
    text: str, letter: Letter, min: Count | None = None, max: Count | None = None
) -> Outcome:
    """How often a letter or another single character occurs, in either case."""
    return within(fold(text).count(fold(letter)), f"occurrence of {shown(letter)}", min, max)


@rule(
    "matches",
    passes=[
        example("Order AB-123 is ready.", pattern=r"[A-Z]{2}-\d{3}"),
        example("共3件", pattern=r"\p{Han}\d\p{Han}"),
    ],
    fails=[example("Order 123.", pattern=r"[A-Z]{2}-\d{3}"), example("abc", pattern="^b")],
)
def matches(text: str, pattern: Pattern) -> Outcome:
    """A regular expression (RE2) matches somewhere."""
    found = patterns.find(pattern, text)
    return Outcome(found is not None, "no match" if found is None else f"found: {shown(found)}")


@rule(
    "not_matches",
    passes=[
        example("Call the office.", pattern=r"\d{3}-\d{4}"),
        example("abc", pattern="^b"),
    ],
    fails=[example("Call 555-1234.", pattern=r"\d{3}-\d{4}"), example("abc", pattern="(?i)B")],
)
def not_matches(text: str, pattern: Pattern) -> Outcome:
    """A regular expression (RE2) matches nowhere."""
    found = patterns.find(pattern, text)
    return Outcome(found is None, "no match" if found is None else f"found: {shown(found)}")


@rule(
    "match_count",
    valid=bounds,
    passes=[example("[a] and [b]", pattern=r"\[\w\]", min=2), example("[a]", pattern="a", max=1)],
    fails=[example("[a]", pattern=r"\[\w\]", min=2), example("aa", pattern="a", max=1)],
)
def match_count(
    text: str, pattern: Pattern, min: Count | None = None, max: Count | None = None
) -> Outcome:
    """How often a regular expression (RE2) matches."""
    return within(patterns.count(pattern, text), "match", min, max)
