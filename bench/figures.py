"""Figures: what was measured, what was wanted, and whether it was reached."""

import os
import resource
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value; ``target`` is a bound on it, None for what is only compared.

    ``least`` says that the target is the smallest value that passes instead of the largest.
    """

    name: str
    value: float
    unit: str = ""
    target: float | None = None
    least: bool = False

    @property
    def passed(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return None
        return self.value >= self.target if self.least else self.value <= self.target

    def line(self) -> str:
        """Return the figure as a row of a Markdown table."""
        bound = "" if self.target is None else f"{'≥' if self.least else '≤'} {self.target:g}"
        verdict = {None: "", True: "pass", False: "FAIL"}[self.passed]
        return f"| {self.name} | {self.value:.3g} {self.unit} | {bound} | {verdict} |"


def children_cpu() -> float:
    """Return the processor seconds of all child processes that have ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def load() -> str:
    """Return what else keeps the machine busy: load averages over 1, 5 and 15 minutes."""
    averages = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"load {averages} on {os.cpu_count()} cores"


def show(title: str, figures: Iterable[Figure]) -> bool:
    """Print a table row by row as it is measured; return whether every target was reached."""
    print(f"\n### {title} ({load()})\n\n| figure | measured | target | |\n|---|---|---|---|")
    missed = 0
    for figure in figures:
        print(figure.line(), flush=True)
        missed += figure.passed is False
    print(f"\n{load()} at the end", flush=True)
    return not missed
