"""What is said of items and constraints beside their content: ids, labels, and their forms.

AgentIF's labels have names under which reports show them. Other labels are kept: each is a group of
its own.
"""

from collections.abc import Iterator
from typing import Any

DIMENSIONS = {"unconditional": "vanilla", "conditional": "condition", "example_driven": "example"}
TYPES = {"formatting": "formatting", "semantic": "semantic", "resource": "tool"}
# AgentIF's files spell the key in these three ways.
META_KEYS = ("is_meta", "is meta", "is_meat")
# What a team's instruction set says of a constraint.
TEAM_KEYS = ("category", "severity", "level", "rule", "failure_mode")
_KNOWN = {"dimension": DIMENSIONS, "type": TYPES}


def wrong(constraint: dict[str, Any]) -> list[str]:
    """Return what is wrong with the labels of a constraint: no report could name such a group."""
    problems = []
    for key in ("dimension", *TEAM_KEYS):
        if not isinstance(constraint.get(key), str | None):
            problems.append(_problem(key, constraint, "a text or null"))
    types = constraint.get("type")
    if types is not None and not all(isinstance(kind, str) for kind in _as_list(types)):
        problems.append(_problem("type", constraint, "a text, a list of texts or null"))
    for key in META_KEYS:
        if not isinstance(constraint.get(key), bool | None):
            problems.append(_problem(key, constraint, "true, false or null"))
    return problems + wrong_id(constraint)


def wrong_id(record: dict[str, Any]) -> list[str]:
    """Return what is wrong with the id of an item or a constraint."""
    return [] if is_id(record.get("id")) else [_problem("id", record, ID_FORM)]


ID_FORM = "a text, a whole number of at most 64 bits or null"


def is_id(value: object) -> bool:
    """Whether a value can be an id: a text, a whole number, or absent."""
    return isinstance(value, str | int | None) and not isinstance(value, bool)


def _problem(key: str, record: dict[str, Any], allowed: str) -> str:
    return f"{key}: found {record[key]!r:.60}: must be {allowed}"


def unusual(constraint: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield key and label for each label that AgentIF does not have."""
    for key, known in _KNOWN.items():
        for label in _as_list(constraint.get(key)):
            if label is not None and label not in known and label not in known.values():
                yield key, label


def usual(key: str) -> str:
    """Return AgentIF's labels of a key, for messages."""
    return ", ".join(_KNOWN[key])


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
