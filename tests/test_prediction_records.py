"""What is recorded about a run's predictions, and what is told."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from looping import looped
from mock_endpoint import MockEndpoint, Reply, Rule
from prediction_bench import KEY, MODEL, Bench, benched, error, row

from adhere.prediction import collect, recorded


@benched
async def test_run_config(bench: Bench) -> None:
    bench.mock.configure(system_fingerprint="fp", served_model="served")
    rows = [row("a"), row("b")]
    task = bench.task(rows)
    await bench.ask(task)
    returned = collect(task, {"name": "api", "versions": {"x": "1"}}, attempt="t")
    content = bench.run_config()
    report = content.pop("datasets")["d"]
    assert report == returned
    assert content == {
        "model": "m",
        "mode": "plain",
        "run": 1,
        "hash": task.mode.hash,
        "identity": json.loads(task.mode.text),
        "sampled": False,
        "engine": {"name": "api", "versions": {"x": "1"}},
    }
    assert content["identity"]["sampling"] == {"temperature": 0.0, "top_p": 0.95, "max_tokens": 500}
    outputs_sha256 = report.pop("outputs_sha256")
    assert report == {
        "hash": task.mode.hash,
        "sampling": content["identity"]["sampling"],
        "sampled": False,
        "dataset_sha256": task.dataset.sha256,
        "inputs_sha256": task.dataset.inputs_sha256,
        "limit": None,
        "items": 2,
        "failed": 0,
        "pending": 0,
        "errors": {},
        "flags": {},
        "warnings": [],
        "attempt": "t",
    }
    # Equal answers are told by an equal checksum, whatever else differs.
    again = bench.task(rows, run=2)
    await bench.ask(again)
    assert collect(again, {"name": "api"})["outputs_sha256"] == outputs_sha256
    other = bench.task([row("c"), row("b")], run=3)
    await bench.ask(other)
    assert collect(other, {"name": "api"})["outputs_sha256"] != outputs_sha256


@benched
async def test_a_finished_cell_is_recorded(bench: Bench) -> None:
    rows, root = [row("a")], bench.root / "results"
    task = bench.task(rows)
    assert recorded(root, task.cell) is None
    await bench.predict(rows)
    report = recorded(root, task.cell)
    assert report is not None
    other = bench.task([row("b")]).dataset
    assert report["inputs_sha256"] == task.dataset.inputs_sha256 != other.inputs_sha256
    task.places.prediction.unlink()
    assert recorded(root, task.cell) is None


@benched
async def test_run_config_says_what_each_dataset_was_predicted_with(bench: Bench) -> None:
    await bench.predict([row("a")])
    await bench.predict([row("b")], name="e")
    assert sorted(bench.run_config()["datasets"]) == ["d", "e"]
    # Nothing was asked: what answered is still on record.
    collect(bench.task([row("a")]), {})
    assert bench.run_config()["engine"] == {"name": "api"}
    bench.model = {**MODEL, "modes": {"plain": {"temperature": 0.5}}}
    await bench.predict([row("b")], name="e")
    content = bench.run_config()
    assert content["identity"]["sampling"]["temperature"] == 0.5
    old, new = content["datasets"]["d"], content["datasets"]["e"]
    assert new["sampling"]["temperature"] == 0.5 != old["sampling"]["temperature"]
    assert (new["hash"] == content["hash"]) and (old["hash"] != content["hash"])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"served_model": "m-0301"}, "changed its model in mid-run: m-0301, org/m"),
        (
            {"system_fingerprint": "fp_2"},
            "changed its system fingerprint in mid-run: fp_2, fp_mock",
        ),
    ],
)
def test_a_server_that_changes_in_mid_run_is_told(
    change: dict[str, Any], what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @looped
    async def test() -> None:
        async with MockEndpoint() as mock:
            mock.configure(rules=[Rule(match="b", reply=Reply(**change))])
            bench = Bench(tmp_path, mock)
            await bench.predict([row("a"), row("c")])
            assert bench.run_config()["datasets"]["d"]["warnings"] == []
            with caplog.at_level(logging.WARNING, "adhere"):
                await bench.predict([row("a"), row("b")])
            warnings = bench.run_config()["datasets"]["d"]["warnings"]
            assert len(warnings) == 1
            assert warnings[0].startswith("m plain run 1 on d: ")
            assert what in warnings[0]
            assert what in caplog.text

    test()


@benched
async def test_answers_lost_in_the_reasoning_field_are_told(bench: Bench) -> None:
    bench.model = {**MODEL, "modes": {"thinking": {}}}
    bench.mock.configure(
        rules=[Rule(match="a", reply=Reply(content=None, reasoning="r", finish_reason="stop"))]
    )
    written = await bench.predict([row("a"), row("b")])
    assert written[0]["output"]["flags"] == ["ambiguous_empty"]
    assert (
        "1 replies had text in the reasoning field only"
        in (bench.run_config()["datasets"]["d"]["warnings"][0])
    )


@benched
async def test_the_key_is_in_no_file(bench: Bench) -> None:
    bench.mock.configure(
        require_key=KEY, rules=[Rule(match="b", reply=error(400, f"You are {KEY}."))]
    )
    await bench.predict([row("a"), row("b")])
    files = [path for path in bench.root.rglob("*") if path.is_file()]
    assert {"d.json", "d.partial.jsonl", "run_config.json"} <= {path.name for path in files}
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
