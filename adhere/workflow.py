"""What the rules ask: which files, with which parameters, and what is still to do.

The Snakefile's functions are one line each; what they say is decided and tested here.
"""

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile, _TemporaryFileWrapper
from typing import Any, Protocol

from adhere import data, files
from adhere.config import RULES_ONLY, load_project
from adhere.costs.budget import check_budget, start_ledger
from adhere.costs.money import price_list
from adhere.errors import ConfigError
from adhere.existing import existing_predictions, existing_results, misplaced_results
from adhere.gpus import Sharing, pool_of
from adhere.jobs.endpoints import judge_endpoint, model_endpoint
from adhere.jsonio import read_json
from adhere.judging import Judge
from adhere.lifeline import workflow_name
from adhere.locks import claim
from adhere.names import unlimited
from adhere.plan import Cell, Evaluation, Plan, make_plan, words
from adhere.prediction import asks_model, mode_of, recorded, with_recordings
from adhere.scheduling import Job, planned
from adhere.scheduling.durations import Work
from adhere.scheduling.serving import items_left, serving_job
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
        # The GPUs of this machine; None where jobs run elsewhere, or none takes any.
        self.sharing: Sharing | None = None
        # Whether Snakemake remembers how it made a file: then it sees and shows changes itself.
        self.on_record: Callable[[str], bool] = _nothing_on_record
        # Lives as long as this call.
        self._newer: _TemporaryFileWrapper[bytes] | None = None
        self._datasets = Datasets(plan.project.root, accept=plan.accept_dataset)
        # Existing files are only judged, or only scored, where that is what was asked for: the
        # rules that would make them anew are left out.
        self.predicts = not targets & (JUDGED_ALREADY | {"evaluations"})
        self.judges = not targets & JUDGED_ALREADY
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

    # Who answers: a server of the job's own, or an endpoint that the job calls

    def models(self, *, served: bool) -> str:
        """Pattern of the models that the workflow serves itself, or of all others."""
        models = self.plan.project.models.items()
        return _any_of(name for name, model in models if model.is_local is served)

    def judged_by(self, *, served: bool) -> str:
        """Pattern of the judges that their job serves itself, or of all others."""
        judges = self.plan.project.judges.items()
        return _any_of(name for name, judge in judges if (judge.local is not None) is served)

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

    def evaluated(self, _wildcards: object = None) -> list[list[Any]]:
        """The scored files of this call, as [model, mode, run, dataset, judge]."""
        cells = [(each.cell, each.judge) for each in self.evaluations()]
        return [[cell.model, cell.mode, cell.run, cell.dataset, judge] for cell, judge in cells]

    def this_call(self, _wildcards: object = None) -> str:
        """Parameter that differs in each call: what reports on a call is made in each."""
        return f"process {os.getpid()}"

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
        for cell in self.cells():
            self._given(cell)

    # Each job's slice

    def model_identity(self, wildcards: Wildcards) -> str:
        """Everything in a model's configuration that can change a prediction, as text."""
        return mode_of(self.plan.project, wildcards.model, wildcards.mode).text

    def inputs_sha256(self, wildcards: Wildcards) -> str:
        """Checksum over everything of a dataset that answers are made from."""
        return self._given(_cell(wildcards)).inputs_sha256

    def _given(self, cell: Cell) -> data.Dataset:
        """Return a dataset as a model is given it. Raises DataError for a missing recording."""
        return with_recordings(self.plan.project, cell, self.dataset(cell.dataset))

    def _asks_model(self, cell: Cell) -> bool:
        """Whether a cell takes a model: recorded items need none."""
        return asks_model(self._given(cell).rows)

    def dataset_sha256(self, wildcards: Wildcards) -> str:
        """Checksum over a whole dataset."""
        return self.dataset(wildcards.dataset).sha256

    def judge_identity(self, wildcards: Wildcards) -> str:
        """Everything in a judge's configuration that can change a verdict, as text."""
        return Judge(wildcards.judge, self.plan.project.judges[wildcards.judge]).text

    def gpus(self, wildcards: Wildcards) -> int:
        """GPUs that serving a model takes, with as many servers as find room."""
        return self.plan.project.models[wildcards.model].gpu_count * self._servers(wildcards.model)

    def _servers(self, model: str) -> int:
        """Return how many servers a model gets. Raises ConfigError where not one finds room."""
        project = self.plan.project
        config = project.models[model]
        if self.sharing is None:
            return config.replicas
        return self.sharing.servers(config, config.replicas, project.model_file(model))

    def judge_gpus(self, wildcards: Wildcards) -> int:
        """GPUs that a judge takes which its job serves. Raises ConfigError as above."""
        project = self.plan.project
        local = project.judges[wildcards.judge].local
        assert local is not None, "asked for judges that are served only"
        if self.sharing is not None:
            self.sharing.servers(local, 1, project.judge_file(wildcards.judge))
        return local.gpu_count

    def share_gpus(self, stated: int | None) -> int | None:
        """Learn which GPUs are shared by the jobs that run on this machine; return how many.

        ``stated`` is ``--resources gpu=N``. None where nothing that is selected takes any.
        """
        project = self.plan.project
        models = [project.models[name] for name in self.plan.modes] if self.predicts else []
        judges = [project.judges[name].local for name in self.plan.judges] if self.judges else []
        served = [model for model in models if model.is_local] + [j for j in judges if j]
        if not any(local.gpu_count for local in served):
            return None
        self.sharing = Sharing(pool_of(self.plan.config), stated)
        return self.sharing.limit

    def served(self, wildcards: Wildcards) -> list[str]:
        """Stamp of the model's server, needed only while a local model's cell is unfinished."""
        if not self._to_serve(_cell(wildcards)):
            return []
        self._servers(wildcards.model)  # what finds no room is refused here, before any job
        return [str(self.root / ".served" / f"{wildcards.model}.json")]

    def unfinished(self, wildcards: Wildcards) -> list[list[Any]]:
        """All cells of a model that its server is to answer, as [mode, run, dataset]."""
        return [
            [cell.mode, cell.run, cell.dataset]
            for cell in self.cells()
            if cell.model == wildcards.model and self._to_serve(cell)
        ]

    def _to_serve(self, cell: Cell) -> bool:
        """Whether a cell waits for a server of the workflow's own."""
        local = self.plan.project.models[cell.model].is_local
        return local and self._unfinished(cell) and self._asks_model(cell)

    def _unfinished(self, cell: Cell) -> bool:
        report = recorded(self.root, cell)
        if report is None or self._predicted_otherwise(cell):
            return True
        return bool(report.get("attempt", "") != self._predicting_attempt(cell))

    # The order of serving

    @property
    def pool_size(self) -> int | None:
        """GPUs that local models share; None where they have none in common, as on a cluster."""
        return self.sharing.limit if self.sharing is not None else None

    @cached_property
    def serving_jobs(self) -> tuple[Job, ...]:
        """Every local model that has unfinished cells, with an estimate of its duration."""
        project = self.plan.project
        left: dict[str, list[Work]] = {}
        for cell in self.cells():
            if self._to_serve(cell):
                items = items_left(project, cell, self.dataset(cell.dataset))
                left.setdefault(cell.model, []).append(Work(cell.mode, items))
        return tuple(
            serving_job(project, model, self._servers(model), work) for model, work in left.items()
        )

    @cached_property
    def _priorities(self) -> dict[str, int]:
        jobs = self.serving_jobs
        order = planned(jobs, self.pool_size).jobs if len(jobs) > 1 else jobs
        return {job.name: len(order) - rank for rank, job in enumerate(order)}

    def priority(self, wildcards: Wildcards) -> int:
        """Rank of a model's server, the highest first; every other job has 0."""
        return self._priorities.get(wildcards.model, 0)

    def schedule(self, _wildcards: object = None) -> dict[str, Any]:
        """Parameter of the target ``plan``: what there is to schedule, and on how many GPUs."""
        models, judges = self.plan.project.models, self.plan.project.judges
        local = {name: judges[name].local for name in self.plan.judges}
        return {
            "pool": self.pool_size,
            "jobs": [asdict(job) for job in self.serving_jobs],
            "apis": [name for name in self.plan.modes if models[name].api is not None],
            "judges": [name for name, judge in local.items() if judge and judge.gpu_count],
        }

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
        if not judged and self.plan.project.judges[wildcards.judge].local is not None:
            self.judge_gpus(wildcards)  # as in `served`
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
            files.claim(self.root),
            "another workflow is working on these results: wait until it ends, or give this one "
            "its own with --config results_root=…",
            owner=workflow_name(),
        )
        self.attempts.save()
        self._datasets.record()
        start_ledger(self.plan.project)
        if "scores" in self.targets:
            for path in misplaced_results(self.root):
                _LOG.warning("left out: %s: scripts/adopt.py takes over what others wrote", path)
        project = self.plan.project
        asked = [_cell(w) for rule, w in todo if rule == "predict"]
        models = {cell.model for cell in asked if self._asks_model(cell)}
        for model in sorted(models):
            model_endpoint(project, model, 1)
        for judge in sorted({w.judge for rule, w in todo if rule == "judge"}):
            if self._asks(judge, todo):
                judge_endpoint(project, judge)
        for rule, w in todo:
            if rule == "judge_served":
                self.judge_gpus(w)

    def _asks(self, judge: str, todo: Sequence[tuple[str, Any]]) -> bool:
        """Whether any of a judge's files holds a constraint that needs it."""
        datasets = {w.dataset for rule, w in todo if rule == "judge" and w.judge == judge}
        asked = (data.asks_judge(self.dataset(name).rows) for name in datasets)
        return judge != RULES_ONLY and any(asked)

    def open_work(self) -> str | None:
        """One line that says what may be tried again; None where everything is final."""
        if self.targets and self.targets <= LOOKING_ON | ABOUT_DATA:
            return None
        return open_work(self.root, self.cells(), self.evaluations())

    def gate_code(self) -> int:
        """Return the exit code that the gate asks for; 0 where no gate was asked for."""
        if "gate" not in self.targets:
            return 0
        return int(read_json(files.gate(self.root))["exit_code"])

    def prices(self, _wildcards: object = None) -> str:
        """All prices, as the summary's parameter: no other result depends on them."""
        return price_list(self.plan.project).text

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

            aggregate(self.root, expected_runs=self.plan.runs, prices=price_list(self.plan.project))


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
    if not made.targets & (LOOKING_ON | JUDGED_ALREADY | ABOUT_DATA):
        judges = () if "predictions" in made.targets else plan.judges
        check_budget(plan.project, plan.modes if made.predicts else (), judges)


def _any_of(names: Iterable[str]) -> str:
    """Return a pattern that matches these names only; without any it matches nothing."""
    return "|".join(map(re.escape, names)) or "(?!)"


def _nothing_on_record(_path: str) -> bool:
    return False


def _cell(wildcards: Wildcards) -> Cell:
    return Cell(wildcards.model, wildcards.mode, int(wildcards.run), wildcards.dataset)
