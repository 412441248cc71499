"""From judged rows to what ``/v1/verify`` returns."""

from typing import Any

from adhere.data import Row
from adhere.judging.chain import NOT_APPLICABLE
from adhere.service.forms import Identity, Judged, Result, Totals, Verdict

# Of the judge's text; the whole of it is in the trace.
_SHOWN = 2000


def result_of(row: Row, identity: Identity, *, trace: bool) -> Result:
    """Return the verdicts of a judged row."""
    verdicts = [_judged(index, raw, trace=trace) for index, raw in enumerate(row["constraints"])]
    return Result(id=identity, verdicts=verdicts, totals=_totals(verdicts))


def _judged(index: int, raw: Row, *, trace: bool) -> Judged:
    last: dict[str, Any] = raw["steps"][-1] if raw["steps"] else {}
    given = raw.get("id")
    return Judged(
        index=index,
        id=None if given is None else str(given),
        verdict=verdict_of(raw),
        reason=_reason(raw, last),
        detail=_detail(last),
        broken_steps=last.get("broken_steps", []),
        steps=raw["steps"] if trace else None,
    )


def verdict_of(raw: Row) -> Verdict:
    """Return a judged constraint's verdict."""
    if raw["score"] is not None:
        return "followed" if raw["score"] else "violated"
    return "not_applicable" if raw["null_reason"] == NOT_APPLICABLE else "unscored"


def _reason(raw: Row, last: dict[str, Any]) -> str | None:
    if raw["score"] is None and raw["null_reason"] != NOT_APPLICABLE:
        reason: str = raw["null_reason"]
        return reason
    found = last.get("found") or raw["llm_output"] or raw["null_reason"]
    return None if found is None else str(found)[:_SHOWN]


def _detail(last: dict[str, Any]) -> str | None:
    """Return what was said of a failure, by a checker or of the judge's last call."""
    replies = last.get("replies") or [{}]
    detail = last.get("detail") or replies[-1].get("error", {}).get("message")
    return None if detail is None else str(detail)[:_SHOWN]


def _totals(verdicts: list[Judged]) -> Totals:
    counts = {
        name: sum(judged.verdict == name for judged in verdicts)
        for name in ("followed", "violated", "not_applicable", "unscored")
    }
    scored = counts["followed"] + counts["violated"]
    passed = counts["violated"] == counts["unscored"] == 0
    return Totals(
        **counts,
        csr=counts["followed"] / scored if scored else None,
        isr=passed if scored or counts["unscored"] else None,
    )
