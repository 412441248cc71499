"""What is left to be served, as jobs with durations."""

from collections.abc import Iterable
from pathlib import Path

from adhere import files
from adhere.config import ModelConfig, Project
from adhere.data import Dataset
from adhere.plan import Cell
from adhere.prediction import recorded
from adhere.scheduling.durations import Serving, Work, earlier_runs, estimate
from adhere.scheduling.jobs import Job
from adhere.status import pending_predictions, prediction_differs


def serving_job(project: Project, model: str, servers: int, work: Iterable[Work]) -> Job:
    """Return the job that serves a local model, by so many servers, for what is left to be asked.

    ``work`` are its unfinished cells.
    """
    config, left = project.models[model], list(work)
    serving = Serving(config, servers, _concurrency(project, config))
    records = earlier_runs(project.root / project.config.results_root, model)
    seconds, source = estimate(serving, left, records)
    return Job(
        model, config.gpu_count * servers, seconds, sum(piece.items for piece in left), source
    )


def items_left(project: Project, cell: Cell, dataset: Dataset) -> int:
    """Return about how many items of an unfinished cell are still to be asked.

    Lines of the journal count as answers without being read: this is for an estimate.
    """
    root = project.root / project.config.results_root
    if recorded(root, cell) is None:
        return max(0, len(dataset.rows) - _lines(files.prediction_journal(root, cell)))
    if prediction_differs(project, cell, dataset):
        return len(dataset.rows)
    return pending_predictions(root, cell)


def _lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except OSError:
        return 0


def _concurrency(project: Project, config: ModelConfig) -> int:
    wanted = config.concurrency or project.config.concurrency
    return min(wanted, config.slots) if config.engine_name == "llamacpp" else wanted
