"""Questions of the rule ``serve``: which models are served for what, and in which order.

A local model is served by one job for all its unfinished cells.
"""

from dataclasses import asdict
from functools import cached_property
from typing import Any

from adhere import files
from adhere.plan import Cell
from adhere.scheduling import Job, planned
from adhere.scheduling.durations import Work
from adhere.scheduling.serving import items_left, serving_job
from adhere.workflow.call import Call
from adhere.workflow.gpus import Gpus
from adhere.workflow.predict import Predicting
from adhere.workflow.wildcards import Wildcards, cell_of


class Serving:
    """The servers of local models."""

    def __init__(self, call: Call, predict: Predicting, gpus: Gpus) -> None:
        self._call = call
        self._predict = predict
        self._gpus = gpus
        self._project = call.plan.project

    def stamp(self, wildcards: Wildcards) -> list[str]:
        """Stamp of the model's server, needed only while a local model's cell is unfinished."""
        if not self._serves(cell_of(wildcards)):
            return []
        self._gpus.servers(wildcards.model)  # what finds no room is refused here, before any job
        return [str(files.served(self._call.root, wildcards.model))]

    def unfinished(self, wildcards: Wildcards) -> list[list[str | int]]:
        """All cells of a model that its server is to answer, as [mode, run, dataset]."""
        return [
            [cell.mode, cell.run, cell.dataset]
            for cell in self._call.cells()
            if cell.model == wildcards.model and self._serves(cell)
        ]

    def gpus(self, wildcards: Wildcards) -> int:
        """GPUs that serving a model takes, with as many servers as find room."""
        each = self._project.models[wildcards.model].gpu_count
        return each * self._gpus.servers(wildcards.model)

    def priority(self, wildcards: Wildcards) -> int:
        """Rank of a model's server, the highest first; every other job has 0."""
        return self._priorities.get(wildcards.model, 0)

    def schedule(self, _wildcards: object = None) -> dict[str, Any]:
        """Parameter of the target ``plan``: what there is to schedule, and on how many GPUs."""
        models, judges = self._project.models, self._project.judges
        local = {name: judges[name].local for name in self._call.plan.judges}
        return {
            "pool": self._gpus.pool_size,
            "devices": self._gpus.names,
            "jobs": [asdict(job) for job in self.jobs],
            "apis": [name for name in self._call.plan.modes if models[name].api is not None],
            "judges": [name for name, judge in local.items() if judge and judge.gpu_count],
        }

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """Every local model that has unfinished cells, with an estimate of its duration."""
        left: dict[str, list[Work]] = {}
        for cell in self._call.cells():
            if self._serves(cell):
                dataset = self._call.datasets.load(cell.dataset)
                items = items_left(self._project, cell, dataset)
                left.setdefault(cell.model, []).append(Work(cell.mode, items))
        return tuple(
            serving_job(self._project, model, self._gpus.servers(model), work)
            for model, work in left.items()
        )

    @cached_property
    def _priorities(self) -> dict[str, int]:
        jobs = self.jobs
        order = planned(jobs, self._gpus.pool_size).jobs if len(jobs) > 1 else jobs
        return {job.name: len(order) - rank for rank, job in enumerate(order)}

    def _serves(self, cell: Cell) -> bool:
        """Whether a cell waits for a server of the workflow's own."""
        return (
            self._project.models[cell.model].is_local
            and self._predict.unfinished(cell)
            and self._call.datasets.asks_model(cell)
        )
