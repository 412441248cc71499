"""Predict: what is sent to a model, what its reply comes to, and the files that keep it."""

from adhere.prediction.model import Mode, mode_of
from adhere.prediction.read import read_predictions
from adhere.prediction.record import recorded
from adhere.prediction.recordings import with_recordings
from adhere.prediction.stage import (
    Places,
    Task,
    answered,
    asks_model,
    collect,
    make_task,
    run_tasks,
    task_of,
    unanswered,
)

__all__ = [
    "Mode",
    "Places",
    "Task",
    "answered",
    "asks_model",
    "collect",
    "make_task",
    "mode_of",
    "read_predictions",
    "recorded",
    "run_tasks",
    "task_of",
    "unanswered",
    "with_recordings",
]
