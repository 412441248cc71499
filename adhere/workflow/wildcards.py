"""A job's wildcards: which cell or evaluation they name, and patterns for what they may be."""

import re
from collections.abc import Iterable
from typing import Protocol

from adhere.plan import Cell, Evaluation


class Wildcards(Protocol):
    """A job's wildcards as Snakemake hands them over, those of its rule."""

    model: str
    mode: str
    run: str
    judge: str
    dataset: str


def cell_of(wildcards: Wildcards) -> Cell:
    """Return the prediction cell that a job works on."""
    return Cell(wildcards.model, wildcards.mode, int(wildcards.run), wildcards.dataset)


def evaluation_of(wildcards: Wildcards) -> Evaluation:
    """Return the evaluation that a job works on."""
    return Evaluation(cell_of(wildcards), wildcards.judge)


def any_of(names: Iterable[str]) -> str:
    """Return a pattern that matches these names only; without any it matches nothing."""
    return "|".join(map(re.escape, names)) or "(?!)"
