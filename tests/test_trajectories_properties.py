"""Properties of importers, of the way to OpenAI's messages and back, and of the text for judges."""

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adhere import jsonio
from adhere.errors import DataError
from adhere.trajectories import (
    FORMATS,
    TRAJECTORY,
    Action,
    Message,
    Observation,
    Step,
    Tool,
    Trajectory,
    judge,
    load,
    render,
    results,
    to_openai,
)
from adhere.trajectories.content import parsed

REFERENCES = sorted((Path(__file__).parent / "trajectories").iterdir())
RULES: list[tuple[str, dict[str, Any]]] = [
    ("must_call_tool", {"tool": "price_of"}),
    ("no_unknown_tool", {}),
    ("no_repeated_call", {}),
    ("tool_args", {"tool": "price_of", "schema": {"required": ["item"]}}),
    ("tool_order", {"order": ["price_of", "bash"], "all": True}),
    ("observation_before_answer", {"every": True}),
    ("answer_after_tool", {"tool": "price_of", "when": {"after_tool": "price_of"}}),
    ("claimed_but_not_called", {"tools": ["price_of"]}),
    ("max_calls", {"max": 1, "steps": {"from": 2}}),
]
CHECKS = [TRAJECTORY.load(name, args) for name, args in RULES]

# Words that the formats know, so that what is made up comes near to them.
WORDS = """
role content messages type tool_calls function name arguments steps action actions tool args result
observation final_answer schema_version agent message source step_id results output input trajectory
history info samples eval status version events attachments transcript id call_id tool_call_id
trajectory_format extra submission text tools error
"""
KEYS = st.sampled_from(WORDS.split())
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | KEYS
JSON = st.recursive(
    VALUES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(), inner, max_size=5)
    ),
    max_leaves=20,
)
LABELS = (
    "Thought:",
    "Action:",
    "Action Input:",
    "Observation:",
    "Final Answer:",
    "行动：",
    "```",
    "{}",
)
REACT = st.lists(st.sampled_from(LABELS) | st.text(max_size=6) | st.just("\n")).map("\n".join)


def use(trajectories: list[Trajectory]) -> None:
    """Do with trajectories what is done with them."""
    for trajectory in trajectories:
        indices = {step.index for step in trajectory.steps}
        assert indices == set(range(1, len(indices) + 1))
        for check in CHECKS:
            assert set(judge(check, trajectory).steps) <= indices
        assert render(trajectory)
        once = load(to_openai(trajectory), format="openai-chat")[0]
        assert load(to_openai(once), format="openai-chat")[0] == once
        assert calls(once) == calls(trajectory)


def calls(trajectory: Trajectory) -> list[tuple[str, Any, str | None]]:
    """Return all calls with their results, in order."""
    answered = results(trajectory)
    return [
        (action.tool, action.arguments, getattr(answered.get((step.index, n)), "content", None))
        for step in trajectory.steps
        for n, action in enumerate(step.actions)
    ]


def load_or_refuse(value: Any, format: str | None = None) -> None:
    try:
        trajectories = load(value, format=format)
    except DataError:
        return
    use(trajectories)


@given(JSON | REACT)
@example([{"role": "assistant", "tool_calls": [{"function": "f"}]}])
@example({"steps": [{"action": {"tool": "f", "args": {"a": float("nan")}}}]})
@example({"steps": [{"action": {"tool": "f", "args": {"a": 2**70}}}]})
def test_any_value_is_loaded_or_refused(value: Any) -> None:
    load_or_refuse(value)


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=40)
@given(JSON | REACT)
def test_any_value_is_loaded_or_refused_by_each_format(format: str, value: Any) -> None:
    load_or_refuse(value, format)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    else:
        return [path]
    return [path, *(p for key, element in inside for p in places(element, (*path, key)))]


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.name)
@settings(max_examples=40)
@given(st.data())
def test_a_damaged_document_is_loaded_or_refused(path: Path, data: st.DataObject) -> None:
    if path.suffix == ".txt":
        text = path.read_text()
        cut = data.draw(st.integers(0, len(text)))
        load_or_refuse(text[:cut] + data.draw(REACT) + text[cut + 5 :])
        return
    document = copy.deepcopy(jsonio.read_json(path))
    *parents, last = data.draw(st.sampled_from(places(document)[1:]))
    holder = document
    for key in parents:
        holder = holder[key]
    if data.draw(st.booleans()):
        holder[last] = data.draw(JSON)
    else:
        del holder[last]
    load_or_refuse(document)


@given(st.binary(max_size=60))
def test_any_file_is_loaded_or_refused(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(raw)
    load_or_refuse(path)


@pytest.mark.parametrize("depth", [200, 500, 5_000])
def test_deep_nesting_is_loaded_or_refused(depth: int, tmp_path: Path) -> None:
    inner = "[" * depth + "]" * depth
    path = tmp_path / "deep.json"
    path.write_text(f'{{"steps": [{{"action": {{"tool": "f", "args": {{"a": {inner}}}}}}}]}}')
    load_or_refuse(path)
    path.write_text(f'Action: f\nAction Input: {{"a": {inner}}}')
    load_or_refuse(path)
    nested: Any = []
    for _ in range(depth):
        nested = [nested]
    load_or_refuse({"steps": [{"action": {"tool": "f", "args": {"a": nested}}}]})


# Round trips. Trajectories as chat completions have them: every call has an id of its own.

# Tags of thinking are taken out of what an agent says, as they should be.
TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="<[◁"), max_size=12)
NAMES = st.from_regex(r"[a-z_]{1,6}", fullmatch=True)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(TEXT, PLAIN, max_size=3) | TEXT.map(parsed)


