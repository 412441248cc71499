"""Archive: keep failures for people to sort, and make items of them."""

import argparse
from collections import Counter
from pathlib import Path

import yaml

from adhere import jsonio
from adhere.cli import Job
from adhere.errors import DataError
from adhere.gate import archive as failures
from adhere.gate.review import today
from adhere.instruction_set import read_set, to_rows
from adhere.jobs.selected import add_selection, evaluations, selection
from adhere.plan import Evaluation, Plan


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are read."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def archive(job: Job) -> None:
    """Add the failures of what the workflow's call selects."""
    _add(job.plan, evaluations(job.params["evaluated"]), Path(job.plan.config.archive))


def main() -> None:
    """Add failures by hand, or write a set of those that are there."""
    options = _arguments()
    plan, chosen = selection(options)
    path = options.archive or Path(plan.config.archive)
    if options.to_set is None:
        _add(plan, chosen, path)
    else:
        _to_set(path, options)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="archive.py",
        description="Add what failed to the archive of failures, one line each. People set `cause` "
        f"there ({', '.join(failures.CAUSES)}) and write a `note`. With --to-set nothing is added, "
        "and failures become an instruction set.",
    )
    add_selection(parser)
    parser.add_argument("--archive", type=Path, metavar="JSONL", help="default: as configured")
    parser.add_argument("--to-set", type=Path, metavar="YAML", help="a new file to write")
    parser.add_argument(
        "--cause",
        choices=failures.CAUSES,
        nargs="+",
        default=[failures.UNLABELLED, failures.MODEL],
        help="only these, with --to-set (default: %(default)s)",
    )
    parser.add_argument("--kind", nargs="+", help="only these, with --to-set (default: all)")
    return parser.parse_args()


def _add(plan: Plan, chosen: list[Evaluation], path: Path) -> None:
    if not chosen:
        raise DataError(
            f"{plan.results_root}: nothing that is selected is scored: run `snakemake` first"
        )
    added = failures.add(path, plan.results_root, chosen, today().isoformat())
    entries = failures.load(path).values()
    causes = Counter(str(entry["cause"]) for entry in entries)
    print(f"{path}: {added.new} new failures, {added.seen_again} seen again; {len(entries)} in all")
    print(f"causes: {', '.join(f'{cause} {n}' for cause, n in causes.most_common()) or 'none'}")
    if added.lost:
        print(f"left out: {added.lost} constraints of answers that were empty or failed")


def _to_set(path: Path, options: argparse.Namespace) -> None:
    if options.to_set.exists():
        raise DataError(f"--to-set {options.to_set}: exists already: name a new file")
    if options.to_set.suffix not in (".yaml", ".yml"):
        raise DataError(f"--to-set {options.to_set}: must end in .yaml")
    chosen = [
        entry
        for entry in failures.load(path).values()
        if entry["cause"] in options.cause and (not options.kind or entry["kind"] in options.kind)
    ]
    content = failures.to_set(chosen, path)
    text = yaml.dump(content, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=100)
    jsonio.write_text(options.to_set, text)
    rows = to_rows(read_set(options.to_set))
    constraints = sum(len(row["constraints"]) for row in rows)
    print(f"{options.to_set}: {len(rows)} items with {constraints} constraints")
    print("name it under `datasets` in configs/global.yaml, or move its items into a set")
