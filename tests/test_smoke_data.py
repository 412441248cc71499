"""The committed smoke dataset: its form, its coverage, and that every checker can say yes and no.

A constraint is named by (item, constraint), both positions from 0.
"""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from adhere.data import Row, load
from adhere.jsonio import dumps

PATH = Path(__file__).resolve().parents[1] / "data" / "smoke" / "eval.json"
DATASET = load("smoke", PATH)
ROWS = DATASET.rows
DECIDES = re.compile(r"\bYES or NO only\b|只回答 YES 或 NO|回答 YES，.*回答 NO，不要回答别的")
LATIN = re.compile(r"[A-Za-z]")
CHINESE = re.compile(r"[\u4e00-\u9fff]")

Key = tuple[int, int]
CONSTRAINTS: dict[Key, Row] = {
    (i, k): constraint
    for i, row in enumerate(ROWS)
    for k, constraint in enumerate(row["constraints"])
}
CHAINS: dict[Key, tuple[str, ...]] = {
    key: tuple(step["type"] for step in constraint["evaluation"])
    for key, constraint in CONSTRAINTS.items()
}
CONDITION = "llm_conditional_check"
SEQUENCES = {
    ("llm",),
    ("code",),
    (CONDITION, "llm"),
    ("llm", "code"),
    (CONDITION, "code"),
    ("llm", "llm"),
    (CONDITION,),
    (CONDITION, "llm", "code"),
}

GOOD = (
    """{"severity": "SEV1",
"summary": "No customer can pay since 13:57.",
"hypotheses": ["Possibly the deploy four minutes earlier broke checkout-api.",
"Possibly a full connection pool, as the database CPU is normal."],
"actions": [
{"tool": "read_logs", "args": {"service": "checkout-api", "minutes": 10}, "why": "find the error"},
{"tool": "rollback", "args": {"service": "checkout-api", "version": "unknown"},
"why": "undo the deploy; risk: it may drop a migration"}],
"page": true}""",
    """Thought: First class breaks the 90 euro limit, so I give it up and hold second class.
Action: hold_seat[{"train_id": "RJ131", "class": "second", "passengers": 2}]""",
    """## 结论
【风险：高】
## 问题
1. 「每逾期一日，按合同总价的千分之三支付违约金」：比例过高，我方每日须付两千四百元。
2. 「乙方对甲方的一切损失承担无限责任」：责任没有上限，我方可能赔付远超货款。
## 修改建议
> 乙方逾期交货的，每逾期一日，按合同总价的万分之五支付违约金。
> 乙方的赔偿责任以合同总价为限，依照《中华人民共和国民法典》执行。
## 待核实
调用：计算违约金(800000, 0.003, 10)
未附英文总结：规则要求全文用中文。""",
    """<分析>充电宝冒烟涉及人身安全，其余两张按内容归类。</分析>
<结果>[
{"编号": "T11", "类别": "质量", "优先级": 1, "转人工": true, "工具": null,
"回复": "您好，请立即停止使用并远离充电宝。让您受伤非常抱歉，人工客服马上联系您。"},
{"编号": "T12", "类别": "退款", "优先级": 2, "转人工": false, "工具": "查退款(R2087)",
"回复": "您好，让您久等非常抱歉，我们正在查询这笔退款的进度。"},
{"编号": "T13", "类别": "账户", "优先级": 4, "转人工": false, "工具": "查账户(lin_tea)",
"回复": "您好，理解您的需要：请依次点设置、账户安全、更换邮箱，再输入验证码。"}
]</结果>""",
    """<tool>run_tests("tests/test_auth.py")</tool>
<verdict>request_changes</verdict>
<comments>
[blocker] auth.py:11 | The query joins the name, which allows SQL injection | Pass a parameter
[major] auth.py:14 | The bare except hides every failure | Let database errors reach the caller
</comments>
<patch>
def find_user(db, name):
    return db.execute("SELECT * FROM users WHERE name = ?", (name,)).fetchone()
</patch>""",
)
# Where the good answer of the item does not call the tool that the constraint is about.
FAREWELL = """Thought: The seats are held, so I can close the task.
Action: finish[{"message": "Dear Mara, two seats on RJ131 are held. Safe travels!"}]"""

