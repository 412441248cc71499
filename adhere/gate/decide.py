"""The gate's checks: each threshold passes, fails, or the set holds not enough evidence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from adhere.config import Gate
from adhere.config.global_file import METRICS
from adhere.errors import ConfigError
from adhere.gate.baseline import Entry
from adhere.gate.compare import Comparison, changes, compare, in_metric
from adhere.gate.record import FOLLOWED, VIOLATED, Record
from adhere.gate.statistics import Estimate, Share, difference, rate
from adhere.scoring.metrics import mean

# Thresholds such as 0.9 have no exact binary form.
_TOLERANCE = 1e-12


class Outcome(IntEnum):
    """What a check came to; the value is the exit code."""

    PASS = 0
    FAIL = 1
    UNCLEAR = 3

    @property
    def words(self) -> str:
        """Return it as people read it."""
        return {0: "pass", 1: "fail", 3: "not enough evidence"}[self.value]


@dataclass(frozen=True, slots=True)
class Check:
    """One threshold: a rate that must be ``limit`` at least, or may drop by it at most.

    ``estimate`` is of the rate, or of its change; None where there is nothing to estimate from.
    """

    metric: str
    against_baseline: bool
    limit: float
    estimate: Estimate | None
    outcome: Outcome
    why: str


@dataclass(frozen=True, slots=True)
class Judged:
    """One subject with its checks."""

    record: Record
    entry: Entry | None
    comparison: Comparison | None
    checks: tuple[Check, ...]
    notes: tuple[str, ...]

    @property
    def outcome(self) -> Outcome:
        """Return the worst outcome of its checks."""
        return overall(check.outcome for check in self.checks)


def overall(outcomes: Iterable[Outcome]) -> Outcome:
    """Return fail where anything fails, else unclear where anything is, else pass."""
    found = set(outcomes)
    return next((o for o in (Outcome.FAIL, Outcome.UNCLEAR) if o in found), Outcome.PASS)


def judge(record: Record, entry: Entry | None, gate: Gate, expected_runs: int) -> Judged:
    """Hold a record against all thresholds.

    Raises ConfigError for a threshold on a group that the dataset does not have.
    """
    for metric in (*gate.at_least, *gate.no_worse):
        _check_known(record, metric)
    comparison = compare(record, entry) if entry is not None else None
    checks = [_at_least(record, gate, metric, gate.at_least[metric]) for metric in gate.at_least]
    checks += [
        _no_worse(record, comparison, gate, metric, gate.no_worse[metric])
        for metric in gate.no_worse
    ]
    if len(record.runs) < expected_runs:
        checks = [_unsettled(check, len(record.runs), expected_runs) for check in checks]
    notes = [*_notes(record, expected_runs), *(comparison.notes if comparison else ())]
    return Judged(record, entry, comparison, tuple(checks), tuple(notes))


def _unsettled(check: Check, runs: int, expected: int) -> Check:
    """Return a check that no longer passes, since runs are missing that could change it."""
    if check.outcome is not Outcome.PASS:
        return check
    why = f"met, but only {runs} of {expected} runs are scored"
    return replace(check, outcome=Outcome.UNCLEAR, why=why)


def _check_known(record: Record, metric: str) -> None:
    group, _, value = metric.partition(".")
    if metric in METRICS:
        return
    constraints = [c for item in record.items for c in item.constraints]
    known = sorted({c.groups[group] for c in constraints if group in c.groups})
    if value not in known:
        raise ConfigError(
            f"configs/global.yaml: gate: {metric}: {record.subject.dataset} has no constraint with "
            f"{group} {value!r} (it has: {', '.join(known) or 'none'})"
        )


def rates(record: Record, metric: str) -> list[Share]:
    """Return what each item contributes to a rate, its runs together."""
    if metric == "all_pass_rate":
        told = [[passed for passed in item.passes if passed is not None] for item in record.items]
        return [Share(sum(passes), len(passes)) for passes in told]
    if metric == "item_mean":
        means = [_item_mean([c.verdicts for c in item.constraints]) for item in record.items]
        return [Share(each, 1) for each in means if each is not None]
    shares = []
    for item in record.items:
        letters = "".join(c.verdicts for c in item.constraints if in_metric(c, metric))
        followed = letters.count(FOLLOWED)
        shares.append(Share(followed, followed + letters.count(VIOLATED)))
    return shares


def _item_mean(verdicts: Sequence[str]) -> float | None:
    """Return an item's own rate, averaged over its runs; None where no run has a verdict."""
    runs = ["".join(letters) for letters in zip(*verdicts, strict=True)]
    counts = [(run.count(FOLLOWED), run.count(FOLLOWED) + run.count(VIOLATED)) for run in runs]
    return mean([followed / scored for followed, scored in counts if scored])


