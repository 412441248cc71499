"""Verdicts in JSON: the key that names one decides, at the top before anything below it."""

import json
import re
from collections.abc import Callable
from typing import Any, Final

from adhere.verdict.labels import DECISION, FINDING, PREDICATE
from adhere.verdict.words import SURE_WORDS, is_inverted

_OPENS = re.compile(r"^[ \t]{0,12}(?:`{3,}[ \t]?(?:json)?[ \t]*)?(?=[{\[])", re.MULTILINE)
_MOST_TRIES: Final = 8
# What is nested deeper names no verdict.
_MOST_DEPTH: Final = 20
# Kinds of keys, the most telling first. What such a key holds decides alone.
_RANKS: Final = (DECISION, FINDING, PREDICATE)
_WORDS_JOINED: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Keys of what is said about a verdict.
_ABOUT: Final = re.compile(
    r"(?:explanation|reason|reasoning|comment|rationale|confidence|justification|note|score)s?\Z"
)
Read = Callable[[str], str]


def find_objects(text: str) -> list[tuple[Any, int, int]]:
    """Return the JSON objects and lists that begin a line, each with its bounds in the text."""
    found: list[tuple[Any, int, int]] = []
    position, tries = 0, 0
    while tries < _MOST_TRIES and (opening := _OPENS.search(text, position)):
        tries += 1
        try:
            value, end = _DECODER.raw_decode(text, opening.end())
        except (ValueError, RecursionError):
            position = opening.end() + 1
            continue
        if value:  # an empty box to tick is no list
            found.append((value, opening.end(), end))
        position = end
    return found


_DECODER = json.JSONDecoder(strict=False)


def verdict_of(value: Any, read: Read, depth: int = 0, *, only_decisions: bool = False) -> str:
    """Return the kind of a JSON value's verdict: yes, no, none, or "" where it names none.

    ``read`` reads a text. Keys that name a decision come first, then those that name a finding
    (answer, result), then predicates (satisfied); keys of one rank must agree. A key that asks for
    the opposite (has_errors, violation) never counts. ``only_decisions`` leaves it at the first.
    """
    if depth > _MOST_DEPTH:
        return ""
    if isinstance(value, list):
        kinds = [read(e) if _is_sure(e) else verdict_of(e, read, depth + 1) for e in value]
        return agreed([kind for kind in kinds if kind])
    if not isinstance(value, dict):
        return ""
    names = {key: _WORDS_JOINED.sub(" ", key).replace("_", " ").lower() for key in value}
    keys = [key for key in value if not is_inverted(names[key]) and not _ABOUT.search(names[key])]
    for rank in _RANKS[: 1 if only_decisions else None]:
        named = [key for key in keys if rank.search(names[key])]
        kinds = [kind for key in named if (kind := _kind(value[key], read, depth))]
        if kinds:
            return agreed(kinds)
        if named and rank is DECISION:
            return "none"
    if only_decisions:
        return ""
    words = [value[key] for key in keys if _is_sure(value[key])]
    return read(words[0]) if len(words) == 1 and len(value) == 1 else ""


def _kind(value: Any, read: Read, depth: int) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return read(value)
    return verdict_of(value, read, depth + 1) if isinstance(value, dict) else ""


def _is_sure(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in SURE_WORDS


def agreed(kinds: list[str]) -> str:
    """Return the kind that all have, "none" where they differ, "" where there are none."""
    return "" if not kinds else kinds[0] if len(set(kinds)) == 1 else "none"
