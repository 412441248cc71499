"""Reads the rows of a ``results.json``; a malformed row is refused by its place.

Only what accounting needs is read. Files published by others hold ``score`` and ``llm_output``
alone, so every other key is optional; a key that is there must have its documented form.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adhere.data import label
from adhere.errors import DataError
from adhere.kept import is_texts, wrong_output
from adhere.labels import DIMENSIONS, ID_FORM, META_KEYS, TEAM_KEYS, TYPES, is_id
from adhere.scoring.records import (
    CONDITION,
    NOT_APPLICABLE,
    RECORDED_MISSING,
    RECORDED_NULL,
    Cell,
    Item,
    Labels,
    Response,
)

# Errors of an output that say that a reply came and held no answer.
_EMPTY = ("empty_answer", "thinking_cut_off", "thinking_unclosed")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands: positions count from 0, in messages from 1."""

    file: str
    item: int
    row: Mapping[str, Any]
    constraint: int | None = None

    def error(self, key: str, found: object, allowed: str) -> DataError:
        place = f"{self.file}: {label(self.item, dict(self.row))}"
        if self.constraint is not None:
            place += f": constraint {self.constraint + 1}"
        return DataError(
            f"{place}: {key}: found {found!r:.60}; allowed: {allowed}. "
            "Correct the file or judge it again"
        )


def parse_results(rows: Sequence[Mapping[str, Any]], file: str) -> list[Item]:
    """Read all rows of a parsed ``results.json``; ``file`` is its name for messages.

    Raises DataError naming item, constraint and key of the first malformed value.
    """
    return [_item(row, _Place(file, position, row)) for position, row in enumerate(rows)]


def _item(row: Mapping[str, Any], place: _Place) -> Item:
    constraints = row.get("constraints")
    if not isinstance(constraints, list):
        raise place.error("constraints", constraints, "a list of constraints, as judge writes it")
    if wrong := wrong_output(row.get("output")):
        raise place.error(*wrong)
    response, failure, truncated = _response(row["output"])
    cells = tuple(
        _cell(constraint, _Place(place.file, place.item, row, position))
        for position, constraint in enumerate(constraints)
    )
    steps = _count(row, "trajectory_steps", place)
    broken = len({n for cell in cells for n in cell.broken_steps})
    if broken > (steps or 0):
        raise place.error(
            "trajectory_steps", steps, f"at least {broken}, the steps that are broken"
        )
    return Item(
        position=place.item,
        id=_id(row, place),
        response=response,
        failure=failure,
        truncated=truncated,
        cells=cells,
        scenario=_text(row, "scenario", place),
        steps=steps,
    )


def _response(output: Mapping[str, Any]) -> tuple[Response, str | None, bool]:
    """Return what became of the response, why there is none, and whether it was cut."""
    content, error = output.get("content"), output.get("error")
    truncated = output.get("finish_reason") == "length" or "truncated" in (
        output.get("flags") or ()
    )
    if error is not None:
        lost: Response = "empty" if error["kind"] in _EMPTY else "failed"
        return "pending" if error.get("retryable") else lost, error["kind"], truncated
    if (content is None or not content.strip()) and output.get("trajectory") is None:
        return "empty", "empty_answer", truncated
    return "ok", None, truncated


def _cell(constraint: object, place: _Place) -> Cell:
    if not isinstance(constraint, dict):
        raise place.error("constraint", constraint, "an object with 'score'")
    dimension = constraint.get("dimension")
    if dimension is not None and not isinstance(dimension, str):
        raise place.error("dimension", dimension, "a text or null")
    chain = _chain(constraint, place)
    score = constraint.get("score")
    if score is not None and not isinstance(score, bool):
        raise place.error("score", score, "true, false or null")
    reason = _reason(constraint, chain, place)
    steps = _steps(constraint, place)
    return Cell(
        position=place.constraint or 0,
        id=_id(constraint, place),
        dimension=None if dimension is None else DIMENSIONS.get(dimension, dimension),
        types=_types(constraint, place),
        meta=_meta(constraint, place),
        chain=chain,
        score=score,
        reason=reason,
        checker_none=reason == NOT_APPLICABLE and _ended_in_code(chain, steps),
        repaired=_flagged(steps, "repaired", place),
        retryable=_flagged(steps, "retryable", place) and reason not in (None, NOT_APPLICABLE),
        labels=Labels(**{key: _text(constraint, key, place) for key in TEAM_KEYS}),
        broken_steps=_broken_steps(steps, place),
    )


