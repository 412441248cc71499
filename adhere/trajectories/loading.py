"""Loading trajectories: which format a content has, and its trajectories in the internal form."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from adhere import jsonio
from adhere.errors import DataError
from adhere.trajectories import (
    atif,
    inspect_log,
    mini_swe_agent,
    openai_chat,
    openai_responses,
    react,
    steps,
    swe_agent,
)
from adhere.trajectories.form import Trajectory
from adhere.trajectories.node import Node

_ZIP = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Format:
    """An importer, with the test that recognises its documents and what they look like."""

    read: Callable[[Node], list[Trajectory]]
    recognises: Callable[[JsonValue], bool]
    looks_like: str


def _has(value: JsonValue, *keys: str) -> bool:
    return isinstance(value, dict) and all(key in value for key in keys)


def _is_mini(value: JsonValue) -> bool:
    if not isinstance(value, dict):
        return mini_swe_agent.recognises(value)
    if "trajectory_format" in value:
        return True
    info = value.get("info")
    return "messages" in value and (
        (isinstance(info, dict) and "mini_version" in info)
        or mini_swe_agent.recognises(value["messages"])
    )


def _is_responses(value: JsonValue) -> bool:
    if isinstance(value, dict):
        listed = value.get("output", value.get("items", value.get("input", value.get("data"))))
        return _is_responses(listed) or value.get("object") == "response"
    return isinstance(value, list) and any(map(openai_responses.is_item, value))


def _is_chat(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return "messages" in value or "choices" in value
    return isinstance(value, list) and all(_has(message, "role") for message in value)


def _is_steps(value: JsonValue) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_is_step(step) for step in value)
    return _has(value, "steps")


def _is_step(value: JsonValue) -> bool:
    keys = ("thought", "action", "actions")
    return isinstance(value, dict) and "role" not in value and any(key in value for key in keys)


def _is_react(value: JsonValue) -> bool:
    return isinstance(value, str) and react.recognises(value)


# In the order in which they are tried: what says its name comes before what only looks alike.
FORMATS: dict[str, Format] = {
    atif.FORMAT: Format(
        atif.read, lambda v: _has(v, "schema_version"), "`schema_version`, `steps`"
    ),
    inspect_log.FORMAT: Format(
        inspect_log.read, lambda v: _has(v, "eval", "status"), "`version`, `eval`, `samples`"
    ),
    swe_agent.FORMAT: Format(
        swe_agent.read,
        lambda v: _has(v, "trajectory") or _has(v, "attempts"),
        "`trajectory`, `history`, `info`",
    ),
    mini_swe_agent.FORMAT: Format(mini_swe_agent.read, _is_mini, "`trajectory_format`, `messages`"),
    openai_responses.FORMAT: Format(
        openai_responses.read, _is_responses, "items with `type`, or `output`"
    ),
    steps.FORMAT: Format(steps.read, _is_steps, "`steps`, `final_answer`"),
    openai_chat.FORMAT: Format(openai_chat.read, _is_chat, "messages with `role`, or `messages`"),
    react.FORMAT: Format(react.read, _is_react, "text with Thought:, Action:, Final Answer:"),
}


def load(
    source: object,
    *,
    format: str | None = None,
    sample: str | None = None,
    name: str = "trajectory",
) -> list[Trajectory]:
    """Return the trajectories of a file, a JSON value or a text, in their order.

    source: a Path is a file; a text is a content, JSON or ReAct, never a path.
    format: a key of FORMATS; recognised by the structure where it is not given.
    sample: take only the trajectories whose ``id`` in the metadata is this.
    name: what errors call a content that is no file.

    Raises DataError naming file, place and what is allowed there.
    """
    if format is not None and format not in FORMATS:
        raise DataError(f"{name}: format {format!r} is not known; allowed: {', '.join(FORMATS)}")
    if isinstance(source, Path):
        name = str(source)
        source = text_of(source)
    value = _content(source, name, format) if isinstance(source, str) else source
    trajectories = _read(Node(_plain(value, name), name), format)
    return trajectories if sample is None else _chosen(trajectories, sample, name)


def load_one(source: object, *, format: str | None = None, name: str = "trajectory") -> Trajectory:
    """Return the trajectory of a content that holds one. Raises DataError as ``load`` does."""
    found = load(source, format=format, name=name)
    if len(found) != 1:
        raise DataError(f"{name}: holds {len(found)} trajectories: one is needed")
    return found[0]


def text_of(path: Path) -> str:
    """Return the text of a file. Raises DataError where it is none."""
    raw = jsonio.read_bytes(path)
    if raw.startswith(_ZIP):
        raise DataError(
            f"{path}: is an archive; Inspect's .eval: convert it to JSON (inspect log dump)"
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text (byte {error.start})") from None


def _content(text: str, name: str, format: str | None) -> JsonValue:
    """Return the JSON value of a text, the list of those on its lines, or the ReAct text itself."""
    if format == react.FORMAT or not text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        return text
    try:
        value: JsonValue = _json(text)
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.split("\n") if line.strip()]
        try:
            if len(lines) > 1:
                return [_json(line) for line in lines]
        except (ValueError, RecursionError):
            pass
        if format is None and react.recognises(text):
            return text
        raise DataError(f"{name}: not valid JSON: {error}") from None
    return value


def _json(text: str) -> JsonValue:
    """Parse JSON in which, as in Inspect's logs, a figure may be NaN: that is nothing."""
    try:
        value: JsonValue = jsonio.loads(text)
    except ValueError:
        if "NaN" not in text and "Infinity" not in text:
            raise
        value = json.loads(text, parse_constant=lambda _: None)
    return value


def _plain(value: object, name: str) -> JsonValue:
    """Return the value as JSON has it. Raises DataError for what JSON cannot hold."""
    try:
        plain: JsonValue = jsonio.loads(jsonio.dumps(jsonio.clean(value)))
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{name}: cannot be written as JSON: {error}") from None
    return plain


def _read(node: Node, format: str | None) -> list[Trajectory]:
    if format is not None:
        return FORMATS[format].read(node)
    for known in FORMATS.values():
        if known.recognises(node.value):
            return known.read(node)
    # A list of documents, such as the lines of a JSONL file.
    elements = list(node.elements()) if isinstance(node.value, list) else []
    if elements and all(element.is_object() for element in elements):
        return [trajectory for element in elements for trajectory in _read(element, None)]
    allowed = "; ".join(f"{key} ({known.looks_like})" for key, known in FORMATS.items())
    raise node.problem(f"one of the formats {allowed}")


def _chosen(trajectories: list[Trajectory], sample: str, name: str) -> list[Trajectory]:
    chosen = [t for t in trajectories if str(t.metadata.get("id")) == sample]
    if not chosen:
        ids = ", ".join(dict.fromkeys(str(t.metadata.get("id")) for t in trajectories))
        raise DataError(f"{name}: no sample {sample!r}; its samples are {ids}")
    return chosen
