"""Tables for spreadsheets: UTF-8 with the mark that spreadsheets look for, and no formulas."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from adhere import jsonio
from adhere.errors import DataError

# What a spreadsheet takes for a formula, at the start of a cell or behind a separator that makes it
# one where the table is opened with another separator; blanks and line breaks may come first.
_FORMULA = re.compile(r"(^|[;\t])(\s*)(?=[=+\-@＝＋－＠])|^(?=[\t\r])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def write_csv(
    path: Path, headers: Sequence[str], rows: Iterable[Sequence[str | float | None]]
) -> None:
    """Write a table atomically. Texts that would run as formulas get an apostrophe in front."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(headers)
    writer.writerows([_cell(value) for value in row] for row in rows)
    jsonio.write_bytes(path, text.getvalue().encode("utf-8-sig", "replace"))


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read a table as rows by header, with any of the separators that spreadsheets save with.

    Raises DataError naming the file, and the line of a row that has more cells than headers.
    """
    try:
        text = jsonio.read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8: save it as CSV UTF-8: {error}") from None
    head = text.partition("\n")[0]
    separator = max(",;\t", key=head.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, restkey="")
    rows = []
    try:
        for row in reader:
            if "" in row:
                raise DataError(f"{path}: line {reader.line_num}: has more cells than headers")
            rows.append({key.strip(): (value or "").strip() for key, value in row.items()})
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num}: is no CSV: {error}") from None
    return rows


def _cell(value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if not isinstance(value, str):
        return f"{value:.6g}"
    return _FORMULA.sub(r"\1\2'", _CONTROL.sub(" ", value))
