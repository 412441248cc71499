"""Importers: one story in every format, real files, versions, and what malformed input says."""

import os
from pathlib import Path
from typing import Any

import pytest

from adhere import jsonio
from adhere.errors import DataError
from adhere.trajectories import (
    FORMATS,
    Message,
    Observation,
    Step,
    Tool,
    Trajectory,
    load,
    results,
)

ROOT = Path(__file__).resolve().parents[1]
REFERENCES = Path(__file__).parent / "trajectories"
REAL = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared")) / "data" / "trajectories"

QUESTION = "Which kettle is cheaper, the blue one or the red one?"
ANSWER = "The blue kettle is cheaper."
PRICE_OF = Tool(
    "price_of",
    {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
    "The price of an item.",
)


def reference(name: str) -> list[Trajectory]:
    return load(REFERENCES / name)


def call(trajectory: Trajectory, step: int) -> list[tuple[str, Any, str | None]]:
    """Return the calls of a step, each with its result."""
    answered = results(trajectory)
    return [
        (action.tool, action.arguments, answered[step, position].content)
        if (step, position) in answered
        else (action.tool, action.arguments, None)
        for position, action in enumerate(trajectory.steps[step - 1].actions)
    ]


@pytest.mark.parametrize(
    ("name", "format", "version"),
    [
        ("openai_chat.json", "openai-chat", ""),
        ("openai_responses.json", "openai-responses", ""),
        ("atif.json", "atif", "1.8"),
        ("react.txt", "react", ""),
        ("steps.json", "steps", "1"),
        ("inspect_log.json", "inspect", "2"),
    ],
)
def test_one_story_is_the_same_in_every_format(name: str, format: str, version: str) -> None:
    trajectory = reference(name)[0]
    assert (trajectory.format, trajectory.version) == (format, version)
    assert Message("user", QUESTION) in trajectory.turns
    assert trajectory.steps[0].thought == "I need both prices."
    assert call(trajectory, 1) == [
        ("price_of", {"item": "blue kettle"}, "24 euros"),
        ("price_of", {"item": "red kettle"}, "31 euros"),
    ]
    assert trajectory.final_answer == ANSWER
    assert trajectory.answer_index == 2
    if name != "react.txt":
        assert trajectory.tools == (PRICE_OF,)
        assert Message("system", "You help in a kettle shop.") in trajectory.turns


def test_every_format_has_a_reference() -> None:
    found = {reference(path.name)[0].format for path in REFERENCES.iterdir()}
    assert found == set(FORMATS)


def test_an_atif_run_carries_its_sub_agents() -> None:
    trajectory = reference("atif.json")[0]
    assert trajectory.steps[0].observations[1].subagents == ("clerk",)
    (clerk,) = trajectory.subagents
    assert clerk.final_answer == "24 euros"
    assert clerk.metadata["id"] == "clerk"
    assert clerk.metadata["copied_steps"] == 1


def test_an_inspect_log_gives_a_trajectory_for_each_sample() -> None:
    first, second = reference("inspect_log.json")
    assert (first.metadata["id"], second.metadata["id"]) == ("1", "2")
    assert second.steps[0].observations == (
        Observation("The clock does not reply.", "c", error=True),
    )
    assert second.final_answer == "I cannot tell."
    assert second.answer_index == 2
    assert second.tools is None
    assert load(REFERENCES / "inspect_log.json", sample="2") == [second]
    with pytest.raises(DataError, match="no sample '3'; its samples are 1, 2"):
        load(REFERENCES / "inspect_log.json", sample="3")


def test_the_text_beside_a_last_call_is_no_answer_of_an_inspect_sample() -> None:
    log = jsonio.read_json(REFERENCES / "inspect_log.json")
    log["samples"][1]["output"]["completion"] = "Let me submit."
    assert load(log, sample="2")[0].final_answer == "I cannot tell."
    log["samples"][0]["output"]["completion"] = "The blue one."
    assert load(log, sample="1")[0].final_answer == "The blue one."


def test_an_atif_step_that_saw_something_is_no_answer() -> None:
    seen = {"observation": {"results": [{"content": "a screen"}]}}
    step = {"step_id": 2, "source": "agent", "message": "I type.", **seen}
    (trajectory,) = load(atif(step))
    assert (trajectory.final_answer, trajectory.answer_index) == (None, None)


def test_what_the_system_did_by_itself_answers_no_call() -> None:
    references = [{"session_id": "s", "trajectory_path": "summary.json"}]
    step = {"observation": {"results": [{"subagent_trajectory_ref": references}]}}
    (trajectory,) = load(atif({"step_id": 2, "source": "system", "message": "", **step}))
    assert trajectory.turns[-1] == Message("tool", "[handed to summary.json]")


def test_a_swe_agent_step_takes_its_call_from_the_history() -> None:
    trajectory = reference("swe_agent.traj")[0]
    assert call(trajectory, 1) == [
        ("find_file", {"file_name": "kettle.py"}, "Found 1 match: /shop/kettle.py")
    ]
    assert call(trajectory, 2) == [("goto", "7", "[line 7]")]
    assert call(trajectory, 3) == [("bash", {"command": "ls -a"}, "kettle.py")]
    assert trajectory.final_answer == "diff --git a/kettle.py b/kettle.py\n+hot = True\n"
    assert trajectory.answer_index == 4
    assert [turn.text for turn in trajectory.turns if isinstance(turn, Message)] == [
        "You repair programs.",
        "The kettle is never hot.",
    ]


def test_swe_agent_attempts_are_a_trajectory_each() -> None:
    step = {"action": "ls", "observation": "a", "thought": "", "response": ""}
    attempts = [{"trajectory": [step], "info": {}}, {"trajectory": [step, step], "info": {}}]
    assert [len(t.steps) for t in load({"attempts": attempts})] == [1, 2]


def test_an_older_swe_agent_run_names_its_commands_in_the_prompt() -> None:
    prompt = "COMMANDS:\nedit:\n  docstring: replaces\n  signature: edit <n>:<m>\n"
    steps = [
        {
            "action": "edit 1:2\nx\nend_of_edit\n",
            "observation": None,
            "response": "",
            "thought": "",
        },
        {"action": "ls", "observation": "x", "response": "Look.", "thought": "", "state": "{}"},
        {"action": "", "observation": "no command", "response": "Hm.", "thought": "Hm."},
    ]
    history = [{"role": "system", "content": prompt}]
    (trajectory,) = load({"environment": "e", "trajectory": steps, "history": history, "info": {}})
    assert call(trajectory, 1) == [("edit", "1:2\nx\nend_of_edit\n", None)]
    assert call(trajectory, 2) == [("bash", {"command": "ls"}, "x")]
    assert trajectory.steps[1].text == "Look."
    assert trajectory.steps[2].actions == ()
    assert trajectory.final_answer is None


def test_mini_swe_agent_by_tool_calls() -> None:
    trajectory = reference("mini_swe_agent.traj.json")[0]
    assert trajectory.version == "1.1"
    assert trajectory.steps[0].observations[0].error
    assert trajectory.final_answer == "hot = True\n"
    assert trajectory.answer_index == 2


def test_mini_swe_agent_by_blocks_in_its_text() -> None:
    trajectory = reference("mini_swe_agent_text.traj.json")[0]
    assert trajectory.version == "1"
    assert [len(step.actions) for step in trajectory.steps] == [1, 0, 1]
    assert not trajectory.steps[0].observations[0].error
    assert trajectory.steps[1].observations == ()
    assert Message("user", "Please always provide EXACTLY ONE action.") in trajectory.turns
    assert trajectory.final_answer == "hot = True\n"
    assert trajectory.answer_index == 3


def test_two_blocks_are_no_command() -> None:
    text = "```bash\nls\n```\n```bash\npwd\n```"
    messages = [{"role": "assistant", "content": text}, {"role": "user", "content": "One!"}]
    (trajectory,) = load(messages, format="mini-swe-agent")
    assert trajectory.steps[0].actions == ()
    assert trajectory.turns[1] == Message("user", "One!")


def test_a_bare_list_of_mini_swe_agent_is_known_by_its_prompt() -> None:
    block = "```mswea_bash_command\nls\n```\nand not\n```bash\nrm x\n```"
    (trajectory,) = load(
        [
            {"role": "system", "content": "Finish: echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"},
            {"role": "assistant", "content": block},
            {"role": "user", "content": "a"},
        ]
    )
    assert trajectory.format == "mini-swe-agent"
    assert trajectory.final_answer is None
    assert call(trajectory, 1) == [("bash", {"command": "ls"}, "a")]


def test_an_empty_submission_is_an_answer() -> None:
    block = "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"
    (trajectory,) = load([{"role": "assistant", "content": block}, {"role": "user", "content": ""}])
    assert (trajectory.final_answer, trajectory.answer_index) == ("", 1)


def test_mini_swe_agent_by_responses() -> None:
    output = [
        {"type": "function_call", "call_id": "a", "name": "bash", "arguments": '{"command": "ls"}'}
    ]
    messages = [
        {"role": "user", "content": "Go."},
        {"object": "response", "output": output, "extra": {"actions": [{"command": "ls"}]}},
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": "<returncode>2</returncode>",
            "extra": {"returncode": 2},
        },
        {"role": "exit", "content": "LimitsExceeded", "extra": {"submission": ""}},
    ]
    document = {"trajectory_format": "mini-swe-agent-1.1", "messages": messages, "info": {}}
    (trajectory,) = load(document)
    assert call(trajectory, 1) == [("bash", {"command": "ls"}, "<returncode>2</returncode>")]
    assert trajectory.steps[0].observations[0].error
    assert trajectory.final_answer is None


