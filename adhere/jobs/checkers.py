"""Checkers: try out every checker of a dataset before anything is paid for."""

import argparse
import asyncio
from collections import Counter
from pathlib import Path

from adhere import data
from adhere.audit import audit
from adhere.checkers import CheckerPool
from adhere.cli import Job
from adhere.config import Checkers


def show(job: Job) -> None:
    """Audit the selected datasets of the workflow."""
    plan = job.plan
    for name in plan.datasets:
        path = plan.project.root / plan.config.datasets[name]
        print("\n" + report(data.load(name, path).first(plan.limit), plan.config.checkers))


def report(dataset: data.Dataset, limits: Checkers) -> str:
    """Return what the audit of one dataset found, as lines of text."""

    async def run() -> list[str]:
        async with CheckerPool.configured(limits) as pool:
            findings = await audit(dataset.rows, pool)
        counts = Counter(finding.kind for finding in findings)
        told = ", ".join(f"{kind} {n}" for kind, n in counts.most_common()) or "nothing to tell"
        return [f"{dataset.path}: {told}", *map(str, findings)]

    return "\n".join(asyncio.run(run()))


def main() -> None:
    """Audit one file by hand."""
    parser = argparse.ArgumentParser(
        prog="checkers.py",
        description="Run every checker of a dataset on plain trial texts and on its own examples, "
        "and list those that never say yes, never say no, raise, or are slow. No model is asked.",
    )
    parser.add_argument("--input", type=Path, required=True, help="dataset (JSON or JSONL)")
    print(report(data.load("input", parser.parse_args().input), Checkers()))
