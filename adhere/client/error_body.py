"""Read the body of a refusal, in any of the forms that OpenAI-compatible servers give it. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adhere.client import wordings
from adhere.jsonio import loads

_LONGEST_MESSAGE = 600
_ECHO = re.compile(r"['\"]?input(?:_value)?['\"]?\s*[:=]\s*['\"\[{]")
_BODY_FIELD = re.compile(r"'loc': \('body', '(\w+)'")


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What an error body says; blank or None where it says nothing.

    ``message`` is one line, ``label`` joins the error's type and code, ``param`` is the refused
    field of the request. The numbers of tokens are those of fields of their own (llama.cpp).
    """

    message: str
    label: str = ""
    param: str = ""
    context_tokens: int | None = None
    prompt_tokens: int | None = None

    @property
    def text(self) -> str:
        """What is searched for known wordings, without an echo of the item's own text."""
        said = _ECHO.split(self.message, maxsplit=1)[0]
        return re.sub(r"(?<=\d),(?=\d{3})", "", f"{self.label} {said}")

    @property
    def about_item(self) -> bool:
        """Whether the refused field is the item's own messages."""
        own = self.param.startswith(("messages", "prompt", "input"))
        return own or wordings.ITEM.search(self.message) is not None


def read_error(body: bytes) -> ErrorBody:
    """Read an error body: JSON in any of its usual forms, or a text. Never raises."""
    plain = _line(body[:4096].decode("utf-8", "replace"))
    try:
        answer = loads(body)
    except (ValueError, RecursionError):
        return ErrorBody(plain)
    if isinstance(answer, list) and answer:
        answer = answer[0]
    return error_of(answer, plain) if isinstance(answer, dict) else ErrorBody(plain)


def error_of(answer: Mapping[str, Any], plain: str = "") -> ErrorBody:
    """Read a parsed error body; ``plain`` is its message where it names none."""
    error = answer.get("error")
    layers = [layer for layer in (error, answer) if isinstance(layer, Mapping)]
    problem = next((p for layer in layers if (p := _validation(layer)) is not None), None)
    if problem is not None:
        return problem
    said = error if isinstance(error, str) else _field(layers, "message", "msg", "detail")
    message = _line(" ".join(filter(None, (said, _quoted(layers))))) or plain
    named = _BODY_FIELD.search(message)
    return ErrorBody(
        message,
        label=" ".join(filter(None, (_field(layers, "type", "error_type"), _codes(layers)))),
        param=_field(layers, "param") or (named[1] if named else ""),
        context_tokens=_number(layers, "n_ctx"),
        prompt_tokens=_number(layers, "n_prompt_tokens"),
    )


def _line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_MESSAGE]


def _field(layers: list[Mapping[str, Any]], *names: str) -> str:
    """Return the first text under one of the names, the inner layer first."""
    values = (layer.get(name) for layer in layers for name in names)
    return next((value for value in values if isinstance(value, str) and value), "")


def _codes(layers: list[Mapping[str, Any]]) -> str:
    codes = (layer.get("code") for layer in layers)
    return " ".join(code for code in codes if isinstance(code, str))


def _number(layers: list[Mapping[str, Any]], name: str) -> int | None:
    values = (layer.get(name) for layer in layers)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def _quoted(layers: list[Mapping[str, Any]]) -> str:
    """Return what a relay quotes of the server behind it, which says more than its own message."""
    metadata = layers[0].get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return raw if isinstance(raw, str) else ""


def _validation(layer: Mapping[str, Any]) -> ErrorBody | None:
    """Read a list of validation problems, ``[{"loc": ["body", FIELD, …], "msg": …}]``."""
    problems = layer.get("detail")
    if isinstance(inner := layer.get("message"), dict):
        problems = inner.get("detail")
    if not isinstance(problems, list) or not problems or not isinstance(problems[0], dict):
        return None
    problem = problems[0]
    loc = problem.get("loc")
    path = [str(part) for part in loc if part != "body"] if isinstance(loc, list) else []
    field, kind = ".".join(path), problem.get("type")
    message = _line(f"{field}: {problem.get('msg')}")
    return ErrorBody(message, label=kind if isinstance(kind, str) else "", param=field)
