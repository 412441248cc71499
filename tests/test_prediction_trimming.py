"""A budget of tokens that the context window does not hold is trimmed."""

from pathlib import Path

import pytest
from looping import looped
from mock_endpoint import MockConfig, MockEndpoint, Rule, count_tokens
from prediction_bench import MODEL, Bench, benched, error, kinds, reply, row

from adhere.client import Failure
from adhere.prediction.answer import is_pending
from adhere.prediction.asking import trimmed


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
