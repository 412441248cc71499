"""``items.csv``: one row an item, to be sorted and read in a spreadsheet."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from adhere.csv_table import write_csv
from adhere.scoring.accuracy import passes
from adhere.scoring.found import found, title
from adhere.scoring.metrics import Tally
from adhere.scoring.policies import Outcome, Policy, Verdict
from adhere.scoring.records import Item

HEADERS = (
    "item",
    "all_passed",
    "rate",
    "must_followed",
    "must_violated",
    "should_followed",
    "should_violated",
    "not_applicable",
    "unscored",
    "failed",
    "reasons",
    "failure_modes",
    "scenario",
    "response",
)


def write_items(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    items: Sequence[Item],
    accounted: Sequence[Sequence[Outcome]],
    policy: Policy,
) -> None:
    """Write the items of one ``results.json``; ``rows`` are its rows as parsed."""
    lines = (
        _line(row, item, outcomes, passes(policy, item, outcomes))
        for row, item, outcomes in zip(rows, items, accounted, strict=True)
    )
    write_csv(path, HEADERS, lines)


def _line(
    row: Mapping[str, Any], item: Item, outcomes: Sequence[Outcome], passed: bool | None
) -> list[str | float | None]:
    verdicts = [outcome.verdict for outcome in outcomes]
    hard = Counter(v for v, cell in zip(verdicts, item.cells, strict=True) if not cell.labels.soft)
    every = Counter(verdicts)
    soft = every - hard
    own = Tally(every[Verdict.FOLLOWED], every[Verdict.FOLLOWED] + every[Verdict.VIOLATED])
    violated = [n for n, verdict in enumerate(verdicts) if verdict is Verdict.VIOLATED]
    raws = row["constraints"]
    named = [title(raws[n], n) for n in violated]
    modes = Counter(filter(None, (item.cells[n].labels.failure_mode for n in violated)))
    return [
        item.id if item.id is not None else f"#{item.position + 1}",
        passed,
        own.rate,
        hard[Verdict.FOLLOWED],
        hard[Verdict.VIOLATED],
        soft[Verdict.FOLLOWED],
        soft[Verdict.VIOLATED],
        every[Verdict.NOT_APPLICABLE],
        every[Verdict.UNSCORED],
        "; ".join(named),
        "; ".join(_reasons(item, raws, violated, named)),
        "; ".join(f"{mode} {count}" for mode, count in sorted(modes.items())),
        item.scenario,
        item.failure or ("cut off" if item.truncated else "ok"),
    ]


def _reasons(
    item: Item, raws: Sequence[Mapping[str, Any]], violated: Sequence[int], named: Sequence[str]
) -> Iterable[str]:
    if item.failure is not None:
        return [f"no response: {item.failure}"] if violated else []
    told = [(name, found(raws[n])) for n, name in zip(violated, named, strict=True)]
    return [f"{name}: {why}" for name, why in told if why]
