"""The contract of ``accuracy.json`` and how it is computed from results."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Self

from pydantic import Field, model_validator

from adhere import labels
from adhere.derived import Count, Record
from adhere.names import unlimited
from adhere.scoring.metrics import Tally, item_passes, mean
from adhere.scoring.policies import Outcome, Policy, Verdict, account
from adhere.scoring.provenance import JudgeRun, PredictionInfo
from adhere.scoring.records import NOT_ASKED, Cell, Item

DIMENSIONS = tuple(labels.DIMENSIONS.values())
TYPES = tuple(labels.TYPES.values())
# What a team's instruction set tells apart.
GROUPS = ("category", "severity", "level", "rule", "scenario")
# How far a rate that was written with fewer digits may be from its counts.
_ROUNDING = 1e-6


class Fraction(Record):
    """A rate as a fraction of 1, then its two counts, the part and the whole.

    The rate is None where the whole is 0. A record whose rate is another is damaged.
    """

    rate: float | None

    @model_validator(mode="after")
    def _is_part_of_whole(self) -> Self:
        (part_name, part), (whole_name, whole) = list(self)[1:]
        if whole:
            right = self.rate is not None and math.isclose(
                self.rate, part / whole, abs_tol=_ROUNDING
            )
        else:
            right = self.rate is None
        if part > whole or not right:
            raise ValueError(
                f"rate: found {self.rate}, {part_name} {part} and {whole_name} {whole}; allowed: "
                f"{part_name} / {whole_name}, between 0 and 1, or null of 0"
            )
        return self


class Rate(Fraction):
    """A rate over constraints; None where nothing was scored."""

    followed: Count
    scored: Count


class ItemRate(Fraction):
    """ISR; None where no item was counted."""

    passed: Count
    counted: Count


class Coverage(Record):
    """Constraints by what became of them: expected = scored + not_applicable + unscored."""

    expected: Count
    scored: Count
    not_applicable: Count
    unscored: Count


class Responses(Record):
    """Rows by what became of the response: rows = ok + empty_or_failed + pending.

    ``truncated`` counts those of the ok ones that ended at the token limit.
    """

    ok: Count
    empty_or_failed: Count
    truncated: Count
    pending: Count


class Dataset(Record):
    """The dataset's own name and the checksum over its parsed content; None is unknown."""

    name: str | None
    sha256: str | None


class StepDeviation(Fraction):
    """Steps of trajectories that break a constraint / all their steps."""

    broken: Count
    steps: Count


class Accuracy(Record):
    """``accuracy.json``: one run's scores under one policy.

    ``failure_stats`` counts unscored constraints by reason, ``response_failures`` empty, failed
    and pending responses by kind, ``retryable`` the constraints that a retry could still change.

    ``comparable`` is false where questions to a judge were left out on purpose: these rates are
    over the rest, and compare with none that are over everything.

    ``groups`` holds what a team's set tells apart: category, severity, level, rule and scenario,
    each with its rates. ``item_mean`` is the mean over items of each item's own rate.
    ``failure_modes`` counts violated constraints by what a miss counts as.
    """

    policy: str
    protocol: int | None
    dataset: Dataset
    limit: int | None
    judge: str | None
    judge_hash: str | None
    parser: str | None
    isolation: str | None
    prediction: PredictionInfo
    demo: bool
    rows: Count
    CSR: Rate
    ISR: ItemRate
    by_dimension: dict[str, Rate]
    by_type: dict[str, Rate]
    meta: Rate
    coverage: Coverage
    failure_stats: dict[str, Count]
    responses: Responses
    response_failures: dict[str, Count]
    retryable: Count
    warnings: list[str]
    comparable: bool = True
    item_mean: Annotated[float, Field(ge=0, le=1)] | None = None
    groups: dict[str, dict[str, Rate]] = Field(default_factory=dict)
    failure_modes: dict[str, Count] = Field(default_factory=dict)
    step_deviation: StepDeviation | None = None


@dataclass(slots=True)
class _Totals:
    csr: Tally = field(default_factory=Tally)
    isr: Tally = field(default_factory=Tally)
    meta: Tally = field(default_factory=Tally)
    dimensions: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    types: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    items: list[float] = field(default_factory=list)
    groups: dict[str, defaultdict[str, Tally]] = field(
        default_factory=lambda: {name: defaultdict(Tally) for name in GROUPS}
    )
    failure_modes: Counter[str] = field(default_factory=Counter)

    def add_item(self, policy: Policy, item: Item, outcomes: Sequence[Outcome]) -> None:
        own = Tally()
        for cell, outcome in zip(item.cells, outcomes, strict=True):
            self.add(cell, outcome)
            if outcome.verdict in (Verdict.FOLLOWED, Verdict.VIOLATED):
                own.add(outcome.verdict is Verdict.FOLLOWED)
                self.add_labels(item, cell, followed=outcome.verdict is Verdict.FOLLOWED)
        if own.rate is not None:
            self.items.append(own.rate)
        passed = passes(policy, item, outcomes)
        if passed is not None:
            self.isr.add(passed)

    def add_labels(self, item: Item, cell: Cell, *, followed: bool) -> None:
        for name in GROUPS:
            value = item.scenario if name == "scenario" else getattr(cell.labels, name)
            if value is not None:
                self.groups[name][value].add(followed)
        if not followed and cell.labels.failure_mode is not None:
            self.failure_modes[cell.labels.failure_mode] += 1

    def add(self, cell: Cell, outcome: Outcome) -> None:
        self.verdicts[outcome.verdict] += 1
        if outcome.verdict is Verdict.UNSCORED:
            self.reasons[outcome.reason or "unknown"] += 1
        if outcome.verdict not in (Verdict.FOLLOWED, Verdict.VIOLATED):
            return
        followed = outcome.verdict is Verdict.FOLLOWED
        self.csr.add(followed)
        if cell.dimension is not None:
            self.dimensions[cell.dimension].add(followed)
        for name in cell.types:
            self.types[name].add(followed)
        if cell.meta:
            self.meta.add(followed)


