"""Which scored files a job for teams works on, in the workflow and by hand."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from adhere.errors import DataError
from adhere.gate.record import Record, records
from adhere.plan import Cell, Evaluation, Plan
from adhere.workflow import make_view

_KEYS = ("models", "modes", "judges", "datasets", "results_root")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose among what is scored; without any, everything is taken."""
    for key in _KEYS[:-1]:
        parser.add_argument(f"--{key}", metavar="A,B", help="default: all that are scored")
    parser.add_argument("--results-root", metavar="FOLDER", help="default: as configured")


def selection(options: argparse.Namespace) -> tuple[Plan, list[Evaluation]]:
    """Return the plan and the scored files that a command line chooses."""
    chosen = {key: getattr(options, key) for key in _KEYS if getattr(options, key) is not None}
    made = make_view(Path(), chosen, ("scores",))
    return made.plan, made.call.evaluations()


def evaluations(listed: Iterable[Sequence[Any]]) -> list[Evaluation]:
    """Return the evaluations that a rule's parameter lists."""
    return [
        Evaluation(Cell(model, mode, int(run), dataset), judge)
        for model, mode, run, dataset, judge in listed
    ]


def read(root: Path, chosen: Iterable[Evaluation]) -> list[Record]:
    """Return the records of scored files. Raises DataError where there are none."""
    found = records(root, chosen)
    if not found:
        raise DataError(f"{root}: nothing that is selected is scored: run `snakemake` first")
    return found