def _text(record: Mapping[str, Any], key: str, place: _Place) -> str | None:
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise place.error(key, value, "a text or null")
    return value


def _count(record: Mapping[str, Any], key: str, place: _Place) -> int | None:
    value = record.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise place.error(key, value, "a whole number from 0, or null")
    return value


def _broken_steps(steps: list[Mapping[str, Any]], place: _Place) -> tuple[int, ...]:
    """Return the steps of the trajectory that any step of the chain found to break the rule."""
    broken: set[int] = set()
    for step in steps:
        found = step.get("broken_steps") or []
        if not isinstance(found, list) or not all(isinstance(n, int) for n in found):
            raise place.error("steps.broken_steps", found, "a list of whole numbers")
        broken.update(found)
    return tuple(sorted(broken))


def _chain(constraint: Mapping[str, Any], place: _Place) -> tuple[str, ...]:
    steps = constraint.get("evaluation")
    if steps is None:
        return ()
    if not isinstance(steps, list):
        raise place.error("evaluation", steps, "a list of steps")
    for step in steps:
        if not isinstance(step, dict) or not isinstance(step.get("type"), str):
            raise place.error("evaluation", step, "steps that are objects with a text 'type'")
    return tuple(step["type"] for step in steps)


def _reason(constraint: Mapping[str, Any], chain: tuple[str, ...], place: _Place) -> str | None:
    """Return why the score is null; None where it is a bool.

    A null without a reason comes from files published by others. With a condition at the head of
    its chain it is taken for a condition that did not hold: 862, 919 and 878 in AgentIF's three
    published files. If calls failed there as often as for plain llm constraints (0.4 to 0.9 % of
    those are null), about ten of them are failures that the file cannot tell apart.
    """
    reason = constraint.get("null_reason")
    if reason is not None and not isinstance(reason, str):
        raise place.error("null_reason", reason, "a text or null")
    if constraint.get("score") is not None:
        if reason:
            raise place.error("null_reason", reason, "null, since 'score' is not null")
        return None
    if reason:
        return reason
    if "score" not in constraint:
        return RECORDED_MISSING
    return NOT_APPLICABLE if chain[:1] == (CONDITION,) else RECORDED_NULL


def _steps(constraint: Mapping[str, Any], place: _Place) -> list[Mapping[str, Any]]:
    steps = constraint.get("steps")
    if steps is None:
        return []
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise place.error("steps", steps, "a list of objects or null")
    return steps


def _ended_in_code(chain: tuple[str, ...], steps: list[Mapping[str, Any]]) -> bool:
    if steps:
        return steps[-1].get("type") == "code"
    # Without recorded steps only a chain that has no condition says who found it not applicable.
    return "code" in chain and CONDITION not in chain


def _flagged(steps: list[Mapping[str, Any]], key: str, place: _Place) -> bool:
    """Return whether any step has the key set to true."""
    values = [step.get(key) for step in steps]
    for value in values:
        if value is not None and not isinstance(value, bool):
            raise place.error(f"steps.{key}", value, "true, false or null")
    return True in values


def _types(constraint: Mapping[str, Any], place: _Place) -> tuple[str, ...]:
    """Return the types under their names in reports, each once; a single text is a list of one."""
    types = constraint.get("type")
    if types is None:
        return ()
    if isinstance(types, str):
        types = [types]
    if not is_texts(types):
        raise place.error("type", types, "a text or a list of texts")
    return tuple(dict.fromkeys(TYPES.get(name, name) for name in types))


def _meta(constraint: Mapping[str, Any], place: _Place) -> bool:
    for key in META_KEYS:
        value = constraint.get(key)
        if isinstance(value, bool):
            return value
        if value is not None:
            raise place.error(key, value, "true, false or null")
    return False


def _id(record: Mapping[str, Any], place: _Place) -> str | None:
    value = record.get("id")
    if not is_id(value):
        raise place.error("id", value, ID_FORM)
    return None if value is None else str(value)
