"""What all stages of one call of Snakemake share: its targets, and the cells it is about."""

from collections.abc import Mapping
from typing import Any

from adhere import files
from adhere.errors import ConfigError
from adhere.existing import existing_predictions, existing_results
from adhere.names import unlimited
from adhere.plan import Cell, Evaluation, Plan, words
from adhere.status import Attempts
from adhere.workflow.changes import Changes, OnRecord
from adhere.workflow.datasets import PlannedDatasets

# Targets that change what is planned; all others are plain names of rules or files.
RESTRICTED = (
    "evaluations",
    "scores",
    "retry",
    "predictions",
    "list",
    "plan",
    "estimate",
    "checkers",
    "fetch",
    "gym_data",
    "gate",
    "baseline",
    "archive",
    "spotcheck",
)
# Targets that compute nothing.
LOOKING_ON = frozenset({"list", "plan", "estimate", "checkers"})
# Targets that write datasets.
ABOUT_DATA = frozenset({"fetch", "gym_data"})
# Targets that take what is judged as it is: no calls, no keys.
JUDGED_ALREADY = frozenset({"scores", "baseline", "archive", "spotcheck"})


class Call:
    """One call: its plan, what it was made from, and those of its targets that restrict it.

    Paths are relative to the project's folder.
    """

    def __init__(
        self, plan: Plan, selection: Mapping[str, Any], targets: frozenset[str], on_record: OnRecord
    ) -> None:
        self.plan = plan
        self.targets = targets
        self.root = plan.results_root
        self.attempts = Attempts(files.attempts(self.root), again=plan.retry)
        self.changes = Changes(on_record)
        self.datasets = PlannedDatasets(plan)
        # Existing files are only judged, or only scored, where that is what was asked for: the
        # rules that would make them anew are left out.
        self.predicts = not targets & (JUDGED_ALREADY | {"evaluations"})
        self.judges = not targets & JUDGED_ALREADY
        self._selection = selection

    @property
    def looks_on(self) -> bool:
        """Whether nothing is asked or judged: tables are shown, or datasets written."""
        return bool(self.targets) and self.targets <= LOOKING_ON | ABOUT_DATA

    def cells(self) -> list[Cell]:
        """Return the prediction cells of this call: the selected ones, or those that exist."""
        if self.predicts:
            return list(self.plan.cells())
        return [cell for cell in existing_predictions(self.root) if self._selected(cell)]

    def evaluations(self) -> list[Evaluation]:
        """Return the scored files of this call."""
        if self.judges:
            return [Evaluation(cell, judge) for cell in self.cells() for judge in self.plan.judges]
        found = existing_results(self.root)
        judges = self.plan.judges if "judges" in self._selection else None
        return [e for e in found if self._selected(e.cell) and (not judges or e.judge in judges)]

    def _selected(self, cell: Cell) -> bool:
        """Whether an existing cell is meant; without a selection every one is."""
        chosen = self._selection
        base = unlimited(cell.dataset)[0]
        return (
            ("models" not in chosen or cell.model in words(chosen["models"]))
            and ("modes" not in chosen or cell.mode in words(chosen["modes"]))
            and ("datasets" not in chosen or base in self.plan.datasets)
            and ("limit" not in chosen or cell.dataset == self.plan.name_of(base))
            and ("repeats" not in chosen or cell.run <= self.plan.config.repeats)
            # Judging needs the dataset's constraints, scoring only what is judged.
            and (not self.judges or base in self.plan.config.datasets)
        )

    def check_selected(self, *, judges: bool) -> None:
        """Raise AdhereError where nothing is selected, or a selected dataset cannot be read."""
        plan = self.plan
        if not self.predicts:
            return
        if not plan.modes:
            known = ", ".join(plan.project.models) or "none"
            raise ConfigError(
                "no model is selected: write `enabled: true` in a file of configs/, or name some "
                f"with --config models=A,B (there are: {known})"
            )
        if judges and not plan.judges:
            known = ", ".join(plan.project.judges) or "none"
            raise ConfigError(
                "no judge is selected: write `enabled: true` in a file of judge_configs/, or name "
                f"some with --config judges=A (there are: {known})"
            )
        for dataset in plan.datasets:
            self.datasets.load(dataset)
        for cell in self.cells():
            self.datasets.given(cell)
