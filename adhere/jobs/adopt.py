"""Adopt: results that AgentIF's scripts wrote become runs of this project, by hand."""

import argparse
from pathlib import Path

from adhere.adopt import Outcome, Terms, adopt
from adhere.config import load_project
from adhere.errors import DataError
from adhere.names import check_mode_name

_WORDS = {"taken": "taken", "there": "there already", "left": "left"}


def main() -> None:
    """Take over a results tree and say what was taken, what was left and why."""
    arguments = _arguments()
    check_mode_name(arguments.mode, "--mode")
    if arguments.run < 1:
        raise DataError(f"--run {arguments.run}: must be a whole number from 1")
    project = load_project(Path())
    judges = {*project.judges, *(judge.model for judge in project.judges.values())}
    terms = Terms(
        results_root=arguments.results_root or Path(project.config.results_root),
        mode=arguments.mode,
        run=arguments.run,
        dataset=arguments.dataset,
        judge=arguments.judge,
        judges=frozenset(judges),
    )
    outcomes = adopt(arguments.tree, terms)
    for outcome in outcomes:
        print(_line(outcome))
    _conclude(outcomes, arguments.tree)


def _line(outcome: Outcome) -> str:
    arrow = ": " if outcome.state == "left" else " → "
    return f"{_WORDS[outcome.state]}: {outcome.source}{arrow}{outcome.text}"


def _conclude(outcomes: list[Outcome], tree: Path) -> None:
    """Say how to go on. Raises DataError where nothing of the tree can be used."""
    states = [outcome.state for outcome in outcomes]
    if not {"taken", "there"} & set(states):
        raise DataError(f"--from {tree}: nothing was taken over, for the reasons above")
    print(
        f"{states.count('taken')} taken, {states.count('there')} there already, "
        f"{states.count('left')} left; `snakemake scores` makes them rows of the summary"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="adopt.py",
        description="Copy the results of AgentIF's own scripts, "
        "scores/<model>_<judge>/<dataset>/results.json, to where this workflow has its own. "
        "Nothing is moved, nothing overwritten.",
    )
    parser.add_argument(
        "--from",
        dest="tree",
        type=Path,
        required=True,
        metavar="TREE",
        help="folder with scores/ in it (AgentIF's results/), or one of this workflow's own",
    )
    parser.add_argument(
        "--results-root",
        type=Path,
        metavar="FOLDER",
        help="where to (default: results_root of configs/global.yaml)",
    )
    parser.add_argument(
        "--mode",
        default="published",
        help="mode under which they are reported (default: %(default)s)",
    )
    parser.add_argument(
        "--run",
        type=int,
        default=1,
        metavar="N",
        help="which run they are; 2 for a second tree of the same models (default: %(default)s)",
    )
    parser.add_argument(
        "--dataset",
        default="eval",
        metavar="NAME",
        help="dataset whose results are taken (default: %(default)s)",
    )
    parser.add_argument(
        "--judge",
        metavar="NAME",
        help="the judge in <model>_<judge>, where the two cannot be told apart otherwise",
    )
    return parser.parse_args()
