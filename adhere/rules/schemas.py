"""JSON Schemas that users write: checked when a rule is loaded, in linear time on any answer.

Patterns in a schema are those of RE2, so none can hang. A schema refers to nothing outside itself,
so nothing is fetched.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend, validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from adhere.rules.patterns import compiled, find

Schema = dict[str, Any] | bool
_DEEP = "nested too deeply to be checked against the schema"


def checked(schema: Schema) -> Schema:
    """Return the schema. Raises ValueError with what is wrong with it."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema.get("$schema", ""), str):
        raise ValueError("`$schema` must be text")
    kind = validator_for(schema, default=Draft202012Validator)
    # Not check_schema(): it would take patterns for another dialect's.
    error = best_match(kind(kind.META_SCHEMA).iter_errors(schema))
    if error is not None:
        raise ValueError(f"not a JSON Schema: {error.json_path}: {error.message}")
    root: Registry[Any] = Registry()
    resolver = root.resolver_with_root(Resource.from_contents(schema, DRAFT202012))
    keywords = list(_keywords(schema))
    for key, value in keywords:
        if key in ("$ref", "$dynamicRef") and isinstance(value, str):
            try:
                resolver.lookup(value)
            except Unresolvable:
                raise ValueError(f"{value} is not in the schema; nothing is fetched") from None
        for pattern in _patterns(key, value):
            compiled(pattern)
    if {"unevaluatedProperties", "patternProperties"} <= {key for key, _ in keywords}:
        raise ValueError("`unevaluatedProperties` cannot stand beside `patternProperties` here")
    if problem(schema, None) == _DEEP:
        raise ValueError("the schema refers to itself without end")
    return schema


def _patterns(key: str, value: Any) -> Iterable[str]:
    if key == "pattern" and isinstance(value, str):
        return (value,)
    return value if key == "patternProperties" and isinstance(value, dict) else ()


def _keywords(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inside in value.items():
            yield key, inside
            yield from _keywords(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from _keywords(inside)


def problem(schema: Schema, value: Any) -> str | None:
    """Say what a schema finds wrong with a JSON value, None where it accepts it."""
    kind = extend(
        validator_for(schema, default=Draft202012Validator),
        {
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
            "additionalProperties": _additional_properties,
        },
    )
    try:
        found = next(kind(schema, registry=Registry()).iter_errors(value), None)
    except RecursionError:
        return _DEEP
    except Unresolvable as error:
        return f"a reference of the schema leads nowhere: {error}"
    if found is None:
        return None
    message = found.message
    return f"{found.json_path}: {message if len(message) <= 160 else message[:159] + '…'}"


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and find(pattern, value) is None:
        yield ValidationError(f"{value!r:.60} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], value: Any, _: Any
) -> Iterator[ValidationError]:
    for pattern, inside in patterns.items() if isinstance(value, dict) else ():
        for key, element in value.items():
            if find(pattern, key) is not None:
                yield from validator.descend(element, inside, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any, wanted: Schema, value: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    patterns = schema.get("patternProperties", {})
    for key, element in value.items():
        named = key in schema.get("properties", {})
        if named or any(find(pattern, key) is not None for pattern in patterns):
            continue
        if wanted is False:
            yield ValidationError(f"{key!r:.60} is not allowed")
        else:
            yield from validator.descend(element, wanted, path=key)
