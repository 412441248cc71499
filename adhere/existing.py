"""What lies below a results folder already, by the names of its folders."""

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

from adhere import files
from adhere.errors import ConfigError
from adhere.names import MODE_PATTERN, check_name, unlimited
from adhere.plan import Cell, Evaluation

_MODEL_MODE = re.compile(rf"(.+)__({MODE_PATTERN})", re.DOTALL)
_RUN = re.compile(r"run([1-9]\d*)")
_JOURNAL = ".partial.jsonl"


def existing_predictions(root: Path) -> Iterator[Cell]:
    """Yield the cell of every prediction file below ``root``."""
    for path in sorted(root.glob("prediction/*/run*/*.json")):
        cell = _cell_of(path.parts[-3], path.parts[-2], path.name.removesuffix(".json"))
        if cell is not None and path.name != "run_config.json":
            yield cell


def existing_results(root: Path) -> Iterator[Evaluation]:
    """Yield the evaluation of every results file below ``root``."""
    for path in sorted(root.glob("scores/*/run*_*/*/results.json")):
        run, _, judge = path.parts[-3].partition("_")
        cell = _cell_of(path.parts[-4], run, path.parts[-2])
        if cell is not None and _is_name(judge):
            yield Evaluation(cell, judge)


def existing_scores(root: Path) -> Iterator[Path]:
    """Yield every score below ``root``, whatever its folders are named, in no order."""
    yield from root.glob("scores/*/*/*/accuracy.json")


def _cell_of(folder: str, run: str, dataset: str) -> Cell | None:
    """Read a cell from its path; None where the names are not the workflow's."""
    names, number = _MODEL_MODE.fullmatch(folder), _RUN.fullmatch(run)
    if not (names and number and _is_name(names[1]) and _is_name(unlimited(dataset)[0])):
        return None
    return Cell(names[1], names[2], int(number[1]), dataset)


def _is_name(name: str) -> bool:
    try:
        check_name(name, "")
    except ConfigError:
        return False
    return True


def misplaced_results(root: Path) -> list[Path]:
    """Return the results files below ``root`` whose folders are not named as the workflow does."""
    found = {files.results(root, evaluation) for evaluation in existing_results(root)}
    return sorted(set(root.glob("scores/**/results.json")) - found)


def unreadable_folders(root: Path) -> list[OSError]:
    """Return an error for each folder below ``root`` that may hold results and cannot be read.

    What lies in such a folder is found by none of these functions.
    """
    found: list[OSError] = []
    for name in ("prediction", "scores"):
        for folder, *_ in os.walk(root / name, onerror=found.append):
            if not os.access(folder, os.X_OK):  # its names can be listed, and nothing else
                found.append(PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder))
    return [error for error in found if not isinstance(error, FileNotFoundError)]


def existing_journals(root: Path) -> Iterator[tuple[Cell | Evaluation, Path]]:
    """Yield every journal below ``root`` with the cell or evaluation whose replies it holds.

    The dataset is named without a limit: limited runs share the journal of the full one.
    """
    for path in sorted(root.glob(f"prediction/*/run*/*{_JOURNAL}")):
        cell = _cell_of(path.parts[-3], path.parts[-2], path.name.removesuffix(_JOURNAL))
        if cell is not None:
            yield cell, path
    for path in sorted(root.glob(f"scores/*/run*_*/*{_JOURNAL}")):
        run, _, judge = path.parts[-2].partition("_")
        cell = _cell_of(path.parts[-3], run, path.name.removesuffix(_JOURNAL))
        if cell is not None and _is_name(judge):
            yield Evaluation(cell, judge), path
