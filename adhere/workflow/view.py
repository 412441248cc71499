"""The one object that the rules ask, made and checked before the first job."""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from adhere import files
from adhere.config import RULES_ONLY, load_project
from adhere.costs.budget import check_budget, start_ledger
from adhere.errors import ConfigError
from adhere.existing import misplaced_results
from adhere.jobs.endpoints import judge_endpoint, model_endpoint
from adhere.lifeline import workflow_name
from adhere.locks import claim
from adhere.plan import make_plan
from adhere.workflow.aggregate import Aggregating
from adhere.workflow.call import ABOUT_DATA, JUDGED_ALREADY, LOOKING_ON, RESTRICTED, Call
from adhere.workflow.changes import OnRecord, nothing_on_record
from adhere.workflow.gpus import Gpus
from adhere.workflow.judge import Judging
from adhere.workflow.predict import Predicting
from adhere.workflow.score import Scoring
from adhere.workflow.serve import Serving
from adhere.workflow.teams import Teams
from adhere.workflow.wildcards import Wildcards, cell_of

_LOG = logging.getLogger("adhere")
# What is about to run: jobs as (rule, wildcards).
Todo = Sequence[tuple[str, Wildcards]]


class View:
    """The plan of one call as the rules see it: each stage's questions, by the stage's name."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.plan = call.plan
        self.datasets = call.datasets
        self.gpus = Gpus(call)
        self.predict = Predicting(call)
        self.serve = Serving(call, self.predict, self.gpus)
        self.judge = Judging(call, self.gpus)
        self.score = Scoring(call)
        self.aggregate = Aggregating(call, self.score)
        self.teams = Teams(call)

    @property
    def results_root(self) -> str:
        """Folder of everything generated."""
        return str(self.call.root)

    @property
    def logs_root(self) -> str:
        """Folder of the jobs' logs: ``logs`` beside ``results``, or inside another root."""
        return "logs" if self.results_root == "results" else f"{self.results_root}/logs"

    def begin(self, jobs: Iterable[tuple[str, Wildcards]]) -> None:
        """Refuse what would fail hours later: a second workflow, a missing key.

        ``jobs`` are (rule, wildcards) of everything that is about to run.
        """
        todo = list(jobs)
        if {rule for rule, _ in todo} <= LOOKING_ON:
            return  # looking on disturbs nobody
        root = self.call.root
        claim(
            files.claim(root),
            "another workflow is working on these results: wait until it ends, or give this one "
            "its own with --config results_root=…",
            owner=workflow_name(),
        )
        self.call.attempts.save()
        self.datasets.record()
        start_ledger(self.plan.project)
        if "scores" in self.call.targets:
            for path in misplaced_results(root):
                _LOG.warning("left out: %s: scripts/adopt.py takes over what others wrote", path)
        self._check_endpoints(todo)
        for rule, wildcards in todo:
            if rule == "judge_served":
                self.gpus.of_judge(wildcards.judge)

    def _check_endpoints(self, todo: Todo) -> None:
        """Raise ConfigError with every endpoint to be asked that lacks its address or its key."""
        project = self.plan.project
        asked = [cell_of(wildcards) for rule, wildcards in todo if rule == "predict"]
        models = {cell.model for cell in asked if self.datasets.asks_model(cell)}
        judges = {wildcards.judge for rule, wildcards in todo if rule == "judge"}
        checks = [partial(model_endpoint, project, model, 1) for model in sorted(models)]
        checks += [
            partial(judge_endpoint, project, judge)
            for judge in sorted(judges)
            if self._asks(judge, todo)
        ]
        problems = []
        for check in checks:
            try:
                check()
            except ConfigError as error:
                problems.append(str(error))
        if problems:
            raise ConfigError("\n".join(problems))

    def _asks(self, judge: str, todo: Todo) -> bool:
        """Whether any of a judge's files holds a constraint that needs it."""
        datasets = {w.dataset for rule, w in todo if rule == "judge" and w.judge == judge}
        return judge != RULES_ONLY and any(map(self.datasets.asks_judge, datasets))


def make_view(
    root: Path,
    config: Mapping[str, Any],
    arguments: Sequence[str],
    on_record: OnRecord = nothing_on_record,
) -> View:
    """Read and validate everything a call needs, before its first job.

    ``config`` is Snakemake's ``--config``; ``arguments`` its command line, in which the named
    targets are looked for, since Snakemake tells them only after its rules are read. ``on_record``
    says whether Snakemake remembers how it made a file.
    """
    targets = frozenset(arguments) & frozenset(RESTRICTED)
    for key, value in config.items():
        if value is None or value == "":
            raise ConfigError(f"--config {key}=: names nothing: give a value, or leave it out")
    selection = dict(config)
    if "retry" in targets:
        selection["retry"] = True
    call = Call(make_plan(load_project(root), selection), selection, targets, on_record)
    _check(call)
    return View(call)


def _check(call: Call) -> None:
    """Raise AdhereError for what no job could do anything about."""
    plan = call.plan
    if re.search(r"[{}<>*?\[\]]", plan.config.results_root) or not plan.config.results_root.strip():
        raise ConfigError(
            f"results_root: found {plan.config.results_root!r}: must be a path without any of "
            "{ } < > * ? [ ]"
        )
    if call.root.exists() and not call.root.is_dir():
        raise ConfigError(f"results_root: {call.root} is a file: give a folder")
    if not call.targets & (LOOKING_ON | JUDGED_ALREADY | ABOUT_DATA):
        judges = () if "predictions" in call.targets else plan.judges
        check_budget(plan.project, plan.modes if call.predicts else (), judges)
