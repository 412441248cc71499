"""Predict by hand: one dataset, one output file, a configured model or any endpoint."""

import argparse
import json
from pathlib import Path

from adhere import data
from adhere.client import ChatClient
from adhere.config import GlobalConfig, ModelConfig, Project, load_project
from adhere.config.load import parse
from adhere.errors import ConfigError
from adhere.jobs.endpoints import model_endpoint, with_client
from adhere.names import limited
from adhere.plan import Cell
from adhere.prediction import Places, collect, make_task, mode_of, run_tasks
from adhere.progress import Progress


def main() -> None:
    """Predict a dataset by hand, with a configured model or with any endpoint."""
    args = _arguments()
    project, model = _project(args)
    cell = Cell(model, args.mode, args.run, limited("input", args.limit))
    dataset = data.load("input", args.input).first(args.limit)
    places = Places(args.output, args.output.with_suffix(".partial.jsonl"), None)
    if args.mode not in project.models[model].mode_names:
        known = ", ".join(project.models[model].mode_names)
        raise ConfigError(f"--mode {args.mode}: {model} has the modes {known}")
    task = make_task(cell, mode_of(project, model, args.mode), dataset, places)
    endpoint = model_endpoint(project, model, task.mode.budget or 32768)

    async def answer(client: ChatClient) -> None:
        with Progress(f"predict {model}", "items") as progress:
            await run_tasks([task], client, progress)

    with_client(endpoint, answer)
    report = collect(task, {"name": "api"})
    print(
        f"{args.output}: {report['items']} items, {report['failed']} failed or empty, "
        f"{report['pending']} of them worth another try"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="predict.py",
        description="Ask a model every item of a dataset. What is answered is journaled beside "
        "the output, so that the same command continues where it was stopped.",
    )
    parser.add_argument("--input", type=Path, required=True, help="dataset (JSON or JSONL)")
    parser.add_argument("--output", type=Path, required=True, help="prediction file to write")
    parser.add_argument("--model", help="a model of configs/ that is reached through an API")
    parser.add_argument("--mode", default="default", help="one of its modes (default: default)")
    parser.add_argument("--base-url", help="any endpoint instead, such as http://host:8000/v1")
    parser.add_argument("--model-id", help="the model's id at --base-url")
    parser.add_argument("--api-key-env", help="variable that holds the key for --base-url")
    parser.add_argument(
        "--sampling",
        type=json.loads,
        default={},
        help="the mode's fields for --base-url as JSON, such as '{\"temperature\": 0.7}'",
    )
    parser.add_argument("--run", type=int, default=1, help="number of the run (default: 1)")
    parser.add_argument("--limit", type=int, help="only the first so many items")
    parser.add_argument("--concurrency", type=int, default=64, help="requests in flight")
    args = parser.parse_args()
    if (args.base_url is None) == (args.model is None):
        parser.error("give either --model (of configs/) or --base-url with --model-id")
    if args.base_url is not None and args.model_id is None:
        parser.error("--base-url needs --model-id")
    return args


def _project(args: argparse.Namespace) -> tuple[Project, str]:
    """Return a project and the name of the model in it that the arguments mean."""
    if args.model is not None:
        project = load_project(Path())
        if args.model not in project.models:
            raise ConfigError(f"--model {args.model}: there is no configs/{args.model}.yaml")
        if project.models[args.model].is_local:
            raise ConfigError(
                f"--model {args.model}: is served by the workflow: run `snakemake predictions "
                f"--config models={args.model}`, or serve it yourself and give --base-url"
            )
        return project, str(args.model)
    content = {
        "api": {
            "base_url": args.base_url,
            "model": args.model_id,
            "api_key_env": args.api_key_env,
        },
        "modes": {args.mode: args.sampling},
        "concurrency": args.concurrency,
    }
    name = str(args.model_id).replace("/", "_")
    config = parse(
        GlobalConfig,
        {
            "datasets": {"input": str(args.input)},
            "default_datasets": ["input"],
            "default_judge": "-",
        },
        "command line",
    )
    model = parse(ModelConfig, content, "command line")
    return Project(Path(), config, {name: model}, {}), name
