"""The order in which local models are served on one pool of GPUs."""

from adhere.scheduling.jobs import Job, Placement
from adhere.scheduling.search import Schedule, planned, schedule, unordered

__all__ = ["Job", "Placement", "Schedule", "planned", "schedule", "unordered"]