# Checkers that read the answer: (text in the good answer, what makes it a bad one).
BREAKS: dict[Key, tuple[str, str]] = {
    (0, 0): ('{"severity"', 'Hello on-call!\n{"severity"'),
    (0, 1): ('"severity"', '"level"'),
    (0, 2): ("SEV1", "SEV2"),
    (0, 4): ('"Possibly a full connection pool, as the database CPU is normal."', '"a", "b", "c"'),
    (0, 7): ("read_logs", "open_ticket"),
    (0, 8): ("read_logs", "restart_service"),
    (0, 9): (', "version": "unknown"', ""),
    (0, 11): ('"version": "unknown"', '"version": "4.1.0"'),
    (1, 0): ("\nAction", "\nNote: done.\nAction"),
    (1, 1): ("Thought:", 'Action: get_fare[{"train_id": "RJ131"}]\nThought:'),
    (1, 2): ('"passengers": 2}', '"passengers": 2'),
    (1, 3): ("2}]", '2}]\nObservation: {"held": true}'),
    (1, 5): ("so I", "so " + 40 * "really " + "I"),
    (1, 7): ('"second"', '"third"'),
    (1, 8): ("Safe travels!", "Bye!"),
    (1, 9): ("RJ131", "RJ999"),
    (2, 0): ("## 结论", "审查如下。\n## 结论"),
    (2, 1): ("【风险：高】", "风险等级：高"),
    (2, 2): ("1. 「", "1. 原文「"),
    (2, 3): ("千分之三支付", "千分之三交付"),
    (2, 6): ("> 乙方的赔偿", "乙方的赔偿"),
    (2, 8): ("《中华人民共和国民法典》", "民法典"),
    (2, 9): ("未附英文总结", "Summary"),
    (2, 10): ("0.003", "千分之三"),
    (3, 0): ("]</结果>", "]</结果>\n以上是处理结果。"),
    (3, 1): ('"T12"', '"T13"'),
    (3, 2): ('"转人工": true, ', ""),
    (3, 3): ('"质量"', '"安全"'),
    (3, 4): ('"优先级": 4', '"优先级": "低"'),
    (3, 5): ('"转人工": true', '"转人工": false'),
    (3, 6): ('"查退款(R2087)"', "null"),
    (3, 7): ("您好，请立即", "请立即"),
    (3, 9): ("人工客服马上", "人工客服马上拨打139-0000-1234"),
    (4, 0): ("<patch>", "The patch:\n<patch>"),
    (4, 1): ("request_changes", "maybe"),
    (4, 2): (" | Pass a parameter", ""),
    (4, 4): ("Pass a", 30 * "really " + "pass a"),
    (4, 6): ("(db, name)", "(db, user_name)"),
    (4, 9): ("tests/test_auth.py", "auth.py"),
    (4, 11): ("request_changes", "approve"),
}
# Checkers that say None: (text in the good answer, what removes the use of the tool or the case).
UNUSED: dict[Key, tuple[str, str]] = {
    (0, 9): ("rollback", "read_logs"),
    (0, 11): ("rollback", "read_logs"),
    (1, 7): ("hold_seat", "get_fare"),
    (1, 8): ("finish", "get_fare"),
    (1, 9): ("train_id", "train"),
    (2, 10): ("调用：计算违约金(800000, 0.003, 10)", "无"),
    (3, 6): ('"退款"', '"其他"'),
    (4, 9): ('<tool>run_tests("tests/test_auth.py")</tool>\n', ""),
}
# Checkers that read the judge's text: a reply that means yes, one that means no.
REPLIES: dict[Key, tuple[str, str]] = {
    (1, 4): ("```python\n['hold_seat']\n```", "['hold_seat', 'book_hotel']"),
    (2, 7): ("0.0005", "0.003"),
    (4, 3): ("['blocker', 'major']", "['major', 'blocker']"),
}


def source(key: Key) -> str:
    text: str = CONSTRAINTS[key]["evaluation"][-1]["exec"]
    return text


def checker(key: Key) -> Callable[[str], object]:
    """Return the constraint's own checker, with the one missing ``def`` put back."""
    text = re.sub(r"^check_following", "def check_following", source(key), flags=re.MULTILINE)
    names: dict[str, Callable[[str], object]] = {}
    exec(text, names)
    return names["check_following"]


def good(key: Key) -> str:
    return FAREWELL if key == (1, 8) else GOOD[key[0]]


def changed(key: Key, change: tuple[str, str]) -> str:
    old, new = change
    assert old in good(key)
    return good(key).replace(old, new)


def steps(kind: str) -> list[str]:
    chains = [constraint["evaluation"] for constraint in CONSTRAINTS.values()]
    return [step["exec"] for chain in chains for step in chain if step["type"] == kind]


def test_file_is_readable_utf8_json_in_the_projects_layout() -> None:
    assert PATH.read_bytes() == dumps(list(ROWS), indent=True) + b"\n"


