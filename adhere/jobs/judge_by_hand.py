"""Judge by hand: one prediction file, one results file."""

import argparse
from pathlib import Path

from adhere import data
from adhere.config import load_project
from adhere.errors import ConfigError, DataError
from adhere.jobs.judge import Judging, run_judging
from adhere.jsonio import write_json
from adhere.judging import Judge
from adhere.judging.stage import align


def main() -> None:
    """Judge a prediction file by hand."""
    args = _arguments()
    predictions = data.load_rows(args.input)
    reference = data.load("reference", args.reference).rows if args.reference else None
    rows = align(predictions, reference)
    for index, row in enumerate(rows):
        for problem in data.check(row):
            raise DataError(f"{args.input}: {data.label(index, row)}: {problem}")
    project = load_project(Path())
    asks = data.asks_judge(rows)
    name = args.judge or project.config.default_judge
    if asks and name not in project.judges:
        raise ConfigError(f"--judge {name}: there is no judge_configs/{name}.yaml")
    judge = Judge(name, project.judges[name]) if asks else None
    folder = args.output.parent
    judging = Judging(
        project,
        judge,
        rows,
        folder / f"{args.output.stem}.partial.jsonl",
        f"judge {args.input.name}",
        folder / f"{args.output.stem}.server.log",
    )
    run = run_judging(judging, {})
    write_json(args.output, run.rows)
    print(f"{args.output}: " + ", ".join(f"{n} {what}" for what, n in run.counts.most_common()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="judge.py",
        description="Judge a prediction file. Replies are journaled beside the output, so that "
        "the same command continues where it was stopped.",
    )
    parser.add_argument("--input", type=Path, required=True, help="prediction file")
    parser.add_argument("--output", type=Path, required=True, help="results file to write")
    parser.add_argument(
        "--reference",
        type=Path,
        help="dataset to take the constraints from (default: those in the prediction file)",
    )
    parser.add_argument(
        "--judge",
        help="a judge of judge_configs/ (default: default_judge of configs/global.yaml); not "
        "needed where no constraint asks one",
    )
    return parser.parse_args()
