"""Baseline: store the verdicts of a good state, for the workflow and by hand."""

import argparse

from adhere.cli import Job
from adhere.gate import baseline as baselines
from adhere.gate.record import Record
from adhere.jobs.selected import add_selection, evaluations, read, selection
from adhere.plan import Plan


def baseline(job: Job) -> None:
    """Store what the workflow's call selects."""
    _store(job.plan, read(job.plan.results_root, evaluations(job.params["evaluated"])))


def main() -> None:
    """Store what is scored by hand."""
    parser = argparse.ArgumentParser(
        prog="baseline.py",
        description="Store what is scored as the baseline that gates compare with; commit the "
        "files. Entries of other models, modes and judges stay as they are.",
    )
    add_selection(parser)
    plan, chosen = selection(parser.parse_args())
    _store(plan, read(plan.results_root, chosen))


def _store(plan: Plan, found: list[Record]) -> None:
    baselines.store(plan.config.gate.baselines, found)
    for record in found:
        path = baselines.path_of(plan.config.gate.baselines, record.subject.dataset)
        print(f"{path}: stored {record.subject.title}, {len(record.runs)} runs")
