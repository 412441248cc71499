"""Trajectories of agents: one internal form, importers for many formats, rules over them.

::

    trajectory = load(Path("run.json"))[0]                    # DataError names file and place
    check = TRAJECTORY.load("must_call_tool", {"tool": "search"})
    outcome = judge(check, trajectory)                        # its verdict, reason and steps
    step_deviation(trajectory, [outcome]).rate                # broken steps / all steps
    render(trajectory)                                        # a text for a judge

Text rules see ``trajectory.final_answer``.
"""

# The modules register their rules when they are imported.
from adhere.trajectories import rules_calls, rules_claims, rules_order  # noqa: F401
from adhere.trajectories.export import to_openai
from adhere.trajectories.form import (
    Action,
    Message,
    Observation,
    Step,
    Tool,
    Trajectory,
    results,
)
from adhere.trajectories.loading import FORMATS, load, load_one, text_of
from adhere.trajectories.outcome import (
    StepDeviation,
    StepOutcome,
    followed,
    judge,
    not_applicable,
    step_deviation,
    violated,
)
from adhere.trajectories.registry import TRAJECTORY
from adhere.trajectories.rendering import render

__all__ = [
    "FORMATS",
    "TRAJECTORY",
    "Action",
    "Message",
    "Observation",
    "Step",
    "StepDeviation",
    "StepOutcome",
    "Tool",
    "Trajectory",
    "followed",
    "judge",
    "load",
    "load_one",
    "not_applicable",
    "render",
    "results",
    "step_deviation",
    "text_of",
    "to_openai",
    "violated",
]
