"""The predict stage: what is sent, what a reply comes to, and that no row is lost or paid twice."""

import asyncio
import functools
import itertools
import json
import logging
import os
import pty
import random
import sys
import termios
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec

import pytest
from mock_endpoint import ErrorBody, MockConfig, MockEndpoint, Reply, Rule, count_tokens

from adhere import PROTOCOL, data, progress
from adhere.client import ChatClient, Endpoint, Failure
from adhere.client.reply import Reply as ChatReply
from adhere.config import GlobalConfig, ModelConfig, Project, Retry
from adhere.config.load import parse
from adhere.data import Dataset, Row
from adhere.errors import DataError, EndpointError
from adhere.jsonio import read_json, read_jsonl, write_json
from adhere.metadata import client_figures
from adhere.plan import Cell
from adhere.prediction import Mode, Places, Task, collect, make_task, mode_of, run_tasks, task_of
from adhere.prediction.answer import failed, interpret, is_failed, is_pending
from adhere.prediction.asking import trimmed
from adhere.prediction.stage import recorded, seed_of
from adhere.progress import Progress
from adhere.workers import drain

P = ParamSpec("P")
KEY = "sk-canary-0123456789"
OUTPUT_KEYS = [
    "content", "model_name", "reasoning", "finish_reason", "usage", "latency_s", "served_model",
    "system_fingerprint", "flags", "error",
]  # fmt: skip


def looped(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run an asynchronous test in an event loop of its own, for at most half a minute."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def limited() -> None:
            await asyncio.wait_for(test(*args, **kwargs), 30)

        asyncio.run(limited())

    return run


# What is sent

LOCAL: dict[str, Any] = {"model_path": "org/m", "max_model_len": 40000, "modes": {"plain": {}}}
API: dict[str, Any] = {"api": {"base_url": "http://host/v1", "model": "org/m"}}
MESSAGES = [{"role": "user", "content": "Hi"}]


def project(root: Path = Path(), **models: dict[str, Any]) -> Project:
    config = {
        "datasets": {"d": "d.json", "e": "e.json"},
        "default_datasets": ["d"],
        "default_judge": "-",
        "results_root": "results",
    }
    parsed = {name: parse(ModelConfig, content, name) for name, content in models.items()}
    return Project(root, parse(GlobalConfig, config, "global"), parsed, {})


def mode(content: dict[str, Any], name: str | None = None) -> Mode:
    made = project(m=content)
    return mode_of(made, "m", name or made.models["m"].mode_names[0])


def api(name: str = "default", **sampling: Any) -> Mode:
    return mode({**API, "modes": {name: sampling}}, name)


def test_an_api_model_without_modes() -> None:
    made = mode(API)
    assert made.payload(MESSAGES, 7, made.budget) == {
        "model": "org/m",
        "messages": MESSAGES,
        "temperature": 0.0,
        "top_p": 0.95,
        "max_tokens": 16384,
    }


def test_a_local_model_that_thinks() -> None:
    sampling = {"temperature": 0.6, "top_k": 20, "min_p": 0, "enable_thinking": True}
    made = mode({**LOCAL, "served_model_name": "served", "modes": {"deep": sampling}})
    assert made.thinks
    assert made.payload(MESSAGES, 7, made.budget) == {
        "model": "served",
        "messages": MESSAGES,
        "temperature": 0.6,
        "top_p": 0.95,
        "top_k": 20,
        "min_p": 0.0,
        "max_tokens": 32768,
        "seed": 7,
        "chat_template_kwargs": {"enable_thinking": True},
    }


def test_a_model_is_asked_for_under_its_files_name() -> None:
    assert mode(LOCAL).model_id == "m"


def test_messages_are_sent_exactly_as_they_are() -> None:
    messages: list[dict[str, Any]] = [
        {
            "content": "先说\u2028\ud7ff",
            "role": "system",
            "name": "x",
            "cache": {"b": 1, "a": None},
        },
        {"role": "tool", "content": "", "tool_call_id": "1"},
    ]
    before = json.dumps(messages)
    sent = api().payload(messages, 1, 5)["messages"]
    assert json.dumps(sent) == json.dumps(messages) == before


@pytest.mark.parametrize("name", ["temperature", "top_p", "max_tokens"])
def test_a_default_can_be_left_out(name: str) -> None:
    made = api("default", **{name: "not_sent"})
    assert name not in made.payload(MESSAGES, 1, made.budget)
    assert len(made.payload(MESSAGES, 1, made.budget)) == 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0.3),
        ("top_p", 0.5),
        ("top_k", 5),
        ("min_p", 0.0),
        ("presence_penalty", 1.5),
        ("frequency_penalty", 0.0),
        ("repetition_penalty", 1.05),
        ("max_tokens", 77),
        ("reasoning_effort", "low"),
    ],
)
def test_every_field_is_sent_when_given(name: str, value: object) -> None:
    made = api("default", **{name: value})
    assert made.payload(MESSAGES, 1, made.budget)[name] == value
    if name not in ("temperature", "top_p", "max_tokens"):
        assert name not in api().payload(MESSAGES, 1, 5)