def _at_least(record: Record, gate: Gate, metric: str, least: float) -> Check:
    estimate = rate(rates(record, metric), gate.confidence)
    if estimate is None:
        outcome, why = Outcome.UNCLEAR, "nothing is scored"
    elif estimate.value >= least - _TOLERANCE:
        outcome, why = _if_covered(record, gate, "")
    elif estimate.high < least - _TOLERANCE:
        outcome, why = Outcome.FAIL, "below, and by more than chance"
    else:
        outcome = Outcome.UNCLEAR
        why = f"below, but within chance: {_shows(estimate, 'a distance')}"
    return Check(metric, False, least, estimate, outcome, why)


def _no_worse(
    record: Record, comparison: Comparison | None, gate: Gate, metric: str, allowed: float
) -> Check:
    if comparison is None:
        why = "there is no baseline: run `snakemake baseline` on a state that is good"
        return Check(metric, True, allowed, None, Outcome.UNCLEAR, why)
    shares, unit = changes(comparison, metric)
    estimate = difference(shares, unit, gate.confidence)
    if estimate is None:
        outcome, why = Outcome.UNCLEAR, "nothing has a verdict on both sides"
    elif estimate.low >= -allowed - _TOLERANCE:
        outcome, why = _if_covered(record, gate, "")
    elif estimate.high < 0 and estimate.value < -allowed - _TOLERANCE:
        outcome, why = Outcome.FAIL, "worse than the baseline, by more than is allowed"
    else:
        outcome = Outcome.UNCLEAR
        why = f"a drop beyond what is allowed is not excluded: {_shows(estimate, 'a drop')}"
    return Check(metric, True, allowed, estimate, outcome, why)


def _shows(estimate: Estimate, what: str) -> str:
    items = "1 item shows" if estimate.items == 1 else f"{estimate.items} items show"
    return f"{items} {what} only from {100 * estimate.smallest:.1f} points on"


def _if_covered(record: Record, gate: Gate, why: str) -> tuple[Outcome, str]:
    """Return pass, unless too much has no verdict to say so."""
    coverage = record.coverage
    if coverage is None or coverage < gate.coverage - _TOLERANCE:
        shown = "nothing" if coverage is None else f"only {100 * coverage:.1f} %"
        return Outcome.UNCLEAR, f"{shown} of what was asked has a verdict ({gate.coverage:.0%})"
    return Outcome.PASS, why


def _notes(record: Record, expected_runs: int) -> Iterable[str]:
    done = len(record.runs)
    if done < expected_runs:
        yield f"{done} of {expected_runs} runs are scored"
    if record.scored < record.expected:
        missing = record.expected - record.scored
        yield f"{missing} of {record.expected} constraints that apply have no verdict"
    if record.retryable:
        yield f"{record.retryable} verdicts may still change: run `snakemake retry`"
    if record.not_asked:
        yield (
            f"rules only: {record.not_asked} constraints that need a judge were not asked, so its "
            "rates compare with none that include them"
        )
