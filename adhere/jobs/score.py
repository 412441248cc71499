"""Score: one results file under a named policy, for the workflow and by hand."""

import argparse
from pathlib import Path

from adhere.cli import Job
from adhere.scoring import POLICIES, score_file


def score(job: Job) -> None:
    """Score one results file of the workflow."""
    score_file(
        Path(job.input["results"]),
        job.params["policy"],
        Path(job.output["accuracy"]),
        Path(job.output["verdicts"]),
        Path(job.output["table"]),
    )


def main() -> None:
    """Score a results file by hand."""
    parser = argparse.ArgumentParser(
        prog="score.py", description="Score one results file: CSR, ISR, breakdowns and coverage."
    )
    parser.add_argument(
        "--input",
        type=Path,
        required=True,
        metavar="RESULTS",
        help="results.json as judge writes it or as AgentIF publishes it, plain or gzip; "
        "a judge_run.json beside it supplies names and checksums",
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="ACCURACY", help="accuracy.json to write"
    )
    parser.add_argument(
        "--policy",
        default="adhere",
        metavar="NAME",
        help=f"what empty answers and missing verdicts count as: {', '.join(POLICIES)} "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--verdicts", type=Path, metavar="PARQUET", help="also write one row per constraint"
    )
    parser.add_argument("--items", type=Path, metavar="CSV", help="also write one row per item")
    arguments = parser.parse_args()
    accuracy = score_file(
        arguments.input, arguments.policy, arguments.output, arguments.verdicts, arguments.items
    )
    figures = (f"{name} {_percent(accuracy[name]['rate'])}" for name in ("CSR", "ISR"))
    print(f"{arguments.output}: {', '.join(figures)} under policy {arguments.policy}")


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{100 * rate:.2f} %"
