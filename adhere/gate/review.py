"""Constraints whose date for a review has come."""

import datetime
from collections.abc import Iterable

from adhere.data import Dataset
from adhere.gate.keys import item_keys
from adhere.scoring.found import title


def overdue(dataset: Dataset, today: datetime.date) -> list[str]:
    """Return a sentence for each constraint that is due, the longest due first."""
    found = sorted(_due(dataset, today.isoformat()))
    return [f"{text}: review was due on {date}" for date, text in found]


def _due(dataset: Dataset, today: str) -> Iterable[tuple[str, str]]:
    for item, row in zip(item_keys(dataset.rows), dataset.rows, strict=True):
        for position, constraint in enumerate(row["constraints"]):
            provenance = constraint.get("provenance")
            date = provenance.get("review_by") if isinstance(provenance, dict) else None
            # Dates in this form sort as text.
            if isinstance(date, str) and date < today:
                yield date, f"{dataset.name}: {item}: {title(constraint, position)}"


def today() -> datetime.date:
    """Return the date, in UTC."""
    return datetime.datetime.now(tz=datetime.UTC).date()
