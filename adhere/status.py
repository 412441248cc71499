"""What is done, what is missing, what may be tried again: read from the results, never guessed."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from adhere import files
from adhere.config import Project
from adhere.costs.budget import BUDGET
from adhere.data import Dataset
from adhere.derived import readable
from adhere.jsonio import write_json
from adhere.judging import Judge
from adhere.plan import Cell, Evaluation
from adhere.prediction import mode_of, recorded, with_recordings
from adhere.scoring.accuracy import Accuracy
from adhere.scoring.provenance import JudgeRun

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
        self._kept = readable(path, dict[str, str]) or {}
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


def judged(root: Path, evaluation: Evaluation) -> JudgeRun | None:
    """Return what is recorded of how a file was judged; None without a record that is whole."""
    return readable(files.judge_run(files.results(root, evaluation)), JudgeRun)


def retryable_verdicts(root: Path, evaluation: Evaluation) -> int:
    """Return how many verdicts of a finished file lack a judge's reply that may still come."""
    record = judged(root, evaluation)
    return record.retryable if record else 0


def prediction_unrecorded(root: Path, cell: Cell) -> bool:
    """Whether a prediction file was made here and its record is gone or damaged.

    It was made here where its journal is beside it; to make it again from that asks nothing.
    """
    made = files.prediction(root, cell).exists() and files.prediction_journal(root, cell).exists()
    return made and recorded(root, cell) is None


def judging_unrecorded(root: Path, evaluation: Evaluation) -> bool:
    """The same of a results file."""
    made = files.results(root, evaluation).exists()
    journaled = files.judge_journal(root, evaluation).exists()
    return made and journaled and judged(root, evaluation) is None


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
    record = judged(project.root / project.config.results_root, evaluation)
    if record is None or evaluation.judge not in project.judges:
        return False
    wanted = (Judge(evaluation.judge, project.judges[evaluation.judge]).hash, dataset.sha256)
    return (record.judge.hash, record.dataset.sha256) != wanted


def policy_differs(project: Project, evaluation: Evaluation) -> bool:
    """Whether a score was computed under another policy."""
    score = _score(project.root / project.config.results_root, evaluation)
    return score is not None and score.policy != project.config.policy


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
    record = judged(root, part)
    return record is not None and BUDGET in record.counts


def scored(root: Path, evaluation: Evaluation) -> bool:
    """Whether an evaluation is finished up to its score."""
    return _score(root, evaluation) is not None


def score_damaged(root: Path, evaluation: Evaluation) -> bool:
    """Whether there is a score that cannot be used; to score again costs nothing."""
    return files.accuracy(root, evaluation).exists() and not scored(root, evaluation)


def _score(root: Path, evaluation: Evaluation) -> Accuracy | None:
    return readable(files.accuracy(root, evaluation), Accuracy)
