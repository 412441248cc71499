"""The audit of a dataset's checkers."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from workflow_project import ROOT

from adhere import data
from adhere.audit import Finding, audit
from adhere.checkers import CheckerPool
from adhere.data import Row

GOOD = "def check_following(response):\n    return 'a' in response\n"


def row(*sources: str, then: Sequence[Row] = (), **examples: list[str]) -> Row:
    """Return an item with a constraint for each source; ``then`` are the steps after it."""
    constraints = [
        {"evaluation": [{"type": "code", "exec": source}, *then], "examples": examples}
        for source in sources
    ]
    return {"id": 7, "input": [{"role": "user", "content": "x"}], "constraints": constraints}


def found(*rows: Row, timeout_s: float = 60.0) -> list[Finding]:
    async def run() -> list[Finding]:
        async with CheckerPool(workers=1, timeout_s=timeout_s) as pool:
            return await audit(rows, pool)

    return asyncio.run(run())


def kinds(*rows: Row, timeout_s: float = 60.0) -> list[tuple[str, str]]:
    return [(finding.kind, str(finding)) for finding in found(*rows, timeout_s=timeout_s)]


def test_a_sound_checker_is_not_mentioned() -> None:
    assert kinds(row(GOOD, good=["banana"], bad=["plum"])) == []


@pytest.mark.parametrize(
    ("source", "kind", "text"),
    [
        ("def check_following(r):\n    return False\n", "never true", "constraint 1"),
        ("import re\ndef check_following(r):\n    return True\n", "never false", "line 2: def"),
        ("def check_following(r:\n    return True\n", "checker_error", "on every text"),
        ("def check(r):\n    return True\n", "not_defined", "item 1 (id 7)"),
        (
            "def check_following(r):\n    return 'a' in r or int(r) > 0\n",
            "checker_error",
            "ValueError",
        ),
    ],
)
def test_each_problem_is_named_with_its_place(source: str, kind: str, text: str) -> None:
    found = kinds(row(source))
    assert kind in [name for name, _ in found]
    assert any(text in line for name, line in found if name == kind)


def test_an_audit_keeps_every_server_busy() -> None:
    async def run() -> int:
        async with CheckerPool(workers=3) as pool:
            await audit([row(*(f"{GOOD}\n# {number}" for number in range(20)))], pool)
            return len(pool.server_pids)

    assert asyncio.run(run()) == 3


def test_a_checker_that_does_not_end() -> None:
    source = "def check_following(r):\n    while True:\n        pass\n"
    assert [name for name, _ in kinds(row(source), timeout_s=0.5)] == ["checker_timeout"]


def test_examples_are_held_against_the_checker() -> None:
    found = dict(kinds(row(GOOD, good=["plum", "banana"], bad=["papaya"])))
    assert "1 of 2" in found["good example refused"]
    assert "1 of 1" in found["bad example accepted"]


JUDGE = [{"type": "llm", "exec": "Good? {response}"}]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("return 'YES' if 'a' in r else 'the verdict: NO'", []),
        ("return 'YES'", ["never false"]),
        ("return 'NO' if 'a' in r else False", ["never true"]),
        # texts that give no verdict, in one case or in all
        ("return r or 'YES'", []),
        ("return str(len(r))", []),
        ("return None", ["never true", "never false"]),
    ],
)
def test_texts_are_read_as_the_end_of_a_chain_reads_them(body: str, named: list[str]) -> None:
    source = f"def check_following(r):\n    {body}\n"
    assert [kind for kind, _ in kinds(row(source))] == named
    told = [kind for kind, _ in kinds(row(source, then=JUDGE)) if "return None" not in body]
    assert told == [], "before a judge a text is what it is asked about"


def test_a_step_is_held_against_nothing_that_its_chain_decides() -> None:
    examples = {"good": ["plum"], "bad": ["banana"]}
    step = row(GOOD, then=JUDGE, **examples)
    assert kinds(step) == []
    assert kinds(step, row(GOOD, **examples)) == [], "nor where it decides in another place only"
    refused = [kind for kind, _ in kinds(row(GOOD, **examples))]
    assert refused == ["good example refused", "bad example accepted"]


@pytest.mark.parametrize(("before", "tried"), [("llm", False), ("llm_conditional_check", True)])
def test_examples_are_tried_where_the_checker_gets_the_answer(before: str, tried: bool) -> None:
    """Behind a judge it gets what the judge wrote, and an answer's example tells nothing."""
    item = row(GOOD, good=["plum"], bad=["banana"])
    item["constraints"][0]["evaluation"].insert(0, {"type": before, "exec": "{response}?"})
    wrong = ["good example refused", "bad example accepted"]
    assert [kind for kind, _ in kinds(item)] == (wrong if tried else [])


def test_what_is_shown_is_one_line_that_a_terminal_can_show() -> None:
    name = "a\\x1b[2J\\n"
    sources = (
        f"def check_following(r): return type('{name}', (), {{'__module__': '\\ud800'}})()\n",
        "def check_following(r): raise ValueError('\\ud800\\x1b')  # \x1b[31m\n",
        "check_following = None  # \x9b\u202e\n",
    )
    three = found({**row(*sources), "id": "\x1b]0;\n"})
    assert len(three) == 3
    for finding in three:
        assert finding.in_full.isprintable(), finding
        assert finding.in_full.startswith(r"item 1 (id \x1b]0;\n) constraint")
        finding.in_full.encode()


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("# check_following(r) says no\n\x0c\ndef check_following(r):", "line 3: def check_"),
        ("# check_following(r) says no\r\ncheck_following(r):", "line 2: check_following(r):"),
        ("\ufeffdef check_following(r):", "line 1: def"),
    ],
)
def test_the_line_shown_is_the_one_that_defines(head: str, line: str) -> None:
    ((_, told),) = kinds(row(f"{head}\n    return False\n"))
    assert f"({line}" in told


def test_equal_sources_are_told_once() -> None:
    never = "def check_following(r):\n    return False\n"
    (finding,) = found(row(never, never), row(never))
    assert str(finding).startswith("item 1 (id 7) constraint 1 and 2 more: never true: ")
    places = ("item 1 (id 7) constraint 1", "item 1 (id 7) constraint 2", "item 2 (id 7)")
    assert finding.in_full.startswith(", ".join(places))


def test_the_smoke_dataset_has_no_broken_checker() -> None:
    rows = data.load_rows(Path(ROOT) / "data/smoke/eval.json")
    pure = [
        {**r, "constraints": [c for c in r["constraints"] if len(c["evaluation"]) == 1]}
        for r in rows
    ]
    broken = {"not_defined", "checker_timeout", "checker_error", "slow"}
    assert not [line for kind, line in kinds(*pure) if kind in broken]
