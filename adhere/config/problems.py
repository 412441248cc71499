"""Turn validation errors into lines that name file, key, what was found and what is allowed."""

import difflib
import inspect
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError


def nearest(word: str, allowed: Sequence[str]) -> str:
    """Return `` (did you mean X?)`` for the most similar allowed word, or an empty text."""
    close = difflib.get_close_matches(word.lower(), [a.lower() for a in allowed], n=1, cutoff=0.6)
    match = next((a for a in allowed if close and a.lower() == close[0]), None)
    return f" (did you mean `{match}`?)" if match else ""


def describe(
    error: ValidationError, kind: type[BaseModel], content: Mapping[str, Any], shown: str
) -> str:
    """Return one line a problem for everything pydantic found in one file."""
    expected: dict[tuple[str, ...], list[str]] = {}
    for entry in error.errors(include_url=False):
        path = _path_in(content, entry["loc"])
        expected.setdefault(path, []).append(_expectation(entry, kind, path))
    lines = []
    for path, wishes in expected.items():
        key = ".".join(path)
        wish = " or ".join(dict.fromkeys(wishes))
        lines.append(f"{shown}: {key}: {wish}" if key else f"{shown}: {wish}")
    return "\n".join(lines)


def _path_in(content: Any, loc: tuple[int | str, ...]) -> tuple[str, ...]:
    """Drop from an error's location what is not in the file, such as names of union members."""
    path: list[str] = []
    for part in loc:
        inside_mapping = isinstance(content, Mapping) and part in content
        inside_list = (
            isinstance(content, list | tuple) and isinstance(part, int) and part < len(content)
        )
        if not (inside_mapping or inside_list):
            if isinstance(content, Mapping) and part == loc[-1] and isinstance(part, str):
                path.append(part)  # a missing key
            break
        path.append(str(part))
        content = content[part]
    return tuple(path)


def _expectation(entry: Any, kind: type[BaseModel], path: tuple[str, ...]) -> str:
    """Say what is wrong with one value and what is allowed."""
    if entry["type"] == "extra_forbidden":
        allowed = sorted(_fields_at(kind, path[:-1]))
        guess = nearest(path[-1], allowed)
        return f"unknown key{guess}; allowed: {', '.join(allowed)}"
    if entry["type"] == "missing":
        return "required, and missing"
    message = str(entry["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    message = message[0].lower() + message[1:]
    if entry["type"] == "value_error" or not path:
        return message
    return f"found {_short(entry['input'])}: {message}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _fields_at(kind: type[BaseModel], path: tuple[str, ...]) -> list[str]:
    """Return the field names of the model that a path leads to."""
    current: type[BaseModel] = kind
    for part in path:
        # Inside a mapping of models any key leads to the same model.
        field = current.model_fields.get(part)
        current = (_model_in(field.annotation) if field else None) or current
    return list(current.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Find the model class inside an annotation such as ``dict[str, Sampling]``."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return annotation
    for argument in typing.get_args(annotation):
        found = _model_in(argument)
        if found:
            return found
    return None
