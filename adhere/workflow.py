"""What the rules ask: which files, with which parameters, and what is still to do.

The Snakefile's functions are one line each; what they say is decided and tested here.
"""

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile, _TemporaryFileWrapper
from typing import Any, Protocol

from adhere import data, files
from adhere.config import load_project
from adhere.errors import ConfigError
from adhere.existing import existing_predictions, existing_results, misplaced_results
from adhere.jobs.endpoints import judge_endpoint, model_endpoint
from adhere.judging import Judge
from adhere.locks import claim
from adhere.names import unlimited
from adhere.plan import Cell, Evaluation, Plan, make_plan, words
from adhere.prediction import mode_of, recorded
from adhere.sources import Datasets
from adhere.status import (
    Attempts,
    judging_differs,
    open_work,
    pending_predictions,
    policy_differs,
    prediction_differs,
    retryable_verdicts,
    scored,
)

_LOG = logging.getLogger("adhere")
# Targets that change what is planned; all others are plain names of rules or files.
RESTRICTED = ("evaluations", "scores", "retry", "predictions", "list", "checkers", "fetch")
# Targets that compute nothing.
LOOKING_ON = frozenset({"list", "checkers"})


class Wildcards(Protocol):
    """A job's wildcards as Snakemake hands them over."""

    model: str
    mode: str
    run: str
    judge: str
    dataset: str


