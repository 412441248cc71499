"""The predict stage: no row is lost, none is paid twice."""

import asyncio

import pytest
from mock_endpoint import Reply, Rule
from prediction_bench import MODEL, OUTPUT_KEYS, Bench, benched, error, kinds, row

from adhere.jsonio import read_json, read_jsonl
from adhere.prediction import collect
from adhere.prediction.stage import seed_of


@benched
async def test_every_row_is_there_in_order(bench: Bench) -> None:
    bench.mock.configure(
        rules=[
            Rule(match="quick", reply=Reply(content="fast")),
            Rule(match="slow", reply=Reply(content="late", hang_s=0.1)),
            Rule(match="busy", reply=error(503)),
            Rule(match="rude", reply=error(400, "content policy")),
            Rule(match="odd", reply=error(400, "who knows")),
            Rule(match="mute", reply=Reply(content="")),
            Rule(match="think", reply=Reply(content=None, reasoning="hm", finish_reason="length")),
        ]
    )
    texts = ["slow", "quick", "busy", "rude", "odd", "mute", "think", "quick 2"]
    rows = [row(text, id=n % 2, extra={"kept": [n]}) for n, text in enumerate(texts)]
    written = await bench.predict(rows)
    assert [{k: v for k, v in r.items() if k != "output"} for r in written] == rows
    assert [r["output"]["content"] for r in written] == ["late", "fast", *[""] * 5, "fast"]
    assert kinds(written) == [
        None, None, "server_error", "content_filter", "bad_request", "empty_answer",
        "thinking_cut_off", None,
    ]  # fmt: skip
    assert [r["output"]["error"]["retryable"] for r in written if r["output"]["error"]] == [
        True, False, True, False, False,
    ]  # fmt: skip
    assert all(list(r["output"]) == OUTPUT_KEYS for r in written)
    assert {r["output"]["model_name"] for r in written} == {"m"}
    report = bench.run_config()["datasets"]["d"]
    assert (report["items"], report["failed"], report["pending"]) == (8, 5, 2)
    assert report["errors"]["content_filter"] == 1
    assert report["flags"] == {"truncated": 1}


@benched
async def test_the_request_is_what_the_mode_says(bench: Bench) -> None:
    bench.model = {**MODEL, "modes": {"plain": {"seed": "per_item", "max_tokens": 500}}}
    rows = [row("a"), row("a")]
    rows[0]["input"][0]["name"] = "kept"
    task = bench.task(rows)
    await bench.ask(task)
    bodies = [entry.body for entry in bench.mock.log()]
    assert bodies == [
        task.mode.payload(r["input"], seed_of(fp), 500)
        for r, fp in zip(rows, task.fingerprints, strict=True)
    ]
    assert bodies[0]["messages"] == rows[0]["input"]
    assert bodies[0]["seed"] != bodies[1]["seed"]


@benched
async def test_nothing_is_paid_twice(bench: Bench) -> None:
    rows = [row(f"{n}") for n in range(6)]
    first = await bench.predict(rows)
    assert bench.mock.stats().requests == 6
    assert await bench.predict(rows) == first
    assert bench.mock.stats().requests == 6
    assert bench.mock.stats().resent_after_ok == 0


@benched
async def test_what_may_pass_is_asked_again_and_what_is_final_is_not(bench: Bench) -> None:
    bench.mock.configure(
        rules=[
            Rule(match="busy", reply=error(503)),
            Rule(match="odd", reply=error(400, "who knows")),
            Rule(match="rude", reply=error(400, "content policy")),
            Rule(match="mute", reply=Reply(content="")),
        ]
    )
    rows = [row(text) for text in ("ok", "busy", "odd", "rude", "mute")]
    assert kinds(await bench.predict(rows)) == [
        None, "server_error", "bad_request", "content_filter", "empty_answer",
    ]  # fmt: skip
    bench.mock.configure(rules=[])
    bench.mock.reset()
    written = await bench.predict(rows)
    assert kinds(written) == [None, None, None, "content_filter", "empty_answer"]
    assert bench.mock.stats().requests == 2
    assert bench.run_config()["datasets"]["d"]["pending"] == 0


@benched
async def test_duplicates_are_answered_separately(bench: Bench) -> None:
    bench.concurrency = 1
    bench.mock.configure(
        rules=[Rule(times=1, reply=Reply(content="first")), Rule(reply=Reply(content="second"))]
    )
    written = await bench.predict([row("a"), row("a")])
    assert [r["output"]["content"] for r in written] == ["first", "second"]


@benched
async def test_an_inserted_row_is_the_only_one_asked(bench: Bench) -> None:
    rows = [row("a"), row("b"), row("b")]
    before = await bench.predict(rows)
    bench.mock.reset()
    after = await bench.predict([row("new"), *rows])
    assert [entry.body["messages"][0]["content"] for entry in bench.mock.log()] == ["new"]
    assert after[1:] == before


@benched
async def test_a_corrected_constraint_asks_nothing(bench: Bench) -> None:
    await bench.predict([row("a")])
    bench.mock.reset()
    corrected = row("a") | {"constraints": row("other")["constraints"]}
    written = await bench.predict([corrected])
    assert bench.mock.stats().requests == 0
    assert written[0]["constraints"] == corrected["constraints"]


@benched
async def test_limited_and_full_runs_share_their_answers(bench: Bench) -> None:
    rows = [row(f"{n}") for n in range(5)]
    limited = await bench.predict(rows, name="d.first2")
    assert len(limited) == 2
    full = await bench.predict(rows)
    assert full[:2] == limited
    assert bench.mock.stats().requests == 5
    datasets = bench.run_config()["datasets"]
    assert {name: report["limit"] for name, report in datasets.items()} == {
        "d.first2": 2,
        "d": None,
    }
    assert [datasets[name]["items"] for name in ("d.first2", "d")] == [2, 5]


@benched
async def test_runs_are_independent_and_may_be_asked_together(bench: Bench) -> None:
    bench.model = {**MODEL, "modes": {"plain": {"seed": "per_item"}}}
    rows = [row("a"), row("b"), row("c")]
    tasks = [bench.task(rows, run=run) for run in (1, 2)]
    await bench.ask(*tasks)
    assert bench.mock.stats().distinct_bodies == 6
    contents = []
    for task in tasks:
        collect(task, {"name": "api"})
        contents.append([r["output"]["content"] for r in read_json(task.places.prediction)])
    assert all(one != other for one, other in zip(*contents, strict=True))


@benched
async def test_concurrency_is_used(bench: Bench) -> None:
    bench.concurrency = 5
    bench.mock.configure(rules=[Rule(reply=Reply(hang_s=60))])
    work = asyncio.ensure_future(bench.predict([row(f"{n}") for n in range(15)]))
    await bench.mock.until(in_flight=5)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await bench.mock.until(finished=5)
    assert bench.mock.stats().requests == 5


@benched
async def test_a_torn_journal_costs_its_last_line_only(bench: Bench) -> None:
    rows = [row(f"{n}") for n in range(4)]
    task = bench.task(rows)
    bench.concurrency = 1
    await bench.ask(task)
    journal = task.places.journal
    journal.write_bytes(journal.read_bytes()[:-20])
    bench.mock.reset()
    written = await bench.predict(rows)
    assert bench.mock.stats().requests == 1
    assert kinds(written) == [None] * 4
    assert len(read_jsonl(journal)) == 4
