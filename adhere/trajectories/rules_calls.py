"""Rules over calls: which tools, with what arguments, how often."""

from typing import Any

from adhere import jsonio
from adhere.rules import schemas
from adhere.rules.arguments import Count, Position, Words, several, shown
from adhere.rules.registry import Arguments, example
from adhere.trajectories.examples import run
from adhere.trajectories.form import Action
from adhere.trajectories.outcome import StepOutcome, followed, not_applicable, violated
from adhere.trajectories.registry import Tools, rule
from adhere.trajectories.scope import Call, View


def _blame(calls: list[Call], what: str) -> StepOutcome:
    """Return the violation of these calls; the reason names the first and counts the others."""
    more = f" and {several(len(calls) - 1, 'more call')}" if len(calls) > 1 else ""
    return violated(f"{calls[0]}{more}: {what}", (call.step for call in calls))


@rule(
    "must_call_tool",
    passes=[
        example(run("search", answer="Tea."), tool="search"),
        example(run(["search", "map"], answer="Tea."), tool=["search", "map"]),
        example(run("search", {"tool": "search", "args": {"q": 2}}), tool="search", times=2),
    ],
    fails=[
        example(run(answer="Tea."), tool="search"),
        example(run("search", answer="Tea."), tool=["search", "map"]),
        example(run("search", "map"), tool="search", when={"after_tool": "map"}),
    ],
)
def must_call_tool(view: View, tool: Tools, times: Position = 1) -> StepOutcome:
    """Each of the tools is called, at least ``times`` times."""
    for name in tool:
        calls = view.calls([name])
        if len(calls) < times:
            return violated(f"{name}: {several(len(calls), 'call')}, at least {times} required")
    return followed(f"called: {', '.join(tool)}")


@rule(
    "must_not_call_tool",
    passes=[
        example(run("search", answer="Tea."), tool="pay"),
        example(run("ask", "pay"), tool="pay", steps={"to": 1}),
    ],
    fails=[
        example(run("search", "pay", answer="Paid."), tool="pay"),
        example(run(["search", "pay"]), tool=["pay", "delete"]),
    ],
)
def must_not_call_tool(view: View, tool: Tools) -> StepOutcome:
    """None of the tools is called."""
    calls = view.calls(tool)
    return _blame(calls, "must not be called") if calls else followed("not called")


@rule(
    "no_unknown_tool",
    passes=[
        example(run("search", tools=["search", "map"])),
        example(run("search"), tools=["search"]),
    ],
    fails=[
        example(run("search", "teleport", tools=["search"])),
        example(run("search"), tools=["map"]),
        example(run("search", tools=[])),
    ],
)
def no_unknown_tool(view: View, tools: list[Words] | None = None) -> StepOutcome:
    """Only tools that were offered are called: those named here, or those of the trajectory.

    Not applicable where neither says which tools there are.
    """
    offered = view.trajectory.tools
    if tools is None and offered is None:
        return not_applicable("the trajectory does not say which tools were offered")
    known = {tool.name for tool in offered or ()} if tools is None else set(tools)
    unknown = [call for call in view.calls() if call.action.tool not in known]
    return _blame(unknown, "no such tool was offered") if unknown else followed("all are known")


@rule(
    "no_irrelevant_tool",
    passes=[example(run("search", "map"), relevant=["search", "map"]), example(run(), relevant=[])],
    fails=[
        example(run("search", "weather", tools=["search", "weather"]), relevant=["search"]),
        example(run("search"), relevant=[]),
    ],
)
def no_irrelevant_tool(view: View, relevant: list[Words]) -> StepOutcome:
    """Only tools that serve the task are called; an empty list says that none does."""
    others = [call for call in view.calls() if call.action.tool not in relevant]
    return _blame(others, "not relevant to the task") if others else followed("all are relevant")


def _schema(args: Arguments) -> None:
    if not args["schema"]:
        raise ValueError("`schema` is empty: nothing could violate it")
    schemas.checked(args["schema"])


_QUERY = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


