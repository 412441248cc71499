"""Serve: one local model, one server, all its unfinished cells."""

from pathlib import Path

from adhere.cli import Job
from adhere.client import ChatClient, Endpoint
from adhere.engines import ServerInfo
from adhere.jobs.endpoints import (
    UNSENT_BUDGET,
    engine_spec,
    local_endpoint,
    wanted_locally,
    with_server,
)
from adhere.jobs.predict import snapshot
from adhere.jsonio import write_json
from adhere.metadata import client_figures, job_record
from adhere.plan import Cell
from adhere.prediction import run_tasks, task_of, unanswered
from adhere.prediction.model import served_name
from adhere.progress import Progress


def serve(job: Job) -> None:
    """Serve a local model once and answer all its unfinished cells into their journals.

    The output is a stamp that says what served; the predict jobs write the files.
    """
    plan, model = job.plan, job.wildcards["model"]
    project, config = plan.project, plan.project.models[model]
    cells = [Cell(model, mode, run, dataset) for mode, run, dataset in job.params["unfinished"]]
    tasks = [task_of(project, cell) for cell in cells]
    stamp = Path(job.output["served"])
    if not unanswered(tasks):
        # A call that was killed between the last answer and the files: no server is needed.
        write_json(stamp, {})
        return
    file = project.model_file(model)
    spec = engine_spec(project, config, served_name(model, config), file)
    log = job.log.with_name(f"{job.log.stem}.server.log")
    budget = max((task.mode.budget or UNSENT_BUDGET for task in tasks), default=UNSENT_BUDGET)
    wanted = wanted_locally(project, file, config.concurrency, budget)
    with job_record(plan.results_root, model, "serve") as record:
        record.update(snapshot(project, tasks))

        async def answer(client: ChatClient, info: ServerInfo) -> None:
            record["engine"] = {"name": config.engine_name, "versions": info.version}
            try:
                with Progress(f"predict {model}", "items") as progress:
                    await run_tasks(tasks, client, progress)
            finally:
                record.update(client_figures(client))

        def endpoint(info: ServerInfo) -> Endpoint:
            return local_endpoint(config, info, wanted)

        with_server(spec, log, endpoint, answer)
    write_json(stamp, record["engine"])
