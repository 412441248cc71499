"""YES and NO are read out of judges' texts: gold cases, published verdicts, properties."""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adhere.errors import ConfigError
from adhere.jsonio import read_json
from adhere.verdict import PARSERS, parse, read_by

SHARED = Path(
    os.environ.get("ADHERE_SHARED") or Path(__file__).resolve().parents[1].parent / "shared"
)
CASES = SHARED / "cases" / "robustness.jsonl"
PUBLISHED = SHARED / "data" / "agentif" / "published"
PARITY = Path(__file__).with_name("parity_verdicts.json")
REPLIES = Path(__file__).with_name("verdict_replies.json")

GOLD: dict[str, list[tuple[str, bool | None]]] = {
    "case and punctuation": [
        ("yes", True),
        ("nO", False),
        ("YES!", True),
        ("No.", False),
        ("y", True),
        ("N", False),
        ("TRUE", True),
        ("false.", False),
        ("PASS", True),
        ("\n\n  NO  \n\n", False),
        ("Yes\r\nNO\r\n", False),
        ("yes\u2028no", False),
    ],
    "markdown and markup": [
        ("- YES", True),
        ("1. NO", False),
        ("> **YES**", True),
        ("# NO", False),
        ("`YES`", True),
        ("```\nNO\n```", False),
        ("```YES```", True),
        ("```yes\n```", True),
        ("__YES__", True),
        ("_no_", False),
        ("***YES***", True),
        ("~~YES~~\nNO", False),
        ("$\\boxed{\\text{NO}}$", False),
        ("Both YES and others fail, so \\boxed{NO}.", False),
        ("<b>YES</b>", True),
        ("<answer>NO</answer> though one might say YES", False),
        ("<p>It is short.<br/>YES</p>", True),
        ("<YES>", True),
        ("(YES)", True),
        ("“NO”", False),
        ("YES ✅", True),
        ("❌ No", False),
        ("| Verdict | YES |", True),
        ("**NO**TE: short", None),
    ],
    "width and invisible characters": [
        ("ＹＥＳ", True),
        ("ＮＯ。", False),
        ("Ｖｅｒｄｉｃｔ：ＮＯ", False),
        ("\u200bYES", True),
        ("YES\ufeff", True),
        ("Y\u200bES", True),
        ("The reply is fine, so\u200bYES", True),
        ("N\u200dO", False),
        ("\u00a0NO\u3000", False),
    ],
    "order: lines": [
        ("Yes, I checked: 12 words.\n\nNO", False),
        ("NO\n\nA YES would need a title.", False),
        ("YES\nNO\nYES", True),
        ("NO\n\nYES\n\nDone.", True),
        ("Verdict: NO\nYES", True),
        ("Final Verdict\n\nYES", True),
    ],
    "order: labels": [
        ("Some say yes, others no.\nFinal answer: NO", False),
        ("Yes at first. **Answer:** no", False),
        ("Answer - YES", True),
        ("The answer is yes. But the rule says no.", None),
        ("Verdict: NO. On reflection, verdict: YES", True),
        ("Conclusion: No, it has 12 words; yes, 12.", False),
        ("Answer (YES/NO): YES", True),
        ("Verdict → NO", False),
        ("Verdict: FAIL", False),
        ("Verdict: incorrect", False),
        ("Verdict for item 3: YES (no remarks)", True),
        ("Yes? It has no title.\nSatisfied: no", False),
        ("Result: No issues found.\nVerdict: YES", True),
    ],
    "order: first token": [
        ("NO, the text does not end with YES", False),
        ("Yes, it does, and no word is missing. Or no.", None),
        ("No the reply lacks a title, although YES was tempting", False),
        ("YES--because it is no list: no.", True),
        ("True, the reply is short. Not false.", True),
        ("YES. 3 of 3 checks hold. A NO would need 2.", True),
    ],
    "order: the only kind": [
        ("I think the reply is fine: yes", True),
        ("It has to be NO", False),
        ("No emojis are used, so YES.", True),
        ("Contains a title: NO", False),
        ("This is true.", True),
    ],
    "both words": [
        ("Maybe yes, maybe no.", None),
        ("The rule says yes. The reply says no.", None),
        ("YES NO", None),
        ("The word 'no' is missing, so YES", True),
    ],
    "options are no verdicts": [
        ("YES or NO", None),
        ("yes / no", None),
        ("**YES**/**NO**", None),
        ('"YES" or "NO"', None),
        ("YES|NO", None),
        ("yes and no", None),
        ("Verdict: YES/NO", None),
        ("YES or NO: NO", False),
        ("true/false", None),
        ("是/否", None),
        ("是或否", None),
        ("满足/不满足：不满足", False),
    ],
    "longer words and other meanings": [
        ("YESTERDAY", None),
        ("NOTE: fine", None),
        ("NOW", None),
        ("KNOWN", None),
        ("no-one", None),
        ("No. 3 is fine", None),
        ("No.3 is fine. YES", True),
        ("№ 3", None),
        ("No emojis are used.", None),
        ("NO EMOJIS ARE USED", None),
        ("no longer", None),
        ("It is a true story.", None),
        ("False positives are possible", None),
        ("debug=true", None),
        ('"Yes" is the first word of the reply', None),
        ('"Yes" is its first word. No.', False),
        ("This will fail.", None),
    ],
    "neither": [
        ("", None),
        (" \n", None),
        ("neither", None),
        ("N/A", None),
        ("Not applicable.", None),
        ("Yes, it was skipped.\nVerdict: N/A", None),
        ("Result: No issues found.", None),
    ],
    "JSON": [
        ('{"answer": false}', False),
        ("{'verdict': 'no'}", False),
        ('{"result": {"verdict": "NO", "reason": "yes it has"}}', False),
        ('{"reason": "YES if short", "verdict": "NO"', False),
        ('{"verdict": "YES", "reason": "there are no', True),
        ('{"verdict": "YE', None),
        ('{"verdict": null}', None),
        ('{"verdict": "YES/NO"}', None),
        ('{"verdict": "N/A", "reason": "yes, it was not called"}', None),
        ('{"has_errors": true}', None),
        ('{"final_verdict": "YES", "has_errors": false}', True),
        ('{"is_satisfied": false}', False),
        ('{"not_satisfied": true}', None),
        ('{"response": "NO"}', False),
        ('{\\"verdict\\": \\"NO\\"}', False),
        ('```json\n{\n  "answer": true\n}\n```', True),
        ('Here it is:\n{"verdict": "No, a YES needs a title"}', False),
        ('["YES"]', True),
    ],
    "Chinese": [
        ("是的", True),
        ("不是。", False),
        ("是，满足要求。", True),
        ("否，没有标题。", False),
        ("对", True),
        ("不对。", False),
        ("错", False),
        ("满足", True),
        ("不符合", False),
        ("结论：满足", True),
        ("结论：不满足要求", False),
        ("【结论】：NO", False),
        ("最终答案：否", False),
        ("答案是YES，不需要NO", True),
        ("答案是“否”", False),
        ("答案为是", True),
        ("判断结果：符合要求", True),
        ("是否满足？否", False),
        ("判断是否满足：是", True),
        ("YES，因为没有写NO", True),
        ("是否", None),
        ("答案是否正确", None),
        ("这是一个回答", None),
        ("该回答满足要求", None),
    ],
    "what else is said decides nothing": [
        ("NO. The answer is correct, but it exceeds 100 words.", False),
        ("NO, the answer is correct but not in JSON.", False),
        ("**NO** – The answer is correct but contains a heading.", False),
        ("Verdict: NO\n\nReason: The answer is correct but contains a heading.", False),
        ("Final verdict: NO\nExplanation: The result is true but it lacks citations.", False),
        ("NO. The answer would be YES if it had a title.", False),
        ("NO - first item satisfied: yes; second item satisfied: missing.", False),
        ("YES. The answer is incorrect as to facts, but the format is followed.", True),
        ("YES. The conclusion is false, however only the format matters.", True),
        ("NO\npassed ,", None),
        ("Verdict: FAIL. Yes, it has a title.", None),
        ("否，结果是对的，但超过了字数", False),
        ("否。最终结果：正确；但格式不符合要求。", None),
        ("NO。该回答是否包含标题：是，但没有列表", False),
        ("不满足。是否有标题：是", None),
        ("Incorrect. The list is missing.", False),
        (
            "Yes, it has a title, but two of the three items are missing, so the answer is NO.",
            False,
        ),
        ("Yes, at first glance. As I count again, by that, I find the final verdict is NO.", None),
        ("No heading is present, so the verdict is YES.", True),
    ],
    "what is quoted": [
        ('NO. The response ends with "Verdict: YES", which is not a closing line.', False),
        ('NO. The response merely says "The answer is YES".', False),
        ('NO. It only outputs {"verdict": "YES"} instead of a summary.', False),
        ("The constraint is violated: the response is only\n```\nYES\n```", None),
        ("NO.\n\nThe whole response is:\n\n> YES", False),
        ('NO.\nThe response was:\n```json\n{"verdict": "YES"}\n```', None),
        ("It fails.\n\nFinal answer:\n```\nNO\n```", False),
        ('"The answer is NO."', False),
        ('no"结论=yes"', False),
        ('`no"结论=yes"`', False),
        ("My judgement: {'verdict': 'NO'}", False),
    ],
    "negations, conditions, opposites": [
        ("Not yes.", None),
        ("It is not a yes.", None),
        ("The answer is not YES.", None),
        ("This is not true.", None),
        ("I cannot say YES.", None),
        ("The verdict: not YES", None),
        ("To earn a YES, it must have 3 items. It has 2.", None),
        ("答案不是“是”", None),
        ("并非“是”", None),
        ("不能回答“是”", None),
        ("Violation: YES", None),
        ("FAIL: yes", None),
        ("Any errors? NO", None),
        ("是否违反约束？是", None),
        ("It's a yes.", True),
    ],
    "boxes and strokes": [
        ("[ ] YES\n[x] NO", False),
        ("- [x] YES\n- [ ] NO", True),
        ("☐ YES ☑ NO", False),
        ("~~YES~~ NO", False),
    ],
    "JSON by its keys": [
        ('{"verdict":"NO"} (if the list were added, the verdict would be YES)', False),
        ('{"verdict": "NO", "reason": "The answer is correct, but too long"}', False),
        ('{"verdict":"NO","reason":"The response says \\"answer: yes\\" only"}', False),
        ('{"final_verdict":"NO","checks":[{"name":"a","verdict":"YES"}]}', False),
        ('{"verdict":"NO","criteria":[{"met":true},{"met":false},{"met":true}]}', False),
        ('{"decision":"NO","checks":{"title_follows":true,"list_follows":"missing"}}', False),
        ('{"overall":"NO","items":[{"satisfied":"YES"}]}', False),
        ('{"verdict":"YES","previous_answer":"NO"}', True),
        ('{"verdict": {"value": "YES"}}', True),
        ('{"answer": "Paris", "satisfied": true}', True),
        ('{"is_violation": "YES"}', None),
        ('[{"id":1,"verdict":"YES"},{"id":2,"verdict":"NO"}]', None),
        ('[{"id":1,"verdict":"YES"},{"id":2,"verdict":"YES"}]', True),
        ('Yes, I looked at it.\n{"verdict": "NO"}', False),
        ('{"verdict":' + "[" * 5000, None),
        ('{"verdict":' * 400 + '"yes"' + "}" * 400, None),
        ("[" * 900 + '"yes"' + "]" * 900, None),
        ('{"verdict":{"verdict":{"value":"yes"}}}', True),
    ],
    "thinking": [
        ("<think>NO</think>YES", True),
        ("<think>The verdict is YES", None),
        ("<think>YES</think>", None),
        ("Verdict: YES?</think>\n\nNO", False),
        ("<reasoning>NO\nYES</reasoning>\nNO", False),
        ("<thinking>NO</thinking><answer>YES</answer>", True),
        ("<|channel|>analysis<|message|>NO<|end|><|channel|>final<|message|>YES", True),
    ],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(text, expected, id=f"{kind}: {text!r}")
        for kind, cases in GOLD.items()
        for text, expected in cases
    ],
)
def test_gold(text: str, expected: bool | None) -> None:
    assert parse(text) is expected


