"""Audit of a dataset's checkers, without any model: run each on texts that tell something.

A checker that never says yes, never says no, raises, or takes long is worth a look before money is
spent on answers for it. Trial texts are few and plain, so a finding is a question, not a verdict.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from adhere.checkers import CheckerPool, CheckResult
from adhere.data import Row, label
from adhere.workers import drain

SLOW_S = 1.0
TRIALS = (
    "",
    "word",
    "Yes.",
    "This is a sentence. Here is another one, with a comma!",
    "# Title\n\n- first\n- second\n\n1. one\n2. two\n\n**bold** | cell | cell |\n",
    '{"name": "value", "items": [1, 2, 3]}',
    "```json\n{}\n```",
    "```python\nprint('hello')\n```",
    "['first', 'second']",
    "[]",
    "42",
    "Thought: think.\nAction: tool\nAction Input: {}\nObservation: seen.\nFinal Answer: done.",
    "今天天气很好。我们去公园散步！\n\n一、第一点\n二、第二点",
    "many words " * 400,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about one checker: where it stands, what was seen, and the source's line."""

    places: tuple[str, ...]
    kind: str
    detail: str
    line: str

    def __str__(self) -> str:
        more = f" and {len(self.places) - 1} more" if len(self.places) > 1 else ""
        return f"{self.places[0]}{more}: {self.kind}: {self.detail} ({self.line})"


@dataclass(slots=True)
class _Checker:
    """One source, wherever it stands, with the examples that its authors gave."""

    source: str
    places: list[str]
    good: list[str]
    bad: list[str]


async def audit(rows: Sequence[Row], pool: CheckerPool) -> list[Finding]:
    """Run every checker of a dataset; equal sources are run once.

    A constraint may carry ``examples: {"good": [texts], "bad": [texts]}``: a good one must be
    followed, a bad one violated.
    """
    checkers = list(_checkers(rows).values())
    found: dict[int, list[Finding]] = {}

    async def examine(number: int) -> None:
        found[number] = await _examine(checkers[number], pool)

    width = 2 * pool.workers
    await drain([(iter(range(len(checkers))), width)], examine)
    findings = [finding for number in range(len(checkers)) for finding in found[number]]
    # What is broken comes before what may only be strict.
    return sorted(findings, key=lambda finding: finding.kind.startswith("never"))


def _checkers(rows: Sequence[Row]) -> dict[str, _Checker]:
    checkers: dict[str, _Checker] = {}
    for index, row in enumerate(rows):
        for number, constraint in enumerate(row["constraints"], start=1):
            for step in constraint["evaluation"]:
                if step["type"] != "code":
                    continue
                checker = checkers.setdefault(step["exec"], _Checker(step["exec"], [], [], []))
                checker.places.append(f"{label(index, row)} constraint {number}")
                checker.good += _examples(constraint, "good")
                checker.bad += _examples(constraint, "bad")
    return checkers


def _examples(constraint: dict[str, Any], kind: str) -> list[str]:
    examples = constraint.get("examples")
    texts = examples.get(kind, []) if isinstance(examples, dict) else []
    return [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []


async def _examine(checker: _Checker, pool: CheckerPool) -> list[Finding]:
    texts = [*checker.good, *checker.bad, *TRIALS]
    results: list[CheckResult] = []
    slowest = 0.0
    for text in texts:
        started = time.monotonic()
        results.append(await pool.check(checker.source, text))
        slowest = max(slowest, time.monotonic() - started)
        if results[-1].reason in ("not_defined", "checker_timeout"):
            break
    line = _line(checker.source)
    places = tuple(checker.places)
    return [
        Finding(places, kind, detail, line)
        for kind, detail in _problems(checker, texts, results, slowest)
    ]


def _problems(
    checker: _Checker, texts: Sequence[str], results: Sequence[CheckResult], slowest: float
) -> Iterator[tuple[str, str]]:
    failed = [(t, r) for t, r in zip(texts, results, strict=False) if r.reason is not None]
    if failed:
        text, result = failed[0]
        often = "every text" if len(failed) == len(results) else f"{len(failed)} of {len(results)}"
        yield str(result.reason), f"on {often}, first {text[:30]!r}: {result.detail}"
    if results[-1].reason in ("not_defined", "checker_timeout"):
        return
    values = [result.value for result in results]
    if len(failed) < len(results):
        for value, kind in ((True, "never true"), (False, "never false")):
            if value not in [v for v in values if isinstance(v, bool)]:
                yield kind, f"on {len(results)} texts"
    good, bad = values[: len(checker.good)], values[len(checker.good) :][: len(checker.bad)]
    if refused := sum(value is not True for value in good):
        yield "good example refused", f"{refused} of {len(good)}"
    if accepted := sum(value is not False for value in bad):
        yield "bad example accepted", f"{accepted} of {len(bad)}"
    if slowest > SLOW_S:
        yield "slow", f"{slowest:.1f} s for one text"


def _line(source: str) -> str:
    """Return the line that defines the checker, by its number, else the first."""
    lines = source.splitlines()
    for number, text in enumerate(lines, start=1):
        if "check_following" in text:
            return f"line {number}: {text.strip()[:60]}"
    return f"line 1: {lines[0].strip()[:60]}" if lines else "no source"
