"""The internal form of a trajectory: what an agent thought, did, saw and answered, in order.

A trajectory is a sequence of turns. A step is one turn of the agent, numbered from 1; a message is
a turn of somebody else. Actions of one step were asked for together, so none of them saw the
result of another. An observation stands in the step after which it arrived, whether or not it
answers an action.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

Role = Literal["system", "user", "tool"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that was offered. ``schema`` is the JSON Schema of its arguments, where known."""

    name: str
    schema: Mapping[str, JsonValue] | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """A call of a tool.

    ``arguments`` is an object where the call carried one, otherwise its text as it was: text that
    does not parse as a JSON object is text.
    """

    tool: str
    arguments: dict[str, JsonValue] | str = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """A result. ``subagents`` names the trajectories of agents that were handed the call."""

    content: str
    call_id: str | None = None
    error: bool = False
    subagents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """A turn that is not the agent's; ``tool`` is a result that came before any step."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """A turn of the agent. ``answer`` is the answer it gave in this step, None where it did not."""

    index: int
    thought: str = ""
    text: str = ""
    actions: tuple[Action, ...] = ()
    observations: tuple[Observation, ...] = ()
    answer: str | None = None
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One agent's run.

    tools: what was offered; () where nothing was, None where the source does not say.
    final_answer: the last answer, None where the agent stopped without one.
    metadata: what the source says of the run; ``id`` names it among others of the same file.
    subagents: runs of other agents that this one started. They are trajectories of their own:
        rules look at one agent's steps.
    """

    format: str
    version: str = ""
    turns: tuple[Message | Step, ...] = ()
    tools: tuple[Tool, ...] | None = None
    final_answer: str | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    subagents: tuple["Trajectory", ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """The agent's turns."""
        return tuple(turn for turn in self.turns if isinstance(turn, Step))

    @property
    def answer_index(self) -> int | None:
        """The step of the final answer; one more than the last where it stands after them all."""
        answered = [step.index for step in self.steps if step.answer is not None]
        if answered:
            return answered[-1]
        return None if self.final_answer is None else len(self.steps) + 1


# An action's place: the index of its step and its position among the step's actions, from 0.
Place = tuple[int, int]


def results(trajectory: Trajectory) -> dict[Place, Observation]:
    """Return the first result of each action that has one.

    An observation with a call id answers the latest action with that id, up to its own step; one
    without answers the first action of its step that has no result yet, and where it is the only
    one of its step, all of them: agents that run several commands in one terminal see one screen.
    """
    answered: dict[Place, Observation] = {}
    by_id: dict[str, Place] = {}
    for step in trajectory.steps:
        places = [(step.index, position) for position in range(len(step.actions))]
        by_id |= {a.id: place for a, place in zip(step.actions, places, strict=True) if a.id}
        named = {by_id[o.call_id] for o in step.observations if o.call_id in by_id}
        free = [place for place in places if place not in named]
        for observation in step.observations:
            if observation.call_id in by_id:
                answered.setdefault(by_id[observation.call_id], observation)
            elif observation.call_id is None and free:
                taken = free if len(step.observations) == 1 else free[:1]
                answered |= dict.fromkeys(taken, observation)
                free = free[len(taken) :]
    return answered