def test_thinking_is_switched_both_ways_or_not_at_all() -> None:
    def switch(made: Mode) -> Any:
        return made.payload(MESSAGES, 1, 5).get("chat_template_kwargs")

    assert switch(api(enable_thinking=False)) == {"enable_thinking": False}
    assert switch(api(enable_thinking=True)) == {"enable_thinking": True}
    assert switch(api("thinking")) is None


@pytest.mark.parametrize(
    ("name", "sampling", "thinks"),
    [
        ("thinking", {}, True),
        ("Thinking-high", {}, True),
        ("plain", {}, False),
        ("non-thinking", {}, False),
        ("thinking", {"enable_thinking": False}, False),
        ("plain", {"enable_thinking": True}, True),
    ],
)
def test_which_modes_think(name: str, sampling: dict[str, Any], thinks: bool) -> None:
    made = api(name, **sampling)
    assert made.thinks is thinks
    assert made.budget == (32768 if thinks else 16384)
    assert made.sampling["temperature"] == (1.0 if thinks else 0.0)
    assert made.sampled is thinks


def test_a_temperature_that_is_not_sent_may_sample() -> None:
    assert api(temperature="not_sent").sampled


def test_further_fields_go_to_the_top() -> None:
    made = api(extra_body={"chat_template_kwargs": {"a": 1}, "top_k": 3, "provider": {"sort": "x"}})
    body = made.payload(MESSAGES, 1, 5)
    assert body["chat_template_kwargs"] == {"a": 1}
    assert (body["top_k"], body["provider"]) == (3, {"sort": "x"})
    assert "extra_body" not in body


def test_the_budget_has_the_name_that_the_api_wants() -> None:
    content = {"api": {**API["api"], "max_tokens_field": "max_completion_tokens"}}
    body = mode(content).payload(MESSAGES, 1, 99)
    assert body["max_completion_tokens"] == 99
    assert "max_tokens" not in body


@pytest.mark.parametrize(
    ("window", "asked", "budget"),
    [(1000, 1000, 999), (1000, 2000, 999), (1000, 999, 999), (1000, 998, 998), (2, 50, 1)],
)
def test_a_budget_leaves_a_token_to_the_prompt(window: int, asked: int, budget: int) -> None:
    for content in (LOCAL, API):
        modes = {"plain": {"max_tokens": asked}}
        assert mode({**content, "max_model_len": window, "modes": modes}).budget == budget


def test_seeds_are_sent_where_they_are_taken() -> None:
    assert "seed" not in api().payload(MESSAGES, 7, 5)
    assert api(seed="per_item").payload(MESSAGES, 7, 5)["seed"] == 7
    assert mode(LOCAL).payload(MESSAGES, 7, 5)["seed"] == 7
    unseeded = mode({**LOCAL, "modes": {"plain": {"seed": "not_sent"}}})
    assert "seed" not in unseeded.payload(MESSAGES, 7, 5)


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


# What a reply comes to


def reply(
    content: str | None, reasoning: str | None = None, finish: str | None = "stop", **more: Any
) -> ChatReply:
    return ChatReply(content, reasoning, finish, None, None, None, **more)


THINK = "<think>let me see</think>\n\nFour."
OPEN = "<think>let me see"

