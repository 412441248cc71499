"""Checkers: try out every checker of a dataset before anything is paid for."""

import argparse
import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from adhere import data
from adhere.audit import Finding, audit
from adhere.checkers import CheckerPool
from adhere.cli import Job
from adhere.config import Checkers
from adhere.sources import Datasets

_LOG = logging.getLogger("adhere")


def show(job: Job) -> None:
    """Audit the selected datasets of the workflow; the log has every place of each finding."""
    plan = job.plan
    # Any version may be looked at; one that is missing is told where to get it.
    datasets = Datasets(plan.project.root, accept=True)
    for name in plan.datasets:
        path = plan.project.root / plan.config.datasets[name]
        findings = found(datasets.load(name, path).first(plan.limit), plan.config.checkers)
        print("\n" + report(path, findings, map(str, findings)))
        _LOG.info("%s", report(path, findings, (finding.in_full for finding in findings)))
        if any(len(finding.places) > 1 for finding in findings):
            print(f"every place of each: {job.log}")


def found(dataset: data.Dataset, limits: Checkers) -> list[Finding]:
    """Audit one dataset."""

    async def run() -> list[Finding]:
        async with CheckerPool.configured(limits) as pool:
            return await audit(dataset.rows, pool)

    return asyncio.run(run())


def report(path: Path, findings: Sequence[Finding], told: Iterable[str]) -> str:
    """Return how much of each kind was found, and a line for each finding as it is told."""
    counts = Counter(finding.kind for finding in findings)
    kinds = ", ".join(f"{kind} {n}" for kind, n in counts.most_common()) or "nothing to tell"
    return "\n".join([f"{path}: {kinds}", *told])


def main() -> None:
    """Audit one file by hand."""
    parser = argparse.ArgumentParser(
        prog="checkers.py",
        description="Run every checker of a dataset on plain trial texts and on its own examples, "
        "and list those that never say yes, never say no, raise, or are slow. No model is asked.",
    )
    parser.add_argument("--input", type=Path, required=True, help="dataset (JSON or JSONL)")
    parser.add_argument(
        "--places", action="store_true", help="name every place of a finding, not the first alone"
    )
    options = parser.parse_args()
    findings = found(data.load("input", options.input), Checkers())
    told = (finding.in_full if options.places else str(finding) for finding in findings)
    print(report(options.input, findings, told))
