"""NeMo Gym's ``/aggregate_metrics``: figures over many verify responses.

Masked samples are no measurements: they are left out, and counted as coverage.
"""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from adhere.labels import DIMENSIONS, TYPES

Response = dict[str, Any]
Figures = dict[str, Any]
_TASK, _ROLLOUT = "_ng_task_index", "_ng_rollout_index"
# No figure of a rollout is as large, and sums of larger ones overflow.
_LARGEST = 1e15
_KEY = ("isr", "csr", "mean_reward")
_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "max": max,
    "min": min,
    "median": statistics.median,
    "std": lambda values: statistics.stdev(values) if len(values) > 1 else 0.0,
}


class AggregateRequest(BaseModel):
    """Verify responses, with the indices that Gym numbers them by."""

    model_config = ConfigDict(extra="allow")

    verify_responses: list[Response]


class Aggregate(BaseModel):
    """Figures by task, over everything, the headline ones, and by repeat."""

    group_level_metrics: list[Figures] = Field(description="One object a task.")
    agent_metrics: Figures = Field(description="Over all rollouts.")
    key_metrics: Figures = Field(description="The headline ones of them.")
    repeat_level_metrics: list[Figures] = Field(description="One object a repeat.")


def aggregate(responses: Sequence[Response]) -> Aggregate:
    """Return all figures; of no response there are none."""
    measured = [each for each in responses if not each.get("mask_sample")]
    coverage = _coverage(responses, measured)
    figures = dict(coverage)
    if measured:
        figures = _statistics(measured) | coverage | metrics(measured)
        figures["num_repeats"] = len({_index(each, _ROLLOUT) for each in responses})
    repeats = _by(measured, _ROLLOUT)
    return Aggregate(
        group_level_metrics=[
            _statistics(each) | {_TASK: task} for task, each in _by(measured, _TASK)
        ],
        agent_metrics=figures,
        key_metrics={key: figures[key] for key in _KEY if key in figures} | coverage,
        repeat_level_metrics=[
            metrics(each) | {_ROLLOUT: repeat} for repeat, each in repeats if len(repeats) > 1
        ],
    )


def metrics(responses: Sequence[Response]) -> Figures:
    """Return what AgentIF is about; a rate over nothing is left out."""
    true, false = _sum(responses, "n_true"), _sum(responses, "n_false")
    found = {
        "csr": _rate(true, true + false),
        "isr": _rate(_sum(responses, "isr_pass"), _sum(responses, "isr_counted")),
        **dict(_accuracies(responses, "by_dimension", DIMENSIONS)),
        **dict(_accuracies(responses, "by_type", TYPES)),
    }
    rewards = [each["reward"] for each in responses if _is_number(each.get("reward"))]
    found["mean_reward"] = statistics.fmean(rewards) if rewards else None
    totals = {f"{key}_total": _sum(responses, key) for key in ("n_null", "n_skipped", "n_error")}
    rates = {key: value for key, value in found.items() if value is not None}
    return rates | {"count": len(responses)} | totals


def _accuracies(
    responses: Sequence[Response], name: str, groups: dict[str, str]
) -> Iterator[tuple[str, float | None]]:
    for group, shown in groups.items():
        counts = [_inner(each, name, group) for each in responses]
        true, false = _sum(counts, "n_true"), _sum(counts, "n_false")
        yield f"{name}/{shown}/accuracy", _rate(true, true + false)


def _inner(response: Response, *keys: str) -> Response:
    value: Any = response
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _coverage(responses: Sequence[Response], measured: Sequence[Response]) -> Figures:
    """Return how much was measured; nothing where everything was."""
    if len(measured) == len(responses):
        return {}
    tasks = {_index(each, _TASK) for each in responses}
    return {
        "coverage/measured_rollouts": len(measured),
        "coverage/masked_rollouts": len(responses) - len(measured),
        "coverage/measured_tasks": len({_index(each, _TASK) for each in measured}),
        "coverage/fully_masked_tasks": len(tasks - {_index(each, _TASK) for each in measured}),
    }


def _statistics(responses: Sequence[Response]) -> Figures:
    """Return mean, extremes, median and deviation of every figure that responses hold."""
    values: dict[str, list[float]] = defaultdict(list)
    for each in responses:
        usage = _inner(each, "response", "usage")
        for key, value in {**usage, **each}.items():
            if _is_number(value) and not key.startswith("_"):
                values[key].append(value)
    return {
        f"{name}/{key}": compute(found)
        for key, found in values.items()
        for name, compute in _STATISTICS.items()
    }


def _by(responses: Sequence[Response], key: str) -> list[tuple[int, list[Response]]]:
    groups: dict[int, list[Response]] = defaultdict(list)
    for each in responses:
        groups[_index(each, key)].append(each)
    return sorted(groups.items())


def _index(response: Response, key: str) -> int:
    index = response.get(key, 0)
    return index if isinstance(index, int) else 0


def _sum(responses: Sequence[Response], key: str) -> int:
    values = (each.get(key, 0) for each in responses)
    return sum(int(value) for value in values if _is_number(value))


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) < _LARGEST
