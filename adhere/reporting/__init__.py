"""Reporting: everything scored under a results folder, in one summary."""

from dataclasses import replace
from pathlib import Path

from adhere import jsonio
from adhere.costs.money import NO_PRICES, PriceList
from adhere.reporting.collect import collect
from adhere.reporting.combine import VERDICTS, combine_verdicts
from adhere.reporting.expenses import expenses
from adhere.reporting.items import combine_items
from adhere.reporting.markdown import render_summary
from adhere.reporting.rows import Expected
from adhere.reporting.summary import document, summarise

__all__ = ["aggregate"]


def aggregate(
    results_root: Path, *, expected_runs: Expected | None = None, prices: PriceList = NO_PRICES
) -> None:
    """Rebuild ``summary.md``, ``summary.json``, ``verdicts.parquet`` and ``items.csv``.

    All that is scored there is reported, whatever was selected for computing.
    ``expected_runs`` says how many runs a model should have ("2 of 3"); ``prices`` turn tokens
    into money, where they are known.
    """
    results_root.mkdir(parents=True, exist_ok=True)
    collected = collect(results_root)
    problems = combine_verdicts(collected.runs, results_root, results_root / VERDICTS)
    problems += combine_items(collected.runs, results_root)
    summary = summarise(
        replace(collected, problems=(*collected.problems, *problems)),
        expected_runs,
        expenses(results_root, prices),
    )
    jsonio.write_json(results_root / "summary.json", document(summary))
    jsonio.write_text(results_root / "summary.md", render_summary(summary))
