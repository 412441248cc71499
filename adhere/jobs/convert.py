"""Convert: datasets as NeMo Gym's task files, and back."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from adhere import data
from adhere.cli import Job
from adhere.data import Row
from adhere.errors import DataError
from adhere.gym_data import from_gym, is_gym, to_gym
from adhere.jsonio import dumps, write_bytes, write_json
from adhere.sources import Datasets


def gym_data(job: Job) -> None:
    """Write the selected datasets of the workflow as Gym's task files."""
    plan = job.plan
    # Any version may be converted; one that is missing is told where to get it.
    datasets = Datasets(plan.project.root, accept=True)
    for name in plan.datasets:
        dataset = datasets.load(name, plan.project.root / plan.config.datasets[name])
        path = plan.results_root / "gym" / f"{name}.jsonl"
        _write(path, _converted(dataset.first(plan.limit).rows, to_gym, str(dataset.path)))


def main() -> None:
    """Convert one file by hand."""
    args = _arguments()
    rows = data.load_rows(args.input, unique_keys=True)
    kinds = {is_gym(row) for row in rows}
    if len(kinds) > 1:
        raise DataError(f"{args.input}: holds rows of both forms: convert one form at a time")
    convert = from_gym if kinds == {True} else to_gym
    converted = _converted(rows, convert, str(args.input))
    if convert is from_gym:
        # What is written is a dataset, and is refused as one.
        data.as_dataset("converted", args.output, converted, str(args.input))
    _write(args.output, converted)


def _converted(rows: Sequence[Row], convert: Callable[[Row], Row], shown: str) -> list[Row]:
    converted = []
    for index, row in enumerate(rows):
        try:
            converted.append(convert(row))
        except DataError as error:
            raise DataError(f"{shown}: {data.label(index, row)}: {error}") from None
    return converted


def _write(path: Path, rows: Sequence[Row]) -> None:
    """Write rows in the form that the name asks for: JSONL, or one JSON list."""
    if path.suffix == ".jsonl":
        write_bytes(path, b"".join(dumps(row) + b"\n" for row in rows))
    else:
        write_json(path, list(rows))
    print(f"{path}: {len(rows)} rows")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="convert.py",
        description="Convert a dataset in AgentIF's form to NeMo Gym's task file, or such a file "
        "back; which one the input is shows in its rows. Nothing is lost but the constraints' "
        "`score` keys.",
    )
    parser.add_argument("--input", type=Path, required=True, help="JSON or JSONL, plain or gzip")
    parser.add_argument(
        "--output", type=Path, required=True, help="name ending in .jsonl (Gym's form) or .json"
    )
    return parser.parse_args()
