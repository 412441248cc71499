"""The contract of ``accuracy.json`` and how it is computed from results."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from adhere.names import unlimited
from adhere.scoring.metrics import Tally, item_passes
from adhere.scoring.policies import Outcome, Policy, Verdict, account
from adhere.scoring.provenance import JudgeRun, PredictionInfo, Record
from adhere.scoring.records import Cell, Item

DIMENSIONS = ("vanilla", "condition", "example")
TYPES = ("formatting", "semantic", "tool")


class Rate(Record):
    """A rate over constraints, a fraction of 1; None where nothing was scored."""

    rate: float | None
    followed: int
    scored: int


class ItemRate(Record):
    """ISR, a fraction of 1; None where no item was counted."""

    rate: float | None
    passed: int
    counted: int


class Coverage(Record):
    """Constraints by what became of them: expected = scored + not_applicable + unscored."""

    expected: int
    scored: int
    not_applicable: int
    unscored: int


class Responses(Record):
    """Rows by what became of the response: rows = ok + empty_or_failed + pending.

    ``truncated`` counts those of the ok ones that ended at the token limit.
    """

    ok: int
    empty_or_failed: int
    truncated: int
    pending: int


class Dataset(Record):
    """The dataset's own name and the checksum over its parsed content; None is unknown."""

    name: str | None
    sha256: str | None


class Accuracy(Record):
    """``accuracy.json``: one run's scores under one policy.

    ``failure_stats`` counts unscored constraints by reason, ``response_failures`` empty, failed
    and pending responses by kind, ``retryable`` the constraints that a retry could still change.
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
    rows: int
    CSR: Rate
    ISR: ItemRate
    by_dimension: dict[str, Rate]
    by_type: dict[str, Rate]
    meta: Rate
    coverage: Coverage
    failure_stats: dict[str, int]
    responses: Responses
    response_failures: dict[str, int]
    retryable: int
    warnings: list[str]


@dataclass(slots=True)
class _Totals:
    csr: Tally = field(default_factory=Tally)
    isr: Tally = field(default_factory=Tally)
    meta: Tally = field(default_factory=Tally)
    dimensions: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    types: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

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
        for cell, outcome in zip(item.cells, row, strict=True):
            totals.add(cell, outcome)
        passed = item_passes(policy, row)
        if passed is not None:
            totals.isr.add(passed)
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
    )


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
