"""What Snakemake makes of an order: its greedy scheduler, replayed without running anything.

Whenever a job ends, Snakemake 9 goes through the jobs that wait, by priority, and starts each one
that fits into what is free; one that does not fit is passed over, and nothing is held back for it
(``snakemake/scheduling/greedy.py``; ``scheduler: greedy`` in ``profiles/default``). So what an
order is worth cannot be read off an ideal schedule; it must be played through. Jobs that end at
the same time are taken one by one, since in reality they never do: the second one's GPUs are not
there yet when the first one's are given away.
"""

from collections.abc import Sequence
from heapq import heappop, heappush

from adhere.scheduling.jobs import Job, Placement


def starts(
    order: Sequence[int], gpus: Sequence[int], seconds: Sequence[float], pool: int
) -> dict[int, float]:
    """Return when each job starts, in the order of starting.

    ``order`` are indices into ``gpus`` and ``seconds``, by falling priority; every job must fit
    into the pool.
    """
    waiting, free, now = list(order), pool, 0.0
    started: dict[int, float] = {}
    running: list[tuple[float, int, int]] = []
    while True:
        passed_over = []
        for index in waiting:
            if gpus[index] <= free:
                free -= gpus[index]
                heappush(running, (now + seconds[index], len(started), index))
                started[index] = now
            else:
                passed_over.append(index)
        waiting = passed_over
        if not waiting:
            return started
        now, _, ended = heappop(running)
        free += gpus[ended]


def makespan(
    order: Sequence[int], gpus: Sequence[int], seconds: Sequence[float], pool: int
) -> float:
    """Return when the last job ends."""
    started = starts(order, gpus, seconds, pool)
    return max((start + seconds[index] for index, start in started.items()), default=0.0)


def play(jobs: Sequence[Job], pool: int) -> tuple[Placement, ...]:
    """Return what becomes of ``jobs`` by falling priority, in the order of starting."""
    started = starts(range(len(jobs)), [j.gpus for j in jobs], [j.seconds for j in jobs], pool)
    busy_until = [0.0] * pool
    placements = []
    for index, start in started.items():
        job = jobs[index]
        free = [lane for lane, end in enumerate(busy_until) if end <= start]
        lanes = tuple(free[: job.gpus])
        for lane in lanes:
            busy_until[lane] = start + job.seconds
        placements.append(Placement(job, start, start + job.seconds, lanes))
    return tuple(placements)