# The real files.

needs_real = pytest.mark.skipif(not REAL.exists(), reason=f"{REAL} is not here")


@needs_real
@pytest.mark.parametrize(
    ("name", "format", "version", "steps", "calls", "answered"),
    [
        ("atif_openhands.json", "atif", "1.5", 2, 2, 2),
        ("atif_terminus.json", "atif", "1.7", 3, 0, None),
        ("inspect_log.json", "inspect", "2", 1, 0, 1),
        ("inspect_log_security.json", "inspect", "2", 1, 0, 1),
        ("mini_swe_agent.traj.json", "mini-swe-agent", "1", 10, 10, 10),
        ("swe_agent.traj", "swe-agent", "", 5, 5, 5),
    ],
)
def test_real_files_load(
    name: str, format: str, version: str, steps: int, calls: int, answered: int | None
) -> None:
    trajectory = load(REAL / name)[0]
    assert (trajectory.format, trajectory.version) == (format, version)
    assert len(trajectory.steps) == steps
    assert sum(len(step.actions) for step in trajectory.steps) == calls
    assert trajectory.answer_index == answered


@needs_real
def test_the_real_log_of_several_samples() -> None:
    trajectories = load(REAL / "inspect_log_security.json")
    assert [t.metadata["id"] for t in trajectories] == ["1", "2", "3"]
    assert trajectories[0].tools == ()
    assert not any("attachment://" in str(t) for t in trajectories)


