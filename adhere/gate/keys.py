"""What an item and a constraint are known by, from one state of a dataset to the next.

An item is known by its id (by its position where ids are missing or repeat), a constraint by what
it asks for: so an item whose instruction was reworded is still the same one, and a constraint that
asks for something else is another.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from adhere.data import Row, occurrences
from adhere.jsonio import fingerprint


def item_keys(rows: Sequence[Row]) -> list[str]:
    """Return the ids of rows, with the position where one is missing or repeats."""
    ids = [row.get("id") for row in rows]
    names = [str(each) if isinstance(each, str | int) else None for each in ids]
    counts = Counter(names)
    return [
        name if name is not None and counts[name] == 1 else f"#{position}"
        for position, name in enumerate(names, start=1)
    ]


def constraint_keys(constraints: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a key for each constraint of an item, over what it asks for."""
    keys = [_constraint_key(constraint) for constraint in constraints]
    return [
        key if number == 0 else f"{key}#{number + 1}"
        for key, number in zip(keys, occurrences(keys), strict=True)
    ]


def _constraint_key(constraint: Mapping[str, Any]) -> str:
    steps = constraint.get("evaluation")
    kinds = [step.get("type") for step in steps] if isinstance(steps, list) else []
    words = constraint.get("desc")
    # A question's prompt quotes the instruction: the requirement alone is what it asks for.
    asked = words if kinds == ["llm"] and isinstance(words, str) and words else steps
    kind = constraint.get("rule") or ">".join(map(str, kinds)) or "constraint"
    return f"{kind}:{fingerprint(asked)[:12]}"
