"""Plan: the order in which local models will be served, how long it takes, how good it is."""

import argparse
from pathlib import Path
from typing import Any

from adhere import cli
from adhere.gpus import Device, Pool, Sharing
from adhere.jsonio import dumps
from adhere.scheduling import Job, Schedule, planned
from adhere.scheduling.report import Beside, as_json, describe
from adhere.workflow import make_view


def show(job: cli.Job) -> None:
    """Print the schedule of what is selected and unfinished."""
    print("\n" + text(job.params["schedule"]))


def main() -> None:
    """Print it by hand."""
    parser = argparse.ArgumentParser(
        prog="plan.py",
        description="Show in which order local models will be served, and how long that takes; "
        "`snakemake plan --config …` does so for any selection.",
    )
    parser.add_argument("--models", metavar="A,B", help="default: all that are enabled")
    parser.add_argument("--gpus", type=int, metavar="N", help="as if there were so many")
    parser.add_argument("--json", action="store_true", help="for programs; times in seconds")
    options = parser.parse_args()
    selection = {} if options.models is None else {"models": options.models}
    made = make_view(Path(), selection, ("plan",))
    if options.gpus is None:
        made.gpus.share(None)
    else:
        devices = tuple(Device(str(index)) for index in range(options.gpus))
        made.gpus.sharing = Sharing(Pool(devices, "--gpus"))
    content = made.serve.schedule()
    print(
        dumps(as_json(_schedule(content)), indent=True).decode() if options.json else text(content)
    )


def text(content: dict[str, Any]) -> str:
    """Return the schedule as people read it; ``content`` is that of ``plan("serve.schedule")``."""
    beside = Beside(content["apis"], content["judges"])
    known_pool = content["pool"] is not None
    return describe(_schedule(content), known_pool, beside, content["devices"])


def _schedule(content: dict[str, Any]) -> Schedule:
    return planned([Job(**job) for job in content["jobs"]], content["pool"])