@needs_real
def test_the_real_swe_agent_run_names_its_tools() -> None:
    trajectory = load(REAL / "swe_agent.traj")[0]
    names = [action.tool for step in trajectory.steps for action in step.actions]
    assert names == ["find_file", "open", "edit", "bash", "submit"]
    assert len(results(trajectory)) == 5


# Chat messages.


def chat(*messages: dict[str, Any]) -> Trajectory:
    return load(list(messages))[0]


def test_a_legacy_function_call() -> None:
    trajectory = chat(
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
    )
    assert call(trajectory, 1) == [("f", {}, "1")]
    assert trajectory.final_answer is None


def test_arguments_that_are_no_object_stay_text() -> None:
    def arguments(value: object) -> object:
        function = {"name": "f", "arguments": value}
        step = chat({"role": "assistant", "tool_calls": [{"id": "1", "function": function}]})
        return step.steps[0].actions[0].arguments

    assert arguments('{"a": 1') == '{"a": 1'
    assert arguments("[1]") == "[1]"
    assert arguments({"a": 1}) == {"a": 1}
    assert arguments(' {"a": 1} ') == {"a": 1}
    assert arguments("") == {}
    assert arguments(None) == {}


def test_a_custom_tool_takes_text() -> None:
    custom = {"id": "1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    trajectory = chat({"role": "assistant", "tool_calls": [custom]})
    assert call(trajectory, 1) == [("sh", "ls", None)]


def test_results_without_calls_and_calls_without_results() -> None:
    trajectory = chat(
        {"role": "tool", "content": "early"},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "9", "content": "stray"},
    )
    assert trajectory.turns[0] == Message("tool", "early")
    assert results(trajectory) == {}
    assert trajectory.steps[0].observations == (Observation("stray", "9"),)


