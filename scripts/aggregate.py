"""Rebuild summary.md, summary.json and verdicts.parquet from everything that is scored.

By hand:
    python scripts/aggregate.py --results-root results --repeats 3
"""

import argparse
import sys
from pathlib import Path

from adhere.errors import AdhereError
from adhere.reporting import aggregate


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
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
    return parser.parse_args()


def main() -> None:
    """Aggregate what Snakemake or the command line names."""
    if job := globals().get("snakemake"):
        aggregate(Path(job.params.results_root), expected_runs=job.params.repeats)
    else:
        arguments = parse_arguments()
        aggregate(arguments.results_root, expected_runs=arguments.repeats)


if __name__ == "__main__":
    try:
        main()
    except AdhereError as error:
        sys.exit(f"aggregate: {error}")
