"""A judge's endpoint that is no use ends the job, and what was answered is kept."""

from pathlib import Path

import pytest
from judging_bench import TRUE, YES, assert_accounted, item, judging, llm
from looping import looped
from mock_endpoint import ErrorBody, Reply, Rule

from adhere.errors import EndpointError
from adhere.journal import read


@pytest.mark.parametrize(
    ("refusal", "named"),
    [
        (Reply(status=401), "judge_configs/j.yaml: .*unauthorised.*api_key_env"),
        (Reply(status=404), "judge_configs/j.yaml: .*not found.*`model`"),
        (
            Reply(status=400, error=ErrorBody(code="unsupported_parameter", param="temperature")),
            "judge_configs/j.yaml: .*refused parameter.*not_sent",
        ),
    ],
)
@looped
async def test_an_endpoint_that_refuses_ends_the_job_and_keeps_what_was_answered(
    tmp_path: Path, refusal: Reply, named: str
) -> None:
    rules = (Rule(reply=YES, times=5), Rule(reply=refusal))
    async with judging(tmp_path, *rules) as bench:
        bench.concurrency = 1
        rows = [item(f"q{n}", llm("Fine?")) for n in range(20)]
        with pytest.raises(EndpointError, match=named):
            await bench.judge(rows)
        assert bench.mock.stats().answered == 5
        assert len(read(bench.path)) == 5
        bench.mock.configure(rules=[Rule(reply=YES)])
        assert await bench.requests(rows) == 15


@looped
async def test_an_endpoint_that_is_not_there_ends_the_job(tmp_path: Path) -> None:
    async with judging(tmp_path, YES) as bench:
        await bench.mock.__aexit__(None, None, None)
        with pytest.raises(EndpointError, match=r"judge_configs/j\.yaml: http.* unreachable"):
            await bench.judge([item(f"q{n}", llm("Fine?")) for n in range(20)])
        assert read(bench.path) == {}


@looped
async def test_an_endpoint_that_goes_away_leaves_verdicts_that_may_still_come(
    tmp_path: Path,
) -> None:
    rules = (Rule(reply=YES, times=5), Rule(reply=Reply(reset=True)))
    async with judging(tmp_path, *rules, checkers=1) as bench:
        rows = [item(f"q{n}", llm("Fine?"), [("code", TRUE)]) for n in range(20)]
        run, _ = await bench.judge(rows)
        assert_accounted(run, rows)
        assert run.counts == {"followed": 25, "judge_failed": 15}
        assert run.retryable == 15
        bench.mock.configure(rules=[Rule(reply=YES)])
        again, asker = await bench.judge(rows)
        assert (again.counts, again.retryable, asker.reused) == ({"followed": 40}, 0, 5)
