"""Gate: hold results against thresholds and a baseline, for the workflow and by hand."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from adhere.cli import Job
from adhere.data import load_cached
from adhere.errors import ConfigError
from adhere.gate import baseline
from adhere.gate.decide import Judged, judge
from adhere.gate.record import Record
from adhere.gate.report import document, markdown
from adhere.gate.review import overdue, today
from adhere.jobs.selected import add_selection, evaluations, read, selection
from adhere.jsonio import write_json, write_text
from adhere.names import unlimited
from adhere.plan import Plan


def gate(job: Job) -> None:
    """Write the workflow's gate.json and gate.md, and show the latter."""
    found = read(job.plan.results_root, evaluations(job.params["evaluated"]))
    write(job.plan, found, Path(job.output["json"]), Path(job.output["markdown"]))


def main() -> None:
    """Hold what is scored against the thresholds by hand; end with the outcome's code."""
    parser = argparse.ArgumentParser(
        prog="gate.py",
        description="Hold what is scored against the thresholds in configs/global.yaml and the "
        "stored baseline. Ends with 0: pass, 1: fail (or an error), 3: not enough evidence.",
    )
    add_selection(parser)
    parser.add_argument("--output", type=Path, metavar="JSON", help="default: gate.json in results")
    options = parser.parse_args()
    plan, chosen = selection(options)
    output = options.output or plan.results_root / "gate.json"
    sys.exit(write(plan, read(plan.results_root, chosen), output, output.with_suffix(".md")))


def write(plan: Plan, found: list[Record], output: Path, page: Path) -> int:
    """Judge records, write both reports, show the one for people and return the exit code."""
    judged = [_judged(plan, record) for record in found]
    if not any(each.checks for each in judged):
        raise ConfigError(
            "configs/global.yaml: gate: neither `at_least` nor `no_worse` names a rate: there is "
            "nothing to hold results against"
        )
    reviews = list(reviews_due(plan, found))
    content = document(judged, reviews)
    text = markdown(judged, reviews)
    write_json(output, content)
    write_text(page, text)
    print(f"\n{text}", flush=True)
    return int(content["exit_code"])


def _judged(plan: Plan, record: Record) -> Judged:
    gate = plan.config.gate
    path = baseline.path_of(gate.baselines, unlimited(record.subject.dataset)[0])
    stored = baseline.read(path) if gate.no_worse else None
    entry = baseline.entry_for(stored, record.subject, gate.against) if stored else None
    return judge(record, entry, gate, plan.runs(record.subject.model))


def reviews_due(plan: Plan, found: list[Record]) -> Iterable[str]:
    """Yield what is due for review in the datasets of some records, where they are configured."""
    for name in dict.fromkeys(unlimited(record.subject.dataset)[0] for record in found):
        if file := plan.config.datasets.get(name):
            yield from overdue(load_cached(name, plan.project.root / file), today())
