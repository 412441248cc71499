"""Rates, means and spreads. An empty group is None, never 0; one value has no spread."""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from adhere.scoring.policies import Outcome, Policy, Verdict


@dataclass(slots=True)
class Tally:
    """Hits among what was counted: followed among scored, or passed among counted items."""

    hits: int = 0
    total: int = 0

    def add(self, hit: bool) -> None:
        """Count one more."""
        self.hits += hit
        self.total += 1

    @property
    def rate(self) -> float | None:
        """Return the fraction of 1, None where nothing was counted."""
        return self.hits / self.total if self.total else None


def item_passes(policy: Policy, outcomes: Collection[Outcome]) -> bool | None:
    """Return whether an item passes ISR under a policy; None where it is not counted."""
    verdicts = [outcome.verdict for outcome in outcomes]
    unscored = policy.unscored_blocks and Verdict.UNSCORED in verdicts
    violated = Verdict.VIOLATED in verdicts
    if not (unscored or violated or Verdict.FOLLOWED in verdicts):
        return None
    return not (unscored or violated)


def mean(values: Sequence[float]) -> float | None:
    """Return the arithmetic mean, None for no values. The order of values does not matter."""
    return math.fsum(values) / len(values) if values else None


def sample_std(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation (ddof = 1), None for fewer than two values."""
    return statistics.stdev(values) if len(values) > 1 else None


def group_means(groups: Mapping[str, Sequence[float]]) -> dict[str, float | None]:
    """Return each group's mean, None for an empty group."""
    return {name: mean(values) for name, values in groups.items()}


def macro_average(groups: Mapping[str, Sequence[float]]) -> float | None:
    """Return the mean over the means of the non-empty groups, None where all are empty."""
    return mean([value for value in group_means(groups).values() if value is not None])
