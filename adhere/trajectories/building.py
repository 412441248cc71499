"""Turns as a source tells them, one piece after the other, put together to a trajectory."""

from dataclasses import dataclass, field, replace

from adhere.thinking import final_answer
from adhere.trajectories.form import Action, Message, Observation, Role, Step, Trajectory

# Calls by which agents hand in their answer, and the arguments that hold it.
FINISHING = frozenset(
    {
        "finish",
        "submit",
        "final_answer",
        "submit_answer",
        "attempt_completion",
        "complete_task",
        "mark_task_complete",
    }
)
_ANSWERS = (
    "answer",
    "final_answer",
    "message",
    "result",
    "output",
    "summary",
    "submission",
    "text",
)


@dataclass(slots=True)
class Draft:
    """A step that is still being told."""

    agent: str = ""
    thought: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    answer: str | None = None

    def finished(self, index: int, *, last: bool) -> Step:
        """Return the step; what the last one says may be the answer without being called so."""
        split = final_answer(_joined(self.text), prompt="")
        step = Step(
            index=index,
            thought=_joined([*self.thought, split.reasoning]),
            text=split.text,
            actions=tuple(self.actions),
            observations=tuple(self.observations),
            answer=self.answer,
            agent=self.agent,
        )
        if step.answer is None and last:
            return replace(step, answer=_implied_answer(step))
        return step


class Builder:
    """Collects the turns of one trajectory."""

    def __init__(self) -> None:
        self._turns: list[Message | Draft] = []
        self._open = False

    def message(self, role: Role, text: str) -> None:
        """Add a turn of somebody else."""
        self._turns.append(Message(role, text))
        self._open = False

    def step(self, agent: str = "") -> Draft:
        """Begin a step."""
        draft = Draft(agent)
        self._turns.append(draft)
        self._open = True
        return draft

    def part(self, agent: str = "") -> Draft:
        """Return the step that the next piece of the agent's belongs to; a new one where due."""
        latest = self.latest
        return latest if self._open and latest else self.step(agent)

    def close(self) -> None:
        """Let the agent's next piece begin a new step."""
        self._open = False

    @property
    def latest(self) -> Draft | None:
        """The step that was begun last."""
        return next((turn for turn in reversed(self._turns) if isinstance(turn, Draft)), None)

    def observe(self, observation: Observation) -> None:
        """Add a result: to the latest step, or as a message before there is any."""
        latest = self.latest
        if latest is None:
            self.message("tool", observation.content)
        else:
            latest.observations.append(observation)
            self._open = False

    def into(self, header: Trajectory) -> Trajectory:
        """Return the header's trajectory with the turns; an answer it states stands."""
        turns: list[Message | Step] = []
        index, latest = 0, self.latest
        for turn in self._turns:
            if isinstance(turn, Message):
                turns.append(turn)
            else:
                index += 1
                turns.append(turn.finished(index, last=turn is latest))
        answers = [t.answer for t in turns if isinstance(t, Step) and t.answer is not None]
        stated = header.final_answer
        answer = stated if stated is not None else answers[-1] if answers else None
        return replace(header, turns=tuple(turns), final_answer=answer)


def _joined(texts: list[str]) -> str:
    return "\n".join(text for text in texts if text)


def _implied_answer(step: Step) -> str | None:
    """Return what a step says where it asks for nothing more, or what it hands in."""
    # A result that names no call is of something the step did; one that does may just come late.
    acted = any(observation.call_id is None for observation in step.observations)
    if not step.actions and not acted:
        return step.text or None
    if not step.actions or step.actions[-1].tool not in FINISHING:
        return None
    arguments = step.actions[-1].arguments
    if isinstance(arguments, str):
        return arguments
    values = (arguments.get(key) for key in _ANSWERS)
    return next((value for value in values if isinstance(value, str)), step.text or None)
