"""Spotcheck: have people label verdicts of judges, and report what their labels say."""

import argparse
from pathlib import Path

from adhere.cli import Job
from adhere.gate.labels import read_labels
from adhere.gate.sample import draw, population
from adhere.gate.sheet import write_sheets
from adhere.gate.spotcheck_report import document, findings, markdown
from adhere.jobs.selected import add_selection, evaluations, selection
from adhere.jsonio import write_json, write_text
from adhere.plan import Evaluation, Plan


def spotcheck(job: Job) -> None:
    """Write the sheets and the report of what the workflow's call selects."""
    _check(job.plan, evaluations(job.params["evaluated"]))


def main() -> None:
    """Write them by hand."""
    parser = argparse.ArgumentParser(
        prog="spotcheck.py",
        description="Draw verdicts of judges for people to label (sheet.csv, sheet.html), and "
        "report on the labels in labels/*.csv beside the sheets.",
    )
    add_selection(parser)
    _check(*selection(parser.parse_args()))


def _check(plan: Plan, chosen: list[Evaluation]) -> None:
    settings = plan.config.spotcheck
    folder = Path(settings.folder)
    found = population(plan.results_root, chosen, settings.seed)
    if not found.units:
        print(f"{plan.results_root}: no judge gave a verdict in what is selected: nothing to check")
        return
    drawn = draw(found.units, settings)
    write_sheets(folder, drawn)
    print(
        f"{folder / 'sheet.html'}: {len(drawn)} answers of {len(found.units):,} verdicts to label "
        f"(the same in sheet.csv); labels go to {folder / 'labels'}/<your name>.csv"
    )
    labels = read_labels(folder / "labels")
    if labels:
        told = findings(found, labels, settings.seed)
        write_json(folder / "report.json", document(told))
        write_text(folder / "report.md", markdown(told))
        print(f"\n{markdown(told)}")
