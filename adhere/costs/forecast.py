"""What missing calls will take: the lines of an estimate, and what each of them rests on. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from adhere.config import Prices
from adhere.costs.expected import Span
from adhere.costs.money import cost
from adhere.costs.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Forecast:
    """The missing calls of one model in one mode, or of one judge.

    ``basis`` says where the figures come from; ``prices`` is None where they are unknown, and for
    a model that the workflow serves itself (``local``). ``batch``: they are sent in batches.
    """

    stage: str
    asked: str
    calls: Span
    prompt: Span
    output: Span
    basis: str
    prices: Prices | None
    local: bool
    batch: bool = False

    @property
    def cost(self) -> tuple[Decimal, Decimal] | None:
        """The least and the most that the calls cost; None without prices.

        The least takes all of the prompts for cached, the most none.
        """
        if self.prices is None:
            return None
        low = Tokens(
            prompt=int(self.prompt.low),
            cached=int(self.prompt.low),
            completion=int(self.output.low),
        )
        high = Tokens(prompt=round(self.prompt.high), completion=round(self.output.high))
        if self.batch:
            low, high = low.in_batch(), high.in_batch()
        return cost(low, self.prices), cost(high, self.prices)


def total_cost(forecasts: Iterable[Forecast]) -> dict[str, tuple[Decimal, Decimal]]:
    """Return the least and the most in each currency."""
    sums: dict[str, tuple[Decimal, Decimal]] = {}
    for forecast in forecasts:
        if forecast.prices is not None and forecast.cost is not None:
            low, high = sums.get(forecast.prices.currency, (Decimal(0), Decimal(0)))
            more = forecast.cost
            sums[forecast.prices.currency] = (low + more[0], high + more[1])
    return sums
