"""One line of a table: the runs of one model in one mode, averaged, nothing rounded."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from adhere.jsonio import clean_text
from adhere.reporting.collect import RunScore
from adhere.scoring.accuracy import Accuracy, Rate
from adhere.scoring.metrics import mean, sample_std

_Value = TypeVar("_Value")
_Key = TypeVar("_Key", bound=Hashable)
# How many runs a model should have.
Expected = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Spread:
    """A rate over runs, as fractions of 1: mean, sample standard deviation, number of values.

    ``mean`` is None where no run has a value, ``std`` where fewer than two have.
    """

    mean: float | None
    std: float | None
    runs: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """Constraints summed over runs; ``fraction`` is scored / (expected - not applicable)."""

    expected: int
    scored: int
    not_applicable: int
    unscored: int

    @property
    def applicable(self) -> int:
        """Return how many constraints should have a verdict."""
        return self.expected - self.not_applicable

    @property
    def fraction(self) -> float | None:
        """Return which part of them has one, None where there are none."""
        return self.scored / self.applicable if self.applicable else None


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run's own values, and its ``accuracy.json`` relative to the results folder."""

    run: int
    CSR: float | None
    ISR: float | None
    coverage: Coverage
    accuracy: str


@dataclass(frozen=True, slots=True)
class Row:
    """One model in one mode; counts are sums over its runs."""

    model: str
    mode: str
    prediction_hash: str | None
    expected_runs: int | None
    CSR: Spread
    ISR: Spread
    by_dimension: dict[str, Spread]
    by_type: dict[str, Spread]
    meta: Spread
    coverage: Coverage
    failure_stats: dict[str, int]
    responses: dict[str, int]
    response_failures: dict[str, int]
    retryable: int
    note: str | None
    runs: tuple[RunLine, ...]
    item_mean: Spread
    groups: dict[str, dict[str, Spread]]
    failure_modes: dict[str, int]
    step_deviation: Spread | None


def grouped(values: Iterable[_Value], key: Callable[[_Value], _Key]) -> dict[_Key, list[_Value]]:
    """Return values by key, keys and values in the order in which they came."""
    groups: defaultdict[_Key, list[_Value]] = defaultdict(list)
    for value in values:
        groups[key(value)].append(value)
    return dict(groups)


def short(digest: str | None) -> str:
    """Return the first 12 digits of a hash."""
    return "unknown" if digest is None else digest[:12]


def rows_of(runs: Sequence[RunScore], expected_runs: Expected | None) -> list[Row]:
    """Return the rows of one table, best CSR first and rows without one last.

    Runs of one (model, mode) that were sampled with different settings become rows of their own.
    """
    rows = []
    for same_mode in grouped(runs, lambda run: (run.names.model, run.names.mode)).values():
        ordered = sorted(same_mode, key=lambda run: run.names.run)
        by_hash = grouped(ordered, lambda run: run.scores.prediction.hash)
        for digest, same in by_hash.items():
            note = _split_note(digest, same) if len(by_hash) > 1 else None
            rows.append(_row(same, expected_runs, note))
    return sorted(rows, key=_rank)


def _split_note(digest: str | None, runs: Sequence[RunScore]) -> str:
    numbers = ", ".join(str(run.names.run) for run in runs)
    return (
        f"run {numbers} has prediction settings {short(digest)}, other runs have different ones: "
        "not averaged with them"
    )


def _row(runs: Sequence[RunScore], expected_runs: Expected | None, note: str | None) -> Row:
    names, scores = runs[0].names, [run.scores for run in runs]
    return Row(
        model=names.model,
        mode=names.mode,
        prediction_hash=scores[0].prediction.hash,
        expected_runs=expected_runs(names.model) if expected_runs is not None else None,
        CSR=_spread(score.CSR.rate for score in scores),
        ISR=_spread(score.ISR.rate for score in scores),
        by_dimension=_spreads([score.by_dimension for score in scores]),
        by_type=_spreads([score.by_type for score in scores]),
        meta=_spread(score.meta.rate for score in scores),
        coverage=_coverage(runs),
        failure_stats=_sum(score.failure_stats for score in scores),
        responses=_sum(score.responses.model_dump() for score in scores),
        response_failures=_sum(score.response_failures for score in scores),
        retryable=sum(score.retryable for score in scores),
        note=note,
        runs=tuple(_line(run) for run in runs),
        item_mean=_spread(score.item_mean for score in scores),
        groups=_groups(scores),
        failure_modes=_sum(score.failure_modes for score in scores),
        step_deviation=_step_deviation(scores),
    )


def _groups(scores: Sequence[Accuracy]) -> dict[str, dict[str, Spread]]:
    names = dict.fromkeys(name for score in scores for name in score.groups)
    return {name: _spreads([score.groups.get(name, {}) for score in scores]) for name in names}


def _step_deviation(scores: Sequence[Accuracy]) -> Spread | None:
    """Return the rate over runs; None where there are no trajectories."""
    found = [score.step_deviation for score in scores if score.step_deviation is not None]
    return _spread(each.rate for each in found) if found else None


def _line(run: RunScore) -> RunLine:
    return RunLine(
        run=run.names.run,
        CSR=run.scores.CSR.rate,
        ISR=run.scores.ISR.rate,
        coverage=_coverage([run]),
        accuracy=clean_text(run.path.as_posix()),
    )


def _spread(rates: Iterable[float | None]) -> Spread:
    values = [rate for rate in rates if rate is not None]
    return Spread(mean(values), sample_std(values), len(values))


def _spreads(breakdowns: Sequence[Mapping[str, Rate]]) -> dict[str, Spread]:
    names = dict.fromkeys(name for breakdown in breakdowns for name in breakdown)
    return {
        name: _spread(
            breakdown[name].rate if name in breakdown else None for breakdown in breakdowns
        )
        for name in names
    }


def _coverage(runs: Sequence[RunScore]) -> Coverage:
    counts = [run.scores.coverage for run in runs]
    return Coverage(
        expected=sum(count.expected for count in counts),
        scored=sum(count.scored for count in counts),
        not_applicable=sum(count.not_applicable for count in counts),
        unscored=sum(count.unscored for count in counts),
    )


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(total)


def _rank(row: Row) -> tuple[float, float, str, str, str]:
    csr = -1.0 if row.CSR.mean is None else row.CSR.mean
    isr = -1.0 if row.ISR.mean is None else row.ISR.mean
    return (-csr, -isr, row.model, row.mode, row.prediction_hash or "")
