"""``summary.md``: the summary for people, in a terminal as well as rendered."""

from collections.abc import Iterable, Mapping, Sequence

from adhere.reporting.collect import GroupKey
from adhere.reporting.expenses import render_expenses
from adhere.reporting.figures import counts, percent, shown
from adhere.reporting.rows import Coverage, Row, Spread, short
from adhere.reporting.summary import Group, Summary
from adhere.reporting.table import EMPTY, one_line, render
from adhere.reporting.team import team_section
from adhere.scoring.accuracy import DIMENSIONS, TYPES
from adhere.scoring.policies import POLICIES

_DEMO = (
    "> **These scores mean nothing.** They come from a demonstration with a toy model and a toy\n"
    "> judge, which shows that the workflow runs.\n"
)
_NOTHING = (
    "Nothing is scored yet: no file `scores/{model}__{mode}/run{run}_{judge}/{dataset}/"
    "accuracy.json`\nlies in this results folder. Run `snakemake`; `snakemake -n` shows what it "
    "would do.\n"
)
_LEGEND = """\
## How to read this

- CSR: constraints followed / constraints scored (followed or violated), in %.
- ISR: instructions whose every scored constraint is followed / instructions counted, in %.
- vanilla … tool: CSR by dimension and by type; meta: CSR of meta-constraints, which CSR includes.
- coverage: constraints scored / constraints that apply, in %, rounded down: 100.0 is complete.
- ±: sample standard deviation over runs; a single run has none. –: nothing to count.
- Tokens and cost: every reply that was received for these results, also where it is no longer in
  use; cached is part of prompt, reasoning of completion; cost at the prices in the configuration.
- Items one by one, to sort in a spreadsheet: `items.csv`.
- Only rows of one table may be compared. Unrounded values: `summary.json`; every verdict:
  `verdicts.parquet`.
"""


def render_summary(summary: Summary) -> str:
    """Return ``summary.md``."""
    parts = ["# Summary\n"]
    if summary.demo:
        parts.append(_DEMO)
    if notices := (*summary.warnings, *summary.problems):
        parts.append("## Warnings\n\n" + "".join(f"- {one_line(text)}\n" for text in notices))
    parts += [part for group in summary.groups for part in _group(group)] or [_NOTHING]
    if took := render_expenses(summary.expenses):
        parts.append("## Tokens and cost\n\n" + took)
    return "\n".join([*parts, _LEGEND] if summary.groups else parts)


def _group(group: Group) -> list[str]:
    key = group.key
    title = f"{key.dataset}{_limit(key)} · judge {key.judge} · policy {key.policy}"
    demo = " · demonstration" if group.demo else ""
    parts = [f"## {one_line(title)}{demo}\n", _table(group)]
    notes = [*group.notes]
    notes += [f"{row.model} {row.mode}: {row.note}." for row in group.rows if row.note]
    if notes:
        parts.append("".join(f"- {one_line(note)}\n" for note in notes))
    if failures := [line for row in group.rows for line in _failures(row, key)]:
        parts.append("### Failures\n\n" + "".join(f"- {one_line(line)}\n" for line in failures))
    parts += team_section(group)
    if any(len(row.runs) > 1 for row in group.rows):
        parts.append("### Runs\n\n" + _runs(group))
    parts.append(
        f"Dataset checksum {short(key.sha256)} · judge config {short(key.judge_hash)} · "
        f"protocol {'unknown' if key.protocol is None else key.protocol} · "
        f"isolation of checkers {' and '.join(group.isolation)}\n"
    )
    return parts


def _table(group: Group) -> str:
    dimensions = _names(DIMENSIONS, [row.by_dimension for row in group.rows])
    types = _names(TYPES, [row.by_type for row in group.rows])
    meta = ["meta"] if dimensions or types else []
    headers = ["model", "mode", "runs", "CSR", "ISR", *dimensions, *types, *meta, "coverage"]
    rows = [
        [
            row.model,
            row.mode,
            _run_count(row),
            shown(row.CSR),
            shown(row.ISR),
            *(shown(row.by_dimension.get(name)) for name in dimensions),
            *(shown(row.by_type.get(name)) for name in types),
            *(shown(row.meta) for _ in meta),
            _covered(row.coverage),
        ]
        for row in group.rows
    ]
    return render(headers, rows, left=2)


def _names(named: Iterable[str], breakdowns: Sequence[Mapping[str, Spread]]) -> list[str]:
    """Return the usual names, then any others that occur; none for data that has no such groups."""
    if all(spread.mean is None for names in breakdowns for spread in names.values()):
        return []
    return list(dict.fromkeys([*named, *(name for names in breakdowns for name in names)]))


def _runs(group: Group) -> str:
    rows = [
        [
            row.model,
            row.mode,
            str(line.run),
            percent(line.CSR),
            percent(line.ISR),
            _covered(line.coverage),
        ]
        for row in group.rows
        for line in row.runs
    ]
    return render(["model", "mode", "run", "CSR", "ISR", "coverage"], rows, left=2)


def _failures(row: Row, key: GroupKey) -> list[str]:
    """Return a sentence for each kind of failure in a row's runs together."""
    sentences = []
    if row.coverage.unscored:
        sentences.append(
            f"{row.coverage.unscored:,} of {_number(row.coverage.expected, 'constraint')} unscored "
            f"({counts(row.failure_stats)})"
        )
    if lost := _lost_responses(row, key):
        sentences.append(lost)
    if cut := row.responses["truncated"]:
        sentences.append(f"{_number(cut, 'answer')} cut at the token limit, judged as they are")
    if row.retryable:
        sentences.append(
            f"{_number(row.retryable, 'verdict')} may still change: run `snakemake retry`"
        )
    return [f"{row.model} {row.mode}: {sentence}" for sentence in sentences]


def _lost_responses(row: Row, key: GroupKey) -> str | None:
    """Return a sentence on responses that are empty, failed or pending; None without any."""
    final, pending = row.responses["empty_or_failed"], row.responses["pending"]
    parts = []
    if final:
        policy = POLICIES.get(key.policy)
        meaning = f" ({policy.no_response_note})" if policy else ""
        parts.append(f"{_number(final, 'response')} empty or failed{meaning}")
    if pending:
        parts.append(f"{_number(pending, 'response')} pending")
    return f"{', '.join(parts)}: {counts(row.response_failures)}" if parts else None


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _limit(key: GroupKey) -> str:
    return "" if key.limit is None else f" (first {key.limit} items)"


def _run_count(row: Row) -> str:
    done = len(row.runs)
    if row.expected_runs is None or done >= row.expected_runs:
        return str(done)
    return f"{done} of {row.expected_runs}"


def _covered(coverage: Coverage) -> str:
    """Return the coverage rounded down, so that 100.0 hides no missing verdict."""
    if not coverage.applicable:
        return EMPTY
    return f"{coverage.scored * 1000 // coverage.applicable / 10:.1f}"
