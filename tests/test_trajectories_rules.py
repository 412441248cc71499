"""Rules over trajectories: their examples, edges, scope, and the step deviation rate."""

from typing import Any

import pytest

from adhere.errors import DataError
from adhere.trajectories import (
    TRAJECTORY,
    Action,
    StepDeviation,
    StepOutcome,
    Trajectory,
    judge,
    load,
    step_deviation,
)
from adhere.trajectories.examples import run

EMPTY = run()
# What each rule is given to be tried on trajectories that it may not apply to.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "must_call_tool": {"tool": "f"},
    "must_not_call_tool": {"tool": "f"},
    "no_unknown_tool": {},
    "no_irrelevant_tool": {"relevant": ["f"]},
    "tool_args": {"tool": "f", "schema": {"type": "object"}},
    "max_steps": {"max": 1},
    "max_calls": {"max": 1},
    "no_repeated_call": {},
    "claimed_but_not_called": {},
    "tool_order": {"order": ["f", "g"]},
    "answer_after_tool": {"tool": "f"},
    "observation_before_answer": {},
}


def outcome(name: str, trajectory: Trajectory, **args: Any) -> StepOutcome:
    return judge(TRAJECTORY.load(name, args), trajectory)


def verdict(name: str, trajectory: Trajectory, **args: Any) -> str:
    return outcome(name, trajectory, **args).verdict


@pytest.mark.parametrize("name", TRAJECTORY.rules)
def test_the_examples_beside_a_rule(name: str) -> None:
    rule = TRAJECTORY.rules[name]
    assert rule.passes and rule.fails and rule.summary
    for good in rule.passes:
        assert verdict(name, good.subject, **good.args) == "followed", good
    for bad in rule.fails:
        found = outcome(name, bad.subject, **bad.args)
        assert found.verdict == "violated", bad
        assert found.reason
        assert set(found.steps) <= {step.index for step in bad.subject.steps}


def test_every_rule_is_here() -> None:
    assert set(TRAJECTORY.rules) == set(ARGUMENTS)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("must_call_tool", "violated"),
        ("must_not_call_tool", "followed"),
        ("no_unknown_tool", "not_applicable"),
        ("no_irrelevant_tool", "followed"),
        ("tool_args", "not_applicable"),
        ("max_steps", "followed"),
        ("max_calls", "followed"),
        ("no_repeated_call", "followed"),
        ("claimed_but_not_called", "not_applicable"),
        ("tool_order", "not_applicable"),
        ("answer_after_tool", "not_applicable"),
        ("observation_before_answer", "not_applicable"),
    ],
)
def test_an_empty_trajectory(name: str, expected: str) -> None:
    found = outcome(name, EMPTY, **ARGUMENTS[name])
    assert (found.verdict, found.steps) == (expected, ())


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_scope_without_steps_is_not_applicable(name: str) -> None:
    trajectory = run("f", "g", answer="Done.", tools=["f", "g"])
    args = ARGUMENTS[name]
    assert verdict(name, trajectory, **args, steps={"from": 9}) == "not_applicable"
    found = outcome(name, trajectory, **args, when={"after_tool": "h"})
    assert found.verdict == "not_applicable"
    assert found.reason == "h is never called, so no step is after its call"


