"""What is done, what is missing, what may be tried again: read from the results, never guessed."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adhere import files
from adhere.config import Project
from adhere.costs.budget import BUDGET
from adhere.data import Dataset
from adhere.jsonio import read_json, write_json
from adhere.judging import Judge
from adhere.plan import Cell, Evaluation
from adhere.prediction import mode_of, recorded, with_recordings

_WHY = {
    False: "failed for a reason that may pass",
    True: "failed for a reason that may pass, or were not asked for because `budget` of "
    "configs/global.yaml is reached: raise it first",
}


class Attempts:
    """Which files were asked to be tried again, and when: a name for each file's last attempt.

    The name is a parameter of the file's job, so that a new one makes the job run again; it is
    kept, so that later calls plan the same. Files that were never tried again have the name "".
    """

    def __init__(self, path: Path, *, again: bool) -> None:
        self._path = path
        self._again = again
        self._kept: dict[str, str] = read_json(path) if path.exists() else {}
        self._new: dict[str, str] = {}
        self._name = datetime.now(UTC).isoformat(timespec="microseconds")

    def of(self, file: Path, failures: int) -> str:
        """Return the name of a file's attempt: a new one where failures are to be tried again."""
        key = str(file)
        if self._again and failures and key not in self._new:
            self._new[key] = self._name
        return self._new.get(key) or self._kept.get(key, "")

    def save(self) -> None:
        """Keep the new names; called before the first job."""
        if self._new:
            write_json(self._path, self._kept | self._new)


def pending_predictions(root: Path, cell: Cell) -> int:
    """Return how many predictions of a finished file failed for a reason that may pass."""
    report = recorded(root, cell)
    return int(report.get("pending", 0)) if report else 0


def retryable_verdicts(root: Path, evaluation: Evaluation) -> int:
    """Return how many verdicts of a finished file lack a judge's reply that may still come."""
    path = files.judge_run(files.results(root, evaluation))
    record: Any = read_json(path) if path.exists() else {}
    return int(record.get("retryable", 0))


def prediction_differs(project: Project, cell: Cell, dataset: Dataset) -> bool:
    """Whether a prediction file was made with another configuration, or of other inputs.

    False where nothing is recorded: a file that somebody else made is taken as it is.
    """
    report = recorded(project.root / project.config.results_root, cell)
    if report is None or cell.model not in project.models:
        return False
    inputs = with_recordings(project, cell, dataset).inputs_sha256
    wanted = (mode_of(project, cell.model, cell.mode).hash, inputs)
    return (report.get("hash"), report.get("inputs_sha256")) != wanted


def judging_differs(project: Project, evaluation: Evaluation, dataset: Dataset) -> bool:
    """Whether a results file was judged by another configuration, or with other constraints."""
    root = project.root / project.config.results_root
    path = files.judge_run(files.results(root, evaluation))
    if not path.exists() or evaluation.judge not in project.judges:
        return False
    record: Any = read_json(path)
    wanted = (Judge(evaluation.judge, project.judges[evaluation.judge]).hash, dataset.sha256)
    return (record["judge"]["hash"], record["dataset"]["sha256"]) != wanted


def policy_differs(project: Project, evaluation: Evaluation) -> bool:
    """Whether a score was computed under another policy."""
    root = project.root / project.config.results_root
    path = files.accuracy(root, evaluation)
    return path.exists() and read_json(path).get("policy") != project.config.policy


def open_work(root: Path, cells: Sequence[Cell], evaluations: Sequence[Evaluation]) -> str | None:
    """Return one line that says how many of what may be tried again, None where nothing is."""
    predictions = sum(pending_predictions(root, cell) for cell in cells)
    verdicts = sum(retryable_verdicts(root, evaluation) for evaluation in evaluations)
    parts = []
    if predictions:
        parts.append(f"{predictions} prediction{'s' if predictions > 1 else ''}")
    if verdicts:
        parts.append(f"{verdicts} verdict{'s' if verdicts > 1 else ''}")
    if not parts:
        return None
    asked: list[Cell | Evaluation] = [*cells, *evaluations]
    over_budget = any(_stopped_by_budget(root, part) for part in asked)
    return (
        f"incomplete: {' and '.join(parts)} {_WHY[over_budget]}; everything else is "
        "written. Run `snakemake retry` with the same options to compute just those again"
    )


def _stopped_by_budget(root: Path, part: Cell | Evaluation) -> bool:
    """Whether anything of a file was not asked for because the budget was reached."""
    if isinstance(part, Cell):
        return BUDGET in (recorded(root, part) or {}).get("errors", {})
    path = files.judge_run(files.results(root, part))
    return path.exists() and BUDGET in read_json(path).get("counts", {})


def scored(root: Path, evaluation: Evaluation) -> bool:
    """Whether an evaluation is finished up to its score."""
    return files.accuracy(root, evaluation).exists()
