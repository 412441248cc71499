"""Logs of Inspect (inspect_ai) as JSON, versions 1 and 2: one trajectory for each sample.

The conversation is ``messages`` of the sample. The tools are those that the sample's model calls
were given. The answer is what Inspect's scorers see (``output``), where that is not the text of a
message that asks for tools. Attachments are put back in their places.
"""

from dataclasses import replace

from pydantic import JsonValue

from adhere.trajectories import openai_chat
from adhere.trajectories.building import Builder
from adhere.trajectories.content import tool_of
from adhere.trajectories.form import Tool, Trajectory
from adhere.trajectories.node import Node

FORMAT = "inspect"
VERSIONS = (1, 2)
_REFERENCES = ("attachment://", "tc://")


def read(node: Node) -> list[Trajectory]:
    """Return a trajectory for each sample. Raises DataError naming the place."""
    version = node.get("version")
    if version.present and version.value not in VERSIONS:
        raise version.problem(f"version {' or '.join(map(str, VERSIONS))}")
    if not isinstance(node.get("samples").value, list):
        raise node.get("samples").problem("a list of samples: read the log with its samples")
    header = Trajectory(FORMAT, version.identifier() or "1", metadata=_about(node))
    return [_sample(sample, header) for sample in node.get("samples").elements()]


def _about(node: Node) -> dict[str, JsonValue]:
    spec = node.get("eval")
    return {"task": spec.get("task").value, "model": spec.get("model").value}


def _sample(sample: Node, header: Trajectory) -> Trajectory:
    sample = _whole(sample)
    builder = Builder()
    for message in sample.get("messages").elements():
        openai_chat.feed(builder, message)
    metadata: dict[str, JsonValue] = {
        **header.metadata,
        "id": sample.get("id").identifier(),
        "epoch": sample.get("epoch").value,
    }
    header = replace(header, tools=_tools(sample), final_answer=_answer(sample), metadata=metadata)
    return builder.into(header)


def _whole(sample: Node) -> Node:
    """Return the sample with its attachments in place, laid out as version 2 does."""
    content = dict(sample.mapping())
    old = sample.get("transcript")
    if old.present:
        content["events"] = old.get("events").value
        content["attachments"] = old.get("content").value
    whole = Node(content, sample.source, sample.path)
    attachments = whole.get("attachments")
    if not attachments.present:
        return whole
    values = attachments.mapping()
    content |= {
        key: _resolved(content.get(key), values) for key in ("messages", "output", "events")
    }
    return whole


def _resolved(value: JsonValue, attachments: dict[str, JsonValue]) -> JsonValue:
    if isinstance(value, str):
        for protocol in _REFERENCES:
            if value.startswith(protocol):
                return attachments.get(value.removeprefix(protocol), value)
        return value
    if isinstance(value, list):
        return [_resolved(element, attachments) for element in value]
    if isinstance(value, dict):
        return {key: _resolved(element, attachments) for key, element in value.items()}
    return value


def _tools(sample: Node) -> tuple[Tool, ...] | None:
    """Return the tools of all model calls, None for a log that kept no model call."""
    events = [event for event in sample.get("events").elements() if event.is_object()]
    calls = [event for event in events if event.get("event").value == "model"]
    tools = [tool_of(tool) for event in calls for tool in event.get("tools").elements()]
    return tuple({tool.name: tool for tool in tools}.values()) if calls else None


def _answer(sample: Node) -> str | None:
    """Return the text that was scored, None where it is that of a message that calls tools."""
    output = sample.get("output")
    completion = output.get("completion").text() if output.present else ""
    for choice in output.get("choices").elements() if completion else ():
        if list(choice.get("message").get("tool_calls").elements()):
            return None
    return completion or None
