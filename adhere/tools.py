"""The tools of an item that runs live: what is on offer, and what stands in for calling them."""

from collections.abc import Mapping, Sequence
from typing import Any

from adhere.jsonio import dumps, loads

Call = Mapping[str, Any]
# Calls of a model in a live run, where the item does not say how many.
MAX_TURNS = 10


class CannedTools:
    """An item's tools with their canned responses."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.offered: list[dict[str, Any]] = row["tools"]
        self._names = {tool["function"]["name"] for tool in self.offered}
        self._responses: Sequence[Mapping[str, Any]] = row.get("tool_responses") or ()

    def answer(self, call: Call) -> dict[str, Any]:
        """Return the message with a call's result; ``is_error`` in it where it names a mistake."""
        text, mistaken = self._result(call["function"]["name"], call["function"]["arguments"])
        message = {"role": "tool", "tool_call_id": call["id"], "content": text}
        return message | {"is_error": True} if mistaken else message

    def _result(self, name: str, arguments: str) -> tuple[str, bool]:
        if name not in self._names:
            return f"Error: there is no tool {name}.", True
        given = _object(arguments)
        if given is None:
            return "Error: the arguments are not a JSON object.", True
        for canned in self._responses:
            if canned["tool"] == name and _within(canned.get("when") or {}, given):
                return _text(canned["response"]), False
        return "Error: no result for these arguments.", True


def _object(arguments: str) -> dict[str, Any] | None:
    """Return a call's arguments; servers send an empty text where there are none."""
    try:
        value = loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _within(wanted: Any, given: Any) -> bool:
    """Whether what is wanted is part of what is given: objects by their keys, all else whole."""
    if isinstance(wanted, Mapping) and isinstance(given, Mapping):
        return all(key in given and _within(value, given[key]) for key, value in wanted.items())
    # True is no 1, although Python takes them for equal.
    return bool(wanted == given) and isinstance(wanted, bool) is isinstance(given, bool)


def _text(response: Any) -> str:
    return response if isinstance(response, str) else dumps(response).decode()


def check_tools(row: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the tools of a row, and with what they answer."""
    tools, responses = row.get("tools") or [], row.get("tool_responses") or []
    if not isinstance(tools, list) or not isinstance(responses, list):
        return ["tools, tool_responses: must both be lists"]
    named = [_tool_name(tool) for tool in tools]
    problems = [
        f"tools: tool {number}: must be {{type: function, function: {{name: …}}}}"
        for number, name in enumerate(named, start=1)
        if name is None
    ]
    problems += [
        f"tools: found {name!r:.60} twice"
        for name in dict.fromkeys(named)
        if name and named.count(name) > 1
    ]
    for number, canned in enumerate(responses, start=1):
        tool = canned.get("tool") if isinstance(canned, dict) else None
        if tool is None or tool not in named:
            names = ", ".join(filter(None, named)) or "none"
            problems.append(
                f"tool_responses: response {number}: found tool {tool!r:.60}; the item's: {names}"
            )
        elif "response" not in canned or not isinstance(canned.get("when") or {}, dict):
            problems.append(f"tool_responses: response {number}: needs `response`, `when` as keys")
    most = row.get("max_turns")
    if most is not None and (type(most) is not int or most < 1):
        problems.append(f"max_turns: found {most!r:.60}: must be a whole number from 1")
    return problems


def _tool_name(tool: object) -> str | None:
    function = tool.get("function") if isinstance(tool, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    typed = isinstance(tool, dict) and tool.get("type") == "function"
    return name if typed and isinstance(name, str) and name else None