REPLIES: list[tuple[ChatReply, bool, str, str | None, list[str], str | None]] = [
    # reply, thinks; content, reasoning, flags, error
    (reply("Four."), False, "Four.", None, [], None),
    (reply("Four.", "hm"), True, "Four.", "hm", [], None),
    (reply("Four.", "hm"), False, "Four.", "hm", [], None),
    (reply(THINK), True, "Four.", "let me see", [], None),
    (reply(THINK), False, "Four.", "let me see", [], None),
    (reply(THINK, "hm"), True, "Four.", "hm\n\nlet me see", [], None),
    (reply("see</think>Four."), True, "Four.", "see", [], None),
    (reply("Four.", finish=None), False, "Four.", None, [], None),
    # Cut by the budget
    (reply("Fou", finish="length"), False, "Fou", None, ["truncated"], None),
    (reply("Fou", finish="LENGTH"), False, "Fou", None, ["truncated"], None),
    (reply("Fou", finish="model_length"), False, "Fou", None, ["truncated"], None),
    (reply("Fou", "hm", "length"), True, "Fou", "hm", ["truncated"], None),
    (reply(None, "hm", "length"), True, "", "hm", ["truncated"], "thinking_cut_off"),
    (reply(None, "hm", "length"), False, "", "hm", ["truncated"], "thinking_cut_off"),
    (reply(OPEN, finish="length"), True, "", "let me see", ["truncated"], "thinking_cut_off"),
    (reply("", finish="length"), False, "", None, ["truncated"], "thinking_cut_off"),
    # Unclosed thinking is never an answer
    (reply(OPEN), True, "", "let me see", [], "thinking_unclosed"),
    (reply(OPEN), False, "", "let me see", [], "thinking_unclosed"),
    # Nothing
    (reply(None), False, "", None, [], "empty_answer"),
    (reply(""), True, "", None, [], "empty_answer"),
    (reply(" \n\t"), False, "", None, [], "empty_answer"),
    (reply("<think>a</think> \n"), True, "", "a", [], "empty_answer"),
    (reply(None, "hm"), True, "", "hm", ["ambiguous_empty"], "empty_answer"),
    (reply(None, " \n"), False, "", " \n", ["ambiguous_empty"], "empty_answer"),
    # A reasoning parser that took the answer
    (reply(None, "Four."), False, "Four.", None, ["answer_in_reasoning"], None),
    (reply("", "Four.", None), False, "Four.", None, ["answer_in_reasoning"], None),
    (reply(None, "see</think>Four."), False, "Four.", "see", ["answer_in_reasoning"], None),
    (reply(None, OPEN), False, "", OPEN, ["ambiguous_empty"], "empty_answer"),
    # A filter
    (reply("Fo", finish="content_filter"), False, "Fo", None, ["filtered"], None),
    (reply("", finish="content_filter"), False, "", None, ["filtered"], "content_filter"),
    (reply(None, "hm", "content_filter"), False, "", "hm", ["filtered"], "content_filter"),
    (reply(None, "hm", "content_filter"), True, "", "hm", ["filtered"], "content_filter"),
    (reply(None, finish="SAFETY"), False, "", None, ["filtered"], "content_filter"),
    (reply(None, finish="sensitive"), False, "", None, ["filtered"], "content_filter"),
    # A tool call in place of an answer
    (reply(None, "hm", "tool_calls"), False, "", "hm", ["ambiguous_empty"], "empty_answer"),
    (reply(None, finish="tool_calls"), False, "", None, [], "empty_answer"),
    # A refusal is an answer
    (reply("I can't.", refused=True), False, "I can't.", None, ["refused"], None),
]


@pytest.mark.parametrize(("given", "thinks", "content", "reasoning", "flags", "error"), REPLIES)
def test_replies(
    given: ChatReply,
    thinks: bool,
    content: str,
    reasoning: str | None,
    flags: list[str],
    error: str | None,
) -> None:
    output = interpret(given, thinks=thinks, prompt="Two and two?")
    assert (output["content"], output["reasoning"]) == (content, reasoning)
    assert output["flags"] == flags
    assert (output["error"] or {}).get("kind") == error
    assert list(output) == OUTPUT_KEYS
    # Whatever a reply is, it is final.
    assert not is_pending(output)
    assert is_failed(output) is (error is not None)
    assert output["finish_reason"] == given.finish_reason


def test_a_tag_that_the_prompt_asks_for_is_part_of_the_answer() -> None:
    text = "<thought>plan</thought>Four."
    assert interpret(reply(text), thinks=True, prompt="")["content"] == "Four."
    asked = interpret(reply(text), thinks=True, prompt="Write <thought> first.")
    assert asked["content"] == text


