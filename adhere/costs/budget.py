"""The budget: what API models and judges may take below one results folder, and who stops there.

Every job that calls an endpoint looks into the ledger before a request and adds to it after the
reply. When the budget is reached no job sends a new request; replies on their way are received
and kept. So jobs at the same time overshoot by no more than they have in flight.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adhere.client import ChatClient, Endpoint, Failure, Reply
from adhere.config import RULES_ONLY, Budget, Prices, Project
from adhere.costs.ledger import Amount, Ledger
from adhere.costs.money import cost, price_list, rounded
from adhere.costs.spent import spent_below
from adhere.costs.tokens import Tokens, tokens_of
from adhere.errors import BudgetError, ConfigError
from adhere.plan import Cell, Evaluation

# The kind of failure, and the reason of verdicts, that were not asked for.
BUDGET = "budget"
_LOG = logging.getLogger("adhere")


@dataclass(slots=True)
class Allowance:
    """What one job may still take of the budget that it shares with all others.

    ``owner`` is the configuration file of what is asked, for messages.
    """

    budget: Budget
    prices: Prices | None
    ledger: Ledger
    owner: str
    _seen: Tokens = field(default_factory=Tokens)

    def refusal(self) -> str | None:
        """Return why no further request may be sent; None while one may."""
        if self._seen.unmetered and self._seen.unmetered == self._seen.calls:
            return (
                f"{self.owner}: its endpoint sends no token figures (`usage`), so `budget` of "
                "configs/global.yaml cannot be kept: remove `budget`, or ask another endpoint"
            )
        spent, budget = self.ledger.read(), self.budget
        if not _over(spent, budget):
            return None
        return f"{standing(spent, budget)}: raise `budget` in configs/global.yaml to go on"

    def reserve(self, bounds: Sequence[Tokens]) -> list[Amount]:
        """Set aside what requests may take, in their order, for as many of them as fit.

        Returns the amount of each that fits; it stays counted until it is given to ``release``.
        """
        amounts = [amount(tokens, self.prices, self.budget) for tokens in bounds]
        fitting = self.ledger.reserve(amounts, lambda spent: not _over(spent, self.budget))
        return amounts[:fitting]

    def set_aside(self, bounds: Sequence[Tokens]) -> Amount:
        """Set aside what requests may take that are on their way already; return it."""
        total = amount(sum(bounds, Tokens()), self.prices, self.budget)
        self.ledger.add(total)
        return total

    def release(self, reserved: Amount) -> None:
        """Give back what was set aside."""
        self.ledger.add(Amount(-reserved.tokens, -reserved.money))

    def take(self, usage: Mapping[str, Any] | None) -> None:
        """Count one reply."""
        tokens = tokens_of(usage)
        self._seen += tokens
        self.ledger.add(amount(tokens, self.prices, self.budget))


class MeteredClient(ChatClient):
    """A client that stops asking when the budget is reached; ``refused`` then says so.

    Without an ``allowance`` there is no budget.
    """

    def __init__(self, endpoint: Endpoint, allowance: Allowance | None) -> None:
        super().__init__(endpoint)
        self._allowance = allowance
        self.refused: str | None = None

    async def complete(self, payload: Mapping[str, Any], key: str = "", /) -> Reply | Failure:
        """Send one chat request, or return the failure that it was not sent."""
        refusal = self._allowance.refusal() if self._allowance else None
        if refusal is not None:
            if self.refused is None:
                _LOG.warning("warning: %s", refusal)
            self.refused = refusal
            self.counts.failures[BUDGET] += 1
            return Failure(BUDGET, refusal, retryable=True)
        outcome = await super().complete(payload, key)
        if isinstance(outcome, Reply) and self._allowance:
            self._allowance.take(outcome.usage)
        return outcome


def _over(spent: Amount, budget: Budget) -> bool:
    over_money = budget.money is not None and spent.money >= budget.money
    return over_money or (budget.tokens is not None and spent.tokens >= budget.tokens)


def amount(tokens: Tokens, prices: Prices | None, budget: Budget) -> Amount:
    """Return what tokens take of a budget; money only where it is in the budget's currency."""
    if prices is None or prices.currency != budget.currency:
        return Amount(tokens.total)
    return Amount(tokens.total, cost(tokens, prices))


