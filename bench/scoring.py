"""Scoring: 300,000 verdicts through the jobs that score and aggregate."""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from adhere.checkers import CheckerPool
from adhere.cli import collect_garbage_rarely
from adhere.client import ChatClient, Endpoint
from adhere.config import JudgeConfig
from adhere.data import Row
from adhere.jsonio import write_json
from adhere.judging import Judge, judge_rows
from adhere.judging.asking import Asker
from adhere.progress import Progress
from adhere.reporting import aggregate
from adhere.scoring import score_file
from bench import workload
from bench.figures import Figure, children_cpu
from bench.mock import Behaviour, running
from bench.project import Project, judge, make_project, model

VERDICTS = 300_000


def figures() -> Iterator[Figure]:
    """Judge one file, copy it until there are enough verdicts, and score them all."""
    rows = asyncio.run(_judged())
    per_file = sum(len(row["constraints"]) for row in rows)
    files = -(-VERDICTS // per_file)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        project = _project(root, rows, files)
        cores = os.cpu_count() or 1
        jobs = {n: _jobs(project, n) for n in (cores, 1, 2 * cores)}
        before = children_cpu()
        command = [sys.executable, "-m", "bench.scoring", str(root / "results")]
        peak = float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        cpu = children_cpu() - before
        size = sum(path.stat().st_size for path in root.rglob("results.json"))
    what = f"{files * per_file:,} verdicts in {files} files of {size / files / 1e6:.0f} MB"
    yield Figure(f"{what}: score and aggregate, processor time in one process", cpu, "s", 20)
    yield Figure("its peak memory", peak, "MiB")
    for n, seconds in jobs.items():
        yield Figure(f"as {files} jobs of the workflow, --cores {n} of {cores}", seconds, "s")
    yield Figure("per job", jobs[cores] / files, "s")


def _jobs(project: Project, cores: int) -> float:
    """Score every file by a job of its own; return seconds, start-up included."""
    return project.snakemake("scores", "--quiet", "--cores", str(cores), "--forcerun", "score")


async def _judged() -> list[Row]:
    """Return judged rows of AgentIF's shape, with everything that judging records."""
    rows = [
        {**row, "output": {"content": "The plan is short. " * 100, "flags": [], "error": None}}
        for row in workload.dataset()
    ]
    with running(Behaviour(latency_ms=1)) as mock:
        config = JudgeConfig(model="mock", base_url=mock.judge_url, api_key_env=None)
        client = ChatClient(Endpoint(mock.judge_url, "bench"))
        asker = Asker(Judge("judge", config), client, None)
        async with client, CheckerPool(workers=2, minimum="weak") as pool:
            with Progress("judge", "constraints") as progress:
                return (await judge_rows(rows, asker, pool, progress)).rows


def _project(root: Path, rows: list[Row], files: int) -> Project:
    project = make_project(root)
    project.write_yaml("configs/alpha.yaml", model("http://127.0.0.1:9/v1"))
    project.write_yaml("judge_configs/judge.yaml", judge("http://127.0.0.1:9/v1"))
    first = root / "results/scores/alpha__plain/run1_judge/bench/results.json"
    write_json(first, rows)
    for run in range(2, files + 1):
        copy = root / f"results/scores/alpha__plain/run{run}_judge/bench/results.json"
        copy.parent.mkdir(parents=True)
        copy.hardlink_to(first)
    return project


def main() -> None:
    """Score and aggregate everything below the folder that the command line names; print the peak
    memory in MiB."""
    collect_garbage_rarely()
    root = Path(sys.argv[1])
    for path in sorted(root.rglob("results.json")):
        score_file(
            path, "adhere", path.with_name("accuracy.json"), path.with_name("verdicts.parquet")
        )
    aggregate(root)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()
