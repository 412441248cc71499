"""Judge by hand: one prediction file, one results file."""

import argparse
from pathlib import Path

from adhere import data
from adhere.config import load_project
from adhere.data import Row
from adhere.errors import ConfigError, DataError
from adhere.jobs.judge import Judging, joined, run_judging
from adhere.jsonio import write_json
from adhere.judging import Judge
from adhere.prediction import read_predictions
from adhere.prediction.answer import without_thinking


def main() -> None:
    """Judge a prediction file by hand."""
    args = _arguments()
    if args.output.is_dir():
        raise DataError(f"--output {args.output}: is a folder: name a file")
    rows = _rows(args.input, args.reference)
    project = load_project(Path())
    asks = data.asks_judge(rows)
    name = args.judge or project.config.default_judge
    if asks and name not in project.judges:
        known = ", ".join(project.judges) or "none"
        raise ConfigError(
            f"--judge {name}: there is no judge_configs/{name}.yaml (there are: {known})"
        )
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


def _rows(path: Path, reference: Path | None) -> list[Row]:
    """Read a prediction file, with the constraints of ``reference`` where one is given."""
    predictions = read_predictions(path)
    dataset = data.load("reference", reference).rows if reference else None
    rows = joined(path, predictions, dataset)
    for index, row in enumerate(rows):
        for problem in data.check(row):
            raise DataError(f"{path}: {data.label(index, row)}: {problem}")
    return [without_thinking(row) for row in rows]


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