# Arguments.


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("must_call_tools", {}, "unknown rule `must_call_tools`"),
        ("must_call_tool", {}, "tool"),
        ("must_call_tool", {"tool": []}, "tool"),
        ("must_call_tool", {"tool": "f", "time": 2}, "time"),
        (
            "must_call_tool",
            {"tool": "f", "steps": {"form": 2}},
            "steps.form: unknown key (did you mean `from`?); allowed: from, to",
        ),
        ("must_call_tool", {"tool": "f", "steps": {"from": 3, "to": 2}}, "no step lies between"),
        ("must_call_tool", {"tool": "f", "steps": {"from": "2"}}, "steps.from: found '2'"),
        ("must_call_tool", {"tool": "f", "steps": {"from": 0}}, "from"),
        (
            "must_call_tool",
            {"tool": "f", "when": {"after": "g"}},
            "allowed: after_tool, before_tool",
        ),
        ("tool_order", {"order": ["f"]}, "order"),
        ("tool_order", {"order": ["f", "f"]}, "names a tool twice"),
        ("tool_args", {"tool": "f", "schema": {}}, "nothing could violate it"),
        ("tool_args", {"tool": "f", "schema": {"type": "objekt"}}, "not a JSON Schema"),
        ("claimed_but_not_called", {"tools": []}, "nothing could violate it"),
        ("max_steps", {"max": -1}, "max"),
    ],
)
def test_wrong_arguments_are_load_errors(name: str, args: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as caught:
        TRAJECTORY.load(name, args)
    assert message in str(caught.value)


# Scope.


def test_a_range_of_steps_includes_both_ends() -> None:
    trajectory = run("f", "g", "f", "g")
    assert outcome("must_not_call_tool", trajectory, tool="f", steps={"from": 2}).steps == (3,)
    assert outcome("must_not_call_tool", trajectory, tool="f", steps={"to": 1}).steps == (1,)
    inside = {"from": 2, "to": 2}
    assert verdict("must_not_call_tool", trajectory, tool="f", steps=inside) == "followed"
    assert verdict("must_call_tool", trajectory, tool="f", steps=inside) == "violated"


def test_conditions_on_another_tools_call() -> None:
    trajectory = run("ask", "search", "ask", "pay", answer="Paid.")
    after = outcome("must_not_call_tool", trajectory, tool="ask", when={"after_tool": "search"})
    assert after.steps == (3,)
    before = outcome("must_not_call_tool", trajectory, tool="ask", when={"before_tool": "search"})
    assert before.steps == (1,)
    between = {"after_tool": "search", "before_tool": "pay"}
    assert outcome("must_not_call_tool", trajectory, tool="ask", when=between).steps == (3,)
    assert verdict("must_call_tool", trajectory, tool="pay", when=between) == "violated"


def test_the_edges_of_a_scope() -> None:
    trajectory = run(["search", "ask"], "ask", "ask")
    after = {"after_tool": "search"}
    assert outcome("must_not_call_tool", trajectory, tool="ask", when=after).steps == (2, 3)
    both = outcome("must_not_call_tool", trajectory, tool="ask", when=after, steps={"from": 3})
    assert both.steps == (3,)
    beyond = {"from": 9, "to": 12}
    assert verdict("must_not_call_tool", trajectory, tool="ask", steps=beyond) == "not_applicable"
    claims = run("g", answer="I called f.")
    assert verdict("claimed_but_not_called", claims, tools=["f"], steps={"to": 1}) == "followed"


def test_the_answer_after_all_steps_is_in_an_open_range_only() -> None:
    trajectory = run("f", answer="Done.")
    assert verdict("answer_after_tool", trajectory, tool="f", steps={"from": 1}) == "followed"
    assert verdict("answer_after_tool", trajectory, tool="f", steps={"to": 1}) == "not_applicable"
    claims = run("g", answer="I called f.")
    assert verdict("claimed_but_not_called", claims, tools=["f"], when={"after_tool": "g"}) == (
        "violated"
    )


# Calls.


def test_each_named_tool_must_be_called() -> None:
    found = outcome("must_call_tool", run("f"), tool=["f", "g"], times=1)
    assert (found.verdict, found.reason) == ("violated", "g: 0 calls, at least 1 required")
    assert outcome("must_call_tool", run("f"), tool="f", times=2).steps == ()


def test_the_reason_names_step_and_call() -> None:
    step = {"actions": [{"tool": "f", "id": "a"}, {"tool": "g", "id": "b"}, {"tool": "g"}]}
    found = outcome("must_not_call_tool", run("f", step, "g"), tool="g")
    assert found.reason == "step 2: g (b) and 2 more calls: must not be called"
    assert found.steps == (2, 3)


def test_unknown_tools_of_one_parallel_step_count_the_step_once() -> None:
    found = outcome("no_unknown_tool", run(["x", "y", "f"], "f", tools=["f"]))
    assert found.steps == (1,)


def test_tools_that_were_offered_and_tools_that_are_named() -> None:
    trajectory = run("f", tools=["f"])
    assert verdict("no_unknown_tool", trajectory) == "followed"
    assert verdict("no_unknown_tool", trajectory, tools=["g"]) == "violated"
    assert verdict("no_unknown_tool", run("f", tools=[])) == "violated"
    assert verdict("no_unknown_tool", run("f")) == "not_applicable"
    assert verdict("no_unknown_tool", run(tools=["f"])) == "followed"


QUERY = {"type": "object", "required": ["q"], "properties": {"q": {"type": "string"}}}


def test_arguments_of_all_calls_of_the_tool() -> None:
    good, bad = {"tool": "f", "args": {"q": "a"}}, {"tool": "f", "args": {"q": 1}}
    other = {"tool": "g", "args": {}}
    found = outcome("tool_args", run([good, other], [good, bad], bad), tool="f", schema=QUERY)
    assert found.steps == (2, 3)
    assert "1 is not of type 'string'" in found.reason
    assert verdict("tool_args", run(good, other), tool="f", schema=QUERY) == "followed"
    assert verdict("tool_args", run(other), tool="f", schema=QUERY) == "not_applicable"


def test_text_arguments_need_a_schema_for_text() -> None:
    trajectory = run({"tool": "f", "args": "tea"})
    text = {"type": "string", "minLength": 2}
    assert verdict("tool_args", trajectory, tool="f", schema=text) == "followed"
    assert verdict("tool_args", trajectory, tool="f", schema={"type": ["string"]}) == "followed"
    assert verdict("tool_args", trajectory, tool="f", schema={"minProperties": 1}) == "violated"


def test_only_steps_and_calls_beyond_the_limit_break_it() -> None:
    trajectory = run("f", ["f", "f"], "f")
    assert outcome("max_steps", trajectory, max=1).steps == (2, 3)
    assert outcome("max_calls", trajectory, max=2).steps == (2, 3)
    assert outcome("max_calls", trajectory, max=3).steps == (3,)
    assert verdict("max_calls", trajectory, max=0, tool="g") == "followed"


def test_repeated_calls_are_compared_as_json() -> None:
    def repeated(first: object, second: object) -> bool:
        trajectory = run({"tool": "f", "args": first}, {"tool": "f", "args": second})
        return verdict("no_repeated_call", trajectory) == "violated"

    assert repeated({"a": {"x": 1, "y": [2]}}, {"a": {"y": [2.0], "x": 1}})
    assert repeated('{"a": 1}', {"a": 1})
    assert repeated("tea", "tea ")
    assert not repeated({"a": 1}, {"a": "1"})
    assert not repeated({"a": 1}, {"a": True})
    assert not repeated({"a": [1, 2]}, {"a": [2, 1]})
    assert verdict("no_repeated_call", run("f", "g", "f"), tool="g") == "followed"
    assert verdict("no_repeated_call", run({"tool": "f"}, {"tool": "g"})) == "followed"


def test_a_retry_after_an_error() -> None:
    error = {"tool": "f", "error": "timeout"}
    assert outcome("no_repeated_call", run(error, "f", "f"), allow_retry=True).steps == (3,)
    assert outcome("no_repeated_call", run(error, "f", "f")).steps == (2, 3)
    assert outcome("no_repeated_call", run({"tool": "f"}, "f"), allow_retry=True).steps == (2,)


# Order.


def test_order_looks_at_all_occurrences() -> None:
    order = ["a", "b", "c"]

    def steps(*tools: str) -> tuple[int, ...]:
        return outcome("tool_order", run(*tools), order=order).steps

    assert steps("a", "a", "x", "b", "b", "c") == ()
    assert steps("a", "b", "a", "c") == (3,)
    assert steps("b", "a", "c") == (1,)
    assert steps("a", "c", "b") == (2,)
    assert steps("c", "b", "a") == (1, 2)
    assert verdict("tool_order", run("x"), order=order) == "not_applicable"
    assert verdict("tool_order", run("x"), order=order, all=True) == "violated"
    assert verdict("tool_order", run("a", "b"), order=order) == "followed"
    assert verdict("tool_order", run("a", "b"), order=order, all=True) == "violated"


def test_parallel_calls_are_in_their_listed_order() -> None:
    assert verdict("tool_order", run(["a", "b"]), order=["a", "b"]) == "followed"
    assert verdict("tool_order", run(["b", "a"]), order=["a", "b"]) == "violated"
    apart = run("a", ["a", "b"])
    assert verdict("tool_order", apart, order=["a", "b"], separate_steps=True) == "followed"


def chat(*messages: dict[str, Any]) -> Trajectory:
    return load(list(messages))[0]


def asks(*tools: str, text: str = "") -> dict[str, Any]:
    calls = [{"id": f"{tool}1", "function": {"name": tool, "arguments": "{}"}} for tool in tools]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def returns(tool: str, text: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"{tool}1", "content": text}


SAYS = {"role": "assistant", "content": "It is tea."}


def test_an_answer_before_the_result_came() -> None:
    trajectory = chat(asks("f", "g"), returns("g"), SAYS, returns("f"))
    assert verdict("observation_before_answer", trajectory) == "followed"
    assert trajectory.answer_index == 2
    assert verdict("observation_before_answer", trajectory, tool="f") == "violated"
    assert outcome("observation_before_answer", chat(asks("f"), SAYS)).steps == (2,)
    assert verdict("answer_after_tool", chat(asks("f"), SAYS), tool="f") == "followed"
    missing = outcome(
        "observation_before_answer", chat(asks("f", "g"), returns("g"), SAYS), every=True
    )
    assert missing.reason == "the answer (step 2): step 1: f (f1) has no result"


def test_an_error_is_an_observation_unless_success_is_required() -> None:
    trajectory = run({"tool": "f", "error": "timeout"}, answer="Tea.")
    assert verdict("observation_before_answer", trajectory) == "followed"
    assert verdict("observation_before_answer", trajectory, success=True) == "violated"


def test_a_call_after_the_answer_comes_too_late() -> None:
    text = "Thought: easy\nFinal Answer: tea\nAction: f\nObservation: ok"
    trajectory = load(text)[0]
    found = outcome("answer_after_tool", trajectory, tool="f")
    assert (found.verdict, found.steps) == ("violated", (1,))
    assert "only after it (step 2: f)" in found.reason
    assert verdict("observation_before_answer", trajectory) == "violated"


def test_a_call_in_the_step_of_the_answer_is_not_before_it() -> None:
    trajectory = load("Action: f\nFinal Answer: tea")[0]
    assert verdict("answer_after_tool", trajectory, tool="f") == "violated"


def test_handing_in_the_answer_is_no_observation() -> None:
    finish = asks("finish", text="Done.")
    assert verdict("observation_before_answer", chat(asks("finish"), returns("finish"), SAYS)) == (
        "violated"
    )
    trajectory = chat(asks("f"), returns("f"), finish)
    assert (trajectory.answer_index, trajectory.final_answer) == (2, "Done.")
    assert verdict("observation_before_answer", trajectory) == "followed"


def test_no_final_answer_is_not_applicable() -> None:
    trajectory = chat(asks("f"), returns("f"))
    assert verdict("answer_after_tool", trajectory, tool="f") == "not_applicable"
    assert verdict("observation_before_answer", trajectory) == "not_applicable"


def test_a_result_that_answers_no_call_counts_for_nothing() -> None:
    trajectory = chat(asks("f"), returns("g"), SAYS)
    assert verdict("observation_before_answer", trajectory) == "violated"


# Claims in their place.


def test_a_claim_before_the_call_is_broken_by_its_step() -> None:
    trajectory = run({"message": "I called f."}, "f", {"message": "I called f."})
    assert outcome("claimed_but_not_called", trajectory, tools=["f"]).steps == (1,)


def test_thoughts_claim_nothing_and_calls_of_the_same_step_count() -> None:
    thought = run({"thought": "I called f."}, answer="Tea.")
    assert verdict("claimed_but_not_called", thought, tools=["f"]) == "followed"
    same = run({"message": "I have called f.", "action": "f"})
    assert verdict("claimed_but_not_called", same, tools=["f"]) == "followed"


def test_the_tools_of_the_trajectory_are_known() -> None:
    trajectory = run(answer="I used the send_email tool.", tools=["send_email"])
    found = outcome("claimed_but_not_called", trajectory)
    assert found.verdict == "violated"
    assert "send_email was not called" in found.reason
    assert verdict("claimed_but_not_called", run(answer="I used f.")) == "not_applicable"


# Step deviation.


def test_step_deviation_counts_each_broken_step_once() -> None:
    trajectory = run("f", "g", "g", "f", answer="Done.")
    outcomes = [
        outcome("must_not_call_tool", trajectory, tool="g"),
        outcome("no_repeated_call", trajectory),
        outcome("must_call_tool", trajectory, tool="h"),
        outcome("tool_args", trajectory, tool="h", schema=QUERY),
    ]
    assert [o.steps for o in outcomes] == [(2, 3), (3, 4), (), ()]
    assert step_deviation(trajectory, outcomes) == StepDeviation(3, 4)
    assert step_deviation(trajectory, outcomes).rate == 0.75
    assert step_deviation(trajectory, []).rate == 0.0
    assert step_deviation(EMPTY, outcomes).rate is None


def test_a_step_outside_the_trajectory_is_no_step() -> None:
    assert step_deviation(run("f"), [StepOutcome(False, "", (1, 2))]) == StepDeviation(1, 1)


def test_sub_agents_are_trajectories_of_their_own() -> None:
    agent = {"name": "a", "version": "1"}
    calls = [{"tool_call_id": "1", "function_name": "pay", "arguments": {}}]
    child = {
        "schema_version": "ATIF-v1.7",
        "trajectory_id": "c",
        "agent": agent,
        "steps": [{"step_id": 1, "source": "agent", "message": "", "tool_calls": calls}],
    }
    steps = [{"step_id": 1, "source": "agent", "message": "Done."}]
    document = {**child, "steps": steps, "subagent_trajectories": [child]}
    (trajectory,) = load(document)
    assert verdict("must_not_call_tool", trajectory, tool="pay") == "followed"
    assert verdict("must_not_call_tool", trajectory.subagents[0], tool="pay") == "violated"
    assert trajectory.subagents[0].steps[0].actions == (Action("pay", {}, "1"),)
