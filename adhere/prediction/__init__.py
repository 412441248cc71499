"""Predict: what is sent to a model, what its reply comes to, and the files that keep it."""

from adhere.prediction.model import Mode, mode_of
from adhere.prediction.stage import Task, collect, run_tasks, task_of

__all__ = ["Mode", "Task", "collect", "mode_of", "run_tasks", "task_of"]
