"""Judge: one prediction file by one judge, for the workflow and by hand."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from adhere import data, files
from adhere.checkers import CheckerPool
from adhere.checkers.isolation import Isolation
from adhere.cli import Job
from adhere.client import ChatClient
from adhere.config import Project
from adhere.costs.budget import BUDGET, Allowance, MeteredClient, judge_allowance
from adhere.data import Row
from adhere.derived import REMEDY
from adhere.errors import BudgetError, ConfigError, DataError, EndpointError
from adhere.gpus import Request
from adhere.jobs.endpoints import engine_spec, judge_endpoint, wanted_locally, with_client
from adhere.jobs.predict import cell_of
from adhere.jobs.serving import Served, with_servers
from adhere.journal import Journal
from adhere.jsonio import write_json
from adhere.judging import Judge, JudgeRun, judge_rows
from adhere.judging.asking import Asker
from adhere.judging.stage import align
from adhere.kept import wrong_reply_line
from adhere.metadata import client_figures, job_record, versions
from adhere.names import unlimited
from adhere.plan import Evaluation
from adhere.prediction import read_predictions, recorded
from adhere.progress import Progress

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Judging:
    """One judge job: rows with predictions and constraints, the judge, and where things go.

    ``allowance`` is what the judge's endpoint may still take, where there is a budget.
    """

    project: Project
    judge: Judge | None
    rows: Sequence[Row]
    journal: Path
    title: str
    server_log: Path
    allowance: Allowance | None = None


def judge(job: Job) -> None:
    """Judge one prediction file of the workflow; constraints come from the dataset."""
    plan, evaluation = job.plan, Evaluation(cell_of(job), job.wildcards["judge"])
    project, root = plan.project, plan.results_root
    judge = Judge(evaluation.judge, project.judges[evaluation.judge])
    name, limit = unlimited(evaluation.cell.dataset)
    dataset = data.load_cached(name, project.root / project.config.datasets[name]).first(limit)
    if job.params["judge"] != judge.text or job.params["dataset_sha256"] != dataset.sha256:
        raise ConfigError(
            f"judge_configs/{evaluation.judge}.yaml, or the dataset {dataset.path}, changed while "
            "the workflow was running: start it again"
        )
    predictions = read_predictions(Path(job.input["prediction"]))
    judging = Judging(
        project,
        judge,
        joined(Path(job.input["prediction"]), predictions, dataset.rows),
        files.judge_journal(root, evaluation),
        f"judge {evaluation.cell.model} {evaluation.cell.mode} run {evaluation.cell.run}",
        job.log.with_name(f"{job.log.stem}.server.log"),
        None if judge.config.local is not None else judge_allowance(project, judge.name),
    )
    with job_record(root, evaluation.cell.model, "judge") as record:
        record["judge"] = describe(judge)
        run = run_judging(judging, record)
    results = Path(job.output["results"])
    write_json(files.judge_run(results), judge_run(judging, evaluation, record, run, root))
    write_json(results, run.rows)


def joined(path: Path, predictions: Sequence[Row], reference: Sequence[Row] | None) -> list[Row]:
    """Join a prediction file with its dataset. Raises DataError naming file and item."""
    try:
        return align(predictions, reference)
    except DataError as error:
        raise DataError(f"{path}: {error}. {REMEDY}") from None


def describe(judge: Judge) -> dict[str, Any]:
    """Return a judge's name, configuration and hash; it names a key and never holds one."""
    config = judge.config.model_dump(mode="json", exclude_unset=True)
    return {"name": judge.name, "config": config, "hash": judge.hash}


def judge_run(
    judging: Judging,
    evaluation: Evaluation,
    record: dict[str, Any],
    run: JudgeRun,
    root: Path,
) -> dict[str, Any]:
    """Return what stands beside results.json: everything a reader needs to trust its verdicts."""
    cell = evaluation.cell
    name, limit = unlimited(cell.dataset)
    dataset = data.load_cached(name, judging.project.root / judging.project.config.datasets[name])
    report = recorded(root, cell) or {}
    model = judging.project.models.get(cell.model)
    assert judging.judge is not None, "the workflow always has a judge"
    return {
        "judge": describe(judging.judge),
        "protocol": int(versions()["protocol"]),
        "parser": judging.judge.config.parser,
        "dataset": {
            "name": name,
            "sha256": dataset.sha256,
            "limit": limit,
            "items": len(run.rows),
        },
        "prediction": {
            "model": cell.model,
            "mode": cell.mode,
            "run": cell.run,
            "hash": report.get("hash"),
            "sampling": report.get("sampling"),
            "sampled": report.get("sampled"),
            "outputs_sha256": report.get("outputs_sha256"),
        },
        "isolation": record["isolation"],
        "counts": dict(run.counts),
        "retryable": run.retryable,
        "tokens": record["tokens"],
        "duration_s": record["duration_s"],
        "warnings": [*report.get("warnings", []), *isolation_warnings(record["isolation"])],
        "demo": judging.judge.config.demo or (model is not None and model.demo),
    }


