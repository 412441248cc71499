"""What is scheduled: jobs that each take some GPUs of one pool for some time."""

from collections.abc import Sequence
from dataclasses import dataclass

from adhere.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Job:
    """One model to be served: its GPUs all at once, for ``seconds``.

    ``source`` says in words where the duration comes from, ``items`` how many answers it is for.
    """

    name: str
    gpus: int
    seconds: float
    items: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """A job with its start and end in seconds, and the lanes (GPUs 0…pool-1) it takes."""

    job: Job
    start: float
    end: float
    lanes: tuple[int, ...]


def refuse_oversized(jobs: Sequence[Job], pool: int) -> None:
    """Raise ConfigError where a job takes more GPUs than the pool has."""
    for job in jobs:
        if job.gpus > pool:
            raise ConfigError(
                f"configs/{job.name}.yaml: it takes {job.gpus} GPUs, and the pool has {pool}: "
                "give it fewer, or give `gpus` in configs/global.yaml more"
            )