def test_the_only_unnamed_result_of_a_step_answers_all_its_calls() -> None:
    calls = [{"id": name, "function": {"name": name}} for name in "fg"]
    both = {"role": "assistant", "tool_calls": calls}
    one, two = {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}
    assert call(chat(both, one), 1) == [("f", {}, "1"), ("g", {}, "1")]
    assert call(chat(both, one, two), 1) == [("f", {}, "1"), ("g", {}, "2")]
    named = {"role": "tool", "content": "2", "tool_call_id": "f"}
    assert call(chat(both, one, named), 1) == [("f", {}, "2"), ("g", {}, "1")]


def test_the_first_of_two_results_of_a_call_counts() -> None:
    one = {"role": "tool", "tool_call_id": "1", "content": "a"}
    calls = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]}
    assert call(chat(calls, one, {**one, "content": "b"}), 1) == [("f", {}, "a")]


def test_a_reused_call_id_is_answered_by_the_result_after_it() -> None:
    same = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]}
    trajectory = chat(
        same,
        {"role": "tool", "tool_call_id": "1", "content": "a"},
        same,
        {"role": "tool", "tool_call_id": "1", "content": "b"},
    )
    assert [o.content for o in results(trajectory).values()] == ["a", "b"]


def test_turns_of_others_between_steps_keep_their_place() -> None:
    trajectory = chat(
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "Two?"},
        {"role": "developer", "content": "Be short."},
        {"role": "assistant", "content": "2"},
    )
    kinds = [t.role if isinstance(t, Message) else t.index for t in trajectory.turns]
    assert kinds == ["user", 1, "user", "system", 2]
    assert trajectory.final_answer == "2"


def test_no_answer_where_the_last_step_calls_or_says_nothing() -> None:
    asked = {"role": "assistant", "content": "First."}
    calls = {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [{"function": {"name": "f"}}],
    }
    assert chat(asked, calls).final_answer is None
    assert chat(asked, {"role": "assistant", "content": ""}).final_answer is None
    assert chat({"role": "user", "content": "Hello?"}).final_answer is None
    assert load([])[0].steps == ()


def test_thinking_is_no_part_of_the_answer() -> None:
    step = chat({"role": "assistant", "content": "<think>Hm.</think>\n\nYes."}).steps[0]
    assert (step.thought, step.answer) == ("Hm.", "Yes.")


def test_the_parts_of_anthropic_messages() -> None:
    trajectory = chat(
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": "no", "is_error": True}
            ],
        },
    )
    assert trajectory.turns == trajectory.steps
    assert trajectory.steps[0].text == "I look."
    assert call(trajectory, 1) == [("f", {"a": 1}, "no")]
    assert trajectory.steps[0].observations[0].error


def test_what_is_not_text_leaves_a_mark() -> None:
    content = [{"type": "text", "text": "This:"}, {"type": "image_url", "image_url": {"url": "x"}}]
    assert chat({"role": "user", "content": content}).turns == (Message("user", "This:\n[image]"),)


def test_a_chat_completion_ends_with_its_choice() -> None:
    document = {
        "messages": [{"role": "user", "content": "Hi"}],
        "choices": [{"message": {"role": "assistant", "content": "Hello"}}],
    }
    assert load(document)[0].final_answer == "Hello"


# Responses items.


