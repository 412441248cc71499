"""Live items: a model with tools runs against canned responses, and what it did is judged."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mock_endpoint import (
    ErrorBody,
    MockConfig,
    MockEndpoint,
    Reply,
    Rule,
    RunningMock,
    start_mock,
    tool_call,
)
from workflow_project import ROOT, WorkflowProject, make_project

from adhere.client import ChatClient, Endpoint
from adhere.config import GlobalConfig, ModelConfig, Project, Retry
from adhere.config.load import parse
from adhere.data import Dataset, Row, as_dataset, seen
from adhere.errors import DataError
from adhere.jsonio import read_json
from adhere.judging.stage import align
from adhere.plan import Cell
from adhere.prediction import Mode, Places, collect, make_task, mode_of, run_tasks
from adhere.prediction.live import run_live
from adhere.progress import Progress
from adhere.tools import CannedTools, check_tools
from adhere.trajectories import load_one

FIND = {"type": "function", "function": {"name": "find_order", "parameters": {"type": "object"}}}
PAY = {"type": "function", "function": {"name": "refund_order"}}
ROW: Row = {
    "id": "status",
    "input": [{"role": "user", "content": "Where is order A-1?"}],
    "tools": [FIND, PAY],
    "tool_responses": [
        {"tool": "find_order", "when": {"id": "A-1"}, "response": {"arrives": "Monday"}},
        {"tool": "find_order", "when": {}, "response": "nothing found"},
    ],
    "constraints": [
        {"evaluation": [{"type": "rule", "exec": {"rule": "words", "args": {"max": 9}}}]}
    ],
}
LOOK = tool_call("find_order", {"id": "A-1"})
# The turn is known by the latest thing that was said: rules are tried in their order.
ANSWER = Rule(match="Monday", reply=Reply(content="It arrives on Monday."))
CALL = Rule(match="Where is order", reply=Reply(tool_calls=[LOOK]))


def mode(**sampling: Any) -> Mode:
    """Return a model's only mode."""
    content = {
        "api": {"base_url": "http://host/v1", "model": "agent"},
        "modes": {"plain": {"max_tokens": 500, **sampling}},
    }
    config = {"datasets": {"d": "d"}, "default_datasets": ["d"], "default_judge": "-"}
    models = {"m": parse(ModelConfig, content, "m")}
    return mode_of(Project(Path(), parse(GlobalConfig, config, "-"), models, {}), "m", "plain")


def endpoint(base_url: str) -> Endpoint:
    retry = Retry(attempts=2, first_wait_s=0.01, max_wait_s=0.02, timeout_s=20.0)
    return Endpoint(base_url=base_url, owner="configs/m.yaml", retry=retry)


