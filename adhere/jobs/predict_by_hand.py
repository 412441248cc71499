"""Predict by hand: one dataset, one output file, a configured model or any endpoint."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from adhere import data
from adhere.client import ChatClient, Endpoint
from adhere.config import GlobalConfig, ModelConfig, Project, load_project
from adhere.config.load import parse
from adhere.errors import ConfigError, DataError, EndpointError
from adhere.jobs.endpoints import UNSENT_BUDGET, model_endpoint, with_client
from adhere.jobs.predict import batches_file
from adhere.jsonio import loads
from adhere.names import check_mode_name
from adhere.plan import Cell
from adhere.prediction import (
    Places,
    Task,
    asks_model,
    collect,
    make_task,
    mode_of,
    run_tasks,
    with_recordings,
)
from adhere.progress import Progress

_COMMAND_LINE = "command line"


def main() -> None:
    """Predict a dataset by hand, with a configured model or with any endpoint."""
    args = _arguments()
    project, model = _configured(args) if args.model is not None else _given(args)
    task = _task(args, project, model)

    async def answer(client: ChatClient) -> None:
        with Progress(f"predict {model}", "items") as progress:
            await run_tasks([task], [client], progress)

    if asks_model(task.dataset.rows):
        batches = batches_file(project, task)
        with_client(_endpoint(args, project, task), answer, batches=batches)
    report = collect(task, {"name": "api"})
    print(f"{args.output}: {report['items']} items, {report['failed']} failed or empty")
    if report["pending"]:
        raise EndpointError(
            f"{args.output}: {report['pending']} of {report['items']} items failed for a reason "
            f"that may pass ({', '.join(report['errors'])}); everything else is written: run the "
            "same command again to ask just those"
        )


def _task(args: argparse.Namespace, project: Project, model: str) -> Task:
    """Load the dataset and prepare what is to be asked. Raises ConfigError or DataError."""
    if args.output.is_dir():
        raise DataError(f"--output {args.output}: is a folder: name a file")
    if args.output.resolve() == args.input.resolve():
        raise DataError(f"--output {args.output}: is the dataset itself: name another file")
    known = project.models[model].mode_names
    if args.mode not in known:
        raise ConfigError(f"--mode {args.mode}: {model} has the modes {', '.join(known)}")
    dataset = data.load("input", args.input)
    cell = Cell(model, args.mode, args.run, dataset.named(args.limit))
    dataset = with_recordings(project, cell, dataset.first(args.limit))
    places = Places(args.output, args.output.with_suffix(".partial.jsonl"), None)
    return make_task(cell, mode_of(project, model, args.mode), dataset, places)


def _endpoint(args: argparse.Namespace, project: Project, task: Task) -> Endpoint:
    shown = _COMMAND_LINE if args.model is None else None
    endpoint = model_endpoint(project, task.cell.model, task.mode.budget or UNSENT_BUDGET, shown)
    return endpoint if args.concurrency is None else replace(endpoint, concurrency=args.concurrency)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="predict.py",
        description="Ask a model every item of a dataset. What is answered is journaled beside "
        "the output, so that the same command continues where it was stopped.",
    )
    parser.add_argument("--input", type=Path, required=True, help="dataset (JSON or JSONL)")
    parser.add_argument("--output", type=Path, required=True, help="prediction file to write")
    parser.add_argument("--model", help="a model of configs/ behind an API, or recorded")
    parser.add_argument("--mode", default="default", help="one of its modes (default: default)")
    parser.add_argument("--base-url", help="any endpoint instead, such as http://host:8000/v1")
    parser.add_argument("--model-id", help="the model's id at --base-url")
    parser.add_argument("--api-key-env", help="variable that holds the key for --base-url")
    parser.add_argument(
        "--sampling",
        type=_json,
        help="the mode's fields for --base-url as JSON, such as '{\"temperature\": 0.7}'",
    )
    parser.add_argument("--run", type=_count, default=1, help="number of the run (default: 1)")
    parser.add_argument("--limit", type=_count, help="only the first so many items")
    parser.add_argument(
        "--concurrency", type=_count, help="requests in flight (default: the configured number)"
    )
    args = parser.parse_args()
    if (args.base_url is None) == (args.model is None):
        parser.error("give either --model (of configs/) or --base-url with --model-id")
    if args.base_url is not None and args.model_id is None:
        parser.error("--base-url needs --model-id")
    for option in ("model_id", "api_key_env", "sampling"):
        if args.model is not None and getattr(args, option) is not None:
            parser.error(f"--{option.replace('_', '-')} belongs to --base-url, not to --model")
    return args


def _json(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"not valid JSON: {error}") from None


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:10]) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, found {text!r}")
    return int(text)


def _configured(args: argparse.Namespace) -> tuple[Project, str]:
    """Return the project in this folder and the name of the model in it."""
    project = load_project(Path())
    if args.model not in project.models:
        known = ", ".join(project.models) or "none"
        raise ConfigError(
            f"--model {args.model}: there is no configs/{args.model}.yaml (there are: {known})"
        )
    if project.models[args.model].is_local:
        raise ConfigError(
            f"--model {args.model}: is served by the workflow: run `snakemake predictions "
            f"--config models={args.model}`, or serve it yourself and give --base-url"
        )
    return project, str(args.model)


def _given(args: argparse.Namespace) -> tuple[Project, str]:
    """Return a project that holds nothing but the model of the command line."""
    check_mode_name(args.mode, "--mode")
    content = {
        "api": {
            "base_url": args.base_url,
            "model": args.model_id,
            "api_key_env": args.api_key_env,
        },
        "modes": {args.mode: args.sampling},
    }
    config = {
        "datasets": {"input": str(args.input)},
        "default_datasets": ["input"],
        "default_judge": "-",
    }
    name = str(args.model_id).replace("/", "_")
    models = {name: parse(ModelConfig, content, _COMMAND_LINE)}
    return Project(Path(), parse(GlobalConfig, config, _COMMAND_LINE), models, {}), name
