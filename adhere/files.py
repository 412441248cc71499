"""Where everything generated lies below ``results_root``: the file contracts, in one place."""

from functools import lru_cache
from pathlib import Path

from adhere.names import unlimited
from adhere.plan import Cell, Evaluation

# A plan of thousands of jobs asks for the same few paths of each again and again.
_remembered = lru_cache(maxsize=1 << 16)


def claim(root: Path) -> Path:
    """Lock file of the workflow that works on these results; it names the last one that did."""
    return root / ".lock"


@_remembered
def prediction_folder(root: Path, cell: Cell) -> Path:
    """Folder of one run of one (model, mode)."""
    return root / "prediction" / f"{cell.model}__{cell.mode}" / f"run{cell.run}"


@_remembered
def prediction(root: Path, cell: Cell) -> Path:
    """Prediction rows in dataset order."""
    return prediction_folder(root, cell) / f"{cell.dataset}.json"


def run_config(root: Path, cell: Cell) -> Path:
    """What the run's predictions were made with."""
    return prediction_folder(root, cell) / "run_config.json"


def prediction_journal(root: Path, cell: Cell) -> Path:
    """Journal of a run; a limited run shares it with the full one."""
    return prediction_folder(root, cell) / f"{unlimited(cell.dataset)[0]}.partial.jsonl"


def batches(journal: Path) -> Path:
    """What is submitted in batches and not yet in a journal; no ``.json``, which datasets have."""
    return journal.with_name(journal.name.removesuffix(".partial.jsonl") + ".batches")


@_remembered
def _judged_folder(root: Path, evaluation: Evaluation) -> Path:
    cell = evaluation.cell
    return root / "scores" / f"{cell.model}__{cell.mode}" / f"run{cell.run}_{evaluation.judge}"


@_remembered
def results(root: Path, evaluation: Evaluation) -> Path:
    """Judged rows in dataset order."""
    return _judged_folder(root, evaluation) / evaluation.cell.dataset / "results.json"


@_remembered
def accuracy(root: Path, evaluation: Evaluation) -> Path:
    """The score of a results file."""
    return results(root, evaluation).with_name("accuracy.json")


def judge_journal(root: Path, evaluation: Evaluation) -> Path:
    """Journal of judge replies; a limited run shares it with the full one."""
    dataset = unlimited(evaluation.cell.dataset)[0]
    return _judged_folder(root, evaluation) / f"{dataset}.partial.jsonl"


def judge_run(results_file: Path) -> Path:
    """What a results file was judged with, beside it."""
    return results_file.with_name("judge_run.json")


def items(accuracy_file: Path) -> Path:
    """The items of one scored file as a table, beside its score."""
    return accuracy_file.with_name("items.csv")


def attempts(root: Path) -> Path:
    """Which files were asked to be tried again, and when."""
    return root / ".attempts.json"


def served(root: Path, model: str) -> Path:
    """Stamp of a local model's server: it has answered what was unfinished."""
    return root / ".served" / f"{model}.json"


def summary(root: Path) -> Path:
    """The summary for people."""
    return root / "summary.md"


def gate(root: Path) -> Path:
    """What the last gate came to."""
    return root / "gate.json"
