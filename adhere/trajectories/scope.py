"""Which steps a rule looks at: all of them, a range, or those before or after a tool's call.

::

    {"steps": {"from": 2, "to": 5}}             # by number, from 1, both ends included
    {"when": {"after_tool": "search"}}          # later than the step that first calls it
    {"when": {"before_tool": "pay"}}            # earlier than the step that first calls it

Both may be given. Where a named tool is never called, the condition never held. An answer that
stands after all steps has the number after the last one.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, create_model, model_validator

from adhere.rules.arguments import Position, Words
from adhere.trajectories.form import Action, Observation, Place, Step, Trajectory, results

_STRICT = ConfigDict(extra="forbid", strict=True)


class _Ends(BaseModel):
    """A range of steps by their numbers, both ends included."""

    model_config = _STRICT

    @model_validator(mode="after")
    def _holds_a_step(self) -> "_Ends":
        first, last = (getattr(self, end) for end in ("from", "to"))
        if first is not None and last is not None and first > last:
            raise ValueError(f"`from` is {first} and `to` is {last}: no step lies between them")
        return self


# `from` is no name in Python, so these fields cannot be written in the class.
_FIELDS: dict[str, Any] = dict.fromkeys(("from", "to"), (Position | None, None))
StepRange: type[BaseModel] = create_model("StepRange", __base__=_Ends, **_FIELDS)


class When(BaseModel):
    """A condition on where a step stands: after or before the first call of a tool."""

    model_config = _STRICT

    after_tool: Words | None = None
    before_tool: Words | None = None


@dataclass(frozen=True)
class Call:
    """An action with its place, and its result with the step after which it arrived."""

    place: Place
    action: Action
    result: Observation | None
    returned: int | None

    @property
    def step(self) -> int:
        """The index of its step."""
        return self.place[0]

    def __str__(self) -> str:
        """Name the call for a reason: ``step 3: search (call_7)``."""
        return f"step {self.step}: {self.action.tool}" + (
            f" ({self.action.id})" if self.action.id else ""
        )


@dataclass(frozen=True)
class View:
    """The part of a trajectory that a rule looks at: the steps ``first`` to ``last``."""

    trajectory: Trajectory
    first: int
    last: int

    @cached_property
    def everything(self) -> list[Call]:
        """All calls of the trajectory, in order, also those outside this part."""
        answered, steps = results(self.trajectory), self.trajectory.steps
        arrived = {id(seen): step.index for step in steps for seen in step.observations}
        calls = []
        for step in steps:
            for position, action in enumerate(step.actions):
                result = answered.get((step.index, position))
                calls.append(Call((step.index, position), action, result, arrived.get(id(result))))
        return calls

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of this part."""
        return tuple(step for step in self.trajectory.steps if self.covers(step.index))

    def calls(self, tools: list[str] | None = None) -> list[Call]:
        """Return the calls of this part, in order; of some tools only, where they are named."""
        return [
            call
            for call in self.everything
            if self.covers(call.step) and (tools is None or call.action.tool in tools)
        ]

    @property
    def answer(self) -> int | None:
        """Where the final answer stands, None where there is none in this part."""
        index = self.trajectory.answer_index
        return index if index is not None and self.covers(index) else None

    def has_step(self, index: int) -> bool:
        """Whether this is the index of a step, not the place after all steps."""
        return 1 <= index <= len(self.trajectory.steps)

    def named(self, index: int) -> str:
        """Name a step, or the place after all steps, for a reason."""
        return f"step {index}" if self.has_step(index) else "after the last step"

    def covers(self, index: int) -> bool:
        """Whether a step, or the place after all steps, is in this part."""
        return self.first <= index <= self.last


def select(trajectory: Trajectory, steps: BaseModel | None, when: When | None) -> View | str:
    """Return the part of a trajectory that a rule looks at, or why there is none.

    ``steps`` is a StepRange.
    """
    after_all = len(trajectory.steps) + 1
    ends = dict(steps) if steps else {}
    first, last = ends.get("from") or 1, ends.get("to") or after_all
    if when and when.after_tool:
        called = _first_call(trajectory, when.after_tool)
        if called is None:
            return f"{when.after_tool} is never called, so no step is after its call"
        first = max(first, called + 1)
    if when and when.before_tool:
        called = _first_call(trajectory, when.before_tool)
        if called is None:
            return f"{when.before_tool} is never called, so no step is before its call"
        last = min(last, called - 1)
    if (steps or when) and first > min(last, after_all):
        return "no step is in the range that the rule is for"
    return View(trajectory, first, last)


def _first_call(trajectory: Trajectory, tool: str) -> int | None:
    return next((s.index for s in trajectory.steps if any(a.tool == tool for a in s.actions)), None)
