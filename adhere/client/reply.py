"""What one chat request can come to: a reply, a named failure, or a refusal of the whole job."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from adhere.client.error_body import error_of
from adhere.client.refusal import Failure, classify, classify_error
from adhere.jsonio import dumps, loads

__all__ = ["Failure", "Reply", "classify", "parse_completion"]

# Fields for what a model thought, in the order in which they are looked at.
_REASONING = ("reasoning", "reasoning_content", "thinking")
_THOUGHT_PARTS = frozenset({"thinking", "reasoning", "reasoning_content"})
# A generation that the server gave up: what there is of it is not the model's answer.
_BROKEN_OFF = frozenset({"error", "abort", "network_error", "insufficient_system_resource"})


@dataclass(frozen=True, slots=True)
class Reply:
    """One completion. ``content`` and ``reasoning`` are None where the server sent none.

    Each of ``tool_calls`` has ``id`` (None where it has none), ``type`` and ``function`` with
    ``name`` and ``arguments``, both text.
    """

    content: str | None
    reasoning: str | None
    finish_reason: str | None
    usage: Mapping[str, Any] | None
    served_model: str | None
    system_fingerprint: str | None
    latency_s: float = 0.0
    refused: bool = False
    tool_calls: tuple[Mapping[str, Any], ...] = ()


def parse_completion(body: bytes) -> Reply | Failure:
    """Read the body of a 200 answer."""
    try:
        answer = loads(body)
    except (ValueError, RecursionError) as error:
        return Failure("bad_reply", f"the answer is not JSON: {error}", retryable=True)
    return read_completion(answer)


def read_completion(answer: Any) -> Reply | Failure:
    """Read a parsed answer."""
    if not isinstance(answer, dict):
        return Failure("bad_reply", "the answer is not a JSON object", retryable=True)
    choices = answer.get("choices")
    if not choices and answer.get("error"):
        return _error_inside(answer)
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return Failure("empty_choices", "the answer holds no choice", retryable=True)
    choice: dict[str, Any] = choices[0]
    reason = _text(choice.get("finish_reason"))
    if choice.get("error"):
        return _error_inside(choice)
    if reason in _BROKEN_OFF:
        broken = f"the server broke off its answer: finish_reason {reason}"
        return Failure("server_error", broken, retryable=True, status=200)
    message = choice.get("message")
    if not isinstance(message, dict):
        return Failure("null_message", "the answer's choice holds no message", retryable=True)
    return _reply(answer, message, reason)


def _reply(
    answer: Mapping[str, Any], message: Mapping[str, Any], reason: str | None
) -> Reply | Failure:
    value = message.get("content")
    if value is not None and not isinstance(value, str | list | dict):
        return Failure("bad_reply", f"the content is no text: {value!r:.60}", retryable=True)
    content, refusal = _text(value), _text(message.get("refusal"))
    thoughts = [_text(message.get(name)) for name in _REASONING] + [_thoughts(value)]
    return Reply(
        content=content if content else (refusal or content),
        reasoning=next(filter(None, thoughts), None),
        finish_reason=reason,
        usage=_storable(answer.get("usage")),
        served_model=_text(answer.get("model")),
        system_fingerprint=_text(answer.get("system_fingerprint")),
        refused=bool(refusal and not content),
        tool_calls=tuple(_calls(message.get("tool_calls"))),
    )


def _calls(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the calls of tools; what names no tool is none."""
    for call in value if isinstance(value, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(name := function.get("name"), str):
            continue
        given = function.get("arguments")
        # Some servers send the arguments as JSON, others their text.
        arguments = given if isinstance(given, str) else _as_text(given)
        identity = call.get("id") if isinstance(call.get("id"), str) else None
        yield {
            "id": identity or None,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }


def _as_text(given: Any) -> str:
    try:
        return dumps({} if given is None else given).decode()
    except TypeError:
        return ""


def _error_inside(holder: Mapping[str, Any]) -> Failure:
    """Name an error that came inside a 200 answer, by its own status or, without one, its text."""
    error, said = holder["error"], error_of(holder)
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isascii() and code.isdigit():
        code = int(code[:4])
    if isinstance(code, int) and 400 <= code <= 599:
        return classify_error(code, said)
    failure = classify_error(400, said)
    if failure.kind == "bad_request":
        failure = replace(failure, kind="server_error")
    return replace(failure, status=200)


def _text(value: Any) -> str | None:
    """Return a text field; the parts of a list-valued one are joined, thoughts left out."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return None
    return "".join(_part(part) for part in value)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("type") in _THOUGHT_PARTS:
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else ""


def _thoughts(value: Any) -> str | None:
    """Join the thoughts among the parts of a list-valued content."""
    if not isinstance(value, list):
        return None
    parts = [
        part for part in value if isinstance(part, dict) and part.get("type") in _THOUGHT_PARTS
    ]
    inner = [part.get("thinking") or part.get("text") for part in parts]
    return "".join(filter(None, (_text(thought) for thought in inner))) or None


def _storable(usage: Any) -> Mapping[str, Any] | None:
    """Return a usage object that a journal can hold; None for any other."""
    if not isinstance(usage, dict):
        return None
    try:
        dumps(usage)
    except TypeError:
        return None
    return usage
