"""The order in which models are served: the best that Snakemake's scheduler can make of one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from statistics import fmean, median

from adhere.scheduling.bounds import lower_bound
from adhere.scheduling.jobs import Job, Placement, refuse_oversized
from adhere.scheduling.milp import ideal
from adhere.scheduling.simulate import makespan, play

Order = tuple[int, ...]

# Durations are estimates: an order is judged by its mean over cases in which each job takes
# between 1/SPREAD and SPREAD times as long as estimated, the same cases for every order.
CASES = 6
SPREAD = 1.3
# Job starts simulated at most from one seed, in each case: a bound of the work, not of the time,
# so that a slow machine finds the same order.
PATIENCE = 15_000
CLOSE = 1.005  # a makespan within this factor of the lower bound needs no program
RANDOM_ORDERS = 50
_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Schedule:
    """Jobs by falling priority, what becomes of them, and what that compares with, in seconds.

    ``greedy`` is what the best of the usual orders reaches (most GPUs, longest or largest first);
    ``bound`` what nothing can go below, ``solved`` whether it is the program's.
    """

    jobs: tuple[Job, ...]
    pool: int
    placements: tuple[Placement, ...]
    greedy: float
    bound: float
    solved: bool

    @property
    def makespan(self) -> float:
        """When the last job ends."""
        return max((placement.end for placement in self.placements), default=0.0)


def schedule(jobs: Sequence[Job], pool: int) -> Schedule:
    """Choose the order of ``jobs`` under a pool of GPUs.

    The same jobs give the same order, however they are sorted. Never worse than the usual orders
    where durations are as estimated. Raises ConfigError for a job larger than the pool.
    """
    refuse_oversized(jobs, pool)
    jobs = sorted(jobs, key=lambda job: job.name)
    search = _Search(jobs, pool)
    seeds = search.usual()
    greedy = min(seeds, key=search.makespan)
    reached, bound = search.makespan(greedy), lower_bound(jobs, pool)
    best = ideal(jobs, pool, reached) if reached > bound * CLOSE else None
    if best is not None:
        seeds.append(best.order)
    found = [greedy, *(search.improve(seed, reached) for seed in dict.fromkeys(seeds))]
    order = min(found, key=lambda order: search.cost(order, reached))
    ordered = tuple(jobs[index] for index in order)
    solved = best is not None and best.bound > bound
    return Schedule(
        ordered,
        pool,
        play(ordered, pool),
        greedy=reached,
        bound=best.bound if best is not None and solved else bound,
        solved=solved,
    )


def planned(jobs: Sequence[Job], pool: int | None) -> Schedule:
    """Schedule jobs on a pool, or on as many GPUs as they want where none is known."""
    return schedule(jobs, sum(job.gpus for job in jobs) if pool is None else pool)


def unordered(jobs: Sequence[Job], pool: int) -> tuple[float, float]:
    """Return the median and the worst makespan, in seconds, of jobs without priorities.

    Snakemake then takes them as they come out of a set, so random orders stand for its own.
    """
    search = _Search(sorted(jobs, key=lambda job: job.name), pool)
    random, order = Random(0), list(range(len(jobs)))
    spans = []
    for _ in range(RANDOM_ORDERS):
        random.shuffle(order)
        spans.append(search.makespan(tuple(order)))
    return median(spans), max(spans)


class _Search:
    """Orders of one set of jobs, and what they are worth."""

    def __init__(self, jobs: Sequence[Job], pool: int) -> None:
        self._pool = pool
        self._gpus = [job.gpus for job in jobs]
        self._seconds = [job.seconds for job in jobs]
        self._names = [job.name for job in jobs]

    @cached_property
    def _cases(self) -> list[list[float]]:
        """Durations in each case; a job's are its own, whatever the others are."""
        factors = [
            [SPREAD ** Random(f"{case} {name}").uniform(-1, 1) for name in self._names]
            for case in range(CASES)
        ]
        return [
            [s * factor for s, factor in zip(self._seconds, row, strict=True)] for row in factors
        ]

    def usual(self) -> list[Order]:
        """Return the usual orders: most GPUs, longest, and largest first."""
        gpus, seconds = self._gpus, self._seconds
        keys = (
            lambda j: (-gpus[j], -seconds[j]),
            lambda j: (-seconds[j], -gpus[j]),
            lambda j: (-gpus[j] * seconds[j], -seconds[j]),
        )
        return [tuple(sorted(range(len(gpus)), key=key)) for key in keys]

    def makespan(self, order: Order) -> float:
        """Return when the last job ends where durations are as estimated."""
        return makespan(order, self._gpus, self._seconds, self._pool)

    def cost(self, order: Order, reached: float) -> tuple[float, float]:
        """Return what an order loses against ``reached``, and its mean makespan over the cases.

        Both in parts of ``reached`` and the latter rounded, so that no trifle decides.
        """
        scale = reached or 1.0  # nothing to do takes no time
        loss = (self.makespan(order) - reached) / scale
        cases = fmean(makespan(order, self._gpus, case, self._pool) for case in self._cases)
        return (loss if loss > _EPSILON else 0.0, round(cases / scale, 4))

    def improve(self, seed: Order, reached: float) -> Order:
        """Move single jobs of an order for as long as that helps."""
        best, cost, left = seed, self.cost(seed, reached), PATIENCE
        improved = True
        while improved and left > 0:
            improved = False
            for order in _moved(best):
                left -= len(order)
                if left <= 0:
                    break
                other = self.cost(order, reached)
                if other < cost:
                    best, cost, improved = order, other, True
                    break
        return best


def _moved(order: Order) -> Iterator[Order]:
    """Yield every order in which one job stands elsewhere."""
    for source in range(len(order)):
        rest = order[:source] + order[source + 1 :]
        for target in range(len(order)):
            if target != source:
                yield (*rest[:target], order[source], *rest[target:])