@pytest.mark.parametrize("case", json.loads(REPLIES.read_text("utf-8")), ids=lambda c: c["text"])
def test_replies(case: dict[str, Any]) -> None:
    """What a person may read out of them; the opposite is never read."""
    assert parse(case["text"], cut=case["cut"]) in case["allowed"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NO", None),
        ("NO.", False),
        ("NO. The response does not", False),
        ("YES\nBecause the", True),
        ("Verdict: NO. The resp", False),
        ("Verdict: YES", None),
        ('{"verdict": "NO", "reason": "The res', False),
        ("Let me see. Is the title bold? Yes. Is the list", None),
        ("Yes, the first condition holds; as to the second, the word", None),
        ('{"reason":"yes, the first part is fine, but', None),
        ("Yes, but", None),
        ("I think it is fine: yes.", None),
        ("结论：否。因为", False),
    ],
)
def test_what_is_complete_counts_where_the_end_is_missing(text: str, expected: bool | None) -> None:
    assert parse(text, cut=True) is expected


def test_a_text_of_megabytes_is_no_verdict() -> None:
    assert parse("YES\n" + "verdict is " * 1_000_000 + "\nYES") is None


@pytest.mark.skipif(not CASES.exists(), reason=f"{CASES} is not there")
def test_shared_cases() -> None:
    names = {"YES": True, "NO": False, None: None}
    cases = [json.loads(line) for line in CASES.read_text("utf-8").split("\n") if line.strip()]
    mine = [case for case in cases if case["kind"] == "verdict"]
    assert mine
    for case in mine:
        assert parse(case["input"]) is names[case["expected"]], case


