"""Money: tokens times prices, in decimals, so that nothing is lost to binary fractions. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal

from adhere.config import Prices, Project
from adhere.costs.tokens import Tokens
from adhere.jsonio import canonical
from adhere.plan import Cell, Evaluation

# Digits that amounts of less than one have beside their leading zeros, and all others.
_SIGNIFICANT = 2
_CENTS = Decimal("0.01")
# Digits enough for the sums that can occur, each exact.
_EXACT = Context(prec=60)


@dataclass(frozen=True, slots=True)
class PriceList:
    """The prices of models and of judges, by their names in the configuration."""

    models: Mapping[str, Prices] = field(default_factory=dict)
    judges: Mapping[str, Prices] = field(default_factory=dict)

    def of(self, payee: Cell | Evaluation) -> Prices | None:
        """Return the prices of the model that was asked, or of the judge; None where unknown."""
        if isinstance(payee, Cell):
            return self.models.get(payee.model)
        return self.judges.get(payee.judge)

    @property
    def text(self) -> str:
        """All prices as a rule's parameter: the summary follows them."""
        tables = {"models": self.models, "judges": self.judges}
        shown = {
            kind: {name: prices.model_dump(mode="json") for name, prices in table.items()}
            for kind, table in tables.items()
        }
        return canonical(shown).decode()


NO_PRICES = PriceList()


def price_list(project: Project) -> PriceList:
    """Return the prices that a project's files state."""
    return PriceList(
        {name: model.prices for name, model in project.models.items() if model.prices},
        {name: judge.prices for name, judge in project.judges.items() if judge.prices},
    )


def cost(tokens: Tokens, prices: Prices) -> Decimal:
    """Return what tokens cost, exactly; reasoning is output and paid for as such.

    What came by batches costs its part of the usual price.
    """
    saved = Decimal(1) - prices.batch_factor
    cached_price = prices.input if prices.cached_input is None else prices.cached_input
    parts = (
        (tokens.prompt - tokens.cached, tokens.batch_prompt - tokens.batch_cached, prices.input),
        (tokens.cached, tokens.batch_cached, cached_price),
        (tokens.completion, tokens.batch_completion, prices.output),
    )
    total = Decimal(0)
    for count, by_batch, price in parts:
        full = _EXACT.subtract(Decimal(count), _EXACT.multiply(Decimal(by_batch), saved))
        total = _EXACT.add(total, _EXACT.multiply(full, price))
    return _EXACT.scaleb(total, -6)


def exactly(amount: Decimal) -> str:
    """Return an amount with all its digits and no more, such as ``0.0125``."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounded(amount: Decimal) -> str:
    """Return an amount for people: to the cent, below one to two significant digits."""
    step = _CENTS
    if 0 < amount < 1:
        step = min(_CENTS, Decimal(1).scaleb(amount.adjusted() + 1 - _SIGNIFICANT))
    return format(amount.quantize(step, rounding=ROUND_HALF_UP, context=_EXACT), ",f")