def run(
    *rules: Rule, row: Row = ROW, sampling: dict[str, Any] | None = None, **config: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run an item live; return its output and the requests."""

    async def running() -> tuple[dict[str, Any], list[dict[str, Any]]]:
        async with MockEndpoint(MockConfig(rules=list(rules), **config)) as mock:
            async with ChatClient(endpoint(mock.base_url)) as client:
                output = await run_live(mode(**(sampling or {})), row, 7, client, "k")
            return output, [entry.body for entry in mock.log()]

    return asyncio.run(asyncio.wait_for(running(), 30))


# A run


def test_calls_are_answered_until_the_model_answers() -> None:
    output, asked = run(ANSWER, CALL)
    assert output["content"] == "It arrives on Monday."
    assert output["error"] is None
    assert output["flags"] == []
    assert output["turns"] == 2
    assert output["trajectory"]["tools"] == [FIND, PAY]
    assert output["trajectory"]["messages"] == [
        ROW["input"][0],
        {"role": "assistant", "content": "", "tool_calls": [LOOK]},
        {"role": "tool", "tool_call_id": "call_a", "content": '{"arrives":"Monday"}'},
        {"role": "assistant", "content": "It arrives on Monday."},
    ]
    assert [body["tools"] for body in asked] == [[FIND, PAY]] * 2
    assert asked[1]["messages"] == output["trajectory"]["messages"][:3]
    assert asked[0]["max_tokens"] == 500
    read = load_one(output["trajectory"])
    assert [action.tool for step in read.steps for action in step.actions] == ["find_order"]
    assert read.final_answer == "It arrives on Monday."
    # The row itself is left as it is.
    assert len(ROW["input"]) == 1


def test_an_answer_at_once_is_a_run_of_one_turn() -> None:
    output, asked = run(Rule(reply=Reply(content="On Monday.")))
    assert (output["content"], output["turns"], len(asked)) == ("On Monday.", 1, 1)
    assert len(output["trajectory"]["messages"]) == 2


def test_calls_of_one_turn_are_all_answered() -> None:
    both = [LOOK, tool_call("find_order", {"id": "B-2"}, "call_b")]
    output, _ = run(ANSWER, Rule(match="Where", reply=Reply(content="Wait.", tool_calls=both)))
    said = output["trajectory"]["messages"]
    assert said[1]["content"] == "Wait."
    assert [message["content"] for message in said[2:4]] == [
        '{"arrives":"Monday"}',
        "nothing found",
    ]


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (tool_call("send_mail", {}), "Error: there is no tool send_mail."),
        (tool_call("find_order", '{"id": '), "Error: the arguments are not a JSON object."),
        (tool_call("find_order", "[1]"), "Error: the arguments are not a JSON object."),
        (tool_call("refund_order", {}), "Error: no result for these arguments."),
    ],
)
def test_a_call_that_nothing_answers_gets_a_documented_text(
    call: dict[str, Any], result: str
) -> None:
    output, asked = run(
        Rule(match="Error:", reply=Reply(content="I cannot.")),
        Rule(match="Where", reply=Reply(tool_calls=[call])),
    )
    assert output["content"] == "I cannot."
    told = output["trajectory"]["messages"][2]
    assert told == {
        "role": "tool",
        "tool_call_id": "call_a",
        "content": result,
        "is_error": True,
    }
    assert "is_error" not in asked[1]["messages"][2]
    page = (ROOT / "docs" / "instruction-sets.md").read_text(encoding="utf-8")
    assert result.replace("send_mail", "NAME") in page


def test_a_run_ends_after_max_turns() -> None:
    output, asked = run(CALL, row={**ROW, "max_turns": 3})
    assert len(asked) == output["turns"] == 3
    assert output["content"] == ""
    assert output["error"] is None
    assert output["flags"] == ["max_turns"]
    assert output["trajectory"]["messages"][-1]["role"] == "tool"


def test_ten_turns_by_default() -> None:
    assert run(CALL)[0]["turns"] == 10


def test_usage_and_waiting_are_sums() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached": 1}}
    rules = [ANSWER, CALL]
    counted = [
        rule.model_copy(
            update={"reply": Reply(**rule.reply.model_dump(exclude_unset=True), usage=usage)}
        )
        for rule in rules
    ]
    output, _ = run(*counted)
    assert output["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached": 2},
    }
    assert output["latency_s"] > 0


def test_thinking_is_recorded_and_not_sent_back() -> None:
    call = Reply(content="<think>I look.</think>One moment.", tool_calls=[LOOK])
    last = Reply(content="<think>So.</think>It arrives on Monday.")
    output, asked = run(
        Rule(match="Monday", reply=last), Rule(match="Where", reply=call), sampling={}
    )
    assert output["content"] == "It arrives on Monday."
    assert output["reasoning"] == "So."
    spoken = output["trajectory"]["messages"][1]
    assert (spoken["content"], spoken["reasoning_content"]) == ("One moment.", "I look.")
    assert asked[1]["messages"][1] == {
        "role": "assistant",
        "content": "One moment.",
        "tool_calls": [LOOK],
    }


def test_reasoning_in_a_field_of_its_own_is_no_answer_of_a_turn() -> None:
    call = Reply(reasoning="I look.", tool_calls=[LOOK])
    output, _ = run(ANSWER, Rule(match="Where", reply=call))
    assert output["flags"] == []
    assert output["trajectory"]["messages"][1]["content"] == ""
    assert output["trajectory"]["messages"][1]["reasoning_content"] == "I look."


def test_calls_without_an_id_get_one() -> None:
    call = tool_call("find_order", {"id": "A-1"}, None)
    output, _ = run(ANSWER, Rule(match="Where", reply=Reply(tool_calls=[call])))
    said = output["trajectory"]["messages"]
    assert said[1]["tool_calls"][0]["id"] == said[2]["tool_call_id"] == "call_1_1"


@pytest.mark.parametrize(
    ("reply", "kind", "retryable"),
    [
        (Reply(status=503), "server_error", True),
        (Reply(status=400, error=ErrorBody(message="content policy")), "content_filter", False),
        (Reply(content=""), "empty_answer", False),
        (Reply(content=None, reasoning="hm", finish_reason="length"), "thinking_cut_off", False),
    ],
)
def test_a_turn_that_fails_fails_the_run(reply: Reply, kind: str, retryable: bool) -> None:
    output, _ = run(Rule(match="Monday", reply=reply), CALL)
    assert output["error"]["kind"] == kind
    assert output["error"]["retryable"] is retryable
    assert output["content"] == ""
    # What happened until then is kept for people.
    assert [m["role"] for m in output["trajectory"]["messages"]] == ["user", "assistant", "tool"]


def test_the_budget_of_a_later_turn_is_trimmed() -> None:
    output, asked = run(ANSWER, CALL, context_tokens=400, flavour="vllm")
    assert output["content"] == "It arrives on Monday."
    assert output["flags"] == ["budget_trimmed"]
    assert asked[-1]["max_tokens"] < 500


# Canned responses


@pytest.mark.parametrize(
    ("when", "given", "matches"),
    [
        ({}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, True),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": None}, {}, False),
    ],
)
def test_a_response_matches_what_its_when_is_part_of(
    when: dict[str, Any], given: dict[str, Any], matches: bool
) -> None:
    tools = CannedTools(
        {"tools": [FIND], "tool_responses": [{"tool": "find_order", "when": when, "response": "x"}]}
    )
    answered = tools.answer(tool_call("find_order", given))
    assert ("is_error" not in answered) is matches


def test_the_first_response_that_matches_counts() -> None:
    assert CannedTools(ROW).answer(LOOK)["content"] == '{"arrives":"Monday"}'
    other = tool_call("find_order", "")
    assert CannedTools(ROW).answer(other)["content"] == "nothing found"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tools": [{"name": "find_order"}]}, "tools: tool 1: must be {type: function"),
        ({"tools": [FIND, FIND]}, "tools: found 'find_order' twice"),
        ({"tools": {}, "tool_responses": 3}, "must both be lists"),
        ({"tool_responses": [{"tool": "find", "response": ""}]}, "found tool 'find'"),
        ({"tool_responses": [{"tool": "find_order"}]}, "needs `response`"),
        ({"max_turns": 0}, "max_turns: found 0"),
        ({"max_turns": True}, "max_turns: found True"),
    ],
)
def test_wrong_tools_are_refused_on_loading(changes: dict[str, Any], words: str) -> None:
    assert check_tools(ROW) == []
    with pytest.raises(DataError) as refused:
        as_dataset("d", Path("d.json"), [{**ROW, **changes}], "d.json")
    assert words in str(refused.value)


# Identity, journal, workflow


def test_everything_a_model_sees_counts() -> None:
    def inputs(**changes: Any) -> tuple[str, ...]:
        rows = ({**ROW, **changes},)
        dataset = Dataset("d", Path("d"), rows, "", 1)
        return make_task(Cell("m", "plain", 1, "d"), mode(), dataset, places(Path())).fingerprints

    first = inputs()
    assert inputs(tools=[FIND]) != first
    assert inputs(tool_responses=[]) != first
    assert inputs(max_turns=2) != first
    assert inputs(constraints=[], note="x") == first
    assert seen({"input": [], "tools": None}) == []


def test_a_run_against_other_tools_is_not_judged() -> None:
    prediction = {**ROW, "output": {"content": "x", "trajectory": {"steps": [{}]}}}
    assert align([prediction], [ROW])[0]["output"]["content"] == "x"
    with pytest.raises(DataError, match="answers another input"):
        align([prediction], [{**ROW, "tool_responses": []}])


def places(folder: Path) -> Places:
    return Places(folder / "d.json", folder / "d.partial.jsonl", None)


def test_a_run_is_journaled_once_it_is_over(tmp_path: Path) -> None:
    row = {**ROW, "id": "other", "input": [{"role": "user", "content": "Just say hello."}]}
    dataset = as_dataset("d", tmp_path / "d.json", [ROW, row], "d.json")
    task = make_task(Cell("m", "plain", 1, "d"), mode(), dataset, places(tmp_path))

    async def predict(mock: MockEndpoint) -> list[dict[str, Any]]:
        async with ChatClient(endpoint(mock.base_url)) as client:
            with Progress("test", "items") as progress:
                await run_tasks([task], [client], progress)
        collect(task, {})
        return list(read_json(task.places.prediction))

    async def running() -> None:
        rules = [Rule(match="Monday", reply=Reply(status=503)), CALL]
        async with MockEndpoint(MockConfig(rules=rules)) as mock:
            first = await predict(mock)
            assert [bool(row["output"]["error"]) for row in first] == [True, False]
            before = mock.stats().requests
            mock.configure(rules=[ANSWER, CALL])
            second = await predict(mock)
            # The run that failed begins again; the other one is not asked again.
            assert mock.stats().requests == before + 2
            assert second[0]["output"]["content"] == "It arrives on Monday."
            assert second[1] == first[1]

    asyncio.run(asyncio.wait_for(running(), 30))


@pytest.fixture
def made(tmp_path: Path) -> Iterator[tuple[WorkflowProject, RunningMock]]:
    rules = [
        Rule(match='"arrives":"Monday"', judge=False, reply=Reply(content="On Monday.")),
        Rule(match="A-1?", judge=False, reply=Reply(tool_calls=[LOOK])),
        Rule(match="hours", judge=False, reply=Reply(content="I called find_order: 9 to 5.")),
    ]
    with start_mock(tmp_path, MockConfig(rules=rules)) as mock:
        project = make_project(tmp_path / "p", mock.base_url, mock.judge_url)
        item = {key: ROW[key] for key in ("tools", "tool_responses")}
        honest = {"rule": "claimed_but_not_called"}
        looks = {"rule": "must_call_tool", "args": {"tool": "find_order"}}
        items = [
            {"id": "a", "instruction": "Where is order A-1?", "constraints": [looks, honest]},
            {"id": "b", "instruction": "What are your hours?", "constraints": [looks, honest]},
        ]
        project.write_yaml("data/live.yaml", {"defaults": item, "items": items})
        project.change_yaml(
            "configs/global.yaml",
            datasets={"live": "data/live.yaml"},
            default_datasets=["live"],
            repeats=1,
            default_judge="rules-only",
        )
        (project.root / "judge_configs" / "strict.yaml").unlink()
        yield project, mock


def test_live_items_through_the_workflow(made: tuple[WorkflowProject, RunningMock]) -> None:
    project, mock = made
    called = project.snakemake("--config", "modes=plain")
    assert called.code == 0, called.text
    assert mock.stats().requests == 3
    rows = project.json("results/scores/alpha__plain/run1_rules-only/live/results.json")
    assert [[c["score"] for c in row["constraints"]] for row in rows] == [
        [True, True],
        [False, False],
    ]
    assert [row["trajectory_steps"] for row in rows] == [2, 1]
    assert project.plan("--config", "modes=plain").idle
    # What a tool answers is part of what the model sees.
    content = project.root / "data" / "live.yaml"
    content.write_text(content.read_text().replace("Monday", "Tuesday"))
    planned = project.plan("--config", "modes=plain")
    assert planned.jobs["predict"] == 1
