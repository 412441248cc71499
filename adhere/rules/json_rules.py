"""JSON: valid, with its fields and types, or as a JSON Schema says.

The answer is the JSON value alone, or in one fence of code with nothing around it. NaN and Infinity
are not JSON. A field inside another is written ``order.price``; where the answer is a list of
objects, every one of them must have it.
"""

from typing import Annotated, Any, Literal

import regex
from pydantic import AfterValidator

from adhere import jsonio
from adhere.rules.arguments import Keywords, Words, shown
from adhere.rules.registry import Outcome, example
from adhere.rules.schemas import Schema, checked, problem
from adhere.rules.text import rule

JsonType = Literal["string", "number", "integer", "boolean", "array", "object", "null"]

_FENCE = regex.compile(r"\s*```[ \t]*(?:json|JSON|Json)?[ \t]*\n(.*)\n[ \t]*```\s*", regex.DOTALL)
_TYPES: dict[type, JsonType] = {
    str: "string",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}
_Schema = Annotated[dict[str, Any] | bool, AfterValidator(checked)]


class _NotJsonError(Exception):
    """The answer is not JSON; the message says why."""


def _value(text: str, fence: bool = True) -> Any:
    match = _FENCE.fullmatch(text) if fence else None
    try:
        return jsonio.loads(match[1] if match else text.strip())
    except (ValueError, RecursionError) as error:
        raise _NotJsonError(f"not JSON: {error}") from None


def _type(value: Any) -> JsonType:
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return "integer" if float(value).is_integer() else "number"
    return _TYPES[type(value)]


@rule(
    "json",
    passes=[
        example('{"a": 1}'),
        example('```json\n{"a": [1, 2]}\n```'),
        example("[1]", type="array"),
    ],
    fails=[
        example('Here it is: {"a": 1}'),
        example("{'a': 1}"),
        example('{"a": NaN}'),
        example("[1]", type="object"),
        example('```json\n{"a": 1}\n```', fence=False),
    ],
)
def json(text: str, type: JsonType | None = None, fence: bool = True) -> Outcome:
    """The answer is JSON and nothing else, alone or (unless `fence` is false) in a code fence."""
    try:
        found = _type(_value(text, fence))
    except _NotJsonError as error:
        return Outcome(False, str(error))
    followed = type in (None, found) or (type == "number" and found == "integer")
    return Outcome(followed, f"JSON, of type {found}")


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the object of the answer, or the objects of its list. Raises _NotJsonError."""
    value = _value(text)
    objects = value if isinstance(value, list) else [value]
    if not objects or not all(isinstance(element, dict) for element in objects):
        raise _NotJsonError("JSON, but neither an object nor a list of objects")
    return objects


_MISSING = object()


def _at(value: Any, path: str) -> Any:
    """Return what a path leads to, _MISSING where there is nothing."""
    if isinstance(value, dict) and path in value:
        return value[path]
    head, dot, rest = path.partition(".")
    if dot and isinstance(value, dict) and head in value:
        return _at(value[head], rest)
    return _MISSING


@rule(
    "required_fields",
    passes=[
        example('{"product": "tea", "price": 3}', fields=["product", "price"]),
        example('[{"价格": 3}, {"价格": 4}]', fields=["价格"]),
        example('{"order": {"price": null}}', fields=["order.price"]),
    ],
    fails=[
        example('{"product": "tea"}', fields=["product", "price"]),
        example('[{"a": 1}, {"b": 2}]', fields=["a"]),
        example("product and price", fields=["product"]),
        example('["product"]', fields=["product"]),
    ],
)
def required_fields(text: str, fields: Keywords) -> Outcome:
    """The answer is a JSON object, or a list of them, with all these fields."""
    try:
        objects = _objects(text)
    except _NotJsonError as error:
        return Outcome(False, str(error))
    missing = [f for f in fields if any(_at(each, f) is _MISSING for each in objects)]
    return Outcome(not missing, f"missing: {', '.join(missing)}" if missing else "all are there")


@rule(
    "field_type",
    passes=[
        example('{"price": 3.5}', field="price", type="number"),
        example('{"a": {"b": []}}', field="a.b", type="array"),
        example('{"n": 2.0}', field="n", type="integer"),
    ],
    fails=[
        example('{"price": "3.5"}', field="price", type="number"),
        example('{"price": true}', field="price", type="integer"),
        example('{"cost": 3}', field="price", type="number"),
    ],
)
def field_type(text: str, field: Words, type: JsonType) -> Outcome:
    """A field of the JSON answer is there and has this type, as JSON Schema names types."""
    try:
        values = [_at(each, field) for each in _objects(text)]
    except _NotJsonError as error:
        return Outcome(False, str(error))
    if any(value is _MISSING for value in values):
        return Outcome(False, f"there is no field {field}")
    allowed = {"number", "integer"} if type == "number" else {type}
    wrong = [found for found in map(_type, values) if found not in allowed]
    return Outcome(not wrong, f"{field} is of type {wrong[0] if wrong else type}")


@rule(
    "only_fields",
    passes=[example('{"a": 1}', fields=["a", "b"]), example('{"名": 1}', fields=["名"])],
    fails=[example('{"a": 1, "c": 2}', fields=["a", "b"]), example("[]", fields=["a"])],
)
def only_fields(text: str, fields: Keywords) -> Outcome:
    """The JSON object of the answer, or every one in its list, has no other fields than these."""
    try:
        objects = _objects(text)
    except _NotJsonError as error:
        return Outcome(False, str(error))
    others = [key for each in objects for key in each if key not in fields]
    return Outcome(not others, f"also there: {shown(', '.join(others))}" if others else "no others")


_CUP: Schema = {"type": "object", "required": ["ml"], "properties": {"ml": {"minimum": 1}}}


@rule(
    "json_schema",
    passes=[example('{"ml": 200}', schema=_CUP), example("[]", schema={"type": "array"})],
    fails=[
        example('{"ml": 0}', schema=_CUP),
        example("{}", schema=_CUP),
        example('{"id": "7a"}', schema={"properties": {"id": {"pattern": "^[0-9]+$"}}}),
        example("{ml: 200}", schema=_CUP),
    ],
)
def json_schema(text: str, schema: _Schema) -> Outcome:
    """The answer is JSON that a JSON Schema accepts (`format` is not checked)."""
    try:
        found = problem(schema, _value(text))
    except _NotJsonError as error:
        return Outcome(False, str(error))
    return Outcome(found is None, found or "as the schema says")
