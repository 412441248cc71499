"""The part of the summary that only instruction sets of teams have: rates of their own groups."""

from collections.abc import Iterable, Sequence

from adhere.reporting.figures import counts, shown
from adhere.reporting.rows import Row, Spread
from adhere.reporting.summary import Group
from adhere.reporting.table import one_line, render

# Standard deviation over runs from which one run says little about the next, as a fraction of 1.
LARGE_SPREAD = 0.05
_GROUPS = ("category", "severity", "level", "scenario")
_WORST = 5
_SPREAD_OF = (
    ("constraint rate", "CSR"),
    ("mean item rate", "item_mean"),
    ("all-pass rate", "ISR"),
)


def team_section(group: Group) -> list[str]:
    """Return the parts of one table's section; none for datasets without such groups."""
    rows = [row for row in group.rows if row.groups]
    if not rows:
        return []
    parts = ["### By category, severity, level and scenario\n", _table(rows)]
    if lines := [line for row in rows for line in _lines(row)]:
        parts.append("".join(f"- {one_line(line)}\n" for line in lines))
    return parts


def _table(rows: Sequence[Row]) -> str:
    names = [(group, value) for group in _GROUPS for value in _values(rows, group)]
    deviation = ["steps that deviate"] if any(row.step_deviation for row in rows) else []
    # Rows of one model and mode were sampled differently: the table above tells them apart.
    heads = [f"{row.model} {row.mode}" for row in rows]
    lines = [
        ["constraint rate", *(shown(row.CSR) for row in rows)],
        ["mean item rate", *(shown(row.item_mean) for row in rows)],
        ["all-pass rate", *(shown(row.ISR) for row in rows)],
        *([name, *(shown(row.step_deviation) for row in rows)] for name in deviation),
        *(
            [f"{group} {value}", *(shown(row.groups.get(group, {}).get(value)) for row in rows)]
            for group, value in names
        ),
    ]
    return render(["rate, in %", *heads], lines, left=1)


def _values(rows: Sequence[Row], group: str) -> list[str]:
    return list(dict.fromkeys(value for row in rows for value in row.groups.get(group, {})))


def _lines(row: Row) -> Iterable[str]:
    """Yield what is said of one row in words."""
    name = f"{row.model} {row.mode}"
    if worst := _worst(row):
        yield f"{name}: worst rules: {worst}."
    if row.failure_modes:
        yield f"{name}: failure modes, in all runs: {counts(row.failure_modes)}."
    for what, field in _SPREAD_OF:
        spread: Spread = getattr(row, field)
        if spread.std is not None and spread.std > LARGE_SPREAD:
            yield (
                f"{name}: the {what} spreads by {100 * spread.std:.1f} points over the runs, more "
                f"than {100 * LARGE_SPREAD:g}: one run says little; take more runs, or a lower "
                "temperature (sampling and seeds: `run_config.json` beside the predictions)."
            )


def _worst(row: Row) -> str:
    found = [
        (spread.mean, rule)
        for rule, spread in row.groups.get("rule", {}).items()
        if spread.mean is not None and spread.mean < 1
    ]
    return ", ".join(f"{rule} {100 * mean:.1f} %" for mean, rule in sorted(found)[:_WORST])
