"""What the predict stage sends for each mode of a model."""

import json
from typing import Any

import pytest
from prediction_bench import API, LOCAL, api, mode

from adhere.prediction import Mode

MESSAGES = [{"role": "user", "content": "Hi"}]


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
