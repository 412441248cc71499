"""What vLLM answers: thinking, budgets, windows, seeds, counts.

``make test`` runs the stand-in, ``make test-vllm`` the real server (see ``vllm_engine.py``).
"""

from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from vllm_engine import ITEMS, PLAIN, QUESTION, WINDOW, Vllm, mode, sampled

from adhere.client import ChatClient, Failure, Reply
from adhere.engines import LocalServer, _probe, serve
from adhere.prediction.answer import Output, is_pending
from adhere.prediction.asking import ask
from adhere.prediction.model import Mode

# The token </think>, made likely enough for a random model to close its thoughts.
CLOSES = {"logit_bias": {"513": 4.0}}
DIALOGUE = [
    {"role": "system", "content": "You answer in words."},
    {"role": "user", "content": "What is it?\n\tA <tag>, “quoted”."},
    {"role": "assistant", "content": "It is."},
    {"role": "user", "content": "Are you sure?"},
]
LONG = [{"role": "user", "content": "bodi " * 970}]
TOO_LONG = [{"role": "user", "content": "bodi " * 1500}]


@pytest.fixture(scope="module")
def server(vllm: Vllm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """One server for the tests that need nothing special of it."""
    with serve(vllm.spec(), tmp_path_factory.mktemp("server") / "serve.log") as running:
        root = running.info.base_url.removesuffix("/v1")
        fresh = figures(root)
        processes = [psutil.Process(pid) for pid in running.pids]
        yield running
        used = figures(root)
        vllm.note_facts(root, {"fresh": fresh, "used": used})
    assert not any(process.is_running() for process in processes)
    vllm.note_end("idle", running)


def figures(root: str) -> str:
    """Return the lines of /metrics that are read."""
    text = (_probe.get(root, "/metrics") or b"").decode()
    return "".join(f"{line}\n" for line in text.splitlines() if ":prefix_cache" in line)


def answer(
    vllm: Vllm,
    server: LocalServer,
    wanted: Mode,
    messages: list[Any] = QUESTION,
    *,
    seed: int = 1,
    window: int | None = WINDOW,
) -> Output:
    return vllm.work(server, lambda client: ask(wanted, messages, seed, client), window=window)


def test_server_tells_its_facts(server: LocalServer) -> None:
    assert server.info.served_model == "tiny"
    assert server.info.window == WINDOW
    assert server.info.version == {"vllm": "0.32.0"}
    server.check()
    assert server.exit_status is None


def test_thinking_and_answer_come_apart(vllm: Vllm, server: LocalServer) -> None:
    output = answer(vllm, server, mode(60, thinks=True, extra_body=CLOSES), seed=3)
    assert output["error"] is None
    assert output["content"].strip() and output["reasoning"].strip()
    assert output["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0


def test_thinking_that_is_cut_off_is_no_answer(vllm: Vllm, server: LocalServer) -> None:
    output = answer(vllm, server, mode(30, thinks=True, extra_body={"ignore_eos": True}))
    assert output["content"] == "" and output["error"]["kind"] == "thinking_cut_off"
    assert output["reasoning"].strip() and output["flags"] == ["truncated"]


def test_answer_without_thinking(vllm: Vllm, server: LocalServer) -> None:
    output = answer(vllm, server, mode(30, extra_body={"ignore_eos": True}))
    assert output["content"].strip() and output["reasoning"] is None
    assert output["error"] is None and output["flags"] == ["truncated"]
    assert output["usage"]["completion_tokens"] == 30


def test_seed_decides_the_text(vllm: Vllm, server: LocalServer) -> None:
    def text(seed: int) -> str:
        output = answer(vllm, server, mode(24, extra_body={"ignore_eos": True}), seed=seed)
        assert isinstance(output["content"], str)
        return output["content"]

    assert text(11) == text(11) != text(12)


@pytest.mark.parametrize("messages", [QUESTION, DIALOGUE, LONG], ids=["short", "turns", "long"])
@pytest.mark.parametrize("thinks", [True, False])
def test_tokens_are_counted_exactly(
    vllm: Vllm, server: LocalServer, messages: list[Any], thinks: bool
) -> None:
    payload = mode(1, thinks=thinks).payload(messages, 1, 1)

    async def both(client: ChatClient) -> tuple[int | None, Reply | Failure]:
        return await client.count_tokens(payload), await client.complete(payload)

    counted, reply = vllm.work(server, both)
    assert isinstance(reply, Reply) and reply.usage is not None
    assert counted == reply.usage["prompt_tokens"]


def test_budget_beyond_the_window_is_trimmed_to_the_token(vllm: Vllm, server: LocalServer) -> None:
    output = answer(vllm, server, mode(1000, extra_body={"ignore_eos": True}), LONG)
    usage = output["usage"]
    assert usage["prompt_tokens"] + usage["completion_tokens"] == WINDOW
    assert output["flags"] == ["truncated", "budget_trimmed"]


def test_silent_trimming_by_the_server_is_flagged_too(vllm: Vllm, server: LocalServer) -> None:
    payload = mode(1000, extra_body={"ignore_eos": True})

    async def uncounted(client: ChatClient) -> Output:
        client._counts_tokens = False
        return await ask(payload, LONG, 1, client)

    output = vllm.work(server, uncounted)
    usage = output["usage"]
    assert usage["prompt_tokens"] + usage["completion_tokens"] == WINDOW
    assert output["flags"] == ["truncated", "budget_trimmed"]


def test_budget_alone_beyond_the_window(vllm: Vllm, server: LocalServer) -> None:
    """The real server refuses what it would trim in other requests; with its count, nothing is."""
    wanted = mode(3000, extra_body={"ignore_eos": True})
    for window in (WINDOW, None):
        output = answer(vllm, server, wanted, LONG, window=window)
        assert output["error"] is None and "budget_trimmed" in output["flags"]


def test_prompt_that_does_not_fit_is_not_sent(vllm: Vllm, server: LocalServer) -> None:
    async def counted(client: ChatClient) -> tuple[Output, int]:
        output = await ask(mode(100), TOO_LONG, 1, client)
        return output, client.counts.failures["context_overflow"]

    output, refused = vllm.work(server, counted)
    assert output["error"]["kind"] == "context_overflow" and not output["error"]["retryable"]
    assert "exceed the context window of 2048" in output["error"]["message"]
    assert refused == 0
    unforeseen = answer(vllm, server, mode(100), TOO_LONG, window=None)
    assert unforeseen["error"]["kind"] == "context_overflow"
    assert not unforeseen["error"]["retryable"]
    assert "maximum context length is 2048" in unforeseen["error"]["message"]


def test_prefix_cache_hits_are_counted(vllm: Vllm, server: LocalServer) -> None:
    for _ in range(2):
        answer(vllm, server, mode(1), LONG)
    found = server.metrics()
    queries, hits, rate = found["queries"], found["hits"], found["hit_rate"]
    assert queries and hits and rate
    assert 0 < hits < queries and rate == hits / queries


def test_what_the_workflow_asks(vllm: Vllm, server: LocalServer) -> None:
    """Its servers cannot be listened to; these requests are recorded for its stand-in."""
    for messages in ITEMS:
        for sampling in (PLAIN, PLAIN | {"temperature": 0.5}):
            # A random model may also end at once.
            assert not is_pending(answer(vllm, server, sampled(sampling, 20), messages))
