"""What the gate says: to people in Markdown, to programs in JSON."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from adhere.gate.compare import got_worse, in_metric
from adhere.gate.decide import Check, Judged, Outcome, overall
from adhere.gate.record import FOLLOWED, VIOLATED, Constraint, rate_of
from adhere.reporting.table import EMPTY, one_line, render

_MOST = 20


def document(judged: Sequence[Judged], reviews: Sequence[str]) -> dict[str, Any]:
    """Return ``gate.json``: unrounded, rates as fractions of 1."""
    outcome = overall(each.outcome for each in judged)
    return {
        "outcome": outcome.words,
        "exit_code": int(outcome),
        "subjects": [_subject(each) for each in judged],
        "overdue_reviews": list(reviews),
    }


def _subject(judged: Judged) -> dict[str, Any]:
    record = judged.record
    worse = got_worse(judged.comparison) if judged.comparison else []
    return {
        **asdict(record.subject),
        **asdict(record.made),
        "runs": list(record.runs),
        "coverage": {
            "expected": record.expected,
            "scored": record.scored,
            "not_asked": record.not_asked,
        },
        "comparable": record.not_asked == 0,
        "baseline": asdict(judged.entry.made) | {"title": judged.entry.title}
        if judged.entry
        else None,
        "outcome": judged.outcome.words,
        "checks": [
            asdict(check) | {"outcome": check.outcome.words, "limit": check.limit}
            for check in judged.checks
        ],
        "got_worse": [
            {
                "item": item.key,
                "constraint": pair.constraint.title,
                "key": pair.constraint.key,
                "before": pair.before,
                "now": pair.constraint.verdicts,
                "why": pair.constraint.why,
            }
            for item, pair in worse
        ],
        "notes": list(judged.notes),
    }


def markdown(judged: Sequence[Judged], reviews: Sequence[str]) -> str:
    """Return ``gate.md``."""
    outcome = overall(each.outcome for each in judged)
    parts = [f"# Gate: {outcome.words}\n"]
    for each in judged:
        parts += [f"## {one_line(each.record.subject.title)}: {each.outcome.words}\n"]
        parts += [_checks(each.checks), *_reasons(each.checks), *_worse(each), *_violated(each)]
        if each.notes:
            parts.append("".join(f"- {one_line(note)}\n" for note in each.notes))
    if reviews:
        listed = "".join(f"- {one_line(text)}\n" for text in reviews)
        parts.append(f"## Due for review\n\n{listed}")
    return "\n".join(parts)


def _checks(checks: Sequence[Check]) -> str:
    rows = [
        [check.metric, _needs(check), *_measured(check), check.outcome.words] for check in checks
    ]
    return render(["rate", "needs", "measured", "interval", "outcome"], rows, left=2)


def _needs(check: Check) -> str:
    points = f"{100 * check.limit:g}"
    return f"drop of {points} points at most" if check.against_baseline else f"{points} % at least"


def _measured(check: Check) -> tuple[str, str]:
    estimate = check.estimate
    if estimate is None:
        return EMPTY, EMPTY
    if check.against_baseline:
        change = f"{100 * estimate.value:+.1f} points"
        return change, f"{100 * estimate.low:+.1f} to {100 * estimate.high:+.1f}"
    return f"{100 * estimate.value:.1f} %", f"{100 * estimate.low:.1f} to {100 * estimate.high:.1f}"


def _reasons(checks: Sequence[Check]) -> list[str]:
    lines = [
        f"- {check.metric}: {check.outcome.words}: {one_line(check.why)}\n"
        for check in checks
        if check.why
    ]
    return ["".join(lines)] if lines else []


def _worse(judged: Judged) -> list[str]:
    """Return what is followed less often than in the baseline, by rule and one by one."""
    found = got_worse(judged.comparison) if judged.comparison else []
    if not found:
        return []
    kinds = Counter(pair.constraint.key.partition(":")[0] for _, pair in found)
    rows = [
        [
            item.key,
            pair.constraint.title,
            _often(pair.before),
            _often(pair.constraint.verdicts),
            pair.constraint.why,
        ]
        for item, pair in found
    ]
    told = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
    headers = ["item", "constraint", "before", "now", "why"]
    return [f"### What got worse\n\n{_first(headers, rows)}\nBy rule or kind: {one_line(told)}.\n"]


def _violated(judged: Judged) -> list[str]:
    """Return what is violated in the rates that miss their least value, and not yet listed."""
    missed = [
        check.metric
        for check in judged.checks
        if not check.against_baseline and check.outcome is not Outcome.PASS
    ]
    worse = got_worse(judged.comparison) if judged.comparison else []
    listed = {(item.key, pair.constraint.key) for item, pair in worse}
    found = [
        (item, constraint)
        for item in judged.record.items
        for constraint in item.constraints
        if VIOLATED in constraint.verdicts
        and (item.key, constraint.key) not in listed
        and any(_counts(constraint, metric) for metric in missed)
    ]
    if not found:
        return []
    found.sort(key=lambda each: rate_of(each[1].verdicts) or 0.0)
    rows = [
        [item.key, constraint.title, _often(constraint.verdicts), constraint.why]
        for item, constraint in found
    ]
    headers = ["item", "constraint", "followed", "why"]
    heading = "What else is violated" if listed else "What is violated"
    return [f"### {heading}\n\n{_first(headers, rows)}"]


def _counts(constraint: Constraint, metric: str) -> bool:
    """Whether a miss of a constraint lowers a rate."""
    if metric == "all_pass_rate":
        return not constraint.soft
    return in_metric(constraint, metric)


def _first(headers: list[str], rows: list[list[str]]) -> str:
    table = render(headers, rows[:_MOST], left=len(headers))
    more = len(rows) - _MOST
    return table + (f"\n… and {more} more; all of them: gate.json.\n" if more > 0 else "")


def _often(verdicts: str) -> str:
    """Return in how many of the scored runs it was followed."""
    followed, violated = verdicts.count(FOLLOWED), verdicts.count(VIOLATED)
    return f"{followed} of {followed + violated}"