def isolation_record(isolation: Isolation) -> dict[str, Any]:
    """Return how checkers were isolated, for records."""
    return {"level": isolation.level, "allows": list(isolation.allows)}


def isolation_warnings(isolation: dict[str, Any]) -> list[str]:
    """Return a warning where checkers ran with less than strong isolation."""
    if isolation["level"] == "strong":
        return []
    return [
        f"checkers run with isolation {isolation['level']}: "
        f"they can {', '.join(isolation['allows'])}"
    ]


def run_judging(judging: Judging, record: dict[str, Any]) -> JudgeRun:
    """Judge all rows, with the judge's endpoint, a server of the job's own, or no judge at all."""
    project, judge = judging.project, judging.judge
    with Journal(judging.journal, wrong_reply_line) as journal:
        lines_read = journal.lines_read

        async def work(client: ChatClient | None) -> JudgeRun:
            asker = Asker(judge, client, journal) if judge is not None else None
            pool = CheckerPool.configured(project.config.checkers)
            with Progress(judging.title, "constraints") as progress:
                try:
                    async with pool:
                        for warning in isolation_warnings(isolation_record(pool.isolation)):
                            print(f"warning: {warning}", file=sys.stderr)
                        run = await judge_rows(judging.rows, asker, pool, progress)
                        refuse_if_nothing(run, asker)
                        return run
                finally:
                    record.update(client_figures([client] if client else []))
                    record["isolation"] = isolation_record(pool.isolation)
                    reused = asker.reused if asker else 0
                    record["reused_replies"] = reused
                    record["ignored_journal_lines"] = lines_read - reused

        if judge is None or judge.asks_nobody or not data.asks_judge(judging.rows):
            return asyncio.run(work(None))
        return with_judge(judging, record, work)


def refuse_if_nothing(run: JudgeRun, asker: Asker | None) -> None:
    """A judge that answered nothing at all is no judge. Raises EndpointError or BudgetError."""
    client = asker.client if asker else None
    if asker is None or client is None or client.counts.answered or asker.reused:
        return
    if run.retryable:
        if isinstance(client, MeteredClient) and client.counts.failures.keys() == {BUDGET}:
            raise BudgetError(f"{client.endpoint.owner}: not asked: {client.refused}")
        kinds = ", ".join(f"{kind} {n}" for kind, n in client.counts.failures.most_common())
        raise EndpointError(
            f"{client.endpoint.owner}: {client.endpoint.base_url}: none of the requests was "
            f"answered ({kinds}): nothing is judged; check that the judge runs and start again"
        )


def with_judge(
    judging: Judging,
    record: dict[str, Any],
    work: Callable[[ChatClient], Coroutine[Any, Any, T]],
) -> T:
    """Run ``work`` with a client of the judge's endpoint, or of a server started for it."""
    project, judge = judging.project, judging.judge
    assert judge is not None, "somebody is asked"
    file = project.judge_file(judge.name)
    if judge.config.local is None:
        batches = files.batches(judging.journal) if judge.config.batch else None
        return with_client(judge_endpoint(project, judge.name), work, judging.allowance, batches)
    local = judge.config.local
    budget = judge.config.max_completion_tokens or judge.config.max_tokens or 8192
    served = Served(
        local,
        engine_spec(project, local, judge.config.model, file),
        judging.server_log,
        wanted_locally(project, file, judge.config.concurrency, budget),
        Request(file, local.gpu_count, 1, local.gpus, project.config.gpus),
    )

    async def asked(clients: Sequence[ChatClient]) -> T:
        return await work(clients[0])

    return with_servers(served, record, asked)