class View:
    """The plan of one call as the rules see it. Paths are relative to the project's folder."""

    def __init__(self, plan: Plan, selection: Mapping[str, Any], targets: frozenset[str]) -> None:
        self.plan = plan
        self.targets = targets
        self._selection = selection
        self.root = plan.results_root
        self.attempts = Attempts(self.root / ".attempts.json", again=plan.retry)
        self._lock: int | None = None
        # Whether Snakemake remembers how it made a file: then it sees and shows changes itself.
        self.on_record: Callable[[str], bool] = _nothing_on_record
        # Lives as long as this call.
        self._newer: _TemporaryFileWrapper[bytes] | None = None
        self._datasets = Datasets(plan.project.root, accept=plan.accept_dataset)
        # Existing files are only judged, or only scored, where that is what was asked for: the
        # rules that would make them anew are left out.
        self.predicts = not targets & {"evaluations", "scores"}
        self.judges = "scores" not in targets
        self.policy = plan.config.policy
        self.repeats = plan.config.repeats

    # Places

    @property
    def results_root(self) -> str:
        """Folder of everything generated."""
        return str(self.root)

    @property
    def logs_root(self) -> str:
        """Folder of the jobs' logs: ``logs`` beside ``results``, or inside another root."""
        return "logs" if self.results_root == "results" else f"{self.results_root}/logs"

    def dataset_file(self, wildcards: Wildcards) -> str:
        """Return the file of a job's dataset."""
        return self._dataset_file(wildcards.dataset)

    def _dataset_file(self, name: str) -> str:
        base = unlimited(name)[0]
        datasets = self.plan.config.datasets
        if base not in datasets:
            raise ConfigError(
                f"configs/global.yaml: datasets: there is no {base!r} (there are: "
                f"{', '.join(datasets)})"
            )
        return datasets[base]

    def dataset(self, name: str) -> data.Dataset:
        """Load a dataset, with its limit; once for each state of its file."""
        base, limit = unlimited(name)
        path = self.plan.project.root / self._dataset_file(name)
        return self._datasets.load(base, path).first(limit)

    # What is asked for

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
        base, limit = unlimited(cell.dataset)
        return (
            ("models" not in chosen or cell.model in words(chosen["models"]))
            and ("modes" not in chosen or cell.mode in words(chosen["modes"]))
            and ("datasets" not in chosen or base in self.plan.datasets)
            and ("limit" not in chosen or limit == self.plan.limit)
            and ("repeats" not in chosen or cell.run <= self.repeats)
            # Judging needs the dataset's constraints, scoring only what is judged.
            and (not self.judges or base in self.plan.config.datasets)
        )

    def predictions(self, _wildcards: object = None) -> list[str]:
        """Files of the target ``predictions``."""
        self._check_selected(judges=False)
        return [str(files.prediction(self.root, cell)) for cell in self.cells()]

    def accuracies(self, _wildcards: object = None) -> list[str]:
        """Files that this call's summary waits for."""
        self._check_selected(judges=True)
        return [self._accuracy(evaluation) for evaluation in self.evaluations()]

    def rows(self, _wildcards: object = None) -> list[str]:
        """All files that the summary reports: this call's, and all others that are finished."""
        found = (str(path) for path in self.root.glob("scores/*/*/*/accuracy.json"))
        return sorted({*(self._accuracy(evaluation) for evaluation in self.evaluations()), *found})

    def _accuracy(self, evaluation: Evaluation) -> str:
        return str(files.accuracy(self.root, evaluation))

    def _check_selected(self, *, judges: bool) -> None:
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
            self.dataset(dataset)

    # Each job's slice

    def model_identity(self, wildcards: Wildcards) -> str:
        """Everything in a model's configuration that can change a prediction, as text."""
        return mode_of(self.plan.project, wildcards.model, wildcards.mode).text

    def inputs_sha256(self, wildcards: Wildcards) -> str:
        """Checksum over everything of a dataset that a model sees."""
        return self.dataset(wildcards.dataset).inputs_sha256

    def dataset_sha256(self, wildcards: Wildcards) -> str:
        """Checksum over a whole dataset."""
        return self.dataset(wildcards.dataset).sha256

    def judge_identity(self, wildcards: Wildcards) -> str:
        """Everything in a judge's configuration that can change a verdict, as text."""
        return Judge(wildcards.judge, self.plan.project.judges[wildcards.judge]).text

    def gpus(self, wildcards: Wildcards) -> int:
        """GPUs that serving a model takes."""
        return self.plan.project.models[wildcards.model].gpu_count

    def judge_gpus(self, wildcards: Wildcards) -> int:
        """GPUs that a judge takes which its job serves."""
        local = self.plan.project.judges[wildcards.judge].local
        return local.gpu_count if local is not None else 0

    def served(self, wildcards: Wildcards) -> list[str]:
        """Stamp of the model's server, needed only while a local model's cell is unfinished."""
        local = self.plan.project.models[wildcards.model].is_local
        if not local or not self._unfinished(_cell(wildcards)):
            return []
        return [str(self.root / ".served" / f"{wildcards.model}.json")]

    def unfinished(self, wildcards: Wildcards) -> list[list[Any]]:
        """All cells of a model that its server is to answer, as [mode, run, dataset]."""
        return [
            [cell.mode, cell.run, cell.dataset]
            for cell in self.cells()
            if cell.model == wildcards.model and self._unfinished(cell)
        ]

    def _unfinished(self, cell: Cell) -> bool:
        report = recorded(self.root, cell)
        if report is None or self._predicted_otherwise(cell):
            return True
        return bool(report.get("attempt", "") != self._predicting_attempt(cell))

    # What Snakemake cannot know: its own records may be gone or belong to another folder, and it
    # leaves a deleted file alone while what was made of it is there.

    def changed_prediction(self, wildcards: Wildcards) -> list[str]:
        """Evidence that a prediction file was made otherwise than it would be now."""
        cell = _cell(wildcards)
        unseen = not self.on_record(str(files.prediction(self.root, cell)))
        return self._evidence(unseen and self._predicted_otherwise(cell))

    def _predicted_otherwise(self, cell: Cell) -> bool:
        return prediction_differs(self.plan.project, cell, self.dataset(cell.dataset))

    def changed_judging(self, wildcards: Wildcards) -> list[str]:
        """The same for a results file, or that its prediction file is gone."""
        evaluation = Evaluation(_cell(wildcards), wildcards.judge)
        judged = files.results(self.root, evaluation).exists()
        gone = self.predicts and not files.prediction(self.root, evaluation.cell).exists()
        dataset = self.dataset(evaluation.cell.dataset)
        unseen = not self.on_record(str(files.results(self.root, evaluation)))
        differs = unseen and judging_differs(self.plan.project, evaluation, dataset)
        return self._evidence(differs or (judged and gone))

    def changed_score(self, wildcards: Wildcards) -> list[str]:
        """The same for a score, or that its results file is gone."""
        evaluation = Evaluation(_cell(wildcards), wildcards.judge)
        gone = self.judges and not files.results(self.root, evaluation).exists()
        unseen = not self.on_record(self._accuracy(evaluation))
        differs = unseen and policy_differs(self.plan.project, evaluation)
        return self._evidence(differs or (scored(self.root, evaluation) and gone))

    def changed_summary(self, _wildcards: object = None) -> list[str]:
        """Evidence that a score is gone which the summary reported."""
        gone = any(not Path(path).exists() for path in self.accuracies())
        return self._evidence(gone and (self.root / "summary.md").exists())

    def _evidence(self, differs: bool) -> list[str]:
        """Return a file that is newer than any output, which as an input outdates the output."""
        if differs and self._newer is None:
            self._newer = NamedTemporaryFile(prefix="adhere-found-a-change-")  # noqa: SIM115
        return [self._newer.name] if differs and self._newer is not None else []

    def predicting_attempt(self, wildcards: Wildcards) -> str:
        """Parameter that changes when passing failures of a prediction file are tried again."""
        return self._predicting_attempt(_cell(wildcards))

    def _predicting_attempt(self, cell: Cell) -> str:
        return self.attempts.of(
            files.prediction(Path(), cell), pending_predictions(self.root, cell)
        )

    def judging_attempt(self, wildcards: Wildcards) -> str:
        """The same for passing failures of the judge in a results file."""
        evaluation = Evaluation(_cell(wildcards), wildcards.judge)
        return self.attempts.of(
            files.results(Path(), evaluation), retryable_verdicts(self.root, evaluation)
        )

    # Before and after the jobs

    def begin(self, jobs: Iterable[tuple[str, Any]]) -> None:
        """Refuse what would fail hours later: a second workflow, a missing key.

        ``jobs`` are (rule, wildcards) of everything that is about to run.
        """
        todo = [(rule, wildcards) for rule, wildcards in jobs]
        if {rule for rule, _ in todo} <= LOOKING_ON:
            return  # looking on disturbs nobody
        self._lock = claim(
            self.root / ".lock",
            "another workflow is working on these results: wait until it ends, or give this one "
            "its own with --config results_root=…",
        )
        self.attempts.save()
        self._datasets.record()
        if "scores" in self.targets:
            for path in misplaced_results(self.root):
                _LOG.warning("left out: %s: scripts/adopt.py takes over what others wrote", path)
        project = self.plan.project
        models = {w.model for rule, w in todo if rule == "predict"}
        for model in sorted(models):
            if not project.models[model].is_local:
                model_endpoint(project, model, 1)
        for judge in sorted({w.judge for rule, w in todo if rule == "judge"}):
            if project.judges[judge].local is None and self._asks(judge, todo):
                judge_endpoint(project, judge)

    def _asks(self, judge: str, todo: Sequence[tuple[str, Any]]) -> bool:
        """Whether any of a judge's files holds a constraint that needs it."""
        datasets = {w.dataset for rule, w in todo if rule == "judge" and w.judge == judge}
        return any(data.asks_judge(self.dataset(name).rows) for name in datasets)

    def open_work(self) -> str | None:
        """One line that says what may be tried again; None where everything is final."""
        if self.targets and self.targets <= LOOKING_ON | {"fetch"}:
            return None
        return open_work(self.root, self.cells(), self.evaluations())

    def open_work_marker(self, _wildcards: object = None) -> str:
        """Parameter that builds the summary again, and so fails the call again, while work is
        open: a call must not end well only because it had nothing left to start."""
        if self.open_work() is None:
            return "none"
        return f"open since process {os.getpid()}"

    def rebuild_summary(self) -> None:
        """Report everything finished although a job of this call failed."""
        if any(self.root.glob("scores/*/*/*/accuracy.json")):
            # Imported here: reading tables costs what no other call of the Snakefile needs.
            from adhere.reporting import aggregate

            aggregate(self.root, expected_runs=self.repeats)


