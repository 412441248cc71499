"""OpenAI chat completions: messages with ``tool_calls``, ``function_call`` and tool results.

Takes a list of messages, ``{"messages": […], "tools": […]}``, or a response with ``choices``.
Reasoning beside the content, content in parts, and Anthropic's ``tool_use`` and ``tool_result``
parts are read too. There is no version.
"""

from pydantic import JsonValue

from adhere.trajectories.building import Builder, Draft
from adhere.trajectories.content import action_of, arguments_of, text_of, tools_of
from adhere.trajectories.form import Action, Observation, Role, Trajectory
from adhere.trajectories.node import Node

FORMAT = "openai-chat"
ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_PEOPLE: dict[str, Role] = {"system": "system", "developer": "system", "user": "user"}
_REASONING = ("reasoning_content", "reasoning", "thinking")
_ERROR_STATUS = ("error", "failed", "incomplete")


def read(node: Node) -> list[Trajectory]:
    """Return the one trajectory. Raises DataError naming the place."""
    builder = Builder()
    if not node.is_object():
        _feed_all(builder, node)
        return [builder.into(Trajectory(FORMAT))]
    _feed_all(builder, node.get("messages"))
    for choice in list(node.get("choices").elements())[:1]:
        feed(builder, choice.get("message"))
    tools = tools_of(node.get("tools", "functions"))
    return [builder.into(Trajectory(FORMAT, tools=tools, metadata=node.kept("id", "model")))]


def _feed_all(builder: Builder, messages: Node) -> None:
    for message in messages.elements():
        feed(builder, message)


def feed(builder: Builder, message: Node) -> None:
    """Add one message to the trajectory."""
    role = message.get("role").value
    if role == "assistant":
        _assistant(builder, message)
    elif role in ("tool", "function"):
        builder.observe(_result(message))
    elif isinstance(role, str) and role in _PEOPLE:
        _person(builder, message, _PEOPLE[role])
    else:
        raise message.get("role").problem(f"one of the roles {', '.join(ROLES)}")


def _person(builder: Builder, message: Node, role: Role) -> None:
    content = message.get("content")
    parts = _typed_parts(content, "tool_result")
    for part in parts:
        call = part.get("tool_use_id", "tool_call_id").identifier()
        failed = part.get("is_error").value is True
        builder.observe(Observation(text_of(part.get("content")), call, failed))
    if parts and len(parts) == len(list(content.elements())):
        return
    builder.message(role, text_of(_without(content, ("tool_result",))))


def _assistant(builder: Builder, message: Node) -> None:
    step = builder.step(message.get("name").text())
    for key in _REASONING:
        if message.get(key).present:
            step.thought.append(text_of(message.get(key)))
            break  # the same reasoning under a second name
    content = message.get("content")
    for part in _typed_parts(content, "reasoning", "thinking"):
        # What is redacted is no text that anybody can read.
        hidden = part.get("redacted").value is True
        step.thought.append(text_of(part.get("summary" if hidden else "reasoning", "thinking")))
    step.text.append(text_of(_without(content, ("reasoning", "thinking", "tool_use"))))
    step.text.append(message.get("refusal").text())
    for part in _typed_parts(content, "tool_use"):
        _used_tool(step, part)
    step.actions += [action_of(call) for call in message.get("tool_calls").elements()]
    if message.get("function_call").present:
        step.actions.append(action_of(message.get("function_call")))


def _used_tool(step: Draft, part: Node) -> None:
    call = part.get("id").identifier()
    name = part.get("name").name("the name of the tool that is called")
    step.actions.append(Action(name, arguments_of(part.get("arguments", "input")), call))
    # Inspect writes the result of a tool that the provider ran into the call.
    error = part.get("error")
    failed = bool(error.value)
    if part.get("result").present or failed:
        content = part.get("result").anything() or error.anything()
        step.observations.append(Observation(content, call, failed))


def _result(message: Node) -> Observation:
    ids = list(message.get("tool_call_ids").elements())
    call = ids[0] if ids else message.get("tool_call_id")
    error = message.get("error", "tool_error")
    failed = message.get("is_error").value is True or bool(error.value)
    failed = failed or message.get("status").value in _ERROR_STATUS
    content = text_of(message.get("content"))
    if not content and failed:
        content = error.get("message").text() if error.is_object() else error.anything()
    return Observation(content, call.identifier(), failed)


def _typed_parts(content: Node, *kinds: str) -> list[Node]:
    if not isinstance(content.value, list):
        return []
    parts = [part for part in content.elements() if part.is_object()]
    return [part for part in parts if part.get("type").value in kinds]


def _without(content: Node, kinds: tuple[str, ...]) -> Node:
    if not isinstance(content.value, list):
        return content
    kept: list[JsonValue] = [
        part for part in content.value if not (isinstance(part, dict) and part.get("type") in kinds)
    ]
    return Node(kept, content.source, content.path)