def test_everything_that_came_along_is_kept() -> None:
    given = ChatReply("a", "r", "stop", {"x": 1}, "served", "fp", latency_s=1.5)
    output = interpret(given, thinks=False, prompt="")
    assert (output["usage"], output["latency_s"]) == ({"x": 1}, 1.5)
    assert (output["served_model"], output["system_fingerprint"]) == ("served", "fp")


@pytest.mark.parametrize("retryable", [True, False])
def test_a_request_without_a_reply(retryable: bool) -> None:
    output = failed(Failure("server_error", "boom", retryable))
    assert list(output) == OUTPUT_KEYS
    assert output["error"] == {"kind": "server_error", "message": "boom", "retryable": retryable}
    assert (output["content"], output["flags"]) == ("", [])
    assert is_failed(output)
    assert is_pending(output) is retryable


@pytest.mark.parametrize(
    ("output", "is_failure"),
    [
        ({"content": "a"}, False),
        ({"content": "a", "error": None}, False),
        ({"content": " \n"}, True),
        ({"content": None}, True),
        ({"content": 5}, True),
        ({}, True),
        ({"content": "a", "error": {"kind": "x"}}, True),
    ],
)
def test_outputs_of_others_are_understood(output: dict[str, Any], is_failure: bool) -> None:
    assert is_failed(output) is is_failure
    assert not is_pending(output)


# The fingerprint of each request


def row(text: str, **more: Any) -> Row:
    constraint = {"evaluation": [{"type": "llm", "exec": f"Is {text} right?"}]}
    return {"input": [{"role": "user", "content": text}], "constraints": [constraint], **more}


def dataset(*rows: Row, name: str = "d") -> Dataset:
    return Dataset(name, Path(f"{name}.json"), rows, "0" * 64, len(rows))


def prints(*rows: Row, run: int = 1, made: Mode | None = None) -> tuple[str, ...]:
    places = Places(Path("p"), Path("j"), None)
    return make_task(Cell("m", "x", run, "d"), made or api(), dataset(*rows), places).fingerprints


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


# The stage

MODEL: dict[str, Any] = {
    "api": {"base_url": "http://host/v1", "model": "org/m"},
    "modes": {"plain": {"max_tokens": 500}},
}


@dataclass
class Bench:
    """One project folder with model ``m`` behind a mock."""

    root: Path
    mock: MockEndpoint
    model: dict[str, Any] = field(default_factory=lambda: MODEL)
    concurrency: int = 4

    def task(self, rows: Sequence[Row], *, run: int = 1, name: str = "d") -> Task:
        """Write the dataset file and prepare a cell on it; ``d.first2`` limits it."""
        write_json(self.root / f"{name.partition('.')[0]}.json", list(rows))
        mode_name = next(iter(self.model["modes"]))
        return task_of(project(self.root, m=self.model), Cell("m", mode_name, run, name))

    async def ask(self, *tasks: Task, progress_title: str = "test") -> ChatClient:
        """Run tasks and return the client."""
        place = Endpoint(
            base_url=self.mock.base_url,
            owner="configs/m.yaml",
            api_key=KEY,
            concurrency=self.concurrency,
            retry=Retry(attempts=2, first_wait_s=0.001, max_wait_s=0.002, timeout_s=20.0),
        )
        async with ChatClient(place) as client:
            with Progress(progress_title, "items") as shown:
                await run_tasks(tasks, [client], shown)
        return client

    async def predict(self, rows: Sequence[Row], **cell: Any) -> list[Row]:
        """Run one cell and return the rows of its prediction file."""
        task = self.task(rows, **cell)
        await self.ask(task)
        collect(task, {"name": "api"})
        written: list[Row] = read_json(task.places.prediction)
        return written

    def run_config(self, run: int = 1) -> dict[str, Any]:
        mode_name = next(iter(self.model["modes"]))
        folder = self.root / "results" / "prediction" / f"m__{mode_name}" / f"run{run}"
        content: dict[str, Any] = read_json(folder / "run_config.json")
        return content


def benched(test: Callable[[Bench], Awaitable[None]]) -> Callable[[Path], None]:
    """Give a test a bench with a mock of its own."""

    def run(tmp_path: Path) -> None:
        @looped
        async def inner() -> None:
            async with MockEndpoint() as mock:
                await test(Bench(tmp_path, mock))

        inner()

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


