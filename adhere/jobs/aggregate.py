"""Aggregate: the summary of everything that is scored, for the workflow and by hand."""

import argparse
from pathlib import Path

from adhere import reporting
from adhere.cli import Job
from adhere.config import load_project
from adhere.costs.money import NO_PRICES, price_list
from adhere.errors import DataError


def aggregate(job: Job) -> None:
    """Write the workflow's summary."""
    reporting.aggregate(
        job.plan.results_root,
        expected_runs=job.plan.runs,
        prices=price_list(job.plan.project),
    )


def main() -> None:
    """Rebuild a summary by hand from what is there."""
    parser = argparse.ArgumentParser(
        prog="aggregate.py",
        description="Rebuild summary.md, summary.json and verdicts.parquet from everything that "
        "is scored.",
    )
    parser.add_argument(
        "--results-root",
        type=Path,
        default=Path("results"),
        metavar="FOLDER",
        help="folder with scores/ in it; the summary is written there (default: %(default)s)",
    )
    parser.add_argument(
        "--repeats",
        type=int,
        metavar="N",
        help='how many runs each row should have, to show "2 of 3" (default: not stated)',
    )
    arguments = parser.parse_args()
    if not arguments.results_root.is_dir():
        raise DataError(f"--results-root {arguments.results_root}: there is no such folder")
    # A results folder from elsewhere may be summed up where nothing is configured.
    known = Path("configs/global.yaml").exists()
    prices = price_list(load_project(Path())) if known else NO_PRICES
    repeats = arguments.repeats
    expected = None if repeats is None else lambda _model: repeats
    reporting.aggregate(arguments.results_root, expected_runs=expected, prices=prices)
    print(f"{arguments.results_root / 'summary.md'}: written")
