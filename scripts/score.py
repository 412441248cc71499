"""Score one results.json under a named policy: CSR, ISR, breakdowns and coverage.

By hand:
    python scripts/score.py --input results.json[.gz] --output accuracy.json --policy adhere
"""

import argparse
import sys
from pathlib import Path

from adhere.errors import AdhereError
from adhere.scoring import POLICIES, score_file


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
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
    return parser.parse_args()


def main() -> None:
    """Score what Snakemake or the command line names."""
    if job := globals().get("snakemake"):
        score_file(
            Path(job.input[0]),
            job.params.policy,
            Path(job.output.accuracy),
            Path(job.output.verdicts),
        )
    else:
        arguments = parse_arguments()
        score_file(arguments.input, arguments.policy, arguments.output, arguments.verdicts)


if __name__ == "__main__":
    try:
        main()
    except AdhereError as error:
        sys.exit(f"score: {error}")
