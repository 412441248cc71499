"""The chain: one constraint's steps in order, and the one verdict they give.

Pure but for the functions it is given, which ask a judge and run a checker.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adhere.checkers import CheckResult
from adhere.data import Step

if TYPE_CHECKING:
    # Loading all rules takes a moment that chains without them need not wait for.
    from adhere.rule_steps import Applied

NOT_APPLICABLE = "not_applicable"
# A question that was left out on purpose, by a judge that asks nobody.
NOT_ASKED = "not_asked"


@dataclass(frozen=True, slots=True)
class Answered:
    """What asking a judge came to.

    ``text`` is the reply without its thinking, ``verdict`` what was read from it where one was
    asked for, ``reason`` why there is none, ``record`` what is kept of the calls.
    """

    text: str | None
    verdict: bool | None
    reason: str | None
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """What a judge is asked: a step's prompt, and the working text that is put into it."""

    template: str
    working: str

    @property
    def prompt(self) -> str:
        """The prompt as it is sent, filled in one pass: what is inserted stays data."""
        if "{response}" in self.template:
            return self.template.replace("{response}", self.working)
        return f"{self.template}\n\nHere is model response: {self.working}"


Ask = Callable[[Question, int, bool], Awaitable[Answered]]
Check = Callable[[str, str], Awaitable[CheckResult]]
Apply = Callable[[str, str], "Applied"]
Read = Callable[[str], bool | None]


@dataclass(frozen=True, slots=True)
class Tools:
    """What a chain works with: ``ask(question, position, verdict_wanted)``,
    ``check(source, text)``, ``apply(rule, text)`` and ``read(text)``, which finds the verdict in a
    text."""

    ask: Ask
    check: Check
    apply: Apply
    read: Read


@dataclass(slots=True)
class Outcome:
    """A constraint's verdict: ``score`` True, False or None with its reason, and the trace."""

    score: bool | None = None
    null_reason: str | None = None
    llm_output: str | None = None
    steps: list[dict[str, Any]] = field(default_factory=list)

    def decided(self, score: bool) -> "Outcome":
        """Set a verdict."""
        self.score, self.null_reason = score, None
        return self

    def undecided(self, reason: str) -> "Outcome":
        """Set no verdict, and why."""
        self.score, self.null_reason = None, reason
        return self


async def run_chain(steps: Sequence[Step], answer: str, tools: Tools) -> Outcome:
    """Run a constraint's steps on the final answer.

    A step that fails ends the chain; a conditional that says no ends it as not applicable.
    """
    outcome = Outcome()
    working: str | bool = answer
    for position, step in enumerate(steps):
        last = position == len(steps) - 1
        if step.type == "code":
            checked = await tools.check(step.text, str(working))
            outcome.steps.append(_checked_record(checked))
            if checked.reason is not None:
                return outcome.undecided(checked.reason)
            if checked.value is None:
                return outcome.undecided(NOT_APPLICABLE)
            working = checked.value
            continue
        if step.type == "rule":
            applied = tools.apply(step.text, str(working))
            outcome.steps.append(_applied_record(applied))
            if applied.verdict is None:
                return outcome.undecided(NOT_APPLICABLE)
            working = applied.verdict
            continue
        conditional = step.type == "llm_conditional_check"
        question = Question(step.text, str(working))
        answered = await tools.ask(question, position, conditional or last)
        outcome.steps.append({"type": step.type, **answered.record})
        outcome.llm_output = answered.text
        if answered.reason is not None:
            return outcome.undecided(answered.reason)
        if conditional and (answered.verdict is False or last):
            return outcome.undecided(NOT_APPLICABLE)
        if not conditional:
            working = answered.verdict if answered.verdict is not None else answered.text or ""
    verdict = working if isinstance(working, bool) else tools.read(working)
    if verdict is None:
        return outcome.undecided("checker_unreadable")
    return outcome.decided(verdict)


def _applied_record(applied: "Applied") -> dict[str, Any]:
    record: dict[str, Any] = {"type": "rule", "result": applied.verdict, "found": applied.reason}
    if applied.steps:
        record["broken_steps"] = list(applied.steps)
    return record


def _checked_record(checked: CheckResult) -> dict[str, Any]:
    record: dict[str, Any] = {"type": "code", "result": checked.value}
    if checked.isolation is not None:
        record["isolation"] = checked.isolation
    if checked.reason is not None:
        record |= {"reason": checked.reason, "detail": checked.detail}
    if checked.repaired:
        record["repaired"] = True
    return record
