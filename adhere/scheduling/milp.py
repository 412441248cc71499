"""The ideal schedule as a small mixed-integer program, solved by CBC through pulp.

Time is cut into slots and every duration rounded down to whole slots: a job then
takes one binary variable for each slot it may start in, and in each slot the running jobs fit into
the pool (the formulation by time index of Pritsker, Watters and Wolfe, 1969).
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import pulp

from adhere.scheduling.jobs import Job

VARIABLES = 240  # about; with more, CBC does not end in time
LARGEST = 10  # jobs
LIMIT_S = 1.5


@dataclass(frozen=True, slots=True)
class Ideal:
    """Indices of the jobs by their ideal start, and a lower bound of the makespan in seconds."""

    order: tuple[int, ...]
    bound: float


def ideal(jobs: Sequence[Job], pool: int, reached: float, limit_s: float = LIMIT_S) -> Ideal | None:
    """Solve for the least makespan; ``reached`` is one (in seconds) that is known to be possible.

    Returns None without a solver, for too many jobs, and where the optimum is not proven within
    the time limit: a half-solved answer would depend on how busy the machine is.
    """
    # What pulp found on this machine: CBC of its own, or another that is installed.
    solver = deepcopy(pulp.LpSolverDefault)
    if not jobs or len(jobs) > LARGEST or solver is None:
        return None
    solver.msg, solver.timeLimit = False, limit_s
    solver.optionsDict["threads"] = 1
    slots = VARIABLES // len(jobs)
    slot = reached / slots
    # Rounded down, so that the optimum is a bound of the real one; a hair more than exact slots
    # must not lose one.
    lengths = [int(job.seconds / slot + 1e-9) for job in jobs]
    program, begins, last = _program(jobs, lengths, pool, slots)
    try:
        program.solve(solver)
    except pulp.PulpSolverError:
        return None
    if program.sol_status != pulp.LpSolutionOptimal:
        return None
    start = [sum(t * x.value() for t, x in enumerate(xs)) for xs in begins]
    order = sorted(range(len(jobs)), key=lambda j: (start[j], -jobs[j].gpus, -jobs[j].seconds, j))
    return Ideal(tuple(order), slot * round(last.value()))


def _program(
    jobs: Sequence[Job], lengths: Sequence[int], pool: int, slots: int
) -> tuple[pulp.LpProblem, list[list[pulp.LpVariable]], pulp.LpVariable]:
    program = pulp.LpProblem("schedule", pulp.LpMinimize)
    last = program.add_variable("last", lowBound=0)
    program += last
    begins = [
        [program.add_variable(f"x{j}_{t}", cat=pulp.LpBinary) for t in range(slots - length + 1)]
        for j, length in enumerate(lengths)
    ]
    for xs, length in zip(begins, lengths, strict=True):
        program += pulp.lpSum(xs) == 1
        program += pulp.lpSum((t + length) * x for t, x in enumerate(xs)) <= last
    for slot in range(slots):
        program += (
            pulp.lpSum(
                job.gpus * x
                for job, xs, length in zip(jobs, begins, lengths, strict=True)
                for x in xs[max(0, slot - length + 1) : slot + 1]
            )
            <= pool
        )
    return program, begins, last
