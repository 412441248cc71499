"""Turn validation errors into lines that name file, key, what was found and what is allowed."""

import difflib
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

# What pydantic's kinds of errors ask for, in the words of the reference.
_WISHES = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "`key: value` lines",
    "model_type": "`key: value` lines",
    "model_attributes_type": "`key: value` lines",
    "string_too_short": "not be empty",
    "too_short": "not be empty",
    "finite_number": "finite",
    "is_instance_of": "a number",
    "decimal_max_places": "a number with at most six decimals",
    "recursion_loop": "not contain itself",
}
_LIMITS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("above", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("below", "lt"),
}
# Values that may hold a key, by the name of their field: never repeated in a message.
_SECRET = re.compile(r"key|url|^api$|^extra_body$", re.IGNORECASE)
_NOT_A_NAME = ("invalid_key", "[key]")


def nearest(word: str, allowed: Sequence[str]) -> str:
    """Return `` (did you mean X?)`` for the most similar allowed word, or an empty text."""
    close = difflib.get_close_matches(word.lower(), [a.lower() for a in allowed], n=1, cutoff=0.6)
    match = next((a for a in allowed if close and a.lower() == close[0]), None)
    return f" (did you mean `{match}`?)" if match else ""


def describe(
    error: ValidationError,
    kind: type[BaseModel],
    content: Mapping[Any, Any],
    shown: str | Callable[[tuple[str, ...]], str],
) -> str:
    """Return one line a problem for everything pydantic found in one file.

    ``shown`` names the file, or the place that a path of keys leads to.
    """
    place = shown if callable(shown) else lambda _path: shown
    problems: dict[tuple[str, ...], list[ErrorDetails]] = {}
    for entry in error.errors(include_url=False):
        problems.setdefault(_path_in(content, entry), []).append(entry)
    lines = []
    for path, entries in problems.items():
        if _is_of_another_branch(path, entries, problems):
            continue
        text = _problem(entries, kind, path, content)
        lines.append(": ".join(filter(None, (place(path), ".".join(path), text))))
    return "\n".join(dict.fromkeys(lines))


def _is_of_another_branch(
    path: tuple[str, ...], entries: Sequence[ErrorDetails], paths: Iterable[tuple[str, ...]]
) -> bool:
    """Whether a value is only no other kind of a union: what is wrong inside it is told as well."""
    inside = any(len(each) > len(path) and each[: len(path)] == path for each in paths)
    kinds = (entry["type"] for entry in entries)
    return inside and all(kind.endswith("_type") or kind == "literal_error" for kind in kinds)


def _path_in(content: Any, entry: ErrorDetails) -> tuple[str, ...]:
    """Drop from an error's location what is not in the file, such as names of union members."""
    loc = entry["loc"]
    if _is_about_a_name(entry):
        loc = loc[: -2 if loc[-1] == "[key]" else -1]
    path: list[str] = []
    for part in loc:
        inside_mapping = isinstance(content, Mapping) and part in content
        inside_list = (
            isinstance(content, list | tuple) and isinstance(part, int) and part < len(content)
        )
        if not (inside_mapping or inside_list):
            if entry["type"] == "missing" and part == loc[-1]:
                path.append(str(part))
            continue
        path.append(str(part))
        content = content[part]
    return tuple(path)


def _is_about_a_name(entry: ErrorDetails) -> bool:
    return entry["type"] in _NOT_A_NAME or (bool(entry["loc"]) and entry["loc"][-1] in _NOT_A_NAME)


def _problem(
    entries: Sequence[ErrorDetails],
    kind: type[BaseModel],
    path: tuple[str, ...],
    content: Mapping[Any, Any],
) -> str:
    """Say what is wrong with one value and what is allowed."""
    first = entries[0]
    if _is_about_a_name(first):
        hint = " (YAML reads no, off, yes and on so)" if isinstance(first["input"], bool) else ""
        return f"the name {first['input']!r} is not text{hint}: put it in quotes"
    if first["type"] == "extra_forbidden":
        allowed = sorted(_fields_at(kind, path[:-1]))
        return f"unknown key{nearest(path[-1], allowed)}; allowed: {', '.join(allowed)}"
    if first["type"] == "missing":
        return "required, and missing"
    found = _value_at(content, path)
    if first["type"] == "value_error":
        text = str(first["msg"]).removeprefix("Value error, ")
        # Messages of our own about a whole section say what they found themselves.
        return text if isinstance(found, Mapping) else f"found {_shown(path, found)}: {text}"
    wishes = list(dict.fromkeys(wish(entry) for entry in entries))
    verb = "must" if wishes[0].startswith("not ") else "must be"
    guess = _guess(entries, found)
    return f"found {_shown(path, found)}: {verb} {' or '.join(wishes)}{guess}"


def wish(entry: ErrorDetails) -> str:
    """Say what one of pydantic's errors asks for."""
    context = entry.get("ctx", {})
    if entry["type"] in _LIMITS:
        words, key = _LIMITS[entry["type"]]
        limit = context[key]
        return f"{words} {limit if isinstance(limit, int) else format(limit, 'g')}"
    if entry["type"] == "literal_error":
        return str(context["expected"]).replace("'", "`")
    if entry["type"] in ("too_long", "string_too_long"):
        what = "characters" if isinstance(entry["input"], str) else "parts"
        return f"not have more {what} than {context['max_length']}"
    return _WISHES.get(entry["type"], str(entry["msg"]).removeprefix("Input should be "))


def _guess(entries: Sequence[ErrorDetails], found: Any) -> str:
    """Return the nearest of the words that are allowed where a word was given."""
    literals = (e for e in entries if e["type"] == "literal_error")
    words = [w for e in literals for w in re.findall(r"'([^']*)'", str(e["ctx"]["expected"]))]
    return nearest(found, words) if isinstance(found, str) else ""


def _value_at(content: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        if isinstance(content, Mapping):
            content = next((v for k, v in content.items() if str(k) == part), None)
        else:
            content = content[int(part)]
    return content


def _shown(path: tuple[str, ...], value: Any) -> str:
    """Show what was found, by its kind alone where it is long or may be secret."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "`key: value` lines"
    if isinstance(value, list | tuple):
        return "a list"
    if path and _SECRET.search(path[-1]):
        return "text" if isinstance(value, str) else "a number"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _fields_at(kind: type[BaseModel], path: tuple[str, ...]) -> list[str]:
    """Return the field names of the model that a path leads to."""
    current: type[BaseModel] = kind
    for part in path:
        # Inside a mapping of models any key leads to the same model.
        field = current.model_fields.get(part)
        current = (model_in(field.annotation) if field else None) or current
    return list(current.model_fields)


def model_in(annotation: Any) -> type[BaseModel] | None:
    """Find the model class inside an annotation such as ``dict[str, Sampling]``."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return annotation
    for argument in typing.get_args(annotation):
        found = model_in(argument)
        if found:
            return found
    return None
