"""The plain ``steps`` JSON: what was thought, called and returned, as people write it by hand.

::

    {"steps": [{"thought": "…", "action": {"tool": "search", "args": {"q": "…"}, "result": "…"}}],
     "final_answer": "…", "tools": ["search"], "input": "…"}

Only ``steps`` is required, and the list of steps may also stand alone. A step may have several
``actions``, and an ``observation`` of its own; an action's ``result`` counts as its observation.
The answer stands after all steps and is none.
"""

from collections.abc import Iterator

from adhere.trajectories.building import Builder, Draft
from adhere.trajectories.content import arguments_of, text_of, tools_of
from adhere.trajectories.form import Action, Observation, Role, Trajectory
from adhere.trajectories.node import Node

FORMAT = "steps"
VERSIONS = ("1",)
_NAME = ("tool", "name", "tool_name", "function")
_ARGUMENTS = ("args", "arguments", "input", "action_input", "parameters")
_RESULT = ("result", "output")


def read(node: Node) -> list[Trajectory]:
    """Return the one trajectory. Raises DataError naming the place."""
    if isinstance(node.value, list):
        node = Node({"steps": node.value}, node.source)
    version = node.get("version")
    if version.present and version.identifier() not in VERSIONS:
        raise version.problem(f"version {', '.join(VERSIONS)}, or none")
    if not node.get("steps").present:
        raise node.get("steps").problem("a list of steps")
    builder = Builder()
    for role, said in _context(node):
        if said.present:
            builder.message(role, said.anything())
    for step in node.get("steps").elements():
        _step(builder, step)
    answer = node.get("final_answer", "answer")
    latest = builder.latest
    if latest is not None and latest.observations and latest.answer and not answer.present:
        # The last step saw its results before it answered: the answer stands after all steps.
        answer, latest.answer = Node(latest.answer, node.source), None
    header = Trajectory(
        FORMAT,
        version.identifier() or VERSIONS[0],
        tools=tools_of(node.get("tools")),
        final_answer=answer.anything() if answer.present else None,
        metadata=node.kept("id", "model"),
    )
    return [builder.into(header)]


def _context(node: Node) -> tuple[tuple[Role, Node], ...]:
    return ("system", node.get("system")), ("user", node.get("input", "question", "task"))


def _step(builder: Builder, step: Node) -> None:
    draft = builder.step(step.get("agent").text())
    draft.thought.append(text_of(step.get("thought", "thoughts", "reasoning")))
    draft.text.append(text_of(step.get("message", "content", "text")))
    answer = step.get("final_answer", "answer")
    draft.answer = answer.anything() if answer.present else None
    calls = list(_calls(step))
    for number, (name, holder) in enumerate(calls, start=1):
        _action(draft, name, holder, number=number if len(calls) > 1 else None)
    seen = step.get("observation", "observations")
    for result in seen.elements() if isinstance(seen.value, list) else [seen]:
        if result.present:
            draft.observations.append(Observation(result.anything()))


def _calls(step: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the name of each action and the object that holds its arguments and result."""
    taken = step.get("actions", "action", "tool_calls")
    if isinstance(taken.value, str):
        yield taken, step
    elif isinstance(taken.value, list):
        for call in taken.elements():
            holder = call.get("function") if call.is_object() else call
            holder = holder if holder.is_object() else call
            yield (holder.get(*_NAME) if holder.is_object() else holder), holder
    elif taken.present:
        yield taken.get(*_NAME), taken
    elif step.get("tool", "tool_name").present:
        yield step.get("tool", "tool_name"), step


def _action(draft: Draft, name: Node, holder: Node, *, number: int | None) -> None:
    """Add a call with its result. Several actions of a step are told apart by ``number``."""
    tool = name.name("the name of a tool, or an object with `tool` and `args`")
    fields = holder if holder.is_object() else Node({}, holder.source, holder.path)
    call = fields.get("id", "call_id").identifier()
    if call is None and number is not None:
        call = f"action {number}"
    draft.actions.append(Action(tool, arguments_of(fields.get(*_ARGUMENTS)), call))
    result, error = fields.get(*_RESULT), fields.get("error")
    failed = bool(error.value)
    if result.present or failed:
        content = result.anything() if result.present else error.anything()
        draft.observations.append(Observation(content, call, failed))
