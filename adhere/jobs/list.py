"""List: what is configured and selected, what is done and what is missing."""

import argparse
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from adhere.cli import Job
from adhere.config import load_project
from adhere.data import Dataset, load_cached
from adhere.dataset_notes import notes
from adhere.errors import DataError
from adhere.gate.review import overdue, today
from adhere.plan import Evaluation, Plan, make_plan
from adhere.prediction import recorded
from adhere.sources import Datasets
from adhere.status import (
    judging_differs,
    open_work,
    policy_differs,
    prediction_differs,
    scored,
)
from adhere.text_table import text_table

Table = Sequence[Sequence[str]]


def show(job: Job) -> None:
    """Print the tables of models, judges and results."""
    print("\n" + overview(job.plan))


def main() -> None:
    """Print them by hand, for everything that is enabled."""
    argparse.ArgumentParser(
        prog="list.py",
        description="Show models, modes and judges, and what is done and missing, for everything "
        "that is enabled; `snakemake list --config …` does so for a selection.",
    ).parse_args()
    print(overview(make_plan(load_project(Path()), {})))


def overview(plan: Plan) -> str:
    """Return the tables as text."""
    parts = [
        f"Results in {plan.results_root}: {plan.config.repeats} runs each, policy "
        f"{plan.config.policy}" + (f", first {plan.limit} items" if plan.limit is not None else ""),
        text_table(_models(plan)),
        text_table(_judges(plan)),
        *_datasets(plan),
        text_table(_results(plan)) if plan.modes and plan.judges else "",
    ]
    cells = list(plan.cells())
    note = open_work(plan.results_root, cells, list(plan.evaluations()))
    return "\n\n".join(part for part in [*parts, note or ""] if part)


def _models(plan: Plan) -> Table:
    rows = [("MODEL", "MODES", "SERVED BY", "SELECTED")]
    for name, model in plan.project.models.items():
        elsewhere = model.api.base_url if model.api else "recorded"
        served = model.engine_name if model.is_local else elsewhere
        selected = "yes" if name in plan.modes else "no"
        rows.append((name, ", ".join(model.mode_names), served, selected))
    return rows


def _judges(plan: Plan) -> Table:
    rows = [("JUDGE", "MODEL", "SELECTED")]
    for name, judge in plan.project.judges.items():
        rows.append((name, judge.model, "yes" if name in plan.judges else "no"))
    return rows


def _datasets(plan: Plan) -> list[str]:
    """Return a table of the selected datasets, and what is wrong or read otherwise in each."""
    rows = [("DATASET", "FILE", "ITEMS", "VERSION", "CHECKSUM")]
    remarks = []
    datasets = Datasets(plan.project.root, accept=plan.accept_dataset)
    for name in plan.datasets:
        file = plan.config.datasets[name]
        try:
            dataset = datasets.load(name, plan.project.root / file)
        except DataError as error:
            rows.append((name, file, "–", "cannot be used", "–"))
            remarks.append(str(error))
            continue
        version = datasets.what_is(dataset)
        rows.append((name, file, f"{dataset.total:,}", version, dataset.sha256[:12]))
        remarks += [f"{name}: {note}" for note in notes(dataset.rows)]
        remarks += overdue(dataset, today())
    return [text_table(rows), "\n".join(remarks)]


def _results(plan: Plan) -> Table:
    """One row for each selected (model, mode, dataset): runs that are finished and up to date."""
    root, repeats = plan.results_root, plan.config.repeats
    usable = _usable(plan)
    predicted: Counter[tuple[str, str, str]] = Counter()
    judged: Counter[tuple[str, str, str, str]] = Counter()
    for cell in plan.cells():
        rows_of = usable.get(cell.dataset)
        done = recorded(root, cell) is not None
        current = rows_of is None or not prediction_differs(plan.project, cell, rows_of)
        predicted[cell.model, cell.mode, cell.dataset] += done and current
        for judge in plan.judges:
            evaluation = Evaluation(cell, judge)
            stale = policy_differs(plan.project, evaluation) or (
                rows_of is not None and judging_differs(plan.project, evaluation, rows_of)
            )
            done = scored(root, evaluation) and current and not stale
            judged[cell.model, cell.mode, cell.dataset, judge] += done
    rows = [("MODEL", "MODE", "DATASET", "PREDICTED", *plan.judges)]
    for model, modes in plan.modes.items():
        for mode in modes:
            for dataset in map(plan.name_of, plan.datasets):
                key = (model, mode, dataset)
                counts = [judged[*key, judge] for judge in plan.judges]
                rows.append(
                    (*key, f"{predicted[key]}/{repeats}", *(f"{n}/{repeats}" for n in counts))
                )
    return rows


def _usable(plan: Plan) -> dict[str, Dataset]:
    """Return the selected datasets that can be read, by the name they have in results."""
    loaded = {}
    for name in plan.datasets:
        with suppress(DataError):
            dataset = load_cached(name, plan.project.root / plan.config.datasets[name])
            loaded[dataset.named(plan.limit)] = dataset.first(plan.limit)
    return loaded
