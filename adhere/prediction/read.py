"""Read prediction files: ours, other people's, and those that somebody edited."""

from pathlib import Path

from adhere.data import Row, label, load_rows
from adhere.derived import remedied
from adhere.errors import DataError
from adhere.kept import wrong_output


def read_predictions(path: Path) -> list[Row]:
    """Return the rows of a prediction file; each has an ``output`` of its form.

    Raises DataError naming file, item and key.
    """
    with remedied(path):
        rows = load_rows(path)
    for index, row in enumerate(rows):
        place = f"{path}: {label(index, row)}"
        if "output" not in row:
            raise DataError(f"{place}: has no `output`: this is no prediction file")
        if wrong := wrong_output(row["output"]):
            raise DataError(
                f"{place}: {wrong}. Correct it, or delete the file: the workflow writes it again "
                "from what was answered"
            )
    return rows
