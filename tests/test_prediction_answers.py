"""What a reply comes to: an answer with its flags, or a failure with its kind."""

from typing import Any

import pytest
from prediction_bench import OUTPUT_KEYS, reply

from adhere.client import Failure
from adhere.client.reply import Reply as ChatReply
from adhere.prediction.answer import failed, interpret, is_failed, is_pending

THINK = "<think>let me see</think>\n\nFour."
OPEN = "<think>let me see"

REPLIES: list[tuple[ChatReply, bool, str, str | None, list[str], str | None]] = [
    # reply, thinks; content, reasoning, flags, error
    (reply("Four."), False, "Four.", None, [], None),
    (reply("Four.", "hm"), True, "Four.", "hm", [], None),
    (reply("Four.", "hm"), False, "Four.", "hm", [], None),
    (reply(THINK), True, "Four.", "let me see", [], None),
    (reply(THINK), False, "Four.", "let me see", [], None),
    (reply(THINK, "hm"), True, "Four.", "hm\n\nlet me see", [], None),
    (reply("see</think>Four."), True, "Four.", "see", [], None),
    (reply("Four.", finish=None), False, "Four.", None, [], None),
    # Cut by the budget
    (reply("Fou", finish="length"), False, "Fou", None, ["truncated"], None),
    (reply("Fou", finish="LENGTH"), False, "Fou", None, ["truncated"], None),
    (reply("Fou", finish="model_length"), False, "Fou", None, ["truncated"], None),
    (reply("Fou", "hm", "length"), True, "Fou", "hm", ["truncated"], None),
    (reply(None, "hm", "length"), True, "", "hm", ["truncated"], "thinking_cut_off"),
    (reply(None, "hm", "length"), False, "", "hm", ["truncated"], "thinking_cut_off"),
    (reply(OPEN, finish="length"), True, "", "let me see", ["truncated"], "thinking_cut_off"),
    (reply("", finish="length"), False, "", None, ["truncated"], "thinking_cut_off"),
    # Unclosed thinking is never an answer
    (reply(OPEN), True, "", "let me see", [], "thinking_unclosed"),
    (reply(OPEN), False, "", "let me see", [], "thinking_unclosed"),
    # Nothing
    (reply(None), False, "", None, [], "empty_answer"),
    (reply(""), True, "", None, [], "empty_answer"),
    (reply(" \n\t"), False, "", None, [], "empty_answer"),
    (reply("<think>a</think> \n"), True, "", "a", [], "empty_answer"),
    (reply(None, "hm"), True, "", "hm", ["ambiguous_empty"], "empty_answer"),
    (reply(None, " \n"), False, "", " \n", ["ambiguous_empty"], "empty_answer"),
    # A reasoning parser that took the answer
    (reply(None, "Four."), False, "Four.", None, ["answer_in_reasoning"], None),
    (reply("", "Four.", None), False, "Four.", None, ["answer_in_reasoning"], None),
    (reply(None, "see</think>Four."), False, "Four.", "see", ["answer_in_reasoning"], None),
    (reply(None, OPEN), False, "", OPEN, ["ambiguous_empty"], "empty_answer"),
    # A filter
    (reply("Fo", finish="content_filter"), False, "Fo", None, ["filtered"], None),
    (reply("", finish="content_filter"), False, "", None, ["filtered"], "content_filter"),
    (reply(None, "hm", "content_filter"), False, "", "hm", ["filtered"], "content_filter"),
    (reply(None, "hm", "content_filter"), True, "", "hm", ["filtered"], "content_filter"),
    (reply(None, finish="SAFETY"), False, "", None, ["filtered"], "content_filter"),
    (reply(None, finish="sensitive"), False, "", None, ["filtered"], "content_filter"),
    # A tool call in place of an answer
    (reply(None, "hm", "tool_calls"), False, "", "hm", ["ambiguous_empty"], "empty_answer"),
    (reply(None, finish="tool_calls"), False, "", None, [], "empty_answer"),
    # A refusal is an answer
    (reply("I can't.", refused=True), False, "I can't.", None, ["refused"], None),
]


@pytest.mark.parametrize(("given", "thinks", "content", "reasoning", "flags", "error"), REPLIES)
def test_replies(
    given: ChatReply,
    thinks: bool,
    content: str,
    reasoning: str | None,
    flags: list[str],
    error: str | None,
) -> None:
    output = interpret(given, thinks=thinks, prompt="Two and two?")
    assert (output["content"], output["reasoning"]) == (content, reasoning)
    assert output["flags"] == flags
    assert (output["error"] or {}).get("kind") == error
    assert list(output) == OUTPUT_KEYS
    # Whatever a reply is, it is final.
    assert not is_pending(output)
    assert is_failed(output) is (error is not None)
    assert output["finish_reason"] == given.finish_reason


def test_a_tag_that_the_prompt_asks_for_is_part_of_the_answer() -> None:
    text = "<thought>plan</thought>Four."
    assert interpret(reply(text), thinks=True, prompt="")["content"] == "Four."
    asked = interpret(reply(text), thinks=True, prompt="Write <thought> first.")
    assert asked["content"] == text


def test_everything_that_came_along_is_kept() -> None:
    given = ChatReply("a", "r", "stop", {"x": 1}, "served", "fp", latency_s=1.5)
    output = interpret(given, thinks=False, prompt="")
    assert (output["usage"], output["latency_s"]) == ({"x": 1}, 1.5)
    assert (output["served_model"], output["system_fingerprint"]) == ("served", "fp")


@pytest.mark.parametrize("retryable", [True, False])
def test_a_request_without_a_reply(retryable: bool) -> None:
    output = failed(Failure("server_error", "boom", retryable))
    assert list(output) == OUTPUT_KEYS
    assert output["error"] == {"kind": "server_error", "message": "boom", "retryable": retryable}
    assert (output["content"], output["flags"]) == ("", [])
    assert is_failed(output)
    assert is_pending(output) is retryable


@pytest.mark.parametrize(
    ("output", "is_failure"),
    [
        ({"content": "a"}, False),
        ({"content": "a", "error": None}, False),
        ({"content": " \n"}, True),
        ({"content": None}, True),
        ({"content": 5}, True),
        ({}, True),
        ({"content": "a", "error": {"kind": "x"}}, True),
    ],
)
def test_outputs_of_others_are_understood(output: dict[str, Any], is_failure: bool) -> None:
    assert is_failed(output) is is_failure
    assert not is_pending(output)
