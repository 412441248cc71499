"""Figures as the summary shows them."""

from collections.abc import Mapping

from adhere.reporting.rows import Spread
from adhere.reporting.table import EMPTY


def shown(spread: Spread | None) -> str:
    """Return a mean in % with its spread over runs, where there is one."""
    if spread is None or spread.mean is None:
        return EMPTY
    return percent(spread.mean) + ("" if spread.std is None else f" ± {percent(spread.std)}")


def percent(rate: float | None) -> str:
    """Return a fraction of 1 in %."""
    return EMPTY if rate is None else f"{100 * rate:.1f}"


def counts(found: Mapping[str, int]) -> str:
    """Return counts in a line, the most frequent first."""
    ordered = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{reason} {count:,}" for reason, count in ordered)