def test_items_between_results_are_one_step() -> None:
    (trajectory,) = load(
        [
            {"type": "message", "role": "user", "content": "Go."},
            {
                "type": "reasoning",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "A"}],
            },
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "B"}],
            },
            {"type": "custom_tool_call", "call_id": "1", "name": "sh", "input": "ls"},
            {"type": "custom_tool_call_output", "call_id": "1", "output": "x"},
            {
                "type": "web_search_call",
                "id": "2",
                "status": "completed",
                "action": {"query": "tea"},
            },
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "C"}],
            },
        ]
    )
    first, second = trajectory.steps
    assert (first.thought, first.text) == ("A", "B")
    assert call(trajectory, 1) == [("sh", "ls", "x")]
    assert call(trajectory, 2) == [("web_search", {"action": {"query": "tea"}}, None)]
    assert second.text == "C"


def test_items_and_chat_messages_mixed() -> None:
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    (trajectory,) = load(
        [
            {"type": "message", "role": "assistant", "content": "", "tool_calls": calls},
            {"type": "function_call_output", "call_id": "1", "output": {"n": 1}},
        ]
    )
    assert call(trajectory, 1) == [("f", {}, '{"n":1}')]


def test_a_call_that_carries_its_result() -> None:
    item = {"type": "mcp_call", "id": "1", "name": "f", "arguments": "{}", "output": "yes"}
    (trajectory,) = load([item, {"type": "mcp_list_tools"}, {"type": "mcp_list_tools"}])
    assert call(trajectory, 1) == [("f", {}, "yes")]
    assert trajectory.metadata["ignored_items"] == {"mcp_list_tools": 2}


# ReAct.


def react(text: str) -> Trajectory:
    return load(text)[0]


def test_chinese_labels_and_input_on_the_action_line() -> None:
    trajectory = reference("react_chinese.txt")[0]
    assert call(trajectory, 1) == [("price_of", {"item": "blue kettle"}, "24 euros")]
    assert call(trajectory, 2) == [("price_of", "red kettle", "31 euros\n库存充足")]
    assert trajectory.final_answer == "蓝色水壶便宜。\n它便宜 7 欧元。"


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ("Action: f\nAction Input: tea", "f", "tea"),
        ("Action: f\nAction Input: a\nb", "f", "a\nb"),
        ("Action: `f`\nAction Input:", "f", {}),
        ("Action 1: f[tea [hot]]", "f", "tea [hot]"),
        ('Action: f({"a": 1})', "f", {"a": 1}),
        ('**Action:** f\n**Action Input:** {\n"a": 1\n}', "f", {"a": 1}),
        ('Action：f\nAction Input：{"a": 1}', "f", {"a": 1}),
        ('Action:\n```json\n{"action": "f", "action_input": {"a": 1}}\n```', "f", {"a": 1}),
        ("Action: f\nAction Input: ```\nx\nAction: y\n```", "f", "x\nAction: y"),
        ('Action: f\nAction Input: ```{"a": 1}```', "f", {"a": 1}),
        ("Thought: t\nAction Input: x", "(unnamed)", "x"),
    ],
)
def test_an_action(text: str, tool: str, arguments: object) -> None:
    (action,) = react(text).steps[0].actions
    assert (action.tool, action.arguments) == (tool, arguments)


def test_a_fence_that_never_closes_hides_no_label() -> None:
    trajectory = react("Action: f\nAction Input: ```\nx\nObservation: y\nFinal Answer: z\n```")
    assert call(trajectory, 1) == [("f", "```\nx", "y")]


def test_an_action_that_is_none_is_no_call() -> None:
    trajectory = react("Thought: I know.\nAction: None\nFinal Answer: 4")
    assert trajectory.steps == (Step(1, thought="I know.", answer="4"),)


def test_calls_after_the_answer_and_several_answers() -> None:
    trajectory = react("Final Answer: a\nAction: f\nObservation: x\nFinal Answer: b\nAction: g")
    assert [step.answer for step in trajectory.steps] == ["a", None, "b", None]
    assert (trajectory.final_answer, trajectory.answer_index) == ("b", 3)
    assert call(trajectory, 4) == [("g", {}, None)]


def test_a_final_answer_as_json() -> None:
    trajectory = react('Action:\n{"action": "Final Answer", "action_input": "4"}')
    assert trajectory.final_answer == "4"