def error(status: int, message: str = "No.", **fields: Any) -> Reply:
    return Reply(status=status, error=ErrorBody(message=message, **fields))


def kinds(rows: Sequence[Row]) -> list[str | None]:
    return [(r["output"]["error"] or {}).get("kind") for r in rows]


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


# Trimming to the context window


@pytest.mark.parametrize(
    ("flavour", "window", "sent"),
    [
        # vLLM refuses a budget above the window without counting the prompt, and clamps the rest.
        ("vllm", 100, [500, 99]),
        # OpenAI counts both.
        ("openai", 100, [500, 90]),
        # llama.cpp cuts by itself.
        ("llamacpp", 100, [500]),
    ],
)
def test_a_budget_is_trimmed_to_what_is_left(
    flavour: str, window: int, sent: list[int], tmp_path: Path
) -> None:
    text = "x" * 40
    assert count_tokens(text) == 10

    @looped
    async def test() -> None:
        config = MockConfig.model_validate({"flavour": flavour, "context_tokens": window})
        async with MockEndpoint(config) as mock:
            written = await Bench(tmp_path, mock).predict([row(text)])
            assert [entry.body["max_tokens"] for entry in mock.log()] == sent
        output = written[0]["output"]
        assert output["error"] is None
        # The default reply is longer than the window.
        trimmed_flag = ["budget_trimmed"] if len(sent) > 1 else []
        assert output["flags"] == ["truncated", *trimmed_flag]
        assert output["usage"]["completion_tokens"] == 90

    test()


@pytest.mark.parametrize("flavour", ["vllm", "openai", "llamacpp"])
def test_a_prompt_that_does_not_fit_is_a_final_failure(flavour: str, tmp_path: Path) -> None:
    @looped
    async def test() -> None:
        config = MockConfig.model_validate({"flavour": flavour, "context_tokens": 100})
        async with MockEndpoint(config) as mock:
            bench = Bench(tmp_path, mock)
            rows = [row("x" * 500), row("short")]
            written = await bench.predict(rows)
            assert kinds(written) == ["context_overflow", None]
            assert "100 tokens" in written[0]["output"]["error"]["message"]
            assert not is_pending(written[0]["output"])
            requests = mock.stats().requests
            await bench.predict(rows)
            assert mock.stats().requests == requests

    test()


@benched
async def test_a_server_that_stops_counting_is_asked_with_less(bench: Bench) -> None:
    bench.model = {**MODEL, "modes": {"plain": {"max_tokens": 4096}}}

    def refuse(budget: int) -> Rule:
        message = (
            f"This model's maximum context length is 5000 tokens. However, you requested {budget} "
            f"output tokens and your prompt contains at least {5001 - budget} input tokens"
        )
        return Rule(times=1, reply=error(400, message))

    bench.mock.configure(rules=[refuse(4096), refuse(2048)])
    written = await bench.predict([row("a")])
    assert [entry.body["max_tokens"] for entry in bench.mock.log()] == [4096, 2048, 1024]
    assert written[0]["output"]["flags"] == ["budget_trimmed"]
    assert kinds(written) == [None]


@benched
async def test_trimming_ends(bench: Bench) -> None:
    bench.mock.configure(
        rules=[Rule(match="long", reply=error(400, "Please reduce the length of the messages"))]
    )
    bench.model = {**MODEL, "modes": {"plain": {"max_tokens": 4096}}}
    written = await bench.predict([row("long"), row("short")])
    assert kinds(written) == ["context_overflow", None]
    assert bench.mock.stats().requests == 1 + 5


@benched
async def test_without_a_budget_nothing_is_trimmed(bench: Bench) -> None:
    bench.mock.configure(rules=[Rule(match="long", reply=error(400, "prompt is too long"))])
    bench.model = {**MODEL, "modes": {"plain": {"max_tokens": "not_sent"}}}
    written = await bench.predict([row("long"), row("short")])
    assert kinds(written) == ["context_overflow", None]
    assert bench.mock.stats().requests == 2


