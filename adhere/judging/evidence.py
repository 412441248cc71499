"""What an item is judged by: its final answer, and the trajectory that led to it, where kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from adhere.data import Row

if TYPE_CHECKING:
    # Loading the rules takes a moment that datasets without them need not wait for.
    from adhere.rule_steps import Applied
    from adhere.trajectories import Trajectory


@dataclass(frozen=True)
class Evidence:
    """The evidence of one row: its output, and the tools that the item says were on offer."""

    output: Row
    offered: Sequence[Mapping[str, Any]] | None = None

    @property
    def answer(self) -> str:
        """The final answer, empty where a trajectory ended without one."""
        content = self.output.get("content")
        return content if isinstance(content, str) else ""

    @cached_property
    def trajectory(self) -> "Trajectory | None":
        """What the agent did. Raises DataError where that cannot be read."""
        content, format = self.output.get("trajectory"), self.output.get("trajectory_format")
        if content is None:
            return None
        from adhere.trajectories import Tool, load_one

        found = load_one(content, format=format, name="output.trajectory")
        if found.tools is not None or self.offered is None:
            return found
        # Many formats do not say what was offered; the item then does.
        functions = [tool["function"] for tool in self.offered]
        tools = tuple(
            Tool(f["name"], f.get("parameters"), f.get("description", "")) for f in functions
        )
        return replace(found, tools=tools)

    @cached_property
    def rendered(self) -> str:
        """The whole trajectory as a text, or the answer where there is no trajectory."""
        if self.trajectory is None:
            return self.answer
        from adhere.trajectories import render

        return render(self.trajectory)

    def about(self, constraint: dict[str, Any]) -> str:
        """Return the text that a constraint is about."""
        return self.rendered if constraint.get("about") == "trajectory" else self.answer

    def apply(self, rule: str, working: str) -> "Applied":
        """Apply a rule step, given as JSON."""
        from adhere.rule_steps import step_of

        return step_of(rule).apply(working, self.trajectory)
