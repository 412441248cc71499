"""A ``results.json`` as judge writes it or others publish it, with the record beside it."""

from dataclasses import dataclass
from pathlib import Path

from adhere.data import Row, load_rows
from adhere.derived import REMEDY, remedied
from adhere.errors import DataError
from adhere.scoring.parse import parse_results
from adhere.scoring.provenance import JUDGE_RUN, JudgeRun, read_judge_run
from adhere.scoring.records import Item


@dataclass(frozen=True, slots=True)
class Results:
    """The rows as parsed, what accounting takes from each, and how they came about."""

    rows: list[Row]
    items: list[Item]
    run: JudgeRun


def read_results(path: Path) -> Results:
    """Read one ``results.json`` (or JSONL, plain or gzip).

    Raises DataError for a malformed file, naming item, constraint and key, and for one that holds
    more or fewer items than were judged.
    """
    with remedied(path):
        rows = load_rows(path)
    run = read_judge_run(path)
    if run.dataset.items not in (None, len(rows)):
        raise DataError(
            f"{path}: holds {len(rows)} items, and {JUDGE_RUN} beside it says that "
            f"{run.dataset.items} were judged: rows were lost or added. {REMEDY}"
        )
    return Results(rows, parse_results(rows, str(path)), run)