@pytest.mark.parametrize(
    ("window", "prompt", "budget", "smaller"),
    [
        (1000, 400, 900, 600),
        (1000, 400, 600, 300),  # the server contradicts itself
        (1000, 999, 900, 1),
        (1000, 1000, 900, None),
        (1000, 5000, 900, None),
        (1000, None, 4000, 999),
        (1000, None, 1000, 999),
        (1000, None, 999, 499),
        (1, None, 600, 300),
        (None, 400, 600, 300),
        (None, None, 512, 256),
        (None, None, 511, None),
        (None, None, 1, None),
    ],
)
def test_smaller_budgets(
    window: int | None, prompt: int | None, budget: int, smaller: int | None
) -> None:
    failure = Failure("context_overflow", "", False, context_tokens=window, prompt_tokens=prompt)
    assert trimmed(failure, budget) == smaller


def test_nothing_else_is_trimmed() -> None:
    assert trimmed(Failure("bad_request", "", True, context_tokens=9, prompt_tokens=1), 500) is None
    assert trimmed(reply("a", finish="length"), 500) is None


# When going on is pointless


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


# What is recorded


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


# Workers


@looped
async def test_every_queue_is_drained_by_its_own_workers() -> None:
    busy, most = {"a": 0, "b": 0}, {"a": 0, "b": 0}
    seen: list[str] = []

    async def handle(element: str) -> None:
        name = element[0]
        busy[name] += 1
        most[name] = max(most[name], busy[name])
        for _ in range(3):
            await asyncio.sleep(0)
        busy[name] -= 1
        seen.append(element)

    queues = [(iter([f"a{n}" for n in range(9)]), 3), (iter([f"b{n}" for n in range(4)]), 1)]
    await drain(queues, handle)
    assert sorted(seen) == [f"a{n}" for n in range(9)] + [f"b{n}" for n in range(4)]
    assert most == {"a": 3, "b": 1}


@looped
async def test_work_is_made_while_it_is_done() -> None:
    made: list[int] = []

    def endless() -> Iterator[int]:
        number = 0
        while True:
            made.append(number)
            yield number
            number += 1

    async def handle(element: int) -> None:
        await asyncio.sleep(0)
        if element == 5:
            raise KeyError(element)

    with pytest.raises(KeyError):
        await drain([(endless(), 2)], handle)
    assert len(made) <= 8


@looped
async def test_the_first_error_cancels_the_rest_and_is_raised_as_it_is() -> None:
    cancelled: list[str] = []
    started = asyncio.Event()

    async def handle(element: str) -> None:
        if element == "wait":
            try:
                started.set()
                await asyncio.Event().wait()
            finally:
                cancelled.append(element)
        await started.wait()
        raise EndpointError(element)

    with pytest.raises(EndpointError, match=r"^bad$") as caught:
        await drain([(iter(["wait", "bad", "never"]), 2)], handle)
    assert cancelled == ["wait"]
    assert caught.value.__cause__ is None


@looped
async def test_nothing_to_do() -> None:
    async def handle(_element: int) -> None:
        raise AssertionError

    await drain([], handle)
    await drain([(iter([]), 0), (iter([]), 3)], handle)


# Progress


class Terminal:
    """A pseudo terminal that stands for stderr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, columns))
        self._open = True
        self.stream = os.fdopen(slave, "w", encoding="utf-8")
        monkeypatch.setattr(sys, "stderr", self.stream)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(progress, "_DRAW_EVERY_S", 0.0)

    def read(self) -> str:
        """Return everything written since the last call."""
        self.stream.flush()
        os.set_blocking(self.master, False)
        parts = []
        while True:
            try:
                parts.append(os.read(self.master, 65536))
            except BlockingIOError:
                return b"".join(parts).decode()

    def hang_up(self) -> None:
        """Close the terminal's other end, as a lost connection does."""
        if self._open:
            os.close(self.master)
            self._open = False

    def close(self) -> None:
        self.hang_up()
        try:
            self.stream.close()
        except OSError:
            # What was not written goes nowhere.
            assert self.stream.closed


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Terminal]]:
    opened: list[Terminal] = []

    def open_terminal(columns: int = 100) -> Terminal:
        opened.append(Terminal(monkeypatch, columns))
        return opened[-1]

    yield open_terminal
    for made in opened:
        made.close()


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """The messages that go to the log."""
    messages: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    log, handler = logging.getLogger("adhere"), Handler()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield messages
    log.removeHandler(handler)
    log.setLevel(level)