def view(root: Path, config: Mapping[str, Any], arguments: Sequence[str]) -> View:
    """Read and validate everything a call needs, before its first job.

    ``config`` is Snakemake's ``--config``; ``arguments`` its command line, in which the named
    targets are looked for, since Snakemake tells them only after its rules are read.
    """
    targets = frozenset(arguments) & frozenset(RESTRICTED)
    for key, value in config.items():
        if value is None or value == "":
            raise ConfigError(f"--config {key}=: names nothing: give a value, or leave it out")
    selection = dict(config)
    if "retry" in targets:
        selection["retry"] = True
    plan = make_plan(load_project(root), selection)
    made = View(plan, selection, targets)
    _check(made)
    return made


def _check(made: View) -> None:
    """Raise AdhereError for what no job could do anything about."""
    plan = made.plan
    if re.search(r"[{}<>*?\[\]]", plan.config.results_root) or not plan.config.results_root.strip():
        raise ConfigError(
            f"results_root: found {plan.config.results_root!r}: must be a path without any of "
            "{ } < > * ? [ ]"
        )
    if made.root.exists() and not made.root.is_dir():
        raise ConfigError(f"results_root: {made.root} is a file: give a folder")


def _nothing_on_record(_path: str) -> bool:
    return False


def _cell(wildcards: Wildcards) -> Cell:
    return Cell(wildcards.model, wildcards.mode, int(wildcards.run), wildcards.dataset)
