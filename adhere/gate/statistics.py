"""Rates and differences over items, with intervals that know how few items there are.

Constraints of one item and runs of one item are alike, so the item is the unit that is counted:
what is estimated is a ratio of sums over items, with the variance between items.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

# The chance with which the smallest effect that is stated would be seen.
POWER = 0.8


@dataclass(frozen=True, slots=True)
class Share:
    """What one item contributes to a ratio: its part of the sum above and of that below.

    For a rate these are hits and trials; for a difference the summed differences of what was
    compared, and how much was.
    """

    part: float
    whole: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio over ``items`` items with its interval.

    ``smallest`` is the smallest effect that so many items show with a chance of 80 %: the distance
    from a threshold, or the drop against a baseline.
    """

    value: float
    low: float
    high: float
    smallest: float
    items: int


def rate(shares: Sequence[Share], confidence: float) -> Estimate | None:
    """Estimate a rate; None where nothing was counted.

    The interval is Clopper and Pearson's with the effective sample size of Korn and Graubard
    (Survey Methodology 24, 1998): it holds for few items and for rates near 0 and 1.
    """
    counted = [share for share in shares if share.whole > 0]
    if not counted:
        return None
    value, error = _ratio(counted)
    items, trials = len(counted), math.fsum(share.whole for share in counted)
    spread = value * (1 - value)
    # Where all items are alike nothing tells how alike; each then counts once.
    effective = spread / error**2 if error > 0 and spread > 0 else float(items)
    if items > 1:
        normal = float(stats.norm.ppf((1 + confidence) / 2))
        effective *= (normal / _quantile((1 + confidence) / 2, items)) ** 2
    effective = min(effective, trials)
    low, high = _exact(value * effective, effective, confidence)
    # Half a hit and half a miss more: the spread of a rate of exactly 0 or 1 is not 0.
    smoothed = (value * effective + 0.5) / (effective + 1)
    deviation = math.sqrt(smoothed * (1 - smoothed) / effective)
    return Estimate(value, low, high, _smallest(deviation, confidence, items), items)


def difference(shares: Sequence[Share], unit: float, confidence: float) -> Estimate | None:
    """Estimate a mean difference over paired items; None where nothing was compared.

    ``unit`` is what one outcome contributes to an item's ``part``. As Agresti and Min (Statistics
    in Medicine 24, 2005) do for paired proportions, half an outcome won and half an outcome lost
    are added, on two items' worth of outcomes: otherwise a set in which nothing changed would show
    that nothing can.
    """
    counted = [share for share in shares if share.whole > 0]
    if not counted:
        return None
    value, _ = _ratio(counted)
    items = len(counted)
    whole = math.fsum(share.whole for share in counted)
    shrunk = value * items / (items + 2)
    squares = math.fsum((share.part - shrunk * share.whole) ** 2 for share in counted)
    squares += unit**2 + 2 * (shrunk * whole / items) ** 2
    deviation = math.sqrt(squares * (items + 2) / (items + 1)) / (whole * (items + 2) / items)
    half = _quantile((1 + confidence) / 2, items) * deviation
    low, high = max(-1.0, shrunk - half), min(1.0, shrunk + half)
    # Shrinking must not push what was seen out of its own interval.
    return Estimate(
        value, min(low, value), max(high, value), _smallest(deviation, confidence, items), items
    )


def _ratio(shares: Sequence[Share]) -> tuple[float, float]:
    """Return a ratio of sums and its standard error between items (linearised)."""
    whole = math.fsum(share.whole for share in shares)
    value = math.fsum(share.part for share in shares) / whole
    items = len(shares)
    if items < 2:
        return value, 0.0
    squares = math.fsum((share.part - value * share.whole) ** 2 for share in shares)
    return value, math.sqrt(squares * items / (items - 1)) / whole


def _exact(hits: float, trials: float, confidence: float) -> tuple[float, float]:
    """Return Clopper and Pearson's limits, for numbers that need not be whole."""
    tail = (1 - confidence) / 2
    misses = trials - hits
    low = float(stats.beta.ppf(tail, hits, misses + 1)) if hits > 0 else 0.0
    high = float(stats.beta.ppf(1 - tail, hits + 1, misses)) if misses > 0 else 1.0
    return low, high


def _quantile(probability: float, items: int) -> float:
    return float(stats.t.ppf(probability, max(items - 1, 1)))


def _smallest(deviation: float, confidence: float, items: int) -> float:
    reach = _quantile((1 + confidence) / 2, items) + _quantile(POWER, items)
    return min(1.0, reach * deviation)