def test_a_live_line_in_a_terminal(terminal: Callable[[int], Terminal], logged: list[str]) -> None:
    screen = terminal(100)
    with Progress("predict m", "items") as shown:
        shown.start(total=10, done=2)
        first = screen.read()
        assert first.endswith(
            "\r\x1b[Kpredict m ████" + "░" * 20 + " 2/10 items, 0 failed, 0 retries"
        )
        shown.advance()
        shown.advance(failed=True, retries=5)
        line = screen.read().rpartition("\r\x1b[K")[2]
        assert line.startswith("predict m " + "█" * 9 + "░" * 15 + " 4/10 items, ")
        assert line.endswith(" left, 1 failed, 5 retries")
    # The line is taken away at the end.
    assert screen.read().endswith("\r\x1b[K")
    assert logged[0] == "predict m: 2/10 items, 0 failed, 0 retries, 2 from earlier"
    assert logged[-1].startswith("predict m: 4/10 items, ")
    assert "1 failed, 5 retries, 2 from earlier, took " in logged[-1]
    assert not [line for line in logged if "\x1b" in line or "█" in line]


@pytest.mark.parametrize(("columns", "longest"), [(40, 39), (12, 11), (1, 0), (0, 79)])
def test_a_line_never_wraps(
    columns: int, longest: int, terminal: Callable[[int], Terminal]
) -> None:
    screen = terminal(columns)
    with Progress("predict a model with a rather long name", "items") as shown:
        shown.start(total=7)
        for _ in range(7):
            shown.advance()
    lines = screen.read().split("\r\x1b[K")
    assert max(len(line) for line in lines) == longest


@pytest.mark.parametrize("columns", [100, 0])
def test_nothing_to_count(
    columns: int, terminal: Callable[[int], Terminal], logged: list[str]
) -> None:
    terminal(columns)
    with Progress("t", "items") as shown:
        shown.start(total=0)
    with Progress("never started", "items"):
        pass
    assert logged == ["t: 0/0 items, 0 failed, 0 retries"]


def test_more_done_than_expected(terminal: Callable[[int], Terminal]) -> None:
    screen = terminal(100)
    with Progress("t", "items") as shown:
        shown.start(total=1)
        shown.advance()
        shown.advance()
        assert "█" * 24 + " 2/1 items" in screen.read()


def test_only_one_job_draws(terminal: Callable[[int], Terminal]) -> None:
    screen = terminal(100)
    with Progress("first", "items") as first, Progress("second", "items") as second:
        first.start(total=2)
        second.start(total=2)
        first.advance()
        second.advance()
        text = screen.read()
        assert "first" in text
        assert "second" not in text
    with Progress("third", "items") as third:
        third.start(total=2)
        assert "third" in screen.read()


