"""The sheets that people label: a table for a spreadsheet, and a page that needs no server."""

from collections.abc import Sequence
from pathlib import Path

from adhere import jsonio
from adhere.csv_table import read_csv, write_csv
from adhere.errors import DataError
from adhere.gate.sample import Unit

HEADERS = (
    "key",
    "label",
    "labeller",
    "note",
    "requirement",
    "answer",
    "asked",
    "dataset",
    "item",
    "constraint",
)
_PAGE = Path(__file__).with_name("sheet.html")
# What a spreadsheet holds in a cell.
_LONGEST_CELL = 32_000


def write_sheets(folder: Path, drawn: Sequence[Unit]) -> None:
    """Write sheet.csv and sheet.html; neither shows what the judge said.

    Raises DataError where somebody wrote labels into the sheet that would be lost.
    """
    table = folder / "sheet.csv"
    _keep_labels(table)
    rows = [
        [unit.key, "", "", "", *(text[:_LONGEST_CELL] for text in _shown(unit).values())]
        for unit in drawn
    ]
    write_csv(table, HEADERS, rows)
    items = [{"key": unit.key, **_shown(unit)} for unit in drawn]
    data = jsonio.dumps({"items": items}).decode()
    # Nothing in the data may end the element that holds it.
    safe = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    jsonio.write_text(folder / "sheet.html", _PAGE.read_text("utf-8").replace("__DATA__", safe))


def _shown(unit: Unit) -> dict[str, str]:
    return {
        "requirement": unit.requirement,
        "answer": unit.answer,
        "asked": unit.asked,
        "dataset": unit.subject.dataset,
        "item": unit.item,
        "constraint": unit.constraint,
    }


def _keep_labels(table: Path) -> None:
    if not table.exists():
        return
    filled = sum(bool(row.get("label")) for row in read_csv(table))
    if filled:
        raise DataError(
            f"{table}: holds labels ({filled}): move it to {table.parent / 'labels'}, under your "
            "name, where labels are read and never written over"
        )