def standing(spent: Amount, budget: Budget) -> str:
    """Say what is spent of what, such as ``budget: 12.40 of 50.00 USD spent``."""
    parts = []
    if budget.money is not None:
        money = f"{rounded(spent.money)} of {rounded(budget.money)} {budget.currency}"
        parts.append(money)
    if budget.tokens is not None:
        parts.append(f"{spent.tokens:,} of {budget.tokens:,} tokens")
    return f"budget: {' and '.join(parts)} spent"


def spent_so_far(project: Project, budget: Budget) -> tuple[Amount, set[str]]:
    """Return what API models and judges took below the results folder, from the journals.

    Second, the names of those whose tokens cannot be counted in the budget's money, since they
    have no prices (any more). Raises BudgetError where a journal cannot be read.
    """
    prices, total, unpriced = price_list(project), Amount(), set[str]()
    account = spent_below(project.root / project.config.results_root)
    if account.unread:
        raise BudgetError("budget: what is spent cannot be counted: " + "\n".join(account.unread))
    for spent in account.spent:
        if _is_local(project, spent.payee):
            continue
        stated = prices.of(spent.payee)
        total += amount(spent.tokens, stated, budget)
        if stated is None or stated.currency != budget.currency:
            unpriced.add(_name(spent.payee))
    return total, unpriced


def _name(payee: Cell | Evaluation) -> str:
    return payee.model if isinstance(payee, Cell) else payee.judge


def _is_local(project: Project, payee: Cell | Evaluation) -> bool:
    if isinstance(payee, Cell):
        model = project.models.get(payee.model)
        return model is not None and model.is_local
    judge = project.judges.get(payee.judge)
    return judge is not None and judge.local is not None


def start_ledger(project: Project) -> None:
    """Begin a call's account, where there is a budget."""
    budget = project.config.budget
    if budget is None:
        return
    spent, unpriced = spent_so_far(project, budget)
    if budget.money is not None and unpriced:
        _LOG.warning(
            "warning: budget: what %s took is not counted in money: no prices in %s",
            ", ".join(sorted(unpriced)),
            budget.currency,
        )
    _ledger(project).start(spent)


def _ledger(project: Project) -> Ledger:
    return Ledger(project.root / Path(project.config.results_root) / ".spent")


def model_allowance(project: Project, model: str) -> Allowance | None:
    """Return what a job that asks an API model may take; None without a budget."""
    config = project.models[model]
    return _allowance(project, config.prices, project.model_file(model))


def judge_allowance(project: Project, judge: str) -> Allowance | None:
    """The same for a job that asks a judge at its endpoint."""
    config = project.judges[judge]
    if judge == RULES_ONLY:
        return None
    return _allowance(project, config.prices, project.judge_file(judge))


def _allowance(project: Project, prices: Prices | None, file: str) -> Allowance | None:
    budget = project.config.budget
    if budget is None:
        return None
    check_prices(budget, {file: prices})
    return Allowance(budget, prices, _ledger(project), file)


def check_budget(project: Project, models: Iterable[str], judges: Iterable[str]) -> None:
    """Raise ConfigError where a budget of money meets something asked whose prices are unknown."""
    if project.config.budget is None:
        return
    asked = {
        project.model_file(name): project.models[name].prices
        for name in models
        if project.models[name].api is not None
    }
    asked |= {
        project.judge_file(name): project.judges[name].prices
        for name in judges
        if project.judges[name].local is None and name != RULES_ONLY
    }
    check_prices(project.config.budget, asked)


def check_prices(budget: Budget, asked: Mapping[str, Prices | None]) -> None:
    """Raise ConfigError for each file of ``asked`` whose tokens are not worth any known money."""
    if budget.money is None:
        return
    problems = []
    for file, prices in asked.items():
        if prices is None:
            problems.append(
                f"{file}: has no `prices`, and `budget` of configs/global.yaml limits money: write "
                "what a million tokens cost (0 where it costs nothing), or limit `tokens` instead"
            )
        elif prices.currency != budget.currency:
            problems.append(
                f"{file}: prices.currency: found {prices.currency}: must be {budget.currency}, the "
                "currency of `budget` in configs/global.yaml"
            )
    if problems:
        raise ConfigError("\n".join(problems))
