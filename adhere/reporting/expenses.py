"""What the results took: tokens and, where prices are known, money; by stage, model and judge."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from adhere.config import Prices
from adhere.costs.money import PriceList, cost, exactly, rounded
from adhere.costs.spent import spent_below
from adhere.costs.tokens import Tokens
from adhere.plan import Cell
from adhere.reporting.rows import grouped
from adhere.reporting.table import EMPTY, one_line, render

_HEADERS = ("stage", "asked", "calls", "prompt", "cached", "completion", "reasoning", "cost")


@dataclass(frozen=True, slots=True)
class Expense:
    """The replies of one journal: a model's for one run, or a judge's about one run.

    ``judge`` is None where the model itself was asked.
    """

    model: str
    mode: str
    run: int
    judge: str | None
    dataset: str
    tokens: Tokens
    prices: Prices | None

    @property
    def asked(self) -> tuple[str, str]:
        """The stage, and the model or judge that replied."""
        return ("predict", self.model) if self.judge is None else ("judge", self.judge)

    def document(self) -> dict[str, Any]:
        """Return what ``summary.json`` says; money is text, so that no digit is lost."""
        prices = self.prices
        return {
            "stage": self.asked[0],
            "model": self.model,
            "mode": self.mode,
            "run": self.run,
            "judge": self.judge,
            "dataset": self.dataset,
            **asdict(self.tokens),
            "cost": exactly(cost(self.tokens, prices)) if prices else None,
            "currency": prices.currency if prices else None,
        }


@dataclass(frozen=True, slots=True)
class Expenses:
    """What the results took; ``unread`` is a sentence for each journal that cannot be read."""

    known: tuple[Expense, ...] = ()
    unread: tuple[str, ...] = ()


def expenses(results_root: Path, prices: PriceList) -> Expenses:
    """Return what every journal below a results folder took, at today's prices."""
    found = []
    account = spent_below(results_root)
    for spent in account.spent:
        judge = None if isinstance(spent.payee, Cell) else spent.payee.judge
        cell = spent.payee if isinstance(spent.payee, Cell) else spent.payee.cell
        place = (cell.model, cell.mode, cell.run, judge, cell.dataset)
        found.append(Expense(*place, spent.tokens, prices.of(spent.payee)))
    return Expenses(tuple(found), account.unread)


def render_expenses(found: Expenses) -> str:
    """Return the section of ``summary.md``; empty without a journal."""
    parts = [_table(found.known)] if found.known else []
    if found.unread:
        parts.append("".join(f"- Not counted: {one_line(text)}\n" for text in found.unread))
    return "\n".join(parts)


def _table(expenses: Sequence[Expense]) -> str:
    """Return a line for each model and judge that replied."""
    lines = [
        _line(*asked, same)
        for asked, same in sorted(
            grouped(expenses, lambda expense: expense.asked).items(),
            key=lambda pair: (pair[0][0] != "predict", pair[0][1]),
        )
    ]
    if len(lines) > 1:
        lines.append(_line("total", "", expenses))
    unmetered = sum(expense.tokens.unmetered for expense in expenses)
    came = "1 reply came" if unmetered == 1 else f"{unmetered:,} replies came"
    verb = "is" if unmetered == 1 else "are"
    note = f"\n{came} without figures and {verb} not in the tokens.\n" if unmetered else ""
    return render(_HEADERS, lines, left=2) + note


def _line(stage: str, asked: str, expenses: Sequence[Expense]) -> list[str]:
    tokens = sum((expense.tokens for expense in expenses), Tokens())
    counts = (tokens.calls, tokens.prompt, tokens.cached, tokens.completion, tokens.reasoning)
    return [stage, asked, *(f"{count:,}" for count in counts), _money(expenses)]


def _money(expenses: Sequence[Expense]) -> str:
    """Return the sum in each currency; a dash where no price is known."""
    sums: dict[str, Decimal] = {}
    for expense in expenses:
        if (prices := expense.prices) is not None:
            paid = cost(expense.tokens, prices)
            sums[prices.currency] = sums.get(prices.currency, Decimal(0)) + paid
    return " + ".join(f"{rounded(sums[name])} {name}" for name in sorted(sums)) or EMPTY
