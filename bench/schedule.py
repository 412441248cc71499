"""Replay of the order of serving: real Snakemake, sleeping jobs, with and without priorities.

Run with ``make bench-schedule``. A job sleeps instead of serving; GPUs are the counter that they
are to Snakemake. Both kinds take turns, and times run from the first job's start to the last
one's end, as the jobs themselves note them.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

from adhere.scheduling import Job, schedule

SNAKEFILE: Final = """
import json
JOBS = json.load(open("jobs.json"))

rule all:
    input: expand("{model}.done", model=JOBS)

rule serve:
    output: "{model}.done"
    priority: lambda w: JOBS[w.model]["priority"]
    resources: gpu=lambda w: JOBS[w.model]["gpus"]
    params: seconds=lambda w: JOBS[w.model]["seconds"]
    shell:
        "echo $(date +%s.%N) start {wildcards.model} >> events; sleep {params.seconds}; "
        "echo $(date +%s.%N) end {wildcards.model} >> events; touch {output}"
"""


@dataclass(frozen=True, slots=True)
class Instance:
    """Jobs (durations in units) on a pool of GPUs; ``starving`` where small jobs can keep a large
    one from its GPUs."""

    name: str
    pool: int
    jobs: tuple[Job, ...]
    starving: bool = False


@dataclass(frozen=True, slots=True)
class Replayed:
    """What real Snakemake did: seconds from first start to last end, jobs as they started."""

    makespan: float
    started: tuple[str, ...]


def replay(
    jobs: Sequence[Job], pool: int, priorities: Mapping[str, int], unit_s: float
) -> Replayed:
    """Run jobs through Snakemake's greedy scheduler; a unit of their duration takes ``unit_s``."""
    content = {
        job.name: {
            "gpus": job.gpus,
            "seconds": job.seconds * unit_s,
            "priority": priorities.get(job.name, 0),
        }
        for job in jobs
    }
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "Snakefile").write_text(SNAKEFILE, encoding="utf-8")
        (root / "jobs.json").write_text(json.dumps(content), encoding="utf-8")
        command = [sys.executable, "-m", "snakemake", "--quiet", "--scheduler", "greedy"]
        command += ["--cores", str(len(jobs)), "--resources", f"gpu={pool}"]
        subprocess.run(command, cwd=root, check=True, capture_output=True)
        events = [line.split() for line in (root / "events").read_text().splitlines()]
    times = [float(time) for time, _, _ in events]
    started = tuple(model for _, event, model in events if event == "start")
    return Replayed(max(times) - min(times), started)


def priorities(jobs: Sequence[Job], pool: int) -> dict[str, int]:
    """Return the priorities that the workflow would give."""
    order = schedule(jobs, pool).jobs
    return {job.name: len(order) - rank for rank, job in enumerate(order)}


def instances() -> list[Instance]:
    """Return random mixes, and instances in which a large model can be starved."""
    found = []
    for number, (pool, count) in enumerate([(4, 8), (8, 10), (8, 14)]):
        random = Random(number)
        sizes = [size for size in (1, 1, 2, 2, 4, 8) if size <= pool]
        mixed = (
            Job(f"m{i}", random.choice(sizes), random.randint(10, 80) / 10) for i in range(count)
        )
        found.append(Instance(f"mix of {count}", pool, tuple(mixed)))
    for pool, large, long, count in ((4, 3, 12.0, 12), (8, 6, 14.0, 24), (8, 5, 12.0, 30)):
        random = Random(pool * large)
        small = [Job(f"s{i}", 1, random.randint(5, 15) / 10) for i in range(count)]
        jobs = (Job("large", large, long), *small)
        found.append(Instance(f"1 of {large} GPUs, {count} of 1", pool, jobs, starving=True))
    return found


def main() -> None:
    """Replay every instance and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="replays of each kind")
    parser.add_argument("--unit", type=float, default=0.5, help="seconds a unit of duration takes")
    options = parser.parse_args()
    print(
        f"{'instance':24}{'GPUs':>5}{'bound':>8}{'planned':>9}{'ours':>7}{'own':>7}{'ours/own':>10}"
    )
    for instance in instances():
        jobs, pool = instance.jobs, instance.pool
        plan, ranks = schedule(jobs, pool), priorities(jobs, pool)
        spans: dict[str, list[float]] = {"ours": [], "own": []}
        for _ in range(options.rounds):
            spans["ours"].append(replay(jobs, pool, ranks, options.unit).makespan)
            spans["own"].append(replay(jobs, pool, {}, options.unit).makespan)
        ours, own = (median(spans[kind]) / options.unit for kind in ("ours", "own"))
        figures = f"{plan.bound:8.1f}{plan.makespan:9.1f}{ours:7.1f}{own:7.1f}{ours / own:10.2f}"
        print(f"{instance.name:24}{pool:5}{figures}", flush=True)


if __name__ == "__main__":
    main()
