"""Predict: write one cell's prediction file; an API model is asked here, a local one by serve."""

from pathlib import Path
from typing import Any

from adhere import files
from adhere.cli import Job
from adhere.client import ChatClient
from adhere.config import Project
from adhere.costs.budget import model_allowance
from adhere.errors import ConfigError
from adhere.jobs.endpoints import UNSENT_BUDGET, model_endpoint, with_client
from adhere.jsonio import read_json
from adhere.metadata import client_figures, job_record, versions
from adhere.plan import Cell
from adhere.prediction import Task, asks_model, collect, run_tasks, task_of
from adhere.progress import Progress


def predict(job: Job) -> None:
    """Write one cell's prediction file: an API model is asked here, a local one was by serve."""
    plan, cell = job.plan, cell_of(job)
    task = task_of(plan.project, cell)
    refuse_changed(job, task)
    engine: dict[str, Any] = {"name": "api", "versions": versions()}
    if not asks_model(task.dataset.rows):
        engine = {"name": "recorded", "versions": versions()}
    elif plan.project.models[cell.model].is_local:
        stamp = job.input.get("served")
        engine = read_json(Path(stamp[0])) if stamp else {}
    else:
        ask([task], plan.project, "predict", f"{cell.model} {cell.mode} run {cell.run}")
    collect(task, engine, attempt=job.params["attempt"])


def ask(tasks: list[Task], project: Project, stage: str, title: str) -> None:
    """Ask an API model everything its tasks still lack."""
    model = tasks[0].cell.model
    endpoint = model_endpoint(project, model, tasks[0].mode.budget or UNSENT_BUDGET)
    with job_record(project.root / project.config.results_root, model, stage) as record:
        record |= snapshot(project, tasks)

        async def answer(client: ChatClient) -> None:
            try:
                with Progress(f"{stage} {title}", "items") as progress:
                    await run_tasks(tasks, [client], progress)
            finally:
                record.update(client_figures([client]))

        allowance = model_allowance(project, model)
        with_client(endpoint, answer, allowance, batches_file(project, tasks[0]))


def batches_file(project: Project, task: Task) -> Path | None:
    """Return where an API model's batches are noted; None where it is asked without any."""
    api = project.models[task.cell.model].api
    return files.batches(task.places.journal) if api is not None and api.batch else None


def snapshot(project: Project, tasks: list[Task]) -> dict[str, Any]:
    """Return the configuration that a record keeps; it names keys and never holds one."""
    model = tasks[0].cell.model
    return {
        "config": project.models[model].model_dump(mode="json", exclude_unset=True),
        "cells": [
            {"mode": t.cell.mode, "run": t.cell.run, "dataset": t.cell.dataset, "hash": t.mode.hash}
            for t in tasks
        ],
    }


def cell_of(job: Job) -> Cell:
    """Return the cell that a job's wildcards name."""
    w = job.wildcards
    return Cell(w["model"], w["mode"], int(w["run"]), w["dataset"])


def refuse_changed(job: Job, task: Task) -> None:
    """Refuse a cell whose configuration or inputs changed after the workflow had been planned."""
    planned = (job.params["identity"], job.params["inputs"])
    if planned != (task.mode.text, task.dataset.inputs_sha256):
        raise ConfigError(
            f"configs/{task.cell.model}.yaml, the files it names, or the dataset "
            f"{task.dataset.path}, changed while the workflow was running: start it again"
        )
