"""Scoring policies: accounting over recorded verdicts, which never reinterprets a text."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from adhere.errors import ConfigError
from adhere.scoring.records import NOT_APPLICABLE, RECORDED_NULL, Cell, Response


class Verdict(StrEnum):
    """What a policy makes of one constraint."""

    FOLLOWED = "followed"
    VIOLATED = "violated"
    NOT_APPLICABLE = "not_applicable"
    UNSCORED = "unscored"


class Outcome(NamedTuple):
    """A verdict under a policy, with its reason where the record itself does not say why."""

    verdict: Verdict
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """One column of the table of policies.

    ``no_response`` is what every constraint of an empty or failed response becomes, ``pending``
    the same for a failure that a retry may still mend. ``checker_none`` is what a checker's None
    becomes. ``unscored_blocks`` says whether an unscored constraint keeps its item from passing
    ISR (and counts it); otherwise it is ignored. ``keeps_repaired`` says whether the verdict of
    a checker whose missing ``def`` was supplied counts. ``no_response_note`` says in a report
    what became of empty and failed responses.
    """

    name: str
    no_response: Outcome
    no_response_note: str
    pending: Outcome
    checker_none: Outcome
    unscored_blocks: bool
    keeps_repaired: bool


# A row that upstream's files do not hold. Kept as unscored, which is outside both of upstream's
# rates like the missing row itself, so that its coverage shows what those rates leave out.
_ABSENT = Outcome(Verdict.UNSCORED, "row_absent")
_PENDING = Outcome(Verdict.UNSCORED, "prediction_pending")

POLICIES = {
    policy.name: policy
    for policy in (
        Policy(
            name="adhere",
            no_response=Outcome(Verdict.VIOLATED, "no_response"),
            no_response_note="all their constraints count as violated",
            pending=_PENDING,
            checker_none=Outcome(Verdict.NOT_APPLICABLE, "checker_none"),
            unscored_blocks=True,
            keeps_repaired=True,
        ),
        Policy(
            name="upstream-2025",
            no_response=_ABSENT,
            no_response_note="left out of both rates, as upstream does",
            pending=_ABSENT,
            checker_none=Outcome(Verdict.NOT_APPLICABLE, "checker_none"),
            unscored_blocks=False,
            keeps_repaired=False,
        ),
        Policy(
            name="nemo-0.7",
            no_response=Outcome(Verdict.UNSCORED, "no_response"),
            no_response_note="all their constraints are unscored",
            pending=_PENDING,
            checker_none=Outcome(Verdict.UNSCORED, "checker_none"),
            unscored_blocks=True,
            keeps_repaired=True,
        ),
    )
}

_FOLLOWED = Outcome(Verdict.FOLLOWED)
_VIOLATED = Outcome(Verdict.VIOLATED)
_NOT_APPLICABLE = Outcome(Verdict.NOT_APPLICABLE)
_NOT_REPAIRED = Outcome(Verdict.UNSCORED, "checker_not_defined")


def get_policy(name: str) -> Policy:
    """Return a policy by name. Raises ConfigError naming the allowed ones."""
    try:
        return POLICIES[name]
    except KeyError:
        allowed = ", ".join(POLICIES)
        raise ConfigError(
            f"scoring policy {name!r} is unknown; allowed: {allowed}. Correct it in "
            "configs/global.yaml or behind --policy"
        ) from None


def account(policy: Policy, response: Response, cell: Cell) -> Outcome:
    """Return what one constraint counts as under a policy, given what became of the response."""
    if response == "pending":
        return policy.pending
    if response != "ok":
        return policy.no_response
    if cell.repaired and not policy.keeps_repaired:
        return _NOT_REPAIRED
    if cell.score is not None:
        return _FOLLOWED if cell.score else _VIOLATED
    if cell.checker_none:
        return policy.checker_none
    if cell.reason == NOT_APPLICABLE:
        return _NOT_APPLICABLE
    return Outcome(Verdict.UNSCORED, cell.reason or RECORDED_NULL)
