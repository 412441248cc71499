"""What identifies a prediction: the hash of a mode, the fingerprint of each request, its seed."""

import json
from pathlib import Path
from typing import Any

import pytest
from prediction_bench import API, LOCAL, api, mode, prints, row

from adhere import PROTOCOL, data
from adhere.prediction.stage import seed_of

# What identifies a prediction

SCIENCE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (LOCAL, {"model_path": "org/other"}),
    (LOCAL, {"max_model_len": 30000}),
    (LOCAL, {"vllm_args": ["--dtype", "float16"]}),
    (LOCAL, {"engine": "llamacpp"}),
    (LOCAL, {"served_model_name": "x"}),
    (API, {"api": {**API["api"], "base_url": "http://other/v1"}}),
    (API, {"api": {**API["api"], "model": "org/other"}}),
    (API, {"max_model_len": 9}),
    (LOCAL, {"modes": {"other": {}}}),
]
SAMPLING: list[dict[str, Any]] = [
    {"temperature": 0.1},
    {"temperature": "not_sent"},
    {"top_p": 0.9},
    {"top_k": 1},
    {"min_p": 0.0},
    {"presence_penalty": 0.0},
    {"frequency_penalty": 0.1},
    {"repetition_penalty": 1.1},
    {"max_tokens": 100},
    {"enable_thinking": False},
    {"reasoning_effort": "low"},
    {"seed": "not_sent"},
    {"extra_body": {"a": 1}},
]
SCIENCE += [(LOCAL, {"modes": {"plain": sampling}}) for sampling in SAMPLING]
MACHINES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (LOCAL, {"port": 9000}),
    (LOCAL, {"gpus": ["3"]}),
    (LOCAL, {"num_gpus": 2}),
    (LOCAL, {"replicas": 2}),
    (LOCAL, {"tensor_parallel_size": 4}),
    (LOCAL, {"slots": 9}),
    (LOCAL, {"threads": 3}),
    (LOCAL, {"concurrency": 3}),
    (LOCAL, {"enabled": False}),
    (LOCAL, {"demo": True}),
    (LOCAL, {"modes": {"plain": {}, "another": {"temperature": 0.5}}}),
    (LOCAL, {"modes": {"plain": {"temperature": 0, "top_p": 0.95, "max_tokens": 16384}}}),
    (LOCAL, {"modes": {"plain": {"seed": "per_item", "top_k": "not_sent"}}}),
    (LOCAL, {"engine": "vllm"}),
    (API, {"concurrency": 3}),
    (API, {"enabled": False}),
    (API, {"api": {**API["api"], "api_key_env": "SOME_KEY"}}),
    (API, {"api": {**API["api"], "base_url": "http://host/v1/"}}),
]


@pytest.mark.parametrize(("content", "change"), SCIENCE)
def test_what_can_change_an_answer_changes_the_hash(
    content: dict[str, Any], change: dict[str, Any]
) -> None:
    changed = mode({**content, **change})
    assert changed.hash != mode(content).hash
    assert changed.text != mode(content).text


def test_each_change_has_a_hash_of_its_own() -> None:
    assert len({mode({**content, **change}).hash for content, change in SCIENCE}) == len(SCIENCE)


@pytest.mark.parametrize(("content", "change"), MACHINES)
def test_what_cannot_change_an_answer_leaves_the_hash(
    content: dict[str, Any], change: dict[str, Any]
) -> None:
    name = "default" if "api" in content else "plain"
    assert mode({**content, **change}, name).hash == mode(content, name).hash


def test_the_identity_is_readable_and_holds_the_protocol() -> None:
    identity = json.loads(mode(LOCAL).text)
    assert identity["protocol"] == PROTOCOL
    assert identity["sampling"]["max_tokens"] == 16384


# The fingerprint of each request


def test_fingerprints_follow_what_is_asked() -> None:
    first, second = prints(row("a"), row("b"))
    assert first != second
    assert prints(row("a"), row("b")) == (first, second)
    assert prints(row("b"), row("a")) == (second, first)
    assert prints(row("new"), row("a"), row("b"))[1:] == (first, second)
    assert prints(row("a", id=7, extra="x"), row("b", id=7)) == (first, second)
    corrected = row("a") | {"constraints": row("other")["constraints"]}
    assert prints(corrected)[0] == first
    assert prints(row("a"), run=2)[0] != first
    assert prints(row("a"), made=api(top_k=1))[0] != first
    assert prints({**row("a"), "input": [{**row("a")["input"][0], "name": "x"}]})[0] != first


def test_duplicates_are_numbered() -> None:
    first, second, third = prints(row("a"), row("a", id=2), row("a"))
    assert len({first, second, third}) == 3
    assert prints(row("a"))[0] == first
    # Who goes first among equals does not matter.
    assert prints(row("b"), row("a"), row("c"), row("a"))[1::2] == (first, second)


def test_seeds() -> None:
    by_run = [[seed_of(fp) for fp in prints(row("a"), row("b"), row("a"), run=r)] for r in (1, 2)]
    seeds = [seed for seeds in by_run for seed in seeds]
    assert len(set(seeds)) == 6
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert [seed_of(fp) for fp in prints(row("a"), row("b"), row("a"))] == by_run[0]


def test_the_smoke_dataset_is_predicted_as_it_is() -> None:
    path = Path(__file__).resolve().parents[1] / "data" / "smoke" / "eval.json"
    loaded = data.load("smoke", path)
    assert len(prints(*loaded.rows)) == len(loaded.rows) == len(set(prints(*loaded.rows)))
