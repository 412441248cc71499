"""Thinking is separated from the answer: own cases, the shared ones, and properties."""

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adhere.jsonio import read_json
from adhere.thinking import FinalAnswer, final_answer

SHARED = Path(
    os.environ.get("ADHERE_SHARED") or Path(__file__).resolve().parents[1].parent / "shared"
)
CASES = SHARED / "cases" / "robustness.jsonl"
AGENTIF = SHARED / "data" / "agentif"

SPELLINGS = [
    ("<think>", "</think>"),
    ("<THINK>", "</Think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<seed:think>", "</seed:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ('<think lang="en">', "</think>"),
    ("< think >", "</ think >"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<unused94>thought\n", "<unused95>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
]
IDS = [opener.strip() for opener, _ in SPELLINGS]


@pytest.mark.parametrize(("opener", "closer"), SPELLINGS, ids=IDS)
def test_a_leading_block_is_thinking_in_every_spelling(opener: str, closer: str) -> None:
    text = f"{opener}some steps{closer}\n\nThe answer."
    assert final_answer(text) == FinalAnswer("The answer.", "some steps", True)


@pytest.mark.parametrize(("opener", "closer"), SPELLINGS, ids=IDS)
def test_unclosed_thinking_is_never_an_answer(opener: str, closer: str) -> None:
    assert final_answer(f"{opener}some steps") == FinalAnswer("", "some steps", False)
    assert final_answer(f"{opener}a{closer}") == FinalAnswer("", "a", True)


@pytest.mark.parametrize(
    "closer", [closer for _, closer in SPELLINGS if closer not in ("</reasoning>", "</reflection>")]
)
def test_a_closer_without_opener_ends_thinking(closer: str) -> None:
    expected = FinalAnswer("Answer", "some steps", True)
    assert final_answer(f"some steps{closer}\n\nAnswer") == expected


@pytest.mark.parametrize("blank", ["\u00a0", "\u200b", "\ufeff", "\n \t", "\u2060\u3000"])
def test_invisible_characters_before_the_tag_do_not_hide_it(blank: str) -> None:
    assert final_answer(f"{blank}<think>a</think>{blank}\nAnswer").text == "Answer"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a</think>\n<think>b</think>\nAnswer", "Answer"),
        ("<think>a <think>b</think> c</think>Answer", "Answer"),
        ("<think>a <think>b</think> c <think>d</think> e</think>Answer", "Answer"),
        ("<think>\n<think>\na\n</think>\n\nAnswer", "Answer"),
        ("<think>a</think></think>Answer", "Answer"),
        ("<think>a</think>b</think>Answer", "Answer"),
        ("a</think>\n<think>b</think>Answer", "Answer"),
        ("<think>a</think><think>b", ""),
        ("<think>a</thinking>Answer", "Answer"),
        ("<think/>Answer", "Answer"),
        ("<think>I must write `</think>` once.</think>Answer", "Answer"),
        ("I will not use <think> here.\n</think>\n\nAnswer", "Answer"),
        ("Draft:\n```python\nx = 1\n</think>\n\n```python\ny = 2\n```", "```python\ny = 2\n```"),
        ("<think>a</think>\n\n    indented code\n", "    indented code\n"),
        ("<think>a</think> Answer ", "Answer "),
        ("[THINK]a[/THINK]<think>b</think>Answer", "Answer"),
        ("<|begin_of_thought|>a<|end_of_thought|>\n<|begin_of_solution|>S<|end_of_solution|>", "S"),
        ("analysisThe user greets.assistantfinalHello!", "Hello!"),
        ("<|channel|>final<|message|>Hello!<|return|>", "Hello!"),
        (
            "<|channel|>commentary<|message|>a<|end|>"
            "<|channel|>final <|constrain|>json<|message|>{}",
            "{}",
        ),
    ],
)
def test_several_blocks_and_stray_closers(text: str, expected: str) -> None:
    assert final_answer(text).text == expected


@pytest.mark.parametrize(
    "text",
    [
        "A plain answer.",
        "  leading and trailing blanks stay \n",
        "",
        "Write `<think>` before your reasoning and `</think>` after it.",
        "Close the block with the </think> tag.",
        "<think> tags mark reasoning.",
        "Split it: text.split('</think>')[-1]",
        'The marker "</think>" ends it.',
        "The tag “</think>” ends it.",
        "Use `reasoning</think>answer` as the format.",
        "Write <think>your steps</think> and then the answer.",
        "The template:\n<think>\nsteps\n</think>\n\nanswer",
        "```\n<think>\nsteps\n</think>\n\nanswer\n```",
        "```python\nrest = text.partition(tag + </think>)\n```\nDone.",
        "My answer. <think>And now I think about it again",
        "<thinking about it> is no tag",
        "Close </reasoning> and go on.",
        "The server prints `<|channel|>final<|message|>` here.",
        "analysis of the data: done",
    ],
)
def test_an_answer_that_talks_about_tags_stays_whole(text: str) -> None:
    assert final_answer(text) == FinalAnswer(text, "", True)