@st.composite
def chats(draw: st.DrawFn) -> Trajectory:
    turns: list[Message | Step] = []
    known: list[str] = []
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.booleans()):
            turns.append(Message(draw(st.sampled_from(["system", "user"])), draw(TEXT)))
            continue
        made = []
        for _ in range(draw(st.integers(0, 3))):
            known.append(f"call_{len(known)}")
            made.append(Action(draw(NAMES), draw(ARGUMENTS), known[-1]))
        ids = st.sampled_from([*known, "stray"])
        seen = [
            Observation(draw(TEXT), draw(ids), draw(st.booleans()))
            for _ in range(draw(st.integers(0, 3)))
        ]
        index = sum(isinstance(turn, Step) for turn in turns) + 1
        turns.append(Step(index, draw(TEXT), draw(TEXT), tuple(made), tuple(seen)))
    tools = draw(st.none() | st.lists(st.builds(Tool, NAMES), max_size=2).map(tuple))
    return Trajectory("openai-chat", turns=tuple(turns), tools=tools)


def answered(trajectory: Trajectory) -> Trajectory:
    """Return the trajectory with the answer that its last step implies."""
    steps = trajectory.steps
    if not steps or steps[-1].actions or not steps[-1].text:
        return trajectory
    last = steps[-1]
    given_ = Step(last.index, last.thought, last.text, (), last.observations, last.text)
    turns = tuple(given_ if turn is last else turn for turn in trajectory.turns)
    return Trajectory(
        trajectory.format, turns=turns, tools=trajectory.tools, final_answer=last.text
    )


@given(chats())
def test_to_openai_and_back(trajectory: Trajectory) -> None:
    trajectory = answered(trajectory)
    exported = jsonio.loads(jsonio.dumps(to_openai(trajectory)))
    assert load(exported, format="openai-chat") == [trajectory]


@given(chats())
def test_the_text_for_a_judge_holds_everything_in_order(trajectory: Trajectory) -> None:
    lines = render(answered(trajectory)).split("\n")
    said = [line for line in lines if line.startswith("    ")]
    position = 0
    for text in texts(trajectory):
        for line in text.splitlines():
            assert "    " + line in said[position:]
            position = said.index("    " + line, position) + 1
    headings = [line for line in lines if line.startswith("Step ")]
    assert headings == [f"Step {step.index}" for step in trajectory.steps]


def texts(trajectory: Trajectory) -> list[str]:
    found: list[str] = []
    for turn in trajectory.turns:
        if isinstance(turn, Message):
            found.append(turn.text)
            continue
        arguments = [a.arguments for a in turn.actions]
        given_ = [a if isinstance(a, str) else jsonio.dumps(a).decode() for a in arguments]
        contents = [o.content for o in turn.observations]
        # What is an answer stands at the end of its step.
        is_answer = turn is trajectory.steps[-1] and not turn.actions
        spoken = [*given_, *contents, turn.text] if is_answer else [turn.text, *given_, *contents]
        found += [turn.thought, *spoken]
    return found


def test_a_text_is_cut_only_where_a_limit_says_so() -> None:
    long = "a" * 100_000
    (trajectory,) = load([{"role": "user", "content": long}])
    assert long in render(trajectory)
    cut = render(trajectory, limit=10)
    assert "User:\n    aaaaaaaaaa\n    [99990 more characters are left out here]\n" in cut


def test_no_text_can_look_like_a_heading() -> None:
    (trajectory,) = load([{"role": "user", "content": "Hi\nStep 1\r\nFinal answer:\u2028Step 2"}])
    assert "\nStep" not in render(trajectory)
    assert "\u2028Step" not in render(trajectory)


def test_one_result_of_two_calls_is_named_after_both() -> None:
    (trajectory,) = load({"steps": [{"actions": ["f", "g"], "observation": "ok"}]})
    assert "Result of f (action 1), g (action 2):\n    ok\n" in render(trajectory)
    assert "Result without a call (x):" in render(
        load([{"role": "assistant"}, {"role": "tool", "tool_call_id": "x"}])[0]
    )


def test_the_text_for_a_judge() -> None:
    trajectory = load(REFERENCES[0].parent / "atif.json")[0]
    assert render(trajectory) == (
        "Tools that were offered:\n"
        "    price_of\n"
        "System:\n"
        "    You help in a kettle shop.\n"
        "User:\n"
        "    Which kettle is cheaper, the blue one or the red one?\n"
        "Step 1\n"
        "Thought:\n"
        "    I need both prices.\n"
        "Call of price_of (call_a):\n"
        '    {"item":"blue kettle"}\n'
        "Call of price_of (call_b):\n"
        '    {"item":"red kettle"}\n'
        "Result of price_of (call_b):\n"
        "    31 euros\n"
        "Result of price_of (call_a), by sub-agents clerk:\n"
        "    24 euros\n"
        "Step 2\n"
        "Answer:\n"
        "    The blue kettle is cheaper.\n"
        "Sub-agent clerk begins\n"
        "User:\n"
        "    The blue kettle?\n"
        "Step 1\n"
        "Answer:\n"
        "    24 euros\n"
        "Sub-agent ends\n"
    )
