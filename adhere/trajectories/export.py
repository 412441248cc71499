"""Trajectories as messages of OpenAI's chat completions."""

from pydantic import JsonValue

from adhere import jsonio
from adhere.trajectories.form import (
    Action,
    Message,
    Observation,
    Place,
    Step,
    Tool,
    Trajectory,
    results,
)


def to_openai(trajectory: Trajectory) -> dict[str, JsonValue]:
    """Return ``{"messages": […], "tools": […]}`` of chat completions.

    Calls without an id get one. An answer that stands after all steps becomes the last message.
    """
    messages: list[JsonValue] = []
    ids, answered = _ids(trajectory), results(trajectory)
    for turn in trajectory.turns:
        if isinstance(turn, Message):
            messages.append({"role": turn.role, "content": turn.text})
        else:
            messages += _step_messages(turn, ids, answered)
    answer = trajectory.final_answer
    if answer is not None and trajectory.answer_index == len(trajectory.steps) + 1:
        messages.append({"role": "assistant", "content": answer})
    exported: dict[str, JsonValue] = {"messages": messages}
    if trajectory.tools is not None:
        exported["tools"] = [_definition(tool) for tool in trajectory.tools]
    return exported


def _ids(trajectory: Trajectory) -> dict[Place, str]:
    return {
        (step.index, position): action.id or f"call_{step.index}_{position + 1}"
        for step in trajectory.steps
        for position, action in enumerate(step.actions)
    }


def _step_messages(
    step: Step, ids: dict[Place, str], answered: dict[Place, Observation]
) -> list[JsonValue]:
    said: dict[str, JsonValue] = {"role": "assistant", "content": _said(step) or None}
    if step.agent:
        said["name"] = step.agent
    if step.thought:
        said["reasoning_content"] = step.thought
    if step.actions:
        said["tool_calls"] = [
            _call(action, ids[step.index, position]) for position, action in enumerate(step.actions)
        ]
    messages: list[JsonValue] = [said]
    for observation in step.observations:
        result: dict[str, JsonValue] = {"role": "tool", "content": observation.content}
        name = observation.call_id or _positional(step, observation, ids, answered)
        if name is not None:
            result["tool_call_id"] = name
        if observation.error:
            result["is_error"] = True
        messages.append(result)
    return messages


def _said(step: Step) -> str:
    if step.answer is None or step.answer in step.text or step.actions:
        return step.text
    return f"{step.text}\n{step.answer}" if step.text else step.answer


def _positional(
    step: Step, observation: Observation, ids: dict[Place, str], answered: dict[Place, Observation]
) -> str | None:
    """Return the id of the only action that an observation without an id answers."""
    places = [(step.index, position) for position in range(len(step.actions))]
    answers = [ids[place] for place in places if answered.get(place) is observation]
    return answers[0] if len(answers) == 1 else None


def _call(action: Action, id: str) -> JsonValue:
    arguments = action.arguments
    text = arguments if isinstance(arguments, str) else jsonio.dumps(arguments).decode()
    return {"id": id, "type": "function", "function": {"name": action.tool, "arguments": text}}


def _definition(tool: Tool) -> JsonValue:
    definition: dict[str, JsonValue] = {"name": tool.name}
    if tool.description:
        definition["description"] = tool.description
    if tool.schema is not None:
        definition["parameters"] = dict(tool.schema)
    return {"type": "function", "function": definition}
