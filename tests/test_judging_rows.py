"""Rows in, rows out: nothing is dropped, every null is explained."""

import asyncio
import copy
from collections import Counter
from pathlib import Path

import pytest
from judging_bench import (
    FALSE,
    MAYBE,
    NONE,
    RAISES,
    TRUE,
    YES,
    assert_accounted,
    item,
    judging,
    llm,
    verdicts,
)
from looping import looped
from mock_endpoint import Reply, Rule

from adhere.checkers import CheckerPool
from adhere.client import ChatClient, Endpoint
from adhere.config import JudgeConfig
from adhere.data import Row
from adhere.errors import DataError
from adhere.jsonio import dumps
from adhere.judging import Judge, judge_rows
from adhere.judging.asking import Asker
from adhere.judging.stage import align
from adhere.progress import Progress

# Rows in, rows out


@looped
async def test_every_row_and_every_reason_is_accounted_for(tmp_path: Path) -> None:
    rules = (Rule(match="Broken?", reply=Reply(status=500)), Rule(match="Odd?", reply=MAYBE))
    async with judging(tmp_path, *rules, Rule(reply=YES), checkers=1) as bench:
        bench.concurrency = 1
        busy = {"kind": "rate_limited", "message": "busy", "retryable": True}
        lost = {"kind": "context_overflow", "message": "too long", "retryable": False}
        condition = ("llm_conditional_check", "Any? {response}")
        rows = [
            item("a", llm("Fine?"), llm("Odd?"), llm("Broken?"), [condition]),
            item("b", llm("Fine?"), [("code", TRUE)], error=busy, answer=""),
            item("c", llm("Fine?"), [("code", TRUE)], [("code", FALSE)], error=lost, answer=""),
            item("d", llm("Fine?"), answer=" \n"),
            item("e", [("code", TRUE)], [("code", FALSE)], [("code", NONE)], [("code", RAISES)]),
            {**item("f", llm("Fine?")), "output": {"model_name": "m"}},
        ]
        for row in rows:
            row["constraints"][0] |= {"desc": "kept", "score": True, "llm_output": "stale"}
        before = copy.deepcopy(rows)
        run, _ = await bench.judge(rows, asks=1)
        assert rows == before, "what was given is not changed"
        assert_accounted(run, rows)
        assert verdicts(run) == [
            [
                (True, None),
                (None, "judge_unreadable"),
                (None, "judge_failed"),
                (None, "not_applicable"),
            ],
            [(None, "prediction_pending")] * 2,
            [(None, "no_response")] * 3,
            [(None, "no_response")],
            [(True, None), (False, None), (None, "not_applicable"), (None, "checker_error")],
            [(None, "no_response")],
        ]
        assert run.counts == {
            "followed": 2,
            "violated": 1,
            "judge_unreadable": 1,
            "judge_failed": 1,
            "not_applicable": 2,
            "checker_error": 1,
            "prediction_pending": 2,
            "no_response": 5,
        }
        assert run.retryable == 1
        assert all(row["constraints"][0]["desc"] == "kept" for row in run.rows)
        untouched: Row = {"score": None, "llm_output": None, "steps": []}
        assert untouched.items() <= run.rows[1]["constraints"][0].items(), "no stale verdict"
        assert sorted(set(bench.prompts)) == [
            f"{question}? An answer." for question in ("Any", "Broken", "Fine", "Odd")
        ], "nothing is asked about an answer that is not there"


@looped
async def test_checkers_alone_need_no_judge() -> None:
    rows = [item("q", [("code", TRUE)], [("code", RAISES)])]
    async with CheckerPool(workers=1) as pool:
        with Progress("judge", "constraints") as progress:
            run = await judge_rows(rows, None, pool, progress)
            assert verdicts(run) == [[(True, None), (None, "checker_error")]]
            assert_accounted(run, rows)
            with pytest.raises(DataError, match=r"2 constraints ask a judge .*--judge"):
                await judge_rows([item("q", llm("Fine?"), llm("Odd?"))], None, pool, progress)


