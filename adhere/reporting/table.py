"""Markdown tables whose columns are aligned when the file is read as plain text."""

import re
from collections.abc import Sequence

from rich.cells import cell_len

_CONTROL = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029]+")
EMPTY = "–"


def one_line(text: str) -> str:
    """Return text with line breaks and other control characters turned into blanks."""
    return _CONTROL.sub(" ", text).strip()


def render(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """Return a table; the first ``left`` columns are left-aligned, the others right-aligned.

    Widths are those of a terminal, where Chinese characters take two columns.
    """
    cells = [[one_line(cell).replace("|", "\\|") for cell in line] for line in (headers, *rows)]
    widths = [max(3, *map(cell_len, column)) for column in zip(*cells, strict=True)]
    rule = [
        "-" * width if index < left else "-" * (width - 1) + ":"
        for index, width in enumerate(widths)
    ]
    lines = [cells[0], rule, *cells[1:]]
    return "\n".join(_line(line, widths, left) for line in lines) + "\n"


def _line(cells: Sequence[str], widths: Sequence[int], left: int) -> str:
    padded = []
    for index, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        blanks = " " * (width - cell_len(cell))
        padded.append(cell + blanks if index < left else blanks + cell)
    return f"| {' | '.join(padded)} |"
