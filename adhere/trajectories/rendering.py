"""A trajectory as a text for a judge, or for people, to read.

Everything that was said, called and returned is there, in order and under a heading of its own.
All texts are indented, so that none of them can look like a heading. Nothing is cut unless a limit
is given; a cut says how much it left out.
"""

from adhere import jsonio
from adhere.trajectories.form import Action, Message, Observation, Step, Trajectory, results

_INDENT = "    "


def render(trajectory: Trajectory, *, limit: int | None = None) -> str:
    """Return the text. ``limit`` is the most characters of a single text that are shown."""
    page = _Page(limit)
    _write(page, trajectory)
    return "\n".join(page.lines) + "\n"


class _Page:
    def __init__(self, limit: int | None) -> None:
        self.lines: list[str] = []
        self._limit = limit

    def section(self, heading: str, text: str) -> None:
        """Add a heading with its text below."""
        limit = self._limit
        if limit is not None and len(text) > limit:
            left = len(text) - limit
            text = f"{text[:limit]}\n[{left} more characters are left out here]"
        self.lines.append(f"{heading}:")
        self.lines += [_INDENT + line for line in text.splitlines()]


def _write(page: _Page, trajectory: Trajectory) -> None:
    if trajectory.tools is not None:
        names = "\n".join(tool.name for tool in trajectory.tools)
        page.section("Tools that were offered", names or "none")
    answered: dict[int, list[Action]] = {}
    for (index, position), seen in results(trajectory).items():
        answered.setdefault(id(seen), []).append(trajectory.steps[index - 1].actions[position])
    for turn in trajectory.turns:
        if isinstance(turn, Message):
            page.section(turn.role.capitalize(), turn.text)
        else:
            _write_step(page, turn, answered)
    if trajectory.final_answer is None:
        page.section("Final answer", "none was given")
    elif not _shown_as_step(trajectory):
        page.section("Final answer", trajectory.final_answer)
    for other in trajectory.subagents:
        page.lines.append(f"Sub-agent {other.metadata.get('id') or ''}".rstrip() + " begins")
        _write(page, other)
        page.lines.append("Sub-agent ends")


def _shown_as_step(trajectory: Trajectory) -> bool:
    return any(step.answer == trajectory.final_answer for step in trajectory.steps[-1:])


def _write_step(page: _Page, step: Step, answered: dict[int, list[Action]]) -> None:
    page.lines.append(f"Step {step.index}" + (f" of {step.agent}" if step.agent else ""))
    if step.thought:
        page.section("Thought", step.thought)
    if step.text and step.text != step.answer:
        page.section("Message", step.text)
    for action in step.actions:
        arguments = action.arguments
        shown = arguments if isinstance(arguments, str) else jsonio.dumps(arguments).decode()
        page.section(f"Call of {_named(action)}", shown)
    for observation in step.observations:
        page.section(_heading(observation, answered.get(id(observation), [])), observation.content)
    if step.answer is not None:
        page.section("Answer", step.answer)


def _named(action: Action) -> str:
    return f"{_line(action.tool)} ({_line(action.id)})" if action.id else _line(action.tool)


def _heading(observation: Observation, actions: list[Action]) -> str:
    kind = "Error" if observation.error else "Result"
    handed = f", by sub-agents {', '.join(map(_line, observation.subagents))}"
    by = handed if observation.subagents else ""
    if actions:
        return f"{kind} of {', '.join(map(_named, actions))}{by}"
    id_ = f" ({_line(observation.call_id)})" if observation.call_id else ""
    return f"{kind} without a call{id_}{by}"


def _line(text: str) -> str:
    return " ".join(text.split())
