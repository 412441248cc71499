"""When going on is pointless the predict stage ends, and keeps what was answered."""

import pytest
from mock_endpoint import Reply, Rule
from prediction_bench import Bench, benched, error, kinds, row

from adhere.errors import DataError, EndpointError
from adhere.jsonio import read_jsonl
from adhere.prediction import collect


@benched
async def test_a_stop_in_the_middle_keeps_what_was_answered(bench: Bench) -> None:
    bench.concurrency = 1
    bench.mock.configure(rules=[Rule(times=3, reply=Reply(content="ok")), Rule(reply=error(401))])
    rows = [row(f"{n}") for n in range(8)]
    task = bench.task(rows)
    with pytest.raises(EndpointError, match=r"configs/m\.yaml: .* unauthorised: HTTP 401"):
        await bench.ask(task)
    assert bench.mock.stats().requests == 4
    assert len(read_jsonl(task.places.journal)) == 3
    assert not task.places.prediction.exists()
    with pytest.raises(DataError, match=r"no prediction for item 4: start the workflow again"):
        collect(task, {"name": "api"})
    bench.mock.configure(rules=[])
    bench.mock.reset()
    written = await bench.predict(rows)
    assert bench.mock.stats().requests == 5
    assert kinds(written) == [None] * 8


@benched
async def test_a_stop_cancels_what_is_still_in_flight(bench: Bench) -> None:
    bench.mock.configure(
        rules=[Rule(match="bad", reply=error(401)), Rule(match="slow", reply=Reply(hang_s=60))]
    )
    task = bench.task([row("1 slow"), row("2 slow"), row("3 bad"), row("4 later")])
    bench.concurrency = 3
    with pytest.raises(EndpointError):
        await bench.ask(task)
    assert read_jsonl(task.places.journal) == []


@benched
async def test_nothing_answered_at_all_names_the_endpoint(bench: Bench) -> None:
    bench.mock.configure(rules=[Rule(reply=error(503, "Try later."))])
    task = bench.task([row("a"), row("b")])
    with pytest.raises(EndpointError) as caught:
        await bench.ask(task)
    assert str(caught.value).startswith(f"configs/m.yaml: {bench.mock.base_url}: none of 2 ")
    assert "server_error: Try later." in str(caught.value)
    bench.mock.configure(rules=[])
    assert kinds(await bench.predict([row("a"), row("b")])) == [None, None]


@benched
async def test_final_failures_alone_are_a_result(bench: Bench) -> None:
    bench.mock.configure(rules=[Rule(reply=Reply(content=""))])
    assert kinds(await bench.predict([row("a"), row("b")])) == ["empty_answer"] * 2


@benched
async def test_an_earlier_answer_makes_a_bad_day_a_result(bench: Bench) -> None:
    await bench.predict([row("a")])
    bench.mock.configure(rules=[Rule(reply=error(503))])
    assert kinds(await bench.predict([row("a"), row("b")])) == [None, "server_error"]


@benched
async def test_no_task_is_no_work(bench: Bench) -> None:
    await bench.ask()
    assert bench.mock.stats().requests == 0
