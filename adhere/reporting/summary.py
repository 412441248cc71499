"""What the summary says: tables of comparable rows, and why others stand apart from them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from adhere.reporting.collect import Collected, GroupKey, RunScore
from adhere.reporting.expenses import Expenses
from adhere.reporting.rows import Coverage, Expected, Row, grouped, rows_of, short

# A warning shared by more models than this is given with their number.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Group:
    """One table: rows that may be compared, best CSR first.

    ``isolation`` names the levels under which their checkers ran.
    """

    key: GroupKey
    demo: bool
    isolation: tuple[str, ...]
    notes: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """All that is reported; ``problems`` names files that were left out."""

    demo: bool
    warnings: tuple[str, ...]
    problems: tuple[str, ...]
    groups: tuple[Group, ...]
    expenses: Expenses


def summarise(collected: Collected, expected_runs: Expected | None, expenses: Expenses) -> Summary:
    """Group and average what was collected; ``expected_runs`` as for ``aggregate``."""
    groups = grouped(collected.runs, lambda run: run.key)
    ordered = sorted(groups, key=_order)
    return Summary(
        demo=any(run.scores.demo for run in collected.runs),
        warnings=(*_warnings(collected.runs), *_identical(collected.runs)),
        problems=collected.problems,
        groups=tuple(
            Group(
                key=key,
                demo=any(run.scores.demo for run in groups[key]),
                isolation=tuple(sorted({_isolation(run) for run in groups[key]})),
                notes=(*_apart(key, ordered), *_caveats(key, groups[key])),
                rows=tuple(rows_of(groups[key], expected_runs)),
            )
            for key in ordered
        ),
        expenses=expenses,
    )


def document(summary: Summary) -> dict[str, Any]:
    """Return what ``summary.json`` holds: rates unrounded, as fractions of 1."""
    return {
        "demo": summary.demo,
        "warnings": list(summary.warnings),
        "problems": list(summary.problems),
        "groups": [
            {
                "dataset": {"name": group.key.dataset, "sha256": group.key.sha256},
                "limit": group.key.limit,
                "policy": group.key.policy,
                "judge": {"name": group.key.judge, "hash": group.key.judge_hash},
                "protocol": group.key.protocol,
                "demo": group.demo,
                "isolation": list(group.isolation),
                "notes": list(group.notes),
                "rows": [_row_document(row) for row in group.rows],
            }
            for group in summary.groups
        ],
        "expenses": [expense.document() for expense in summary.expenses.known],
        "expenses_not_counted": list(summary.expenses.unread),
    }


def _row_document(row: Row) -> dict[str, Any]:
    runs = [asdict(line) | {"coverage": _coverage_document(line.coverage)} for line in row.runs]
    return asdict(row) | {"coverage": _coverage_document(row.coverage), "runs": runs}


def _coverage_document(coverage: Coverage) -> dict[str, Any]:
    return asdict(coverage) | {"fraction": coverage.fraction}


def _order(key: GroupKey) -> tuple[str, int, str, str, str, str, int]:
    """Order tables by dataset, the full one before limited ones, then policy and judge."""
    return (
        key.dataset,
        key.limit or 0,
        key.policy,
        key.judge,
        key.sha256 or "",
        key.judge_hash or "",
        key.protocol or 0,
    )


def _apart(key: GroupKey, keys: Sequence[GroupKey]) -> list[str]:
    """Say what divides a table from others that carry the same names."""
    siblings = [other for other in keys if other != key and _heading(other) == _heading(key)]
    if not siblings:
        return []
    differences = {
        "dataset checksum": (short(key.sha256), {short(other.sha256) for other in siblings}),
        "judge config": (short(key.judge_hash), {short(other.judge_hash) for other in siblings}),
        "protocol": (_number(key.protocol), {_number(other.protocol) for other in siblings}),
    }
    differing = [
        f"{name} is {own} here, {' or '.join(sorted(others - {own}))} there"
        for name, (own, others) in differences.items()
        if others != {own}
    ]
    return [f"Apart from the other table of this name: {'; '.join(differing)}."]


def _caveats(key: GroupKey, runs: Sequence[RunScore]) -> list[str]:
    known = {
        "dataset checksum": key.sha256,
        "judge config": key.judge_hash,
        "protocol": key.protocol,
    }
    unknown = [name for name, value in known.items() if value is None]
    notes = []
    if unknown:
        notes.append(
            f"Not recorded: {', '.join(unknown)}. The rows compare only if it was the same for all."
        )
    if not all(run.scores.comparable for run in runs):
        notes.append(
            "Rules only: what needs a judge was not asked. These rates are over the rest, and "
            "compare with no table in which it was."
        )
    items = sorted({run.scores.rows for run in runs})
    if len(items) > 1:
        notes.append(f"The runs hold between {items[0]} and {items[-1]} items.")
    return notes


def _isolation(run: RunScore) -> str:
    return run.scores.isolation or "unknown"


def _heading(key: GroupKey) -> tuple[str, int | None, str, str]:
    return (key.dataset, key.limit, key.policy, key.judge)


def _number(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _warnings(runs: Sequence[RunScore]) -> tuple[str, ...]:
    """Return the runs' warnings, each once, with the models it concerns where it names none."""
    pairs = [(text, run.names) for run in runs for text in run.scores.warnings]
    warnings = []
    for text, same in grouped(pairs, lambda pair: pair[0]).items():
        models = list(dict.fromkeys(names.model for _, names in same))
        concerned = ", ".join(models) if len(models) <= _NAMED else f"{len(models)} models"
        warnings.append(text if models[0] in text else f"{text} ({concerned})")
    return tuple(warnings)


def _identical(runs: Sequence[RunScore]) -> list[str]:
    """Warn of sampled runs that came back the same: they are one sample, not several."""
    sampled = [
        (run.names, run.scores.prediction)
        for run in runs
        if run.scores.prediction.sampled and run.scores.prediction.outputs_sha256
    ]
    samples = grouped(
        sampled,
        lambda pair: (
            pair[0].model,
            pair[0].mode,
            pair[0].dataset,
            pair[1].hash,
            pair[1].outputs_sha256,
        ),
    )
    warnings = []
    for (model, mode, dataset, *_), same in samples.items():
        numbers = sorted({names.run for names, _ in same})
        if len(numbers) > 1:
            warnings.append(
                f"{model} {mode} on {dataset}: runs {', '.join(map(str, numbers))} gave identical "
                "answers although they were sampled: the server may cache, or ignore the seed; "
                "their spread means nothing"
            )
    return warnings
