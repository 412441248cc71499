"""Votes of a judge, and asking again where a reply has no verdict."""

from pathlib import Path

import pytest
from judging_bench import EMPTY, MAYBE, NO, YES, assert_accounted, item, judging, llm, verdicts
from looping import looped
from mock_endpoint import Reply

from adhere.journal import read


@pytest.mark.parametrize(
    ("votes", "replies", "expected"),
    [
        (1, [YES], (True, None)),
        (3, [YES, NO, YES], (True, None)),
        (3, [NO, YES, NO], (False, None)),
        (3, [MAYBE, NO, NO], (False, None)),
        (2, [YES, NO], (None, "judge_no_majority")),
        (3, [YES, NO, MAYBE], (None, "judge_no_majority")),
        (3, [YES, MAYBE, EMPTY], (None, "judge_no_majority")),
        (3, [MAYBE, MAYBE, EMPTY], (None, "judge_no_majority")),
        (3, [MAYBE, MAYBE, MAYBE], (None, "judge_unreadable")),
        (3, [EMPTY, EMPTY, EMPTY], (None, "judge_empty")),
    ],
)
@looped
async def test_the_majority_of_all_votes_counts(
    tmp_path: Path, votes: int, replies: list[Reply], expected: tuple[bool | None, str | None]
) -> None:
    async with judging(tmp_path, *replies) as bench:
        rows = [item("q", llm("Fine?"))]
        run, _ = await bench.judge(rows, votes=votes, asks=1)
        assert verdicts(run) == [[expected]]
        assert bench.mock.stats().requests == len(read(bench.path)) == votes
        (step,) = run.rows[0]["constraints"][0]["steps"]
        assert [r["content"] for r in step["replies"]] == [r.content for r in replies]
        assert_accounted(run, rows)


@looped
async def test_votes_count_for_verdicts_only(tmp_path: Path) -> None:
    """A text that goes on to another step is asked for once: there is no majority of texts."""
    async with judging(tmp_path, Reply(content="a part"), YES, YES, YES) as bench:
        chain = [("llm", "Extract: {response}"), ("llm", "Fine? {response}")]
        run, _ = await bench.judge([item("q", chain)], votes=3)
        assert verdicts(run) == [[(True, None)]]
        assert bench.prompts == ["Extract: An answer.", *["Fine? a part"] * 3]


@looped
async def test_a_vote_that_failed_for_now_is_asked_again_later(tmp_path: Path) -> None:
    busy = Reply(status=500)
    async with judging(tmp_path, YES, NO, busy, busy, NO) as bench:
        rows = [item("q", llm("Fine?"))]
        run, _ = await bench.judge(rows, votes=3)
        assert verdicts(run) == [[(None, "judge_failed")]]
        assert run.retryable == 1
        assert len(read(bench.path)) == 2
        assert await bench.requests(rows, votes=3) == 1, "only the vote that is missing"


@pytest.mark.parametrize(
    ("asks", "replies", "expected", "requests"),
    [
        (2, [MAYBE, YES], (True, None), 2),
        (2, [MAYBE, MAYBE, YES], (None, "judge_unreadable"), 2),
        (3, [MAYBE, EMPTY, NO], (False, None), 3),
        (1, [MAYBE, YES], (None, "judge_unreadable"), 1),
        (4, [YES], (True, None), 1),
    ],
)
@looped
async def test_an_unreadable_reply_is_asked_again(
    tmp_path: Path,
    asks: int,
    replies: list[Reply],
    expected: tuple[bool | None, str | None],
    requests: int,
) -> None:
    async with judging(tmp_path, *replies) as bench:
        rows = [item("q", llm("Fine?"))]
        run, _ = await bench.judge(rows, asks=asks)
        assert verdicts(run) == [[expected]]
        assert bench.mock.stats().requests == requests
        assert len(read(bench.path)) == requests, "each reply has a line of its own"
        (step,) = run.rows[0]["constraints"][0]["steps"]
        assert len(step["replies"]) == requests
        again, asker = await bench.judge(rows, asks=asks)
        assert again.rows == run.rows
        assert asker.reused == requests
        assert bench.mock.stats().requests == requests, "a second run sends nothing"


@looped
async def test_a_reply_that_was_cut_off_gets_more_room(tmp_path: Path) -> None:
    cut = Reply(content="Let me think", finish_reason="length")
    async with judging(tmp_path, cut, Reply(content="NO")) as bench:
        rows = [item("q", llm("Fine?"))]
        run, _ = await bench.judge(rows, max_completion_tokens=100)
        assert verdicts(run) == [[(False, None)]]
        budgets = [entry.body["max_completion_tokens"] for entry in bench.mock.log()]
        assert budgets == [100, 400]
        _, asker = await bench.judge(rows, max_completion_tokens=100)
        assert asker.reused == 2


@looped
async def test_structured_verdicts_are_asked_for_where_a_verdict_is_wanted(tmp_path: Path) -> None:
    replies = [Reply(content="a text"), Reply(content='{"verdict": "NO"}')]
    async with judging(tmp_path, *replies) as bench:
        two_steps = [*llm("Extract it."), *llm("Fine?")]
        run, _ = await bench.judge([item("q", two_steps)], structured=True)
        assert verdicts(run) == [[(False, None)]]
        first, second = (entry.body for entry in bench.mock.log())
        assert "response_format" not in first
        schema = second["response_format"]["json_schema"]["schema"]
        assert schema["properties"]["verdict"]["enum"] == ["YES", "NO"]


@looped
async def test_a_step_names_the_rule_that_read_a_reply(tmp_path: Path) -> None:
    """Where the reply is more than its word; with votes, one for each call."""
    chatty = Reply(content="It is met. YES")
    async with judging(tmp_path, chatty) as bench:
        run, _ = await bench.judge([item("q", llm("Fine?"))])
        (step,) = run.rows[0]["constraints"][0]["steps"]
        assert (step["result"], step["read_by"]) == (True, "last sentence")
    async with judging(tmp_path / "votes", YES, chatty, NO) as bench:
        run, _ = await bench.judge([item("q", llm("Fine?"))], votes=3)
        (step,) = run.rows[0]["constraints"][0]["steps"]
        assert (step["votes"], step["read_by"]) == (
            [True, True, False],
            [None, "last sentence", None],
        )
    async with judging(tmp_path / "plain", YES) as bench:
        run, _ = await bench.judge([item("q", llm("Fine?"))])
        assert "read_by" not in run.rows[0]["constraints"][0]["steps"][0]
