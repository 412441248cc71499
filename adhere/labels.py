"""AgentIF's labels of constraints, and the names under which reports show them.

Other labels are kept: each is a group of its own.
"""

from collections.abc import Iterator
from typing import Any

DIMENSIONS = {"unconditional": "vanilla", "conditional": "condition", "example_driven": "example"}
TYPES = {"formatting": "formatting", "semantic": "semantic", "resource": "tool"}
_KNOWN = {"dimension": DIMENSIONS, "type": TYPES}


def wrong(constraint: dict[str, Any]) -> list[str]:
    """Return what is wrong with the labels of a constraint: no report could name such a group."""
    dimension, types = constraint.get("dimension"), constraint.get("type")
    problems = []
    if dimension is not None and not isinstance(dimension, str):
        problems.append(f"dimension: found {dimension!r:.60}: must be a text or null")
    if types is not None and not all(isinstance(kind, str) for kind in _as_list(types)):
        problems.append(f"type: found {types!r:.60}: must be a text, a list of texts or null")
    return problems


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
