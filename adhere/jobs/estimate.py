"""Estimate: what the missing calls of a selection will take, before anything is asked."""

import argparse
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path

from adhere.cli import Job
from adhere.config import Project, load_project
from adhere.costs.answers import answers_of, forecast_answers
from adhere.costs.budget import spent_so_far, standing
from adhere.costs.expected import Span
from adhere.costs.forecast import Forecast, total_cost
from adhere.costs.money import rounded
from adhere.costs.questions import Questions, forecast_questions, questions_about
from adhere.judging import Judge
from adhere.plan import Plan, make_plan
from adhere.reporting.rows import grouped
from adhere.text_table import text_table

_NOTHING = "Nothing is missing: no call would be made."
_LEGEND = """\
Ranges are from the least to the most that is likely. Not counted: answers and replies that are
journaled already. Prompts by characters: 2.5 to 5 a token, 0.9 to 2 in Chinese. The least cost
takes all prompts for cached, the most none. A judge's least calls take every condition for unmet,
its most for met; an empty answer is judged without any call."""


def show(job: Job) -> None:
    """Print the estimate of what is selected."""
    print("\n" + estimate(job.plan))


def main() -> None:
    """Print it by hand, for everything that is enabled."""
    argparse.ArgumentParser(
        prog="estimate.py",
        description="Show what the calls that are still missing will take, in tokens and money, "
        "for everything that is enabled; `snakemake estimate --config …` does so for a selection. "
        "Nothing is asked.",
    ).parse_args()
    print(estimate(make_plan(load_project(Path()), {})))


def estimate(plan: Plan) -> str:
    """Return the table and what it rests on, as text."""
    lines = forecasts(plan)
    parts = [f"What is missing in {plan.results_root}, for everything selected:"]
    parts += [_table(lines), _LEGEND] if lines else [_NOTHING]
    return "\n\n".join([*parts, *_budget(plan.project)])


def forecasts(plan: Plan) -> list[Forecast]:
    """Return what is missing of a selection: a line for each (model, mode), then for judges."""
    project = plan.project
    judges = [Judge(name, project.judges[name]) for name in plan.judges]
    judges = [judge for judge in judges if not judge.asks_nobody]
    questions: dict[str, list[Questions]] = {judge.name: [] for judge in judges}
    found: list[Forecast | None] = []
    # One (model, mode, dataset) after the other: its runs are the best witnesses for each other.
    alike = grouped(plan.cells(), lambda cell: (cell.model, cell.mode, cell.dataset))
    for cells in alike.values():
        answers = [answers_of(project, cell) for cell in cells]
        found.append(forecast_answers(project, answers))
        for judge in judges:
            questions[judge.name].append(questions_about(project, judge, answers))
    found += [forecast_questions(judge, questions[judge.name]) for judge in judges]
    return [forecast for forecast in found if forecast is not None]


def _table(lines: Sequence[Forecast]) -> str:
    rows: list[tuple[str, ...]] = [
        ("STAGE", "ASKED", "CALLS", "PROMPT TOKENS", "OUTPUT TOKENS", "COST", "FROM")
    ]
    for forecast in lines:
        rows.append(
            (
                forecast.stage,
                forecast.asked,
                _range(forecast.calls),
                _roughly(forecast.prompt),
                _roughly(forecast.output),
                _cost(forecast),
                forecast.basis,
            )
        )
    if len(lines) > 1:
        total = Span(), Span(), Span()
        for forecast in lines:
            parts = (forecast.calls, forecast.prompt, forecast.output)
            total = (total[0] + parts[0], total[1] + parts[1], total[2] + parts[2])
        sums = [_money(*sums, name) for name, sums in sorted(total_cost(lines).items())]
        rows.append(
            ("total", "", _range(total[0]), *map(_roughly, total[1:]), " + ".join(sums) or "–", "")
        )
    return text_table(rows)


def _range(span: Span) -> str:
    low, high = f"{span.low:,.0f}", f"{span.high:,.0f}"
    return low if low == high else f"{low} – {high}"


def _roughly(span: Span) -> str:
    """Return a range with two significant digits, widened rather than narrowed."""
    return _range(Span(_two_digits(span.low, math.floor), _two_digits(span.high, math.ceil)))


def _two_digits(number: float, to_whole: Callable[[float], int]) -> float:
    step = 10 ** max(0, math.floor(math.log10(number)) - 1) if number > 0 else 1
    return to_whole(number / step) * step


def _cost(forecast: Forecast) -> str:
    if forecast.local:
        return "served here"
    if forecast.prices is None or forecast.cost is None:
        return "no prices"
    return _money(*forecast.cost, forecast.prices.currency)


def _money(low: Decimal, high: Decimal, currency: str) -> str:
    least, most = rounded(low), rounded(high)
    return f"{least if least == most else f'{least} – {most}'} {currency}"


def _budget(project: Project) -> list[str]:
    """Say what is spent of the budget, where there is one."""
    budget = project.config.budget
    if budget is None:
        return []
    return [f"{standing(spent_so_far(project, budget)[0], budget)}."]
