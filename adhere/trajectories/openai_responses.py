"""OpenAI's Responses API: items of a conversation, or whole responses.

Takes a list of items, ``{"input": …, "output": […]}`` (a response, with the request's ``input``
where it was kept) or ``{"items": […]}``. Reasoning, messages and calls that follow each other
without a result in between are one step. Tools that the provider runs count as called, with what
they returned as their result. There is no version.
"""

from collections import Counter
from dataclasses import replace

from adhere.trajectories import openai_chat
from adhere.trajectories.building import Builder
from adhere.trajectories.content import arguments_of, text_of, tools_of
from adhere.trajectories.form import Action, Observation, Trajectory
from adhere.trajectories.node import Node

FORMAT = "openai-responses"
_INLINE_RESULTS = ("output", "outputs", "results", "result", "error")
_NOT_ARGUMENTS = ("type", "id", "call_id", "status", "name", "namespace", *_INLINE_RESULTS)
_KEPT = ("id", "model", "status")


def is_item(value: object) -> bool:
    """Whether a value looks like an item that chat completions do not have."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    return isinstance(kind, str) and (
        kind in ("reasoning", "message", "item_reference", "compaction")
        or kind.endswith(("_call", "_output"))
    )


def read(node: Node) -> list[Trajectory]:
    """Return the one trajectory. Raises DataError naming the place."""
    builder, ignored = Builder(), Counter[str]()
    if not node.is_object():
        feed_all(builder, node, ignored)
        return [builder.into(with_ignored(Trajectory(FORMAT), ignored))]
    if node.get("instructions").present:
        builder.message("system", text_of(node.get("instructions")))
    asked = node.get("input")
    if isinstance(asked.value, str):
        builder.message("user", asked.value)
    else:
        feed_all(builder, asked, ignored)
    feed_all(builder, node.get("output", "items", "data"), ignored)
    header = Trajectory(FORMAT, tools=tools_of(node.get("tools")), metadata=node.kept(*_KEPT))
    return [builder.into(with_ignored(header, ignored))]


def with_ignored(header: Trajectory, ignored: Counter[str]) -> Trajectory:
    """Note in the metadata how many items of which type say nothing about a trajectory."""
    if not ignored:
        return header
    return replace(header, metadata={**header.metadata, "ignored_items": dict(ignored)})


def feed_all(builder: Builder, items: Node, ignored: Counter[str]) -> None:
    """Add all items of a list."""
    for item in items.elements():
        feed(builder, item, ignored)


def feed(builder: Builder, item: Node, ignored: Counter[str]) -> None:
    """Add one item; a type that is neither a message, a call nor a result is counted."""
    kind = item.get("type").text()
    if kind in ("", "message"):
        _message(builder, item)
    elif kind == "reasoning":
        part = builder.part()
        part.thought += [text_of(item.get("summary")), text_of(item.get("content"))]
    elif kind.endswith("_output"):
        failed = item.get("status").value in ("failed", "incomplete")
        failed = failed or bool(item.get("error").value)
        content = item.get("output", "tools", "error")
        builder.observe(Observation(_result(content), item.get("call_id").identifier(), failed))
    elif kind.endswith("_call"):
        _call(builder, item, kind)
    else:
        ignored[kind] += 1


def _message(builder: Builder, item: Node) -> None:
    if item.get("role").value != "assistant" or item.get("tool_calls").present:
        openai_chat.feed(builder, item)
        return
    part = builder.part(item.get("name").text())
    part.text.append(text_of(item.get("content")))


def _call(builder: Builder, item: Node, kind: str) -> None:
    name = item.get("name")
    tool = name.name("the name of a tool") if name.present else kind.removesuffix("_call")
    given = item.get("arguments", "input")
    if given.present:
        arguments = arguments_of(given)
    else:
        arguments = {k: v for k, v in item.mapping().items() if k not in _NOT_ARGUMENTS}
    call = item.get("call_id", "id").identifier()
    builder.part().actions.append(Action(tool, arguments, call))
    result = item.get(*_INLINE_RESULTS)
    if result.present:
        builder.observe(Observation(_result(result), call, bool(item.get("error").value)))


def _result(node: Node) -> str:
    """Return a result: a text, parts of content, or a value as JSON."""
    parts = list(node.elements()) if isinstance(node.value, list) else []
    if parts and all(part.is_object() and part.get("type").present for part in parts):
        return text_of(node)
    return node.anything()
