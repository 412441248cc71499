"""Recorded verdicts as typed records, under the names that reports use."""

from dataclasses import dataclass
from typing import Literal

Response = Literal["ok", "empty", "failed", "pending"]

CONDITION = "llm_conditional_check"
NOT_APPLICABLE = "not_applicable"
# A question to a judge that was left out on purpose.
NOT_ASKED = "not_asked"
# A null without a reason, as files published by others have it.
RECORDED_NULL = "recorded_null"
# No ``score`` key at all: upstream's judge abandoned the rest of the item after a failed
# condition check, so nothing is known about these.
RECORDED_MISSING = "recorded_missing"


@dataclass(frozen=True, slots=True)
class Labels:
    """What a team's instruction set says of a constraint; None is not said.

    ``soft`` is a miss that never fails its item (severity "should"). ``failure_mode`` is what a
    miss counts as.
    """

    category: str | None = None
    severity: str | None = None
    level: str | None = None
    rule: str | None = None
    failure_mode: str | None = None

    @property
    def soft(self) -> bool:
        """Whether a miss never fails the item."""
        return self.severity == "should"


@dataclass(frozen=True, slots=True)
class Cell:
    """One constraint with its recorded verdict.

    ``reason`` is None where ``score`` is a bool and never None otherwise. ``checker_none`` marks
    a not_applicable that a checker gave by returning None, ``repaired`` a verdict that rests on a
    checker whose missing ``def`` was supplied, ``retryable`` a null that a retry could still fill.
    ``broken_steps`` are the steps of a trajectory that a rule found to break it.
    """

    position: int
    id: str | None
    dimension: str | None
    types: tuple[str, ...]
    meta: bool
    chain: tuple[str, ...]
    score: bool | None
    reason: str | None
    checker_none: bool = False
    repaired: bool = False
    retryable: bool = False
    labels: Labels = Labels()
    broken_steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One row: what became of the response, and its constraints in their order.

    ``failure`` names why there is no answer (None where there is one); ``truncated`` says that
    the answer, empty or not, ended at the token limit. ``scenario`` is the group that a team's set
    puts it in, ``steps`` the length of the trajectory that was judged.
    """

    position: int
    id: str | None
    response: Response
    failure: str | None
    truncated: bool
    cells: tuple[Cell, ...]
    scenario: str | None = None
    steps: int | None = None