def test_lower_case_labels_are_text() -> None:
    trajectory = react("Action: f\nObservation: action: x\nthought: y\nFinal Answer: z")
    assert call(trajectory, 1) == [("f", {}, "action: x\nthought: y")]


def test_text_without_labels_is_refused() -> None:
    with pytest.raises(DataError, match="allowed: one of the formats atif"):
        load("The blue one.")
    with pytest.raises(DataError, match="lines that begin with Thought:"):
        load("The blue one.", format="react")


# The plain steps.


@pytest.mark.parametrize(
    "step",
    [
        {"action": {"tool": "f", "args": {"a": 1}, "result": "x"}},
        {"action": {"name": "f", "arguments": '{"a": 1}', "output": "x"}},
        {"action": "f", "args": {"a": 1}, "result": "x"},
        {"action": "f", "action_input": {"a": 1}, "observation": "x"},
        {"tool": "f", "args": {"a": 1}, "observation": "x"},
        {"actions": [{"tool": "f", "args": {"a": 1}}], "observation": ["x"]},
        {"tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}], "observation": "x"},
        {"action": {"tool": "f", "args": {"a": 1}, "result": "x", "error": None}},
    ],
)
def test_spellings_of_a_step(step: dict[str, Any]) -> None:
    (trajectory,) = load({"steps": [step]})
    assert call(trajectory, 1) == [("f", {"a": 1}, "x")]
    assert len(trajectory.steps[0].observations) == 1


def test_only_the_second_of_two_actions_has_a_result() -> None:
    actions = [{"tool": "f"}, {"tool": "g", "result": {"n": 1}}]
    (trajectory,) = load({"steps": [{"actions": actions}], "final_answer": {"n": 1}})
    assert call(trajectory, 1) == [("f", {}, None), ("g", {}, '{"n":1}')]
    assert (trajectory.final_answer, trajectory.answer_index) == ('{"n":1}', 2)


def test_a_stated_answer_stands_over_that_of_a_step() -> None:
    document = {"steps": [{"thought": "t", "final_answer": "draft"}], "final_answer": "final"}
    (trajectory,) = load(document)
    assert (trajectory.final_answer, trajectory.steps[0].answer) == ("final", "draft")


def test_an_error_is_a_result() -> None:
    (trajectory,) = load({"steps": [{"action": {"tool": "f", "error": "timeout"}}]})
    assert trajectory.steps[0].observations == (Observation("timeout", None, error=True),)


def test_an_empty_error_is_none() -> None:
    (trajectory,) = load({"steps": [{"action": {"tool": "f", "result": "x", "error": ""}}]})
    assert trajectory.steps[0].observations == (Observation("x"),)
    item = {"type": "mcp_call", "id": "1", "name": "f", "output": "x", "error": ""}
    assert not load([item])[0].steps[0].observations[0].error


def test_a_step_without_an_action_and_no_steps() -> None:
    thought = load({"steps": [{"thought": "Hm.", "action": None}], "final_answer": "4"})[0]
    assert thought.steps == (Step(1, thought="Hm."),)
    empty = load({"steps": []})[0]
    assert (empty.steps, empty.final_answer, empty.answer_index) == ((), None, None)


# Files, versions, malformed input.


def test_lines_of_json_are_messages_or_documents(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"\n".join(map(jsonio.dumps, messages)) + b"\n")
    assert load(path)[0].final_answer == "Hello"
    runs = [{"steps": [], "final_answer": answer} for answer in "ab"]
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join(map(jsonio.dumps, runs)))
    assert [t.final_answer for t in load(path)] == ["a", "b"]


def test_a_figure_that_is_no_number(tmp_path: Path) -> None:
    text = (REFERENCES / "inspect_log.json").read_text()
    path = tmp_path / "log.json"
    path.write_text(text.replace('"scores": {}', '"scores": {"match": {"value": NaN}}'))
    assert load(path)[0].final_answer == ANSWER


