"""Questions of the rules ``predict`` and ``collect``, which write prediction files."""

from pathlib import Path

from adhere import files
from adhere.plan import Cell
from adhere.prediction import mode_of, recorded
from adhere.status import pending_predictions, prediction_differs, prediction_unrecorded
from adhere.workflow.call import Call
from adhere.workflow.wildcards import Wildcards, any_of, cell_of


class Predicting:
    """How prediction files are made, and which are to be made again."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._project = call.plan.project
        self._root = call.root

    def models(self, *, served: bool) -> str:
        """Pattern of the models that the workflow serves itself, or of all others."""
        models = self._project.models.items()
        return any_of(name for name, model in models if model.is_local is served)

    def wanted(self, _wildcards: object = None) -> list[str]:
        """Files of the target ``predictions``."""
        self._call.check_selected(judges=False)
        return [str(files.prediction(self._root, cell)) for cell in self._call.cells()]

    def identity(self, wildcards: Wildcards) -> str:
        """Everything in a model's configuration that can change a prediction, as text."""
        return mode_of(self._project, wildcards.model, wildcards.mode).text

    def changed(self, wildcards: Wildcards) -> list[str]:
        """Evidence that a prediction file was made otherwise than it would be now, or that its
        record is gone."""
        cell, changes = cell_of(wildcards), self._call.changes
        unseen = changes.unseen(files.prediction(self._root, cell))
        return changes.evidence(
            model_or_inputs_changed=unseen and self._differs(cell),
            run_config_damaged_or_gone=prediction_unrecorded(self._root, cell),
        )

    def attempt(self, wildcards: Wildcards) -> str:
        """Parameter that changes when passing failures of a prediction file are tried again."""
        return self._attempt(cell_of(wildcards))

    def unfinished(self, cell: Cell) -> bool:
        """Whether anything of a cell is still to be asked, or to be asked again."""
        report = recorded(self._root, cell)
        if report is None or self._differs(cell):
            return True
        return bool(report.get("attempt", "") != self._attempt(cell))

    def _differs(self, cell: Cell) -> bool:
        return prediction_differs(self._project, cell, self._call.datasets.load(cell.dataset))

    def _attempt(self, cell: Cell) -> str:
        failures = pending_predictions(self._root, cell)
        return self._call.attempts.of(files.prediction(Path(), cell), failures)
