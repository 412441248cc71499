"""Pieces that the formats share: texts in parts, arguments of calls, definitions of tools."""

from pydantic import JsonValue

from adhere import jsonio
from adhere.trajectories.form import Action, Tool
from adhere.trajectories.node import Node

_TEXT_PARTS = ("text", "input_text", "output_text", "refusal", "summary_text", "reasoning_text")


def text_of(node: Node) -> str:
    """Return a content as text: a text, a list of parts, one part, or nothing.

    What is not text leaves a mark such as ``[image]``, so that it can be seen to be there.
    """
    if node.value is None or isinstance(node.value, str):
        return node.text()
    if node.is_object():
        return _part(node)
    return "\n".join(_part(part) for part in node.elements())


def _part(node: Node) -> str:
    if isinstance(node.value, str):
        return node.value
    kind = node.get("type").text()
    if kind in _TEXT_PARTS or (not kind and node.get("text").present):
        return node.get("text", "refusal").text()
    return f"[{kind.removeprefix('input_').removesuffix('_url') or 'content'}]"


def arguments_of(node: Node) -> dict[str, JsonValue] | str:
    """Return a call's arguments: an object, also one written as JSON, or the text as it is."""
    if node.value is None:
        return {}
    if isinstance(node.value, dict):
        return node.value
    return parsed(node.value) if isinstance(node.value, str) else node.anything()


def parsed(text: str) -> dict[str, JsonValue] | str:
    """Return the object that a text holds as JSON, otherwise the text; no text is no arguments."""
    if not text.strip():
        return {}
    try:
        value = jsonio.loads(text)
        # What cannot be written again (too deep) stays a text.
        jsonio.dumps(value)
    except (ValueError, RecursionError, TypeError):
        return text
    return value if isinstance(value, dict) else text


def action_of(node: Node) -> Action:
    """Return a call as chat completions write it, and as Inspect and Anthropic do.

    ``{"function": {"name", "arguments"}}``, ``{"custom": {"name", "input"}}``,
    ``{"function": "name", "arguments"}`` or ``{"name", "arguments" or "input"}``.
    """
    inner = node.get("function", "custom")
    holder = inner if inner.is_object() else node
    name = inner if isinstance(inner.value, str) else holder.get("name")
    tool = name.name("the name of the tool that is called")
    arguments = arguments_of(holder.get("arguments", "input"))
    return Action(tool, arguments, node.get("id", "call_id").identifier())


def tools_of(node: Node) -> tuple[Tool, ...] | None:
    """Return the tools that are defined here, None where nothing is said."""
    return tuple(tool_of(tool) for tool in node.elements()) if node.present else None


def tool_of(node: Node) -> Tool:
    """Return a tool: its name alone, a flat definition, or one wrapped as a function."""
    if isinstance(node.value, str):
        return Tool(node.name("the name of a tool"))
    function = node.get("function", "custom")
    holder = function if function.is_object() else node
    # Tools that the provider runs, such as web search, have a type and no name.
    name = holder.get("name", "type").name("the name of a tool")
    schema = holder.get("parameters", "input_schema", "inputSchema", "schema")
    described = holder.get("description").text()
    return Tool(name, schema.mapping() if schema.present else None, described)
