"""AgentIF's datasets and NeMo Gym's task files: the same items in two forms, both ways.

A Gym row holds the messages in ``responses_create_params.input`` and everything else of an item in
``verifier_metadata``. What a Gym row has beyond that is kept under ``gym`` in an AgentIF row, so
nothing is lost either way, but for a constraint's ``score``: a verifier finds its own.
"""

from collections.abc import Mapping
from typing import Any

from adhere.data import Row
from adhere.errors import DataError

_KEPT = "gym"
_PARAMS, _META = "responses_create_params", "verifier_metadata"


def is_gym(row: Mapping[str, Any]) -> bool:
    """Whether a row is one of Gym's."""
    return _PARAMS in row


def to_gym(row: Row) -> Row:
    """Return an AgentIF row as Gym has it. Raises DataError naming the key that is wrong."""
    kept = _object(row.get(_KEPT, {}), _KEPT)
    own = {key: value for key, value in row.items() if key not in ("input", _KEPT)}
    params = {"input": row.get("input"), **_object(kept.get(_PARAMS, {}), f"{_KEPT}.{_PARAMS}")}
    meta = _unscored(own) | _object(kept.get(_META, {}), f"{_KEPT}.{_META}")
    rest = {key: value for key, value in kept.items() if key not in (_PARAMS, _META)}
    return {_PARAMS: params, _META: meta, **rest}


def from_gym(row: Row) -> Row:
    """Return a Gym row as AgentIF has it. Raises DataError naming the key that is wrong."""
    params = _object(row.get(_PARAMS), _PARAMS)
    if not isinstance(params.get("input"), list):
        raise DataError(
            f"{_PARAMS}.input: found {params.get('input')!r:.60}: must be a list of messages"
        )
    meta = _object(row.get(_META), _META)
    taken = {key: value for key, value in meta.items() if key in ("input", _KEPT)}
    beside = {key: value for key, value in params.items() if key != "input"}
    extra = {key: value for key, value in ((_PARAMS, beside), (_META, taken)) if value}
    extra |= {key: value for key, value in row.items() if key not in (_PARAMS, _META)}
    own = _unscored({key: value for key, value in meta.items() if key not in taken})
    return {"input": params["input"], **own} | ({_KEPT: extra} if extra else {})


def _unscored(row: Row) -> Row:
    """Return a row whose constraints hold no score."""
    constraints = row.get("constraints")
    if not isinstance(constraints, list):
        return row
    return {
        **row,
        "constraints": [
            {key: value for key, value in raw.items() if key != "score"}
            if isinstance(raw, Mapping)
            else raw
            for raw in constraints
        ],
    }


def _object(value: Any, key: str) -> Row:
    if not isinstance(value, Mapping):
        raise DataError(f"{key}: found {value!r:.60}: must be an object")
    return dict(value)