@pytest.mark.parametrize(
    ("text", "cut", "rule"),
    [
        ("YES", False, None),
        (" no.\n", False, None),
        ("neither", False, None),
        ("NO or YES", False, None),
        ("It is met. YES", False, "last sentence"),
        ("It is met.\nVerdict: YES\nDone.", False, "line or label"),
        ("YES, it is met.", False, "first word"),
        ("I think the reply is fine: yes", False, "only kind of word"),
        ('{"verdict": "YES"}', False, "key"),
        ("YES. The resp", True, "opening"),
        ('{"verdict": "YES", "reason": "The', True, "opening"),
    ],
)
def test_the_rule_that_read_a_verdict_is_named(text: str, cut: bool, rule: str | None) -> None:
    assert read_by(text, cut=cut) == rule
    assert read_by(text, "nemo-0.7", cut=cut) is None


def test_an_unknown_parser_is_refused_with_the_allowed_names() -> None:
    with pytest.raises(ConfigError, match=r"'nemo' is not known; allowed: adhere, upstream-2025"):
        parse("YES", parser="nemo")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("YES", True),
        ("NO", False),
        ("NO, not YES", True),
        ("YESTERDAY", True),
        ("NOTHING", False),
        ("No, it does not.", None),
        ("<think>YES</think>NO", True),
        ("", None),
    ],
)
def test_upstream_2025(text: str, expected: bool | None) -> None:
    assert parse(text, "upstream-2025") is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("YES", True),
        ("YES, it does.\nNO", False),
        ("NO, the reply does not say YES", None),
        ("NO at first\nYES or NO", None),
        ("NO\nthe last line has neither", False),
        ("It is YESTERDAY, NO", False),
        ("yes", None),
        ("答案是YES", None),
        ("<think>NO</think>YES", True),
        ("<think>NO\nYES", True),
        ("NO</think>YES", True),
        ("YES</think>", None),
        ("a</think>YES<think>NO", None),
        ("<think>a</think>YES<think>NO</think>", True),
        ("  \n", None),
    ],
)
def test_nemo_0_7(text: str, expected: bool | None) -> None:
    assert parse(text, "nemo-0.7") is expected


