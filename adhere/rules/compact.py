"""The compact forms in which people already write constraints, as calls of rules.

::

    {"json": true, "required_fields": ["product"], "price_type": "number", "max_sentences": 2}
    {"format": "json", "rules": [{"type": "contains_any", "keywords": ["refuse", "cannot"]}]}

An unknown key is an error, and so is a value that the rule does not take.
"""

from collections.abc import Mapping
from typing import Any

from adhere.config.problems import nearest
from adhere.errors import DataError
from adhere.rules.registry import RuleCall
from adhere.rules.text import TEXT

# Keys whose value is one argument of a rule: rule, argument.
_ONE_ARGUMENT = {
    "required_fields": ("required_fields", "fields"),
    "only_fields": ("only_fields", "fields"),
    "json_schema": ("json_schema", "schema"),
    "keywords": ("contains_all", "keywords"),
    "contains": ("contains_all", "keywords"),
    "contains_all": ("contains_all", "keywords"),
    "contains_any": ("contains_any", "keywords"),
    "not_contains": ("not_contains", "keywords"),
    "forbidden_keywords": ("not_contains", "keywords"),
    "regex": ("matches", "pattern"),
    "not_regex": ("not_matches", "pattern"),
    "prefix": ("starts_with", "prefix"),
    "suffix": ("ends_with", "suffix"),
    "language": ("language", "language"),
    "calc": ("calc", "value"),
    "one_of": ("equals_one_of", "options"),
    "protocol": ("protocol", "labels"),
}
# min_<unit> and max_<unit>: rule, further arguments.
_UNITS: dict[str, tuple[str, dict[str, Any]]] = {
    "words": ("words", {}),
    "sentences": ("sentences", {}),
    "characters": ("characters", {}),
    "chars": ("characters", {}),
    "paragraphs": ("paragraphs", {}),
    "bullets": ("list_items", {"kind": "bulleted"}),
    "list_items": ("list_items", {}),
}
# true demands it.
_FLAGS: dict[str, RuleCall] = {
    "json": RuleCall("json"),
    "table": RuleCall("table"),
    "code_block": RuleCall("code_block"),
    "protocol": RuleCall("protocol"),
    "no_comma": RuleCall("no_comma"),
    "all_capitals": RuleCall("all_capitals"),
    "all_lowercase": RuleCall("all_lowercase"),
}
FORMATS: dict[str, RuleCall | None] = {
    "text": None,
    "json": RuleCall("json"),
    "table": RuleCall("table"),
    "code": RuleCall("code_block"),
    "list": RuleCall("list_items", {"min": 1}),
    "bullets": RuleCall("list_items", {"min": 1, "kind": "bulleted"}),
    "numbered_list": RuleCall("list_items", {"min": 1, "kind": "numbered"}),
    "react": RuleCall("protocol"),
}
_TYPE = "_type"
# The one rule whose single argument is itself a mapping.
_SCHEMA = "json_schema"


def compact_rules(constraints: Mapping[str, Any]) -> list[RuleCall]:
    """Return the rules of a compact mapping, in its order; ``false`` beside a key that
    takes ``true`` asks for nothing.

    Raises DataError for an unknown key or a value that the rule does not take.
    """
    asked = ((k, v) for k, v in constraints.items() if not (k in _FLAGS and v is False))
    calls = [_compact(key, value) for key, value in asked]
    return [_checked(key, call) for key, call in _merged(calls)]