@rule(
    "tool_args",
    valid=_schema,
    passes=[example(run({"tool": "search", "args": {"q": "tea"}}), tool="search", schema=_QUERY)],
    fails=[
        example(run({"tool": "search", "args": {"q": 1}}), tool="search", schema=_QUERY),
        example(run({"tool": "search", "args": '{"q": "te'}), tool="search", schema=_QUERY),
        example(run({"tool": "search", "args": "tea"}), tool="search", schema={"required": ["q"]}),
    ],
)
def tool_args(view: View, tool: Tools, schema: dict[str, Any]) -> StepOutcome:
    """The arguments of every call of the tools are valid against a JSON Schema.

    Arguments that are no JSON object are not, unless the schema's ``type`` allows text. Not
    applicable where none of the tools is called: ``must_call_tool`` requires the call.
    """
    calls = view.calls(tool)
    if not calls:
        return not_applicable(f"no call of {' or '.join(tool)}")
    problems = [(call, problem) for call in calls if (problem := _problem(call.action, schema))]
    if not problems:
        return followed(f"{several(len(calls), 'call')} with valid arguments")
    return _blame([call for call, _ in problems], problems[0][1])


def _problem(action: Action, schema: dict[str, Any]) -> str | None:
    kinds = schema.get("type")
    if isinstance(action.arguments, str) and "string" not in (kinds if kinds else ""):
        return f"the arguments are no JSON object: {shown(action.arguments)}"
    return schemas.problem(schema, action.arguments)


@rule(
    "max_steps",
    passes=[example(run("search", "map"), max=2)],
    fails=[example(run("search", "map", "map"), max=2)],
)
def max_steps(view: View, max: Count) -> StepOutcome:
    """The agent takes at most so many steps; those beyond break the rule."""
    steps = view.steps
    found = f"{several(len(steps), 'step')}, at most {max} allowed"
    return violated(found, (s.index for s in steps[max:])) if steps[max:] else followed(found)


@rule(
    "max_calls",
    passes=[
        example(run("search", "map"), max=2),
        example(run("search", "map"), max=1, tool="search"),
    ],
    fails=[
        example(run(["search", "map", "map"]), max=2),
        example(run("search", "search"), max=1, tool="search"),
    ],
)
def max_calls(view: View, max: Count, tool: Tools | None = None) -> StepOutcome:
    """Tools are called at most so often, all together or only those named."""
    calls = view.calls(tool)
    found = f"{several(len(calls), 'call')}, at most {max} allowed"
    return violated(found, (call.step for call in calls[max:])) if calls[max:] else followed(found)


@rule(
    "no_repeated_call",
    passes=[
        example(run({"tool": "search", "args": {"q": 1}}, {"tool": "search", "args": {"q": 2}})),
        example(run({"tool": "search", "error": "timeout"}, "search"), allow_retry=True),
    ],
    fails=[
        example(
            run({"tool": "f", "args": {"a": 1, "b": 2}}, {"tool": "f", "args": {"b": 2.0, "a": 1}})
        ),
        example(run(["search", "search"])),
        example(run({"tool": "search", "error": "timeout"}, "search")),
    ],
)
def no_repeated_call(
    view: View, tool: Tools | None = None, allow_retry: bool = False
) -> StepOutcome:
    """No call is made twice with the same arguments; the order of keys does not matter.

    With ``allow_retry``, a call may be made again when the one before it ended in an error.
    """
    before: dict[tuple[str, bytes], Call] = {}
    repeated = []
    for call in view.calls(tool):
        key = (call.action.tool, _canonical(call.action))
        earlier = before.get(key)
        before[key] = call
        failed = earlier is not None and earlier.result is not None and earlier.result.error
        if earlier is not None and not (allow_retry and failed):
            repeated.append((call, earlier))
    if not repeated:
        return followed("no call is repeated")
    return _blame([call for call, _ in repeated], f"repeats step {repeated[0][1].step}")


def _canonical(action: Action) -> bytes:
    arguments = action.arguments
    return jsonio.canonical(
        arguments.strip() if isinstance(arguments, str) else _numbers(arguments)
    )


def _numbers(value: Any) -> Any:
    """Return a value in which 2.0 is 2, as in JSON."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [_numbers(element) for element in value]
    if isinstance(value, dict):
        return {key: _numbers(element) for key, element in value.items()}
    return value
