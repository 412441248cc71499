"""End to end: the real workflow on a workload of AgentIF's shape, beside the ideal."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import workload
from bench.clients import LATENCY_MS
from bench.figures import Figure
from bench.mock import Behaviour, running
from bench.project import judge, make_project, model

CONNECTIONS = 64


def figures() -> Iterator[Figure]:
    """Run everything up to the summary; what the same costs for one item is start-up."""
    with tempfile.TemporaryDirectory() as folder:
        start_up, _ = run(Path(folder) / "one", 1)
        seconds, requests = run(Path(folder) / "all", workload.ITEMS)
    ideal = requests * LATENCY_MS / 1000 / CONNECTIONS
    yield Figure(
        f"end to end, {workload.ITEMS} items, {requests:,} calls, {CONNECTIONS} connections: "
        "time without start-up / ideal",
        (seconds - start_up) / ideal,
        "",
        1.15,
    )
    yield Figure("the ideal", ideal, "s")
    yield Figure("start-up: Snakemake and the processes of four jobs", start_up, "s")


def run(root: Path, items: int) -> tuple[float, int]:
    """Run the workflow once; return its seconds and how many requests it made."""
    with running(Behaviour(latency_ms=LATENCY_MS)) as mock:
        project = make_project(root, concurrency=CONNECTIONS)
        project.write_yaml("configs/alpha.yaml", model(mock.base_url))
        project.write_yaml("judge_configs/judge.yaml", judge(mock.judge_url))
        project.write_dataset("bench", workload.dataset(items))
        return project.snakemake(), int(mock.stats()["requests"])
