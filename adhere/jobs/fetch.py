"""Fetch: put datasets where configs/global.yaml names them, from their public homes or a copy."""

import argparse
from pathlib import Path

from adhere.cli import Job
from adhere.config import Project, load_project
from adhere.config.problems import nearest
from adhere.errors import ConfigError
from adhere.fetch import Wanted, fetch
from adhere.sources import SOURCES, Known, Source, load_sources


def fetch_selected(job: Job) -> None:
    """Fetch every selected dataset that has a public home."""
    plan = job.plan
    sources = load_sources(plan.project.root)
    found = [name for name in plan.datasets if name in sources]
    if not found:
        raise ConfigError(
            f"{SOURCES}: names no source for {', '.join(plan.datasets)}: put your own datasets in "
            "their places yourself, or name another one with --config datasets=… (there are: "
            f"{', '.join(sources) or 'none'})"
        )
    for name in found:
        wanted = _wanted(plan.project, name, sources, None, accept=plan.accept_dataset)
        print("\n".join(fetch(wanted)))


def main() -> None:
    """Fetch one dataset by hand."""
    arguments = _arguments()
    project = load_project(Path())
    sources = load_sources(project.root)
    wanted = _wanted(project, arguments.dataset, sources, arguments.origin, accept=arguments.accept)
    print("\n".join(fetch(wanted)))


def _wanted(
    project: Project, name: str, sources: dict[str, Source], origin: str | None, *, accept: bool
) -> Wanted:
    datasets = project.config.datasets
    if name not in datasets:
        raise ConfigError(
            f"--dataset {name}: not in `datasets` of configs/global.yaml"
            f"{nearest(name, list(datasets))}; there are: {', '.join(datasets)}"
        )
    source = sources.get(name)
    if source is None and origin is None:
        raise ConfigError(
            f"--dataset {name}: {SOURCES} names no source for it (there are: "
            f"{', '.join(sources) or 'none'}): name a file or an address with --from"
        )
    path = project.root / datasets[name]
    return Wanted(
        name,
        path,
        [origin] if origin is not None else source.urls if source else [],
        Known(name, path, source) if source else None,
        accept=accept,
        retry=project.config.retry,
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="fetch.py",
        description="Put a dataset where configs/global.yaml names it. The file that is there is "
        f"replaced only by a valid one; what it must be says {SOURCES}.",
    )
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="FILE_OR_URL",
        help=f"a copy, or another address (default: the addresses in {SOURCES}); JSON or JSONL, "
        "plain or gzip",
    )
    parser.add_argument(
        "--dataset",
        default="eval",
        metavar="NAME",
        help="name of the dataset in configs/global.yaml (default: %(default)s)",
    )
    parser.add_argument(
        "--accept",
        action="store_true",
        help="take a file whose checksum matches no known version; it is recorded",
    )
    return parser.parse_args()
