"""What a rule over a trajectory says, and the step deviation rate of several."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from adhere.rules.registry import Check, Outcome
from adhere.trajectories.form import Trajectory

Verdict = Literal["followed", "violated", "not_applicable"]


@dataclass(frozen=True)
class StepOutcome(Outcome):
    """An outcome with the steps that broke the rule, by their indices, in order.

    What was left out altogether, such as a call that had to be made, was broken by no step.
    ``applies`` is False where there was nothing to check; ``followed`` then says nothing.
    """

    steps: tuple[int, ...] = ()
    applies: bool = True

    @property
    def verdict(self) -> Verdict:
        """The outcome in the project's words."""
        if not self.applies:
            return "not_applicable"
        return "followed" if self.followed else "violated"


def followed(reason: str) -> StepOutcome:
    """Return that a rule is followed."""
    return StepOutcome(True, reason)


def violated(reason: str, steps: Iterable[int] = ()) -> StepOutcome:
    """Return that a rule is violated, by these steps."""
    return StepOutcome(False, reason, tuple(sorted(set(steps))))


def not_applicable(reason: str) -> StepOutcome:
    """Return that there was nothing to check."""
    return StepOutcome(True, reason, applies=False)


def judge(check: Check[Trajectory], trajectory: Trajectory) -> StepOutcome:
    """Run a loaded rule over a trajectory."""
    outcome = check.strict(trajectory)
    if isinstance(outcome, StepOutcome):
        return outcome
    return StepOutcome(outcome.followed, outcome.reason)


@dataclass(frozen=True)
class StepDeviation:
    """Steps that break a process constraint, of all steps of the agent."""

    broken: int
    steps: int

    @property
    def rate(self) -> float | None:
        """The share of steps, None where there are none."""
        return self.broken / self.steps if self.steps else None


def step_deviation(trajectory: Trajectory, outcomes: Iterable[StepOutcome]) -> StepDeviation:
    """Return how many steps broke at least one of the rules with these outcomes."""
    existing = {step.index for step in trajectory.steps}
    broken = {index for outcome in outcomes for index in outcome.steps} & existing
    return StepDeviation(len(broken), len(existing))
