"""All items of all runs in one ``items.csv``."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from adhere import files
from adhere.csv_table import read_csv, write_csv
from adhere.errors import DataError
from adhere.jsonio import clean_text
from adhere.reporting.collect import RESCORE, RunScore
from adhere.scoring.items import HEADERS

ITEMS = "items.csv"
_NAMES = ("dataset", "model", "mode", "run", "judge")


def combine_items(runs: Iterable[RunScore], results_root: Path) -> list[str]:
    """Write the items of all runs, in their order.

    Returns a sentence for each run whose items.csv is missing or of another form.
    """
    problems: list[str] = []
    lines = _lines(runs, results_root, problems)
    write_csv(results_root / ITEMS, (*_NAMES, *HEADERS), lines)
    return problems


def _lines(
    runs: Iterable[RunScore], results_root: Path, problems: list[str]
) -> Iterator[Sequence[str | float | None]]:
    for run in runs:
        names = run.names
        try:
            rows = read_csv(files.items(results_root / run.path))
            lines = [[row[header] for header in HEADERS] for row in rows]
        except (DataError, KeyError) as error:
            problems.append(clean_text(f"items left out: {error}: {RESCORE}"))
            continue
        named = [names.dataset, names.model, names.mode, str(names.run), names.judge]
        yield from (named + line for line in lines)
