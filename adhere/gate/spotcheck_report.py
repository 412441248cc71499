"""What the labels came to, for people and for programs."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from adhere.gate.correct import (
    Corrected,
    Interval,
    JudgeReport,
    Posterior,
    corrected,
    judge_reports,
)
from adhere.gate.labels import Agreement, Label, between_labellers, consensus
from adhere.gate.sample import Population, Unit
from adhere.reporting.table import EMPTY, one_line, render

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Findings:
    """All that labels say; ``unknown`` counts those of verdicts that are not there any more."""

    judges: tuple[JudgeReport, ...]
    rates: tuple[Corrected, ...]
    labellers: tuple[Agreement, ...]
    disagreements: tuple[tuple[Unit, str], ...]
    disputed: tuple[str, ...]
    unknown: int


def findings(found: Population, labels: Sequence[Label], seed: int) -> Findings:
    """Hold the labels against the judges."""
    truth = consensus(labels)
    posterior = Posterior(found.units, truth, seed, CONFIDENCE)
    known = {unit.key for unit in found.units}
    notes: dict[str, list[str]] = {}
    for label in labels:
        if label.note:
            notes.setdefault(label.key, []).append(f"{label.labeller}: {label.note}")
    return Findings(
        judges=tuple(judge_reports(found, truth, posterior)),
        rates=tuple(corrected(found, truth, posterior)),
        labellers=tuple(between_labellers(labels)),
        disagreements=tuple(
            (unit, "; ".join(notes.get(unit.key, ())))
            for unit in found.units
            if truth.get(unit.key) is (not unit.stratum.followed)
        ),
        disputed=tuple(sorted(key for key, told in truth.items() if told is None and key in known)),
        unknown=sum(key not in known for key in truth),
    )


def document(told: Findings) -> dict[str, Any]:
    """Return ``report.json``."""
    return {
        "judges": [_judge_document(report) for report in told.judges],
        "rates": [
            {
                **asdict(each.subject),
                "measured": each.measured,
                "corrected": asdict(each.rate) if each.rate else None,
                "unlabelled": [stratum._asdict() for stratum in each.missing],
            }
            for each in told.rates
        ],
        "labellers": [asdict(pair) for pair in told.labellers],
        "disagreements": [
            {
                "key": unit.key,
                **asdict(unit.subject),
                "run": unit.run,
                "item": unit.item,
                "constraint": unit.constraint,
                "judge_said": _word(unit.stratum.followed),
                "reply": unit.said,
                "notes": notes,
            }
            for unit, notes in told.disagreements
        ],
        "disputed": list(told.disputed),
        "labels_of_nothing": told.unknown,
    }


def _judge_document(report: JudgeReport) -> dict[str, Any]:
    errors = [
        {
            "type": error.stratum.type,
            "judge_said": _word(error.stratum.followed),
            "verdicts": error.size,
            "labelled": error.labelled,
            "wrong": error.wrong,
            "rate": asdict(error.rate) if error.rate else None,
        }
        for error in report.errors
    ]
    return asdict(report) | {"errors": errors}


def _word(followed: bool) -> str:
    return "followed" if followed else "violated"


def markdown(told: Findings) -> str:
    """Return ``report.md``."""
    parts = ["# Spot check\n"]
    for report in told.judges:
        parts += list(_judge(report))
    if any(each.rate for each in told.rates):
        parts.append("## Rates with the judge's error taken out\n\n" + _rates(told.rates))
    if told.labellers:
        parts.append("## Between labellers\n\n" + _labellers(told.labellers))
    if told.disagreements:
        parts.append("## Where people disagree with the judge\n\n" + _listed(told.disagreements))
    notes = list(_notes(told))
    if notes:
        parts.append("".join(f"- {note}\n" for note in notes))
    return "\n".join(parts)


def _judge(report: JudgeReport) -> Iterable[str]:
    yield f"## Judge {one_line(report.judge)}\n"
    if not report.labelled:
        yield f"{report.verdicts:,} verdicts, none labelled.\n"
        return
    yield (
        f"{report.labelled:,} of {report.verdicts:,} verdicts labelled, {report.agreed:,} of them "
        f"as the judge said. Weighted to all verdicts: agreement {_percent(report.agreement)}, "
        f"Cohen's κ {_number(report.kappa)}.\n"
    )
    rows = [
        [
            error.stratum.type,
            _word(error.stratum.followed),
            f"{error.size:,}",
            f"{error.labelled:,}",
            f"{error.wrong:,}",
            _percent(error.rate),
        ]
        for error in report.errors
    ]
    headers = ["type", "judge said", "verdicts", "labelled", "wrong", "error, 95 % interval"]
    yield render(headers, rows, left=2)


def _rates(rates: Sequence[Corrected]) -> str:
    rows = [
        [
            each.subject.dataset,
            each.subject.model,
            each.subject.mode,
            each.subject.judge,
            f"{100 * each.measured:.1f} %",
            _percent(each.rate),
        ]
        for each in rates
    ]
    headers = ["dataset", "model", "mode", "judge", "constraint rate", "corrected, 95 % interval"]
    return render(headers, rows, left=4)


def _labellers(pairs: Sequence[Agreement]) -> str:
    rows = [
        [
            pair.one,
            pair.other,
            str(pair.both),
            str(pair.agreed),
            EMPTY if pair.kappa is None else f"{pair.kappa:.2f}",
        ]
        for pair in pairs
    ]
    return render(["one", "other", "both labelled", "agreed", "κ"], rows, left=2)


def _listed(found: Sequence[tuple[Unit, str]]) -> str:
    rows = [
        [
            unit.key,
            f"{unit.subject.model} {unit.subject.mode} run {unit.run}",
            unit.item,
            unit.constraint,
            _word(unit.stratum.followed),
            notes,
        ]
        for unit, notes in found
    ]
    return render(["key", "model", "item", "constraint", "judge said", "notes"], rows, left=6)


def _notes(told: Findings) -> Iterable[str]:
    missing = sorted({stratum for each in told.rates for stratum in each.missing})
    for stratum in missing:
        yield (
            f"no label for type {one_line(stratum.type)} where judge {one_line(stratum.judge)} "
            f"said {_word(stratum.followed)}: rates that hold such verdicts are not corrected"
        )
    if told.disputed:
        yield f"labellers are divided, or unsure, about: {', '.join(told.disputed)}"
    if told.unknown:
        yield f"labels whose answers are not there any more, left out: {told.unknown}"


def _percent(interval: Interval | None) -> str:
    if interval is None:
        return EMPTY
    value, low, high = (100 * each for each in (interval.value, interval.low, interval.high))
    return f"{value:.1f} % ({low:.1f} to {high:.1f})"


def _number(interval: Interval | None) -> str:
    if interval is None:
        return EMPTY
    return f"{interval.value:.2f} ({interval.low:.2f} to {interval.high:.2f})"