def test_a_list_of_steps_alone() -> None:
    (trajectory,) = load([{"thought": "t"}, {"action": {"tool": "f", "result": "x"}}])
    assert (trajectory.format, call(trajectory, 2)) == ("steps", [("f", {}, "x")])


def test_an_explicit_format_wins() -> None:
    text = '{"a": 1}\nFinal Answer: 4'
    assert load(text, format="react")[0].final_answer == "4"
    with pytest.raises(DataError, match="format 'atiff' is not known; allowed: atif, inspect"):
        load(text, format="atiff")


@pytest.mark.parametrize(
    ("document", "found"),
    [
        (
            {"schema_version": "ATIF-v1.9", "agent": {}, "steps": []},
            '"ATIF-v1.9"; allowed: ATIF-v1.0',
        ),
        ({"schema_version": "1.4", "agent": {}, "steps": []}, 'schema_version: "1.4"'),
        (
            {"version": 3, "status": "success", "eval": {}, "samples": []},
            "version: 3; allowed: version 1 or 2",
        ),
        ({"trajectory_format": "mini-swe-agent-2", "messages": []}, '"mini-swe-agent-2"; allowed'),
        ({"version": 2, "steps": []}, "version: 2; allowed: version 1"),
    ],
)
def test_an_unknown_version_is_named(document: dict[str, Any], found: str) -> None:
    with pytest.raises(DataError) as caught:
        load(document, name="run.json")
    assert str(caught.value).startswith("run.json: ")
    assert found in str(caught.value)


def atif(step: dict[str, Any]) -> dict[str, Any]:
    first = {"step_id": 1, "source": "user", "message": "Hi"}
    return {"schema_version": "ATIF-v1.0", "agent": {"name": "a"}, "steps": [first, step]}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([{"role": "robot"}], 't: [0].role: "robot"; allowed: one of the roles system'),
        ([{"role": "user", "content": 3}], "t: [0].content: 3; allowed: a list"),
        (
            [{"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}],
            "t: [0].tool_calls[0].function.name: nothing; allowed: the name of the tool",
        ),
        ({"messages": {"role": "user"}}, "t: messages: an object; allowed: a list"),
        ({"steps": 3}, "t: steps: 3; allowed: a list"),
        (
            {"steps": [{"action": {"args": {}}}]},
            "t: steps[0].action.tool: nothing; allowed: the name",
        ),
        ({"steps": ["x"]}, 't: steps[0]: "x"; allowed: an object'),
        (
            atif({"step_id": 1, "source": "agent", "message": ""}),
            "t: steps[1].step_id: 1; allowed: a whole",
        ),
        (
            atif({"step_id": 2, "source": "bot", "message": ""}),
            't: steps[1].source: "bot"; allowed: one of',
        ),
        (
            atif({"step_id": 2, "source": "user", "message": "", "tool_calls": [{}]}),
            "t: steps[1].tool_calls: a list; allowed: no calls",
        ),
        (
            {"schema_version": "ATIF-v1.0", "agent": {}, "steps": []},
            "t: steps: a list; allowed: a list of at least",
        ),
        ({"eval": {}, "status": "error"}, "t: samples: nothing; allowed: a list of samples"),
        ({"trajectory": {}}, "t: trajectory: an object; allowed: a list of steps"),
        ({"a": 1}, "t: an object; allowed: one of the formats atif (`schema_version`"),
        (None, "t: nothing; allowed: one of the formats"),
    ],
)
def test_malformed_input_names_file_place_and_what_is_allowed(document: Any, message: str) -> None:
    with pytest.raises(DataError) as caught:
        load(document, name="t")
    assert str(caught.value).startswith(message)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        load(tmp_path / "none.json")
    path = tmp_path / "log.eval"
    path.write_bytes(b"PK\x03\x04rest")
    with pytest.raises(DataError, match=r"log\.eval: is an archive"):
        load(path)
    path.write_bytes(b"Thought: \xff")
    with pytest.raises(DataError, match="is not UTF-8 text"):
        load(path)
    path.write_text('{"steps": [')
    with pytest.raises(DataError, match=r"log\.eval: not valid JSON"):
        load(path)
    path.write_text("")
    with pytest.raises(DataError, match="one of the formats"):
        load(path)
