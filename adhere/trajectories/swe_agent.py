"""SWE-agent's ``.traj`` files, which carry no version.

https://swe-agent.com/latest/usage/trajectories/

The steps are those of ``trajectory``. A step's ``action`` is the command that was run; where
``history`` has the tool call it came from, that gives tool, arguments and id. Otherwise the first
word is the tool where the run's configuration, or its system prompt, documents such a command,
and ``bash`` ran it where not. The answer is the submitted patch. A run of several attempts
without a chosen one gives a trajectory for each.
"""

import re
from collections.abc import Iterator

from pydantic import JsonValue

from adhere import jsonio
from adhere.trajectories.building import Builder
from adhere.trajectories.content import action_of, parsed, text_of
from adhere.trajectories.form import Action, Observation, Tool, Trajectory
from adhere.trajectories.node import Node

FORMAT = "swe-agent"
_DOCUMENTED = re.compile(r"^(\w+):\n[ \t]+(?:docstring|signature):", re.MULTILINE)


def read(node: Node) -> list[Trajectory]:
    """Return the trajectory, or one for each attempt. Raises DataError naming the place."""
    if not node.get("trajectory").present and node.get("attempts").present:
        attempts = list(node.get("attempts").elements())
        return [_trajectory(attempt, str(number)) for number, attempt in enumerate(attempts, 1)]
    return [_trajectory(node, None)]


def _trajectory(node: Node, attempt: str | None) -> Trajectory:
    if not isinstance(node.get("trajectory").value, list):
        raise node.get("trajectory").problem("a list of steps")
    history = [message for message in node.get("history").elements() if not _is_demo(message)]
    before = list(_before_first_step(history))
    tools, builder = _tools(node, before), Builder()
    for message in before:
        system = message.get("role").value == "system"
        builder.message("system" if system else "user", text_of(message.get("content")))
    calls = _recorded_calls(history)
    for step in node.get("trajectory").elements():
        _step(builder, step, calls, tools)
    info = node.get("info")
    metadata: dict[str, JsonValue] = {"id": attempt} if attempt else {}
    submission = None
    if info.present:
        metadata |= info.kept("exit_status", "swe_agent_version")
        submission = info.get("submission").text() or None
    latest = builder.latest
    if latest is not None and any(action.tool == "submit" for action in latest.actions):
        latest.answer = submission
    header = Trajectory(FORMAT, tools=tools, metadata=metadata, final_answer=submission)
    return builder.into(header)


def _is_demo(message: Node) -> bool:
    return message.get("is_demo").value is True


def _before_first_step(history: list[Node]) -> Iterator[Node]:
    for message in history:
        if message.get("role").value == "assistant":
            return
        yield message


def _recorded_calls(history: list[Node]) -> dict[str, list[list[Action]]]:
    """Return the tool calls of the history by the command they became, in order."""
    calls: dict[str, list[list[Action]]] = {}
    for message in history:
        made = [action_of(call) for call in message.get("tool_calls").elements()]
        if made and isinstance(message.get("action").value, str):
            calls.setdefault(message.get("action").text(), []).append(made)
    return calls


def _step(
    builder: Builder,
    step: Node,
    recorded: dict[str, list[list[Action]]],
    tools: tuple[Tool, ...] | None,
) -> None:
    thought, response = text_of(step.get("thought")), text_of(step.get("response"))
    command = step.get("action").text()
    draft = builder.step()
    draft.thought.append(thought)
    draft.text.append("" if response.strip() == thought.strip() else response)
    if list(step.get("tool_calls").elements()):
        draft.actions += [action_of(call) for call in step.get("tool_calls").elements()]
    elif recorded.get(command):
        draft.actions += recorded[command].pop(0)
    elif command.strip():
        draft.actions.append(_command(command, tools))
    observed = step.get("observation")
    if observed.present and (draft.actions or observed.value):
        call = draft.actions[0].id if draft.actions else None
        draft.observations.append(Observation(text_of(observed), call))


def _command(command: str, tools: tuple[Tool, ...] | None) -> Action:
    word, *rest = command.split(maxsplit=1)
    if word != "bash" and word in {tool.name for tool in tools or ()}:
        return Action(word, parsed("".join(rest)))
    return Action("bash", {"command": command})


def _tools(node: Node, before: list[Node]) -> tuple[Tool, ...] | None:
    """Return the commands that are documented, None where nothing documents them."""
    docs = [_configured(node), *(text_of(message.get("content")) for message in before)]
    names = next((found for text in docs if (found := _DOCUMENTED.findall(text))), [])
    return tuple(Tool(name) for name in dict.fromkeys(names)) or None


def _configured(node: Node) -> str:
    """Return the documentation of commands in the run's configuration, "" where there is none."""
    config = node.get("replay_config")
    if isinstance(config.value, str):
        try:
            config = Node(jsonio.loads(config.value), node.source, "replay_config")
        except (ValueError, RecursionError):
            raise config.problem("JSON") from None
    for key in ("agent", "tools", "command_docs"):
        if not config.is_object():
            return ""
        config = config.get(key)
    return config.text()
