"""What an agent did, recorded elsewhere: outputs that no model is asked for.

An item may carry a recording itself; a model with ``recorded`` in its file has one for each item.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePath

from adhere.config import Project, Recorded
from adhere.data import Dataset, Row, is_recorded, label
from adhere.errors import DataError
from adhere.plan import Cell
from adhere.prediction.answer import Output, no_answer

_MOST_NAMED = 10


def with_recordings(project: Project, cell: Cell, dataset: Dataset) -> Dataset:
    """Return a dataset as a model is given it: each item with its recording, where it has one.

    Raises DataError naming all items that a model with ``recorded`` has none for.
    """
    model = project.models.get(cell.model)
    if model is None or model.recorded is None:
        return dataset
    rows, missing = [], []
    for index, row in enumerate(dataset.rows):
        path = _path(model.recorded, row, cell.run)
        if path is not None and (project.root / path).is_file():
            rows.append({**row, **_recording(project.root / path, model.recorded.format)})
        elif is_recorded(row):
            rows.append(row)
        else:
            missing.append(label(index, row) + _why_missing(path, model.recorded, row))
    if missing:
        raise DataError(
            f"{project.model_file(cell.model)}: recorded: no trajectory for {len(missing)} of "
            f"{len(dataset.rows)} items of {dataset.name}: {', '.join(_some(missing))}: add the "
            "files, correct `recorded.trajectories`, or choose fewer items with --config limit=N"
        )
    return replace(dataset, rows=tuple(rows))


def _some(missing: list[str]) -> Iterator[str]:
    yield from missing[:_MOST_NAMED]
    if len(missing) > _MOST_NAMED:
        yield f"and {len(missing) - _MOST_NAMED} more"


def _path(recorded: Recorded, row: Row, run: int) -> str | None:
    """Return an item's file; None where there can be none."""
    name = row.get("id", row.get("query_id"))
    if recorded.trajectories is None or name is None or _leads_out(name):
        return None
    return recorded.trajectories.replace("{run}", str(run)).replace("{id}", str(name))


def _leads_out(name: object) -> bool:
    """Whether an id would be a way out of the folder of the recordings."""
    return ".." in PurePath(str(name)).parts or PurePath(str(name)).is_absolute()


def _why_missing(path: str | None, recorded: Recorded, row: Row) -> str:
    """Say in brackets which file is not there, or why there can be none."""
    if path is None and recorded.trajectories is not None:
        told = row.get("id", row.get("query_id")) is not None
        path = "an id with `..` or a leading `/` names no file" if told else "without an id no file"
    return f" ({path})" if path is not None else ""


def _recording(path: Path, format: str | None) -> Row:
    """Return what an item gets from a file. Raises DataError where that is not one trajectory."""
    state = path.stat()
    content = _read(path, format, state.st_size, state.st_mtime_ns)
    return {"trajectory": content} | ({"trajectory_format": format} if format else {})


@lru_cache(maxsize=4096)
def _read(path: Path, format: str | None, _size: int, _mtime_ns: int) -> str:
    """Read a file once for each of its states."""
    from adhere.trajectories import load_one, text_of

    content = text_of(path)
    load_one(content, format=format, name=str(path))
    return content


def recorded_output(row: Row) -> Output:
    """Return the output of an item that carries a recording; an error is never in it."""
    output = no_answer() | {
        "content": _final_answer(row),
        "flags": ["recorded"],
        "trajectory": row["trajectory"],
    }
    if row.get("trajectory_format") is not None:
        output["trajectory_format"] = row["trajectory_format"]
    return output


def _final_answer(row: Row) -> str:
    # Loading the importers takes a moment that datasets without recordings need not wait for.
    from adhere.trajectories import load_one

    found = load_one(row["trajectory"], format=row.get("trajectory_format"))
    return found.final_answer or ""