def _compact(key: str, value: Any) -> tuple[str, RuleCall]:
    bound, _, unit = key.partition("_")
    if bound in ("min", "max") and unit in _UNITS:
        name, args = _UNITS[unit]
        return key, RuleCall(name, {**args, bound: value})
    if key in _FLAGS and value is True:
        return key, _FLAGS[key]
    if key in TEXT and isinstance(value, Mapping) and (key != _SCHEMA or "schema" in value):
        return key, RuleCall(key, value)
    if key in _ONE_ARGUMENT:
        name, argument = _ONE_ARGUMENT[key]
        single = argument == "keywords" and isinstance(value, str)
        return key, RuleCall(name, {argument: [value] if single else value})
    if key.endswith(_TYPE) and key != _TYPE:
        return key, RuleCall("field_type", {"field": key.removesuffix(_TYPE), "type": value})
    if key in _FLAGS or key in TEXT:
        wish = "true or false" if key in _FLAGS else "the rule's arguments as `key: value` lines"
        raise DataError(f"{key}: found {value!r:.60}: must be {wish}")
    raise DataError(f"{key}: unknown constraint{nearest(key, known_keys())}; {_ALLOWED}")


def known_keys() -> list[str]:
    """Return the keys of the compact form, but for `<field>_type`."""
    bounds = [f"{bound}_{unit}" for bound in ("min", "max") for unit in _UNITS]
    return [*_FLAGS, *_ONE_ARGUMENT, *bounds, *TEXT]


_ALLOWED = (
    f"allowed: {', '.join(sorted({*_FLAGS, *_ONE_ARGUMENT}))}, min_ or max_ with "
    f"{', '.join(_UNITS)}, <field>_type, and the names of rules"
)


def _merged(calls: list[tuple[str, RuleCall]]) -> list[tuple[str, RuleCall]]:
    """Put min_ and max_ of one unit together, so that a range nothing lies in is noticed."""
    found: list[tuple[str, RuleCall]] = []
    for key, call in calls:
        other = {"min_": "max_", "max_": "min_"}.get(key[:4], "") + key[4:]
        at = next((n for n, (earlier, _) in enumerate(found) if earlier == other), None)
        if at is None:
            found.append((key, call))
        else:
            earlier = found[at][1]
            found[at] = (other, RuleCall(call.name, {**earlier.args, **call.args}))
    return found


def _checked(where: str, call: RuleCall) -> RuleCall:
    try:
        TEXT.load(call.name, call.args)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    return call


def verification_rules(verification: Mapping[str, Any]) -> list[RuleCall]:
    """Return the rules of ``{"format": …, "rules": [{"type": name, …arguments}]}``.

    A ``type`` is the name of a rule, or a key of the compact form whose ``value`` stands beside
    it. Raises DataError for an unknown key, format or type, and for a wrong argument.
    """
    unknown = [key for key in verification if key not in ("format", "rules")]
    if unknown:
        hint = nearest(unknown[0], ("format", "rules"))
        raise DataError(f"{unknown[0]}: unknown key{hint}; allowed: format, rules")
    rules = verification.get("rules", [])
    if not isinstance(rules, list):
        raise DataError("rules: must be a list")
    formats = [_format(verification["format"])] if verification.get("format") is not None else []
    calls = [call for call in formats if call is not None]
    return calls + [_typed(f"rules.{position}", entry) for position, entry in enumerate(rules)]


def _format(name: Any) -> RuleCall | None:
    if not isinstance(name, str) or name not in FORMATS:
        hint = nearest(name, list(FORMATS)) if isinstance(name, str) else ""
        raise DataError(f"format: found {name!r:.60}{hint}; allowed: {', '.join(FORMATS)}")
    return FORMATS[name]


def _within(where: str, key: str, value: Any) -> RuleCall:
    try:
        return _compact(key, value)[1]
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def _typed(where: str, entry: Any) -> RuleCall:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("type"), str):
        raise DataError(f"{where}: must be `key: value` lines with a `type`")
    name, args = entry["type"], {key: value for key, value in entry.items() if key != "type"}
    if set(args) == {"value"} and name != "calc":
        call = _within(where, name, args["value"])
    else:
        other, _ = _ONE_ARGUMENT.get(name, (name, ""))
        call = RuleCall(name if name in TEXT else other, args)
    return _checked(where, call)