def test_tags_after_real_thinking_stay_in_the_answer() -> None:
    answer = "Use `</think>`, or <think>x</think>."
    assert final_answer(f"<think>a</think>\n\n{answer}") == FinalAnswer(answer, "a", True)


@pytest.mark.parametrize("word", ["thinking", "thought", "reasoning", "reflection"])
def test_blocks_that_the_prompt_asks_for_are_answer(word: str) -> None:
    text = f"<{word}>I look it up.</{word}>"
    asked = f"Begin with a <{word}></{word}> block."
    assert final_answer(text, prompt=asked) == FinalAnswer(text, "", True)
    assert final_answer(f"<think>a</think>\n{text}", prompt=asked).text == text
    assert final_answer(f"{text} Done.", prompt="Answer freely.").text == "Done."


def test_a_prompt_cannot_make_native_thinking_an_answer() -> None:
    assert final_answer("<think>a</think>b", prompt="Use <think> tags.").text == "b"


def test_without_the_prompt_a_tag_after_the_block_shows_a_tagged_format() -> None:
    text = "<thought>I look it up.</thought>\n<code>\nfind()\n</code>"
    assert final_answer(text).text == text
    assert final_answer(f"<think>a</think>{text}").text == text
    assert final_answer(text, prompt="").text.startswith("<code>")


@pytest.mark.skipif(not CASES.exists(), reason=f"{CASES} is not there")
def test_shared_cases() -> None:
    cases = [json.loads(line) for line in CASES.read_text("utf-8").split("\n") if line.strip()]
    mine = [case for case in cases if case["kind"] == "final_answer"]
    assert mine
    for case in mine:
        assert final_answer(case["input"]).text == case["expected"], case


@pytest.mark.skipif(not AGENTIF.exists(), reason=f"{AGENTIF} is not there")
def test_published_answers_keep_the_blocks_their_prompts_ask_for() -> None:
    """Only the four replies of Qwen3-32B that are cut off within <think> lose their text."""
    changed = {}
    for name in ("Qwen3-32B", "claude-3-5-sonnet-20241022"):
        rows = read_json(AGENTIF / "published" / f"{name}.results.json.gz")
        for index, row in enumerate(rows):
            content = row["output"]["content"] or ""
            prompt = "\n".join(message["content"] for message in row["input"])
            answer = final_answer(content, prompt=prompt)
            if answer.text != content:
                changed[name, index] = (answer.text, answer.closed)
    assert changed == {("Qwen3-32B", index): ("", False) for index in (561, 627, 642, 647)}


TAG = st.sampled_from([tag for pair in SPELLINGS for tag in pair] + ["`", "```\n", "\n", '"', " "])


@given(st.lists(st.one_of(TAG, st.text(max_size=8)), max_size=24).map("".join))
@settings(deadline=None)
def test_any_text_splits_and_loses_nothing_it_should_keep(text: str) -> None:
    for prompt in (None, "", text):
        answer = final_answer(text, prompt)
        assert answer.text in text
        assert answer.closed or answer.text == ""


@given(st.text(alphabet="abc <>/`\n.", max_size=80))
@settings(deadline=None)
def test_a_text_without_tags_stays_as_it_is(text: str) -> None:
    assert final_answer(text) == FinalAnswer(text, "", True)
    after_thinking = final_answer(f"<think>x</think>\n\n{text}").text
    assert after_thinking.strip() == text.strip()
    assert after_thinking.rstrip() == "" or not after_thinking.startswith("\n")


@pytest.mark.parametrize(
    "unit",
    [
        "<think>",
        "</think>",
        "<think></thinking>",
        "a</think> tag",
        "x<think></think>",
        "\n<think>\n</think>\n\n",
        "`",
        "` ",
        "```\n",
        "<think a=",
        "<|channel|>final<|message|>",
        '"</think>"',
        "\u200b",
    ],
)
def test_time_grows_linearly(unit: str) -> None:
    """Quadratic work on this length takes minutes; linear work well under a second."""
    text = unit * (200_000 // len(unit))
    started = time.perf_counter()
    final_answer(text)
    assert time.perf_counter() - started < 5
