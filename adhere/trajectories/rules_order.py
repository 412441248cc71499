"""Rules over order: tools before each other, and what comes before the answer.

Two calls of one step are in the order in which they are listed, although neither saw the other's
result: ``separate_steps`` requires that a tool was called in an earlier step.
"""

from typing import Annotated

from pydantic import Field

from adhere.rules.arguments import Words
from adhere.rules.registry import Arguments, example
from adhere.trajectories.building import FINISHING
from adhere.trajectories.examples import run
from adhere.trajectories.outcome import StepOutcome, followed, not_applicable, violated
from adhere.trajectories.registry import Tools, rule
from adhere.trajectories.scope import Call, View

Order = Annotated[list[Words], Field(min_length=2)]


def _distinct(args: Arguments) -> None:
    if len(set(args["order"])) < len(args["order"]):
        raise ValueError("`order` names a tool twice")


@rule(
    "tool_order",
    valid=_distinct,
    passes=[
        example(run("search", "search", "read", "book"), order=["search", "read", "book"]),
        example(run("search", "map"), order=["search", "book"]),
        example(run(["search", "book"]), order=["search", "book"]),
    ],
    fails=[
        example(run("book", "search"), order=["search", "book"]),
        example(run("search", "book", "search"), order=["search", "book"]),
        example(run("search", "book"), order=["search", "read", "book"]),
        example(run("search"), order=["search", "book"], all=True),
        example(run(["search", "book"]), order=["search", "book"], separate_steps=True),
    ],
)
def tool_order(
    view: View, order: Order, all: bool = False, separate_steps: bool = False
) -> StepOutcome:
    """All calls of the named tools are in this order, whatever is called in between.

    A call breaks it when a tool before it in ``order`` was not called yet, or one after it already
    was. ``all`` requires every tool. Not applicable where none of them is called, unless ``all``.
    """
    calls = view.calls(list(order))
    if not calls and not all:
        return not_applicable(f"no call of {', '.join(order)}")
    problems = _misplaced(calls, order, separate_steps=separate_steps)
    if problems:
        first, reason = problems[0]
        return violated(f"{first}: {reason}", (call.step for call, _ in problems))
    called = {call.action.tool for call in calls}
    never = [tool for tool in order if tool not in called]
    if all and never:
        return violated(f"never called: {', '.join(never)}")
    return followed(" → ".join(tool for tool in order if tool in called))


def _misplaced(
    calls: list[Call], order: list[str], *, separate_steps: bool
) -> list[tuple[Call, str]]:
    """Return the calls that break the order, each with the reason."""
    seen: dict[str, int] = {}  # the step of each tool's first call
    furthest, problems = -1, []
    for call in calls:
        position = order.index(call.action.tool)
        limit = call.step if separate_steps else call.step + 1
        missing = [tool for tool in order[:position] if seen.get(tool, limit) >= limit]
        seen.setdefault(call.action.tool, call.step)
        if missing:
            problems.append((call, f"{missing[0]} was not called before"))
        elif position < furthest:
            problems.append((call, f"comes after {order[furthest]}"))
        else:
            furthest = position
    return problems


@rule(
    "answer_after_tool",
    passes=[example(run("search", answer="Tea."), tool="search")],
    fails=[
        example(run(answer="Tea."), tool="search"),
        example(run({"message": "So:", "final_answer": "Tea."}, "search"), tool="search"),
        example(run("search", answer="Tea."), tool=["search", "check"]),
    ],
)
def answer_after_tool(view: View, tool: Tools) -> StepOutcome:
    """Each of the tools is called in a step before the final answer.

    Not applicable where there is no final answer.
    """
    answer = view.answer
    if answer is None:
        return not_applicable("there is no final answer")
    for name in tool:
        if not any(c.step < answer for c in view.calls([name])):
            late = view.calls([name])
            found = f"called only after it ({late[0]})" if late else "never called"
            return violated(f"the answer ({view.named(answer)}): {name} is {found}", [answer])
    return followed(f"{', '.join(tool)} before the answer ({view.named(answer)})")


@rule(
    "observation_before_answer",
    passes=[
        example(run("search", answer="Tea.")),
        example(run({"tool": "map"}, "search", answer="Tea."), tool="search", every=True),
    ],
    fails=[
        example(run(answer="Tea.")),
        example(run({"tool": "search"}, answer="Tea.")),
        example(run({"tool": "map"}, "search", answer="Tea."), every=True),
        example(run({"tool": "search", "error": "timeout"}, answer="Tea."), success=True),
        example(run("map", answer="Tea."), tool="search"),
    ],
)
def observation_before_answer(
    view: View, tool: Tools | None = None, every: bool = False, success: bool = False
) -> StepOutcome:
    """A call returned something before the final answer was given.

    ``tool`` says whose result counts; ``every`` requires one for each call made before the answer;
    ``success`` counts no errors. Calls that hand in the answer do not count. Not applicable where
    there is no final answer.
    """
    answer = view.answer
    if answer is None:
        return not_applicable("there is no final answer")
    calls = [c for c in view.calls(tool) if c.step < answer and c.action.tool not in FINISHING]
    seen = [c for c in calls if _returned_before(c, answer, success=success)]
    what = "result without an error" if success else "result"
    if not seen:
        return violated(
            f"the answer ({view.named(answer)}): no {what} of a call before it", [answer]
        )
    unseen = [call for call in calls if call not in seen]
    if every and unseen:
        reason = f"the answer ({view.named(answer)}): {unseen[0]} has no {what}"
        return violated(reason, [answer])
    return followed(f"{seen[0]} returned before the answer")


def _returned_before(call: Call, answer: int, *, success: bool) -> bool:
    if call.result is None or call.returned is None or (success and call.result.error):
        return False
    return call.returned < answer
