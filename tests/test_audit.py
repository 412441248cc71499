"""The audit of a dataset's checkers."""

import asyncio
from pathlib import Path

import pytest
from workflow_project import ROOT

from adhere import data
from adhere.audit import audit
from adhere.checkers import CheckerPool
from adhere.data import Row

GOOD = "def check_following(response):\n    return 'a' in response\n"


def row(*sources: str, **examples: list[str]) -> Row:
    constraints = [
        {"evaluation": [{"type": "code", "exec": source}], "examples": examples}
        for source in sources
    ]
    return {"id": 7, "input": [{"role": "user", "content": "x"}], "constraints": constraints}


def kinds(*rows: Row, timeout_s: float = 60.0) -> list[tuple[str, str]]:
    async def run() -> list[tuple[str, str]]:
        async with CheckerPool(workers=1, timeout_s=timeout_s) as pool:
            return [(f.kind, str(f)) for f in await audit(rows, pool)]

    return asyncio.run(run())


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


def test_equal_sources_are_told_once() -> None:
    never = "def check_following(r):\n    return False\n"
    ((_, line),) = kinds(row(never, never), row(never))
    assert "and 2 more" in line


def test_the_smoke_dataset_has_no_broken_checker() -> None:
    rows = data.load_rows(Path(ROOT) / "data/smoke/eval.json")
    pure = [
        {**r, "constraints": [c for c in r["constraints"] if len(c["evaluation"]) == 1]}
        for r in rows
    ]
    broken = {"not_defined", "checker_timeout", "checker_error", "slow"}
    assert not [line for kind, line in kinds(*pure) if kind in broken]