def outcomes(policy: Policy, items: Sequence[Item]) -> list[list[Outcome]]:
    """Return what each constraint of each item counts as under a policy, in their order."""
    return [[account(policy, item.response, cell) for cell in item.cells] for item in items]


def compute_accuracy(
    policy: Policy, items: Sequence[Item], accounted: Sequence[Sequence[Outcome]], run: JudgeRun
) -> Accuracy:
    """Sum up the outcomes of one ``results.json``."""
    totals = _Totals()
    for item, row in zip(items, accounted, strict=True):
        totals.add_item(policy, item, row)
    name, limit = unlimited(run.dataset.name) if run.dataset.name else (None, None)
    return Accuracy(
        policy=policy.name,
        protocol=run.protocol,
        dataset=Dataset(name=name, sha256=run.dataset.sha256),
        limit=limit if run.dataset.limit is None else run.dataset.limit,
        judge=run.judge.name,
        judge_hash=run.judge.hash,
        parser=run.parser,
        isolation=run.isolation,
        prediction=run.prediction,
        demo=run.demo,
        rows=len(items),
        CSR=_rate(totals.csr),
        ISR=ItemRate(rate=totals.isr.rate, passed=totals.isr.hits, counted=totals.isr.total),
        by_dimension=_rates(totals.dimensions, DIMENSIONS),
        by_type=_rates(totals.types, TYPES),
        meta=_rate(totals.meta),
        coverage=_coverage(totals.verdicts),
        failure_stats=_sorted(totals.reasons),
        responses=_responses(items),
        response_failures=_sorted(Counter(item.failure for item in items if item.failure)),
        retryable=sum(_retryable(item) for item in items),
        warnings=run.warnings,
        comparable=NOT_ASKED not in totals.reasons,
        item_mean=mean(totals.items),
        groups={
            name: _rates(found, sorted(found)) for name, found in totals.groups.items() if found
        },
        failure_modes=_sorted(totals.failure_modes),
        step_deviation=_step_deviation(items),
    )


def passes(policy: Policy, item: Item, outcomes: Sequence[Outcome]) -> bool | None:
    """Return whether an item passes ISR; None where it is not counted.

    A soft miss fails none, nor does what was left out on purpose.
    """
    asked = [
        (cell, outcome)
        for cell, outcome in zip(item.cells, outcomes, strict=True)
        if outcome.reason != NOT_ASKED
    ]
    passed = item_passes(policy, [outcome for cell, outcome in asked if not cell.labels.soft])
    if passed is None and item_passes(policy, [outcome for _, outcome in asked]) is not None:
        return True
    return passed


def _step_deviation(items: Sequence[Item]) -> StepDeviation | None:
    """Return the steps that break any constraint; None where there are no trajectories."""
    steps = sum(item.steps for item in items if item.steps is not None)
    if all(item.steps is None for item in items):
        return None
    broken = sum(len({n for cell in item.cells for n in cell.broken_steps}) for item in items)
    return StepDeviation(rate=broken / steps if steps else None, broken=broken, steps=steps)


def _rate(tally: Tally) -> Rate:
    return Rate(rate=tally.rate, followed=tally.hits, scored=tally.total)


def _rates(tallies: defaultdict[str, Tally], named: Sequence[str]) -> dict[str, Rate]:
    """Return the named groups, empty ones included, then any others by name."""
    others = sorted(set(tallies).difference(named))
    return {name: _rate(tallies[name]) for name in (*named, *others)}


def _coverage(verdicts: Counter[Verdict]) -> Coverage:
    return Coverage(
        expected=verdicts.total(),
        scored=verdicts[Verdict.FOLLOWED] + verdicts[Verdict.VIOLATED],
        not_applicable=verdicts[Verdict.NOT_APPLICABLE],
        unscored=verdicts[Verdict.UNSCORED],
    )


def _responses(items: Sequence[Item]) -> Responses:
    counts = Counter(item.response for item in items)
    return Responses(
        ok=counts["ok"],
        empty_or_failed=counts["empty"] + counts["failed"],
        truncated=sum(item.truncated for item in items if item.response == "ok"),
        pending=counts["pending"],
    )


def _retryable(item: Item) -> int:
    """Return how many verdicts a retry could change; a pending row without constraints is one."""
    if item.response == "pending":
        return max(1, len(item.cells))
    return sum(cell.retryable for cell in item.cells) if item.response == "ok" else 0


def _sorted(counts: Counter[str]) -> dict[str, int]:
    """Return counts with the most frequent first, equal ones by name."""
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