@looped
async def test_lone_surrogates_of_checkers_are_written_and_asked_about(tmp_path: Path) -> None:
    """An answer spells one with ASCII characters, and the checker evaluates it."""
    evaluate = ("code", "def check_following(response):\n    return eval(response)\n")
    raises = ("code", "def check_following(response):\n    raise ValueError(eval(response))\n")
    rows = [item("q", [evaluate, *llm("Good?")], [evaluate], [raises], answer=r"'\ud83d YES'")]
    async with judging(tmp_path, YES, checkers=1) as bench:
        run, _ = await bench.judge(rows)
        assert bench.prompts == ["Good? \ufffd YES"]
        assert verdicts(run) == [[(True, None), (True, None), (None, "checker_error")]]
        first, second, third = (c["steps"][0] for c in run.rows[0]["constraints"])
        assert first["result"] == second["result"] == "\ufffd YES"
        assert third["detail"] == "ValueError: \ufffd YES (checker line 2)"
        dumps(run.rows)
        assert await bench.requests(rows) == 0, "the reply is kept for the same question"


@looped
async def test_checkers_keep_every_server_busy() -> None:
    rows = [item(f"q{n}", [("code", TRUE)], [("code", FALSE)]) for n in range(20)]
    async with CheckerPool(workers=3) as pool:
        with Progress("judge", "constraints") as progress:
            run = await judge_rows(rows, None, pool, progress)
        assert len(pool.server_pids) == 3
    steps = [step for row in run.rows for raw in row["constraints"] for step in raw["steps"]]
    assert steps == [
        {"type": "code", "result": result, "isolation": "strong"}
        for _ in range(20)
        for result in (True, False)
    ]


@looped
async def test_no_rows_are_no_problem(tmp_path: Path) -> None:
    async with judging(tmp_path, YES) as bench:
        run, _ = await bench.judge([])
        assert (run.rows, run.counts, run.retryable) == ([], Counter(), 0)


@looped
async def test_judges_and_checkers_never_wait_for_each_other(tmp_path: Path) -> None:
    """While every connection to the judge hangs, all checkers are run."""
    hang = Rule(match="Hang", reply=Reply(hang_s=600))
    async with judging(tmp_path, hang, checkers=1) as bench:
        rows = [item(f"q{n}", llm("Hang"), [("code", TRUE)]) for n in range(20)]
        progress = _Watched(checked=20)
        endpoint = Endpoint(bench.mock.judge_url, "j", concurrency=2)
        async with ChatClient(endpoint) as client:
            judge = Judge("j", JudgeConfig(model="m", api_key_env=None))
            task = asyncio.create_task(
                judge_rows(rows, Asker(judge, client, None), bench.pool, progress)
            )
            await progress.reached.wait()
            assert bench.mock.stats().answered == 0
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


class _Watched(Progress):
    """Progress that tells when so many units are done."""

    def __init__(self, checked: int) -> None:
        super().__init__("judge", "constraints")
        self._wanted = checked
        self.reached = asyncio.Event()

    def advance(self, *, failed: bool = False, retries: int = 0) -> None:
        super().advance(failed=failed, retries=retries)
        if self.done == self._wanted:
            self.reached.set()


# Predictions and dataset


def test_constraints_come_from_the_dataset() -> None:
    old = item("q", llm("Old?")) | {"stale": 1}
    new = {key: value for key, value in item("q", llm("New?")).items() if key != "output"}
    (row,) = align([old], [new | {"id": 3}])
    assert row == new | {"id": 3, "output": old["output"]}
    assert align([old], None) == [old]


@pytest.mark.parametrize(
    ("predictions", "reference", "named"),
    [
        ([item("a"), item("b")], [item("a")], r"2 items, the dataset 1"),
        ([item("a")], [item("a"), item("b")], r"1 items, the dataset 2"),
        ([item("a"), item("x")], [item("a"), item("b")], r"item 2: .*another input"),
        ([item("b"), item("a")], [item("a"), item("b")], r"item 1: .*another input"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    predictions: list[Row], reference: list[Row] | None, named: str
) -> None:
    with pytest.raises(DataError, match=named):
        align(predictions, reference)
