"""The forms in which models' answers and judges' replies are kept in journals and files. Pure.

Files come from others too and are edited by hand: a key of an answer may be missing, but what is
there has its form, or it is named before anything is made of it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple


class Wrong(NamedTuple):
    """A value that has not its form: where it stands, what was found and what is allowed."""

    key: str
    found: object
    allowed: str

    def __str__(self) -> str:
        return f"{self.key}: found {self.found!r:.60}; allowed: {self.allowed}"


Check = Callable[[object], bool]


def is_text(value: object) -> bool:
    """Whether a value is a text or absent."""
    return value is None or isinstance(value, str)


def is_texts(value: object) -> bool:
    """Whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(element, str) for element in value)


def _is_flags(value: object) -> bool:
    return value is None or is_texts(value)


def _is_object(value: object) -> bool:
    return value is None or isinstance(value, dict)


def _is_truth(value: object) -> bool:
    return value is None or isinstance(value, bool)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""


_TEXT: Final = (is_text, "a text or null")
_OBJECT: Final = (_is_object, "an object or null")
_REPLY: Final[Mapping[str, tuple[Check, str]]] = {
    "content": _TEXT,
    "reasoning": _TEXT,
    "finish_reason": _TEXT,
    "usage": _OBJECT,
}
_ANSWER: Final = {**_REPLY, "flags": (_is_flags, "a list of texts or null"), "error": _OBJECT}
_ERROR: Final[Mapping[str, tuple[Check, str]]] = {
    "kind": (_is_name, "a non-empty text"),
    "message": _TEXT,
    "retryable": (_is_truth, "true, false or null"),
}


def wrong_output(output: object) -> Wrong | None:
    """Return what is wrong with the ``output`` of a prediction; None where nothing is."""
    if not isinstance(output, dict):
        return Wrong("output", output, "an object with 'content'")
    wrong = _wrong("output", output, _ANSWER)
    if wrong is None and output.get("error") is not None:
        return _wrong("output.error", output["error"], _ERROR)
    return wrong


def wrong_reply(reply: object) -> Wrong | None:
    """Return what is wrong with a judge's reply: it failed with an ``error``, or has a content."""
    if not isinstance(reply, dict):
        return Wrong("reply", reply, "an object with 'content' or 'error'")
    if "error" in reply:
        error = reply["error"]
        if not isinstance(error, dict):
            return Wrong("reply.error", error, "an object with 'kind'")
        return _wrong("reply.error", error, _ERROR)
    if "content" not in reply:
        return Wrong("reply", reply, "an object with 'content' or 'error'")
    return _wrong("reply", reply, _REPLY)


def wrong_answer_line(entry: Mapping[str, Any]) -> Wrong | None:
    """Return what is wrong with a line of a journal of predictions; None where nothing is."""
    return wrong_output(entry.get("output"))


def wrong_reply_line(entry: Mapping[str, Any]) -> Wrong | None:
    """Return what is wrong with a line of a judge's journal; None where nothing is."""
    return wrong_reply(entry.get("reply"))


def _wrong(
    place: str, record: Mapping[str, Any], form: Mapping[str, tuple[Check, str]]
) -> Wrong | None:
    for key, (holds, allowed) in form.items():
        value = record.get(key)
        if not holds(value):
            return Wrong(f"{place}.{key}", value, allowed)
    return None
