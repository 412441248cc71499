"""Audit of a dataset's checkers, without any model: run each on texts that tell something.

A checker that never says yes, never says no, raises, or takes long is worth a look before money is
spent on answers for it. Trial texts are few and plain, so a finding is a question, not a verdict.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from adhere.checkers import CheckerPool, CheckResult
from adhere.checkers.source import defining_line
from adhere.data import Row, label
from adhere.escapes import escaped
from adhere.verdict import parse
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
# Steps after which the text is still the answer.
_PASSING_ON = ("llm_conditional_check",)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about one checker: where it stands, what was seen, and the source's line.

    As a text it has the first place and the number of the others; ``in_full`` has them all.
    """

    places: tuple[str, ...]
    kind: str
    detail: str
    line: str

    def __str__(self) -> str:
        more = f" and {len(self.places) - 1} more" if len(self.places) > 1 else ""
        return self._told(f"{self.places[0]}{more}")

    @property
    def in_full(self) -> str:
        """The finding with every place."""
        return self._told(", ".join(self.places))

    def _told(self, where: str) -> str:
        return f"{where}: {self.kind}: {self.detail} ({self.line})"


@dataclass(slots=True)
class _Checker:
    """One source, wherever it stands, with the examples that its authors gave.

    ``decides`` says that it is the last step in each place, so that what it returns is a verdict.
    """

    source: str
    places: list[str]
    good: list[str]
    bad: list[str]
    decides: bool = True


async def audit(rows: Sequence[Row], pool: CheckerPool) -> list[Finding]:
    """Run every checker of a dataset; equal sources are run once.

    A constraint may carry ``examples: {"good": [texts], "bad": [texts]}``: a good one must be
    followed, a bad one violated. They are tried where the checker gets the answer itself.
    """
    checkers = list(_checkers(rows).values())
    found: dict[int, list[Finding]] = {}

    async def examine(number: int) -> None:
        found[number] = await _examine(checkers[number], pool)

    # No more at once than there are servers: a wait for one would count as the checker's time.
    width = pool.workers
    await drain([(iter(range(len(checkers))), width)], examine)
    findings = [finding for number in range(len(checkers)) for finding in found[number]]
    # What is broken comes before what may only be strict.
    return sorted(findings, key=lambda finding: finding.kind.startswith("never"))


def _checkers(rows: Sequence[Row]) -> dict[str, _Checker]:
    checkers: dict[str, _Checker] = {}
    for index, row in enumerate(rows):
        for number, constraint in enumerate(row["constraints"], start=1):
            steps = constraint["evaluation"]
            for position, step in enumerate(steps, start=1):
                if step["type"] != "code":
                    continue
                checker = checkers.setdefault(step["exec"], _Checker(step["exec"], [], [], []))
                checker.places.append(escaped(f"{label(index, row)} constraint {number}"))
                # Examples are answers: they say nothing of a step that gets a judge's reply.
                if all(before["type"] in _PASSING_ON for before in steps[: position - 1]):
                    checker.good += _examples(constraint, "good")
                    checker.bad += _examples(constraint, "bad")
                checker.decides &= position == len(steps)
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
    values = [_read(checker, result.value) for result in results]
    # Nobody knows what becomes of a text that is not read as a verdict.
    if len(failed) < len(results) and not any(isinstance(value, str) for value in values):
        for value, kind in ((True, "never true"), (False, "never false")):
            if value not in [v for v in values if isinstance(v, bool)]:
                yield kind, f"on {len(results)} texts"
    good, bad = values[: len(checker.good)], values[len(checker.good) :][: len(checker.bad)]
    if checker.decides and (refused := sum(value is not True for value in good)):
        yield "good example refused", f"{refused} of {len(good)}"
    if checker.decides and (accepted := sum(value is not False for value in bad)):
        yield "bad example accepted", f"{accepted} of {len(bad)}"
    if slowest > SLOW_S:
        yield "slow", f"{slowest:.1f} s for one text"


def _read(checker: _Checker, value: bool | str | None) -> bool | str | None:
    """Return what the chain's end makes of a value; a text that gives no verdict there stays."""
    if not isinstance(value, str) or not checker.decides:
        return value
    verdict = parse(value)
    return value if verdict is None else verdict


def _line(source: str) -> str:
    """Return the line that defines the checker, with its number, else one that names it."""
    lines = source.strip("\ufeff").split("\n")
    named = (n for n, text in enumerate(lines, start=1) if "check_following" in text)
    number = defining_line(source) or next(named, 1)
    text = lines[number - 1].strip()[:60]
    return f"line {number}: {escaped(text)}" if source else "no source"
