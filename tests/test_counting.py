"""What a server is asked to count, and how its counts are read."""

import asyncio
from typing import Any

import pytest
from mock_endpoint import MockConfig, MockEndpoint
from vllm_engine import sampled

from adhere.client import ChatClient, Endpoint
from adhere.client.counting import count_request, most_tokens, parse_count
from adhere.engines import _metrics, _probe
from adhere.jsonio import dumps
from adhere.prediction.answer import Output
from adhere.prediction.asking import ask

MESSAGES = [{"role": "user", "content": "数 the tokens"}]


def test_count_is_asked_with_what_takes_part_in_the_prompt() -> None:
    sent = {
        "model": "m",
        "messages": MESSAGES,
        "temperature": 1.0,
        "max_tokens": 5,
        "seed": 1,
        "chat_template_kwargs": {"enable_thinking": False},
        "tools": [{"type": "function"}],
    }
    kept = ("model", "messages", "chat_template_kwargs", "tools")
    assert count_request(sent) == {name: sent[name] for name in kept}
    assert count_request({"model": "m", "messages": MESSAGES}) == {
        "model": "m",
        "messages": MESSAGES,
    }


@pytest.mark.parametrize(
    ("given", "effort", "arguments"),
    [
        ({}, "high", {"reasoning_effort": "high", "enable_thinking": True}),
        ({}, "none", {"reasoning_effort": "none", "enable_thinking": False}),
        (
            {"enable_thinking": False},
            "low",
            {"reasoning_effort": "low", "enable_thinking": False},
        ),
    ],
)
def test_effort_reaches_the_template_as_in_the_request(
    given: dict[str, Any], effort: str, arguments: dict[str, Any]
) -> None:
    sent = {"messages": MESSAGES, "reasoning_effort": effort, "chat_template_kwargs": given}
    assert count_request(sent) == {"messages": MESSAGES, "chat_template_kwargs": arguments}


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"<html>", b'{"count": null}', b'{"count": "7"}', b'{"count": 0}', b"[" * 9999],
)
def test_what_is_no_count_is_none(body: bytes) -> None:
    assert parse_count(body) is None


def test_count_is_read() -> None:
    assert parse_count(b'{"count": 7, "tokens": [1, 2]}') == 7


def test_bound_grows_with_the_bytes_of_the_request() -> None:
    text = "数" * 1000
    assert most_tokens({"messages": [{"role": "user", "content": text}]}) > 3000
    assert most_tokens({"tools": text}) >= len(dumps({"tools": text}))


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        (b"", (None, None, None)),
        (b"vllm:prefix_cache_queries_total 0.0\nvllm:prefix_cache_hits_total 0.0\n", (0, 0, None)),
        (
            b'vllm:prefix_cache_queries_total{engine="0"} 1e+3\n'
            b'vllm:prefix_cache_queries_total{engine="1"} 500.0\n'
            b'vllm:prefix_cache_queries_created{engine="0"} 1.7e9\n'
            b'vllm:external_prefix_cache_hits_total{engine="0"} 9.0\n'
            b'vllm:prefix_cache_hits_total{engine="0"} 300.0\n',
            (1500, 300, 0.2),
        ),
    ],
)
def test_prefix_cache_is_summed_over_engines(
    monkeypatch: pytest.MonkeyPatch, text: bytes, figures: tuple[float | None, ...]
) -> None:
    monkeypatch.setattr(_probe, "get", lambda _root, _path: text)
    found = _metrics.prefix_cache("http://127.0.0.1:1")
    assert tuple(found.values()) == figures


async def asked(window: int) -> tuple[list[Output], bool]:
    """Ask a server that does not count two items; return the outputs, and whether it was given up
    as a counter."""
    async with MockEndpoint(MockConfig()) as mock:
        endpoint = Endpoint(mock.base_url, "configs/m.yaml", window=window)
        async with ChatClient(endpoint) as client:
            wanted = sampled({"temperature": 1.0}, 300)
            outputs = [await ask(wanted, MESSAGES, seed, client) for seed in (1, 2)]
            return outputs, not client._counts_tokens


@pytest.mark.parametrize(("window", "given_up"), [(301, True), (100_000, False)])
def test_server_that_does_not_count_is_asked_all_the_same(window: int, given_up: bool) -> None:
    """Where a window is wide enough for every possible count, none is asked for."""
    outputs, counts_no_more = asyncio.run(asked(window))
    assert counts_no_more == given_up
    for output in outputs:
        assert output["error"] is None and output["content"]
        assert ("budget_trimmed" in output["flags"]) == given_up