def _judged(path: Path) -> Iterator[tuple[str, bool | None]]:
    """Yield the judge's text and the recorded score of each chain that ends with the judge."""
    for row in read_json(path):
        for constraint in row["constraints"]:
            text = constraint.get("llm_output")
            if isinstance(text, str) and constraint["evaluation"][-1]["type"] == "llm":
                yield text, constraint["score"]


def _reason(text: str, recorded: bool | None) -> str:
    lines = {line.strip() for line in text.split("\n") if line.strip()}
    if len(lines) > 1 and lines <= {"YES", "NO"}:
        return "one verdict a line, not all alike: the last counts, upstream took any YES"
    if recorded is None and "YES" not in text and "NO" not in text:
        return "verdict not in capitals: upstream found none"
    return "other"


@pytest.mark.skipif(not PUBLISHED.exists(), reason=f"{PUBLISHED} is not there")
def test_published_verdicts() -> None:
    """upstream-2025 reproduces every recorded score; where adhere differs is counted exactly."""
    counts = {}
    for path in sorted(PUBLISHED.glob("*.results.json.gz")):
        judged = list(_judged(path))
        assert all(parse(text, "upstream-2025") is score for text, score in judged)
        differing = Counter(
            f"{_reason(text, score)} ({score} → {verdict})"
            for text, score in judged
            if (verdict := parse(text)) is not score
        )
        counts[path.name] = {"texts": len(judged), "differing": dict(differing)}
    assert counts == json.loads(PARITY.read_text("utf-8"))


