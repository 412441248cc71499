"""ATIF, Harbor's Agent Trajectory Interchange Format, versions 1.0 to 1.8.

https://github.com/harbor-framework/harbor/blob/main/rfcs/0001-trajectory-format.md

All versions are additive, so one reader serves them: content in parts since 1.6, embedded
sub-agents since 1.7, audio since 1.8. A result that names a call which its step does not make is
kept as a result without a call. Steps copied from an earlier part of the same run count as steps;
``copied_steps`` in the metadata says how many there are.
"""

import re

from adhere.trajectories.building import Builder
from adhere.trajectories.content import arguments_of, text_of, tools_of
from adhere.trajectories.form import Action, Observation, Trajectory
from adhere.trajectories.node import Node

FORMAT = "atif"
VERSIONS = tuple(f"1.{minor}" for minor in range(9))
_VERSION = re.compile(r"ATIF-v(\d+\.\d+)", re.ASCII)
_KEPT = ("session_id", "trajectory_id", "continued_trajectory_ref", "notes")


def read(node: Node) -> list[Trajectory]:
    """Return the one trajectory, its embedded sub-agents inside. Raises DataError."""
    return [_trajectory(node)]


def _trajectory(node: Node) -> Trajectory:
    version = _version(node.get("schema_version"))
    agent = node.get("agent")
    agent.mapping()
    steps = list(node.get("steps").elements())
    if not steps:
        raise node.get("steps").problem("a list of at least one step")
    builder = Builder()
    previous = 0
    for step in steps:
        previous = _number(step.get("step_id"), previous)
        _step(builder, step)
    metadata = node.kept(*_KEPT)
    metadata |= {
        "id": node.get("trajectory_id", "session_id").value,
        "agent": agent.get("name").value,
    }
    copied = sum(step.get("is_copied_context").value is True for step in steps)
    if copied:
        metadata["copied_steps"] = copied
    tools = tools_of(agent.get("tool_definitions"))
    others = tuple(_trajectory(other) for other in node.get("subagent_trajectories").elements())
    header = Trajectory(FORMAT, version, tools=tools, metadata=metadata, subagents=others)
    return builder.into(header)


def _version(node: Node) -> str:
    match = _VERSION.fullmatch(node.value) if isinstance(node.value, str) else None
    if match is None or match[1] not in VERSIONS:
        raise node.problem(f"ATIF-v{VERSIONS[0]} to ATIF-v{VERSIONS[-1]}")
    return match[1]


def _number(node: Node, previous: int) -> int:
    if not isinstance(node.value, int) or isinstance(node.value, bool) or node.value <= previous:
        raise node.problem(f"a whole number above {previous}, the number of the step before")
    return node.value


def _step(builder: Builder, step: Node) -> None:
    source, said = step.get("source"), text_of(step.get("message"))
    if source.value == "agent":
        draft = builder.step()
        draft.thought.append(step.get("reasoning_content").text())
        draft.text.append(said)
        draft.actions += [_action(call) for call in step.get("tool_calls").elements()]
    elif source.value == "system" or source.value == "user":
        if list(step.get("tool_calls").elements()):
            raise step.get("tool_calls").problem("no calls, which only steps of the agent make")
        builder.message("system" if source.value == "system" else "user", said)
    else:
        raise source.problem("one of the sources system, user, agent")
    observation = step.get("observation")
    for result in observation.get("results").elements() if observation.present else ():
        seen = _observation(result)
        if source.value == "agent":
            builder.observe(seen)
        else:
            # What the system did by itself answers nothing that the agent asked.
            handed = f"[handed to {', '.join(seen.subagents)}]" if seen.subagents else ""
            builder.message("tool", seen.content or handed)
    builder.close()


def _action(call: Node) -> Action:
    name = call.get("function_name").name("the name of the tool that is called")
    return Action(name, arguments_of(call.get("arguments")), call.get("tool_call_id").identifier())


def _observation(result: Node) -> Observation:
    references = result.get("subagent_trajectory_ref")
    # Before version 1.7 a single reference was written without its list.
    listed = [references] if references.is_object() else list(references.elements())
    names = [ref.get("trajectory_id", "trajectory_path", "session_id") for ref in listed]
    return Observation(
        text_of(result.get("content")),
        result.get("source_call_id").identifier(),
        subagents=tuple(name.name("a trajectory's id or path") for name in names),
    )
