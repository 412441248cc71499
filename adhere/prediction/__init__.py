"""Predict: what is sent to a model, what its reply comes to, and the files that keep it."""

from adhere.prediction.model import Mode, mode_of
from adhere.prediction.stage import (
    Places,
    Task,
    collect,
    make_task,
    recorded,
    run_tasks,
    task_of,
    unanswered,
)

__all__ = [
    "Mode",
    "Places",
    "Task",
    "collect",
    "make_task",
    "mode_of",
    "recorded",
    "run_tasks",
    "task_of",
    "unanswered",
]