def test_a_log_in_the_same_terminal_starts_on_a_clean_line(
    terminal: Callable[[int], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = terminal(100)
    monkeypatch.setattr(progress, "_LOG_EVERY_S", 0.0)
    log, handler = logging.getLogger("adhere"), logging.StreamHandler(screen.stream)
    log.addHandler(handler)
    level = log.level
    log.setLevel(logging.INFO)
    try:
        with Progress("t", "items") as shown:
            shown.start(total=3)
            shown.advance()
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    plain = [part for part in screen.read().split("\r\x1b[K") if part.endswith("\r\n")]
    assert len(plain) == 3
    assert all(part.startswith("t: ") for part in plain)


def test_a_lost_terminal_stops_nothing(
    terminal: Callable[[int], Terminal], logged: list[str]
) -> None:
    screen = terminal(100)
    with Progress("t", "items") as shown:
        shown.start(total=3)
        screen.read()
        screen.hang_up()
        for _ in range(3):
            shown.advance()
    assert shown.done == 3
    assert logged[-1].startswith("t: 3/3 items")


def test_without_a_terminal_there_are_plain_lines_only(
    capsys: pytest.CaptureFixture[str], logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LOG_EVERY_S", 0.0)
    with Progress("t", "items") as shown:
        shown.start(total=2)
        shown.advance()
        shown.advance(retries=1)
    assert capsys.readouterr() == ("", "")
    assert [line.partition(" items")[0] for line in logged] == [
        "t: 0/2",
        "t: 1/2",
        "t: 2/2",
        "t: 2/2",
    ]


def test_a_dumb_terminal_is_left_alone(
    terminal: Callable[[int], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = terminal(100)
    monkeypatch.setenv("TERM", "dumb")
    with Progress("t", "items") as shown:
        shown.start(total=1)
        shown.advance()
    assert screen.read() == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (45.4, "45 s"), (89, "89 s"), (90, "2 min"), (600, "10 min"), (5400, "1.5 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert progress._duration(seconds) == text


def test_the_smoke_dataset_is_predicted_as_it_is() -> None:
    path = Path(__file__).resolve().parents[1] / "data" / "smoke" / "eval.json"
    loaded = data.load("smoke", path)
    assert len(prints(*loaded.rows)) == len(loaded.rows) == len(set(prints(*loaded.rows)))


# The order of asking, and several servers of one model


def messages(system: str, question: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]


def beginnings(requests: Sequence[str]) -> int:
    """Characters that prompts have in common with the one before: what a prefix cache saves."""
    equal = (
        itertools.takewhile(bool, map(str.__eq__, one, other))
        for one, other in itertools.pairwise(requests)
    )
    return sum(sum(characters) for characters in equal)


@benched
async def test_prompts_with_a_common_beginning_follow_each_other(bench: Bench) -> None:
    systems = [name * 40 for name in ("tools ", "rules ", "roles ")]
    rows = [
        row("", id=n, input=messages(systems[n % 3], f"{n % 2} {'question ' * 5}{n}"))
        for n in range(12)
    ]
    tasks = [bench.task(rows, run=run) for run in (1, 2)]
    bench.concurrency = 1
    await bench.ask(*tasks)
    sent = ["\n".join(m["content"] for m in r.body["messages"]) for r in bench.mock.log()]
    # Every run of an item before the next item; every system prompt is begun once.
    assert all(first == second for first, second in zip(sent[::2], sent[1::2], strict=True))
    changes = sum(a[:200] != b[:200] for a, b in itertools.pairwise(sent))
    assert changes == len(systems) - 1
    others = [sent, *(random.Random(n).sample(sent, len(sent)) for n in range(200))]
    assert beginnings(sent) == max(map(beginnings, others))
    by_row = ["\n".join(m["content"] for m in r["input"]) for r in rows for _ in tasks]
    assert sorted(by_row) == sorted(sent) and beginnings(by_row) < beginnings(sent)
    collect(tasks[0], {"name": "api"})
    assert [r["id"] for r in read_json(tasks[0].places.prediction)] == list(range(12))


@benched
async def test_several_servers_share_one_queue(bench: Bench) -> None:
    """Each takes the next piece when it has room: a slow one takes less."""
    task = bench.task([row(f"question {n}", id=n) for n in range(30)])
    async with MockEndpoint() as slow:
        slow.configure(rules=[Rule(reply=Reply(content="late", hang_s=0.3))])
        async with ChatClient(endpoint_of(bench.mock)) as one, ChatClient(endpoint_of(slow)) as two:
            with Progress("test", "items") as shown:
                await run_tasks([task], [one, two], shown)
        assert shown.done == shown.total == 30
        fast_answers, slow_answers = one.counts.answered, two.counts.answered
    assert fast_answers + slow_answers == 30 and 2 <= slow_answers < fast_answers
    assert client_figures([one, two])["answered"] == 30
    asked = Counter(r.body["messages"][-1]["content"] for r in (*bench.mock.log(), *slow.log()))
    assert set(asked.values()) == {1}


@benched
async def test_one_server_that_refuses_ends_the_work_of_all(bench: Bench) -> None:
    task = bench.task([row(f"question {n}") for n in range(30)])
    async with MockEndpoint() as broken:
        broken.configure(rules=[Rule(reply=error(401))])
        bench.mock.configure(rules=[Rule(reply=Reply(content="late", hang_s=0.05))])
        async with (
            ChatClient(endpoint_of(bench.mock)) as one,
            ChatClient(endpoint_of(broken)) as two,
        ):
            with Progress("test", "items") as shown, pytest.raises(EndpointError):
                await run_tasks([task], [one, two], shown)
    assert len(read_jsonl(task.places.journal)) == one.counts.answered < 30


def endpoint_of(mock: MockEndpoint) -> Endpoint:
    return Endpoint(mock.base_url, "configs/m.yaml", api_key=KEY, concurrency=2)
