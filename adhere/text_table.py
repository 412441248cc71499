"""Plain tables for the terminal."""

from collections.abc import Sequence

from rich.cells import cell_len


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows in aligned columns; Chinese characters take two columns."""
    widths = [max(cell_len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = (
        "  ".join(
            text + " " * (width - cell_len(text)) for text, width in zip(row, widths, strict=True)
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
