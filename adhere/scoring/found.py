"""Why a judged constraint has its verdict, in a line: what the last step of its chain said."""

from collections.abc import Mapping
from typing import Any

_LONGEST = 300


def found(constraint: Mapping[str, Any]) -> str:
    """Return what was found about a constraint of a ``results.json``; empty where nothing is."""
    steps = constraint.get("steps")
    last = steps[-1] if isinstance(steps, list) and steps else {}
    said = last.get("found") if isinstance(last, Mapping) else None
    if not isinstance(said, str):
        said = constraint.get("llm_output")
    if not isinstance(said, str) and constraint.get("score") is False and last:
        said = "the checker said no"
    return _shortened(said) if isinstance(said, str) else ""


def title(constraint: Mapping[str, Any], position: int) -> str:
    """Name a constraint for people: its id, else its rule or its requirement, else its position."""
    identity = constraint.get("id")
    for value in (identity if isinstance(identity, str) else None, constraint.get("rule")):
        if isinstance(value, str) and value:
            return value
    words = constraint.get("desc")
    if isinstance(words, str) and words.strip():
        return _shortened(words, 80)
    return f"constraint {position + 1}"


def _shortened(text: str, longest: int = _LONGEST) -> str:
    """Return a text on one line; of a long one the end, where a judge says what it concludes."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"…{line[-longest:]}"
