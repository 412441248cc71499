"""mini-swe-agent: ``.traj.json`` of versions 1 and 1.1, and its bare list of messages.

https://mini-swe-agent.com/latest/usage/output_files/

The agent calls one tool, ``bash``: by tool calls, by items of the Responses API, or by one block
of code in its text; any other number of blocks is none, as the agent sees it. The next user message
is then the result. A command that exits with another code than 0 is a result with an error. The
answer is the submission.
"""

import re
from collections import Counter

from pydantic import JsonValue

from adhere.trajectories import openai_chat, openai_responses
from adhere.trajectories.building import Builder, Draft
from adhere.trajectories.content import text_of
from adhere.trajectories.form import Action, Observation, Tool, Trajectory
from adhere.trajectories.node import Node

FORMAT = "mini-swe-agent"
VERSIONS = ("1", "1.1")
_PREFIX = "mini-swe-agent-"
_SUBMITS = re.compile(
    r"\s*echo\s+[\"']?(?:COMPLETE_TASK_AND_SUBMIT|MI(?:NI|CRO)_SWE_AGENT)_FINAL_OUTPUT"
)
# The block that holds the command, in the spellings of its versions; the first that occurs counts.
_BLOCKS = (
    re.compile(r"```mswea_bash_command\s*\n(.*?)\n?```", re.DOTALL),
    re.compile(r"<mswea_bash_command>(.*?)</mswea_bash_command>", re.DOTALL),
    re.compile(r"```bash\s*\n(.*?)\n?```", re.DOTALL),
)
_MARKS = (
    "mswea_bash_command",
    "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    "MINI_SWE_AGENT_FINAL_OUTPUT",
    "MICRO_SWE_AGENT_FINAL_OUTPUT",
)
_CODE = re.compile(r"<returncode>\s*(-?\d{1,10})\s*</returncode>")
_BASH = Tool(
    "bash",
    {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)


def recognises(messages: JsonValue) -> bool:
    """Whether a bare list of messages is of this agent: its prompt or its blocks say so."""
    if not isinstance(messages, list):
        return False
    contents = [m.get("content") for m in messages if isinstance(m, dict) and "role" in m]
    return any(mark in str(content) for content in contents for mark in _MARKS)


def read(node: Node) -> list[Trajectory]:
    """Return the one trajectory. Raises DataError naming the place."""
    version, info = VERSIONS[0], Node({}, node.source)
    messages = node
    if node.is_object():
        stated = node.get("trajectory_format")
        version = stated.text().removeprefix(_PREFIX) if stated.present else VERSIONS[0]
        if version not in VERSIONS:
            raise stated.problem(" or ".join(_PREFIX + known for known in VERSIONS))
        messages = node.get("messages")
        info = node.get("info") if node.get("info").present else info
    builder, ignored, exits = Builder(), Counter[str](), list[Node]()
    for message in messages.elements():
        if message.get("role").value == "exit":
            exits.append(message)
        else:
            _feed(builder, message, ignored)
    answer, metadata = _submission(builder, info, exits), info.kept("exit_status", "mini_version")
    header = Trajectory(FORMAT, version, tools=(_BASH,), metadata=metadata, final_answer=answer)
    return [builder.into(openai_responses.with_ignored(header, ignored))]


def _feed(builder: Builder, message: Node, ignored: Counter[str]) -> None:
    role = message.get("role").value
    if message.get("output").present and message.get("object").value == "response":
        builder.close()
        openai_responses.feed_all(builder, message.get("output"), ignored)
    elif role is None or openai_responses.is_item(message.value):
        openai_responses.feed(builder, message, ignored)
    elif role == "assistant" and not message.get("tool_calls").present:
        openai_chat.feed(builder, message)
        step = builder.latest
        if step is not None:
            step.actions += _commands(message)
    elif role == "user" and _awaits_result(builder.latest):
        builder.observe(Observation(text_of(message.get("content"))))
    else:
        openai_chat.feed(builder, message)
    _mark_failure(builder.latest, message)


def _commands(message: Node) -> list[Action]:
    """Return what the agent ran: its own record, otherwise the only block of its text."""
    extra = message.get("extra")
    if extra.present and extra.get("actions").present:
        commands = [action.get("command").text() for action in extra.get("actions").elements()]
    else:
        text = text_of(message.get("content"))
        blocks = next((found for block in _BLOCKS if (found := block.findall(text))), [])
        commands = blocks if len(blocks) == 1 else []
    return [Action("bash", {"command": command.strip()}) for command in commands]


def _awaits_result(step: Draft | None) -> bool:
    return step is not None and len(step.observations) < len(step.actions)


def _mark_failure(step: Draft | None, message: Node) -> None:
    """Give the observation that this message was its error, by the exit code it tells."""
    if step is None or not step.observations or message.get("role").value == "assistant":
        return
    latest = step.observations[-1]
    extra = message.get("extra")
    code = extra.get("returncode").value if extra.present else None
    told = _CODE.match(latest.content.lstrip())
    failed = code not in (None, 0) or (told is not None and int(told[1]) != 0)
    if failed:
        step.observations[-1] = Observation(latest.content, latest.call_id, True)


def _submission(builder: Builder, info: Node, exits: list[Node]) -> str | None:
    """Return what was submitted: as the file states it, or what the last command printed."""
    step = builder.latest
    submits = step is not None and bool(step.actions) and _submits(step.actions[-1])
    stated = [info, *(exit_.get("extra") for exit_ in exits if exit_.get("extra").present)]
    texts = [holder.get("submission").text() for holder in stated]
    if step is not None and submits:
        texts += [observation.content for observation in step.observations[-1:]]
    answer = next((text for text in texts if text), "" if submits else None)
    if step is not None and submits:
        step.answer = answer
    return answer


def _submits(action: Action) -> bool:
    arguments = action.arguments
    command = arguments.get("command") if isinstance(arguments, dict) else arguments
    return isinstance(command, str) and _SUBMITS.match(command) is not None