def test_five_items_in_two_languages_and_four_shapes_of_conversation() -> None:
    assert [list(row) for row in ROWS] == [["id", "agent_name", "input", "constraints"]] * 5
    assert len({row["agent_name"] for row in ROWS}) == len({row["id"] for row in ROWS}) == 5
    asked = [row["input"][-1]["content"] + row["input"][0]["content"] for row in ROWS]
    chinese = [len(CHINESE.findall(text)) > len(LATIN.findall(text)) for text in asked]
    assert Counter(chinese) == {False: 3, True: 2}
    roles = [tuple(message["role"] for message in row["input"]) for row in ROWS]
    multi = ("system", "user", "assistant", "user")
    assert Counter(roles) == {("system", "user"): 2, ("user",): 1, multi: 2}


def test_small_enough_for_a_slow_judge() -> None:
    for row in ROWS:
        assert sum(len(message["content"]) for message in row["input"]) <= 1600
        assert 10 <= len(row["constraints"]) <= 12
    prompts = steps("llm") + steps(CONDITION)
    assert len(prompts) <= 40
    assert max(map(len, prompts)) <= 300


def test_constraints_have_agentifs_fields_and_cover_its_values() -> None:
    kinds = [constraint["type"] for constraint in CONSTRAINTS.values()]
    for (_, k), constraint in CONSTRAINTS.items():
        assert set(constraint) == {"id", "desc", "dimension", "is_meta", "type", "evaluation"}
        assert constraint["id"] == k
        assert constraint["desc"].strip()
    assert {c["dimension"] for c in CONSTRAINTS.values()} == {
        "unconditional",
        "conditional",
        "example_driven",
    }
    named = [[kind] if isinstance(kind, str) else kind for kind in kinds]
    assert {name for names in named for name in names} == {"formatting", "semantic", "resource"}
    assert [] in kinds
    assert any(isinstance(kind, str) for kind in kinds)
    assert any(isinstance(kind, list) and len(kind) == 2 for kind in kinds)
    assert sum(constraint["is_meta"] is True for constraint in CONSTRAINTS.values()) >= 2
    assert {type(constraint["is_meta"]) for constraint in CONSTRAINTS.values()} == {bool}


def test_all_eight_chain_sequences_occur_and_the_plain_ones_most() -> None:
    counts = Counter(CHAINS.values())
    assert set(counts) == SEQUENCES
    assert counts[("llm",)] + counts[("code",)] > counts.total() / 2


def test_judge_prompts_name_the_response_once_or_leave_it_to_the_engine() -> None:
    assert {prompt.count("{response}") for prompt in steps("llm")} == {0, 1}
    assert {prompt.count("{response}") for prompt in steps(CONDITION)} == {1}


def test_prompts_that_decide_ask_for_plain_yes_or_no_and_others_do_not() -> None:
    for constraint in CONSTRAINTS.values():
        chain = constraint["evaluation"]
        for position, step in enumerate(chain):
            last = position == len(chain) - 1
            decides = step["type"] == CONDITION or (step["type"] == "llm" and last)
            assert (DECIDES.search(step["exec"]) is not None) is decides


def test_one_checker_lacks_its_def_and_one_evaluates_the_judges_text() -> None:
    sources = steps("code")
    assert all("check_following(response):" in source for source in sources)
    assert sum("def check_following(response):" not in source for source in sources) == 1
    assert sum(re.search(r"(?<!_)eval\(", source) is not None for source in sources) == 1


def test_every_checker_has_answers_that_try_it() -> None:
    with_code = {key for key, chain in CHAINS.items() if chain[-1] == "code"}
    after_judge = {key for key in with_code if "llm" in CHAINS[key]}
    assert set(BREAKS) == with_code - after_judge
    assert set(REPLIES) == after_judge
    can_be_none = {key for key in with_code if re.search(r"(return|else) None", source(key))}
    assert set(UNUSED) == can_be_none - after_judge


@pytest.mark.parametrize("key", BREAKS, ids=str)
def test_checker_follows_the_answer(key: Key) -> None:
    check = checker(key)
    assert check(good(key)) is True
    assert check(changed(key, BREAKS[key])) is False


@pytest.mark.parametrize("key", BREAKS, ids=str)
def test_checker_never_raises_on_an_answer_of_another_kind(key: Key) -> None:
    check = checker(key)
    for text in ("", "{", "[]", "[1]", "Sure, happy to help!", "好的，马上处理。", *GOOD):
        assert check(text) in (True, False, None)


@pytest.mark.parametrize("key", UNUSED, ids=str)
def test_checker_says_none_when_the_tool_was_not_used(key: Key) -> None:
    assert checker(key)(changed(key, UNUSED[key])) is None


@pytest.mark.parametrize("key", REPLIES, ids=str)
def test_checker_follows_the_judges_text_and_refuses_an_unusable_one(key: Key) -> None:
    check = checker(key)
    yes, no = REPLIES[key]
    assert check(yes) is True
    assert check(no) is False
    with pytest.raises((ValueError, SyntaxError)):
        check("I cannot tell.")
