"""Lower bounds of the makespan: what no order and no scheduler can go below."""

from collections.abc import Sequence

from adhere.scheduling.jobs import Job


def lower_bound(jobs: Sequence[Job], pool: int) -> float:
    """Return the best of the bounds that cost nothing, in seconds.

    The longest job; the area (GPU seconds by GPUs); and areas in which, for a threshold t up to
    half the pool, a job that leaves less than t GPUs counts as the whole pool and one that takes
    less than t as nothing: beside the first only the latter fit. They contain the bound by all
    jobs that take more than half the pool. (Dual feasible functions: Fekete and Schepers, 2001.)
    """
    longest = max((job.seconds for job in jobs), default=0.0)
    return max([longest, *(_area(jobs, pool, t) for t in range(pool // 2 + 1))])


def _area(jobs: Sequence[Job], pool: int, threshold: int) -> float:
    total = 0.0
    for job in jobs:
        if job.gpus > pool - threshold:
            total += pool * job.seconds
        elif job.gpus >= threshold:
            total += job.gpus * job.seconds
    return total / pool if pool else 0.0