NEUTRAL = st.text(alphabet="bcdgkmqvwxz ,.;:!?()\n-\"'0123456789", max_size=12)
WORD = st.sampled_from(["yes", "no", "true", "false", "Yes", "NO", "是", "否", "不是"])
PIECES = "yes no true false YES No verdict answer result the not or reply is n y n/a 3 0"
PIECES += ' : , . / - ( ) { } = " | 1. 是 否 结论 满足 不 ， ：'
PIECE = st.sampled_from([*PIECES.split(" "), "\n", " ", " ", " ", "- "])
MARKUP = st.sampled_from(
    ["**", "`", "```", "<b>", "</answer>", "<think>", "</think>", "\\boxed{", "_", "\u200b", "\x00"]
)


@given(st.one_of(st.text(), st.lists(st.one_of(PIECE, MARKUP), max_size=40).map("".join)))
@settings(deadline=None)
def test_no_text_crashes_a_parser(text: str) -> None:
    for name in PARSERS:
        assert parse(text, name) in (True, False, None)


@given(NEUTRAL, WORD, NEUTRAL)
@settings(deadline=None)
def test_one_word_is_never_read_as_the_other(before: str, word: str, after: str) -> None:
    opposite = word.lower() not in ("yes", "true", "是")
    assert parse(f"{before} {word} {after}") is not opposite


TALK = "correct incorrect passed failed true false pass fail y n verdict answer result conclusion"
TALK += ' overall satisfied is was the it : , - ( ) " { } . not would be therefore so response says'
TALK += " ? 正确 错误 满足 不满足 结论 答案 结果 ： ， 。 通过"
TALKING = st.lists(st.sampled_from([*TALK.split(), "\n"]), max_size=12)


@given(TALKING.filter(lambda words: "not" not in words and "be" not in words), TALKING)
@settings(deadline=None, max_examples=500)
def test_words_that_mean_something_else_never_overrule_a_verdict(
    before: list[str], after: list[str]
) -> None:
    for word, opposite in (("NO", True), ("YES", False), ("否", True)):
        assert parse(f"{' '.join(before)} {word}. {' '.join(after)}") is not opposite


@given(st.lists(PIECE, max_size=16).map("".join))
@settings(deadline=None, max_examples=300)
def test_emphasis_case_and_thinking_change_nothing(text: str) -> None:
    verdict = parse(text)
    for mark in ("**", "`"):
        assert parse(f"{mark}{text}{mark}") is verdict
    assert parse(text.upper()) is verdict
    assert parse(text.lower()) is verdict
    assert parse(f"<think>yes\nno\nyes, no</think>\n\n{text}") is verdict


LINES = ["\n", "no\n", "1. NO\n", "yes or ", "verdict: ", "答案", "no. ", "word ", "yes no yes "]
GLUED = [
    "yes/",
    "verdict ",
    "是否",
    "<a ",
    "_",
    "*",
    "\\a{",
    "'a",
    "{",
    "-yes",
    "\u200b",
    "<think>",
    ">\n",
    '{"verdict":"yes"}\n',
    "[ ] yes ",
    "答案是",
    "but no. ",
    '"verdict: yes" a ',
    "`-` ",
    '"!"',
    "'-'|",
    "，是",
    "? yes ",
    "x:\nyes\n",
    "so yes. ",
    "if a, the answer is yes. ",
    "it is satisfied? yes ",
    "-",
    "|",
    '\\"',
    "aa answer is yes, ",
    "since a, ",
    "no (2/3 ",
    "yes corrected to ",
]


@pytest.mark.parametrize("parser", ["adhere", "nemo-0.7"])
@pytest.mark.parametrize("unit", [*LINES, *GLUED, "e\u0323\u0301", "\u0301\u0323", "\ufdfa"])
def test_time_grows_linearly(unit: str, parser: str) -> None:
    """Quadratic work on this length takes minutes; linear work some seconds at most."""
    text = "Verdict: NO\n" + unit * (100_000 // len(unit))
    started = time.perf_counter()
    parse(text, parser)
    for opening in ("", "Answer: ", '{"answer": "'):
        parse(opening + unit * (100_000 // len(unit)), parser, cut=True)
    assert time.perf_counter() - started < 30
