"""A schedule as people read it: a table, a chart of the GPUs, and what it compares with."""

import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len

from adhere.scheduling.jobs import Placement
from adhere.scheduling.search import Schedule, unordered

_COLUMNS = 80
_LETTERS = string.ascii_uppercase + string.ascii_lowercase
_NAMES = (6, 7)  # columns of the table
_LABEL = 12  # columns
_LANES = 64  # a chart of more GPUs says less than the table


@dataclass(frozen=True, slots=True)
class Beside:
    """What else a call does: models asked over an API, and judges that take GPUs as well."""

    apis: Sequence[str] = ()
    judges: Sequence[str] = ()


def describe(plan: Schedule, known_pool: bool, beside: Beside, devices: Sequence[str] = ()) -> str:
    """Return the whole text; ``known_pool`` says that the pool is one, and not all that fits.

    ``devices`` are the names of its GPUs, none where it is not known which they are.
    """
    parts = [_heading(plan, known_pool)]
    if plan.placements:
        parts += [_table(plan.placements), _chart(plan, devices), _figures(plan), _SEMANTICS]
    if beside.apis:
        parts.append(f"Asked over an API, and not scheduled: {', '.join(beside.apis)}.")
    if beside.judges:
        judges = ", ".join(beside.judges)
        parts.append(f"Judges that take GPUs when no model that waits fits: {judges}.")
    return "\n\n".join(part for part in parts if part)


def as_json(plan: Schedule) -> dict[str, Any]:
    """Return the same for programs; all times in seconds."""
    usual, worst = unordered(plan.jobs, plan.pool)
    return {
        "pool": plan.pool,
        "makespan_s": round(plan.makespan),
        "lower_bound_s": round(plan.bound),
        "without_priorities_s": {"median": round(usual), "worst": round(worst)},
        "jobs": [
            {
                "model": p.job.name,
                "gpus": p.job.gpus,
                "items": p.job.items,
                "start_s": round(p.start),
                "end_s": round(p.end),
                "duration_from": p.job.source,
            }
            for p in plan.placements
        ],
    }


_SEMANTICS = (
    "The workflow gives the models priorities that lead to this: each starts as soon as its GPUs\n"
    "are free, the highest priority first; one that does not fit yet is passed over. Durations:\n"
    "`earlier runs` are on record in results/run_metadata, `hours_per_run` stands in the model's\n"
    "file, `crude rule` guesses from GPUs, modes and items."
)


def _heading(plan: Schedule, known_pool: bool) -> str:
    count = len(plan.jobs)
    if not count:
        return "No local model is left to be served."
    models = f"{count} local model{'s' if count > 1 else ''} left to be served"
    if known_pool:
        return f"{models} on {plan.pool} GPU{'s' if plan.pool != 1 else ''}."
    if not plan.pool:
        return f"{models}, without GPUs."
    return (
        f"{models}.\nThey share no GPUs of this machine (a cluster has its own), so this is as if "
        f"all {plan.pool}\nthat they want were free; `python scripts/plan.py --gpus N` shows N."
    )


def _table(placements: Sequence[Placement]) -> str:
    rows = [("", "START", "END", "TAKES", "GPUS", "ITEMS", "MODEL", "DURATION FROM")]
    for letter, p in zip(_letters(placements), placements, strict=True):
        times = (_clock(p.start), _clock(p.end), _clock(p.job.seconds))
        rows.append((letter, *times, str(p.job.gpus), f"{p.job.items:,}", p.job.name, p.job.source))
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_row(row, widths) for row in rows)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Join a line's cells: numbers stand to the right of their column, names to the left."""
    padded = []
    for index, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        blanks = " " * (width - cell_len(cell))
        padded.append(cell + blanks if index in (0, *_NAMES) else blanks + cell)
    return "  ".join(padded).rstrip()


def _chart(plan: Schedule, devices: Sequence[str]) -> str:
    """Return one line a GPU; every column is the same time, and belongs to who holds its middle."""
    if not 0 < plan.pool <= _LANES or not plan.makespan:
        return ""
    labels = _labels(devices) or [f"GPU {lane}" for lane in range(plan.pool)]
    label = max(map(len, labels)) + 1
    width = _COLUMNS - label
    lines = [["."] * width for _ in range(plan.pool)]
    for letter, p in zip(_letters(plan.placements), plan.placements, strict=True):
        first, last = (round(width * t / plan.makespan) for t in (p.start, p.end))
        for lane in p.lanes:
            lines[lane][first:last] = letter * (last - first)
    end = _clock(plan.makespan)
    axis = " " * label + "0:00" + end.rjust(width - len("0:00"))
    rows = (name.ljust(label) + "".join(line) for name, line in zip(labels, lines, strict=True))
    return "\n".join([*rows, axis])


def _labels(devices: Sequence[str]) -> list[str]:
    """Return the GPUs' labels: indices, and of UUIDs the beginnings, where these tell them apart.

    Such a beginning also names the GPU.
    """
    labels = [f"GPU {name}" if name.isdecimal() else name[:_LABEL] for name in devices]
    return labels if len(set(labels)) == len(labels) else []


def _figures(plan: Schedule) -> str:
    usual, worst = unordered(plan.jobs, plan.pool)
    proof = "by a mixed-integer program" if plan.solved else "by GPU hours and large jobs"
    if len(plan.jobs) == 1:
        return ""
    return (
        f"makespan     {_clock(plan.makespan)} h\n"
        f"lower bound  {_clock(plan.bound)} h ({proof})\n"
        f"without it   {_clock(usual)} h, at worst {_clock(worst)} h (Snakemake's own order is "
        "arbitrary)"
    )


def _letters(placements: Sequence[Placement]) -> str:
    repeated = _LETTERS * (1 + len(placements) // len(_LETTERS))
    return repeated[: len(placements)]


def _clock(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60}:{minutes % 60:02d}"
