"""Serve: one local model, its servers, all its unfinished cells."""

from collections.abc import Sequence
from pathlib import Path

from adhere.cli import Job
from adhere.client import ChatClient
from adhere.config import Project
from adhere.gpus import Request
from adhere.jobs.endpoints import UNSENT_BUDGET, engine_spec, wanted_locally
from adhere.jobs.predict import snapshot
from adhere.jobs.serving import Served, with_servers
from adhere.jsonio import write_json
from adhere.metadata import client_figures, job_record
from adhere.plan import Cell
from adhere.prediction import Task, run_tasks, task_of, unanswered
from adhere.prediction.model import served_name
from adhere.progress import Progress


def serve(job: Job) -> None:
    """Serve a local model once and answer all its unfinished cells into their journals.

    The output is a stamp that says what served; the predict jobs write the files.
    """
    plan, model = job.plan, job.wildcards["model"]
    cells = [Cell(model, mode, run, dataset) for mode, run, dataset in job.params["unfinished"]]
    tasks = [task_of(plan.project, cell) for cell in cells]
    stamp = Path(job.output["served"])
    if not unanswered(tasks):
        # A call that was killed between the last answer and the files: no server is needed.
        write_json(stamp, {})
        return
    served = _served(plan.project, model, job, tasks)
    with job_record(plan.results_root, model, "serve") as record:
        record.update(snapshot(plan.project, tasks))

        async def answer(clients: Sequence[ChatClient]) -> None:
            try:
                with Progress(f"predict {model}", "items") as progress:
                    await run_tasks(tasks, clients, progress)
            finally:
                record.update(client_figures(clients))

        with_servers(served, record, answer)
    write_json(stamp, record["engine"])


def _served(project: Project, model: str, job: Job, tasks: Sequence[Task]) -> Served:
    """Return how a model is served for its tasks, by as many servers as Snakemake allows GPUs."""
    config, file = project.models[model], project.model_file(model)
    budget = max((task.mode.budget or UNSENT_BUDGET for task in tasks), default=UNSENT_BUDGET)
    each = config.gpu_count
    replicas = max(1, job.resources["gpu"] // each) if each else config.replicas
    return Served(
        config,
        engine_spec(project, config, served_name(model, config), file),
        job.log.with_name(f"{job.log.stem}.server.log"),
        wanted_locally(project, file, config.concurrency, budget),
        Request(file, each, min(replicas, config.replicas), config.gpus, project.config.gpus),
    )
