"""What the figures rest on: the mock in C is faulty as it says, and a missed target is said."""

import asyncio
import shutil

import pytest

from adhere.client import ChatClient, Endpoint, Failure, Reply
from adhere.config import Retry
from bench.figures import Figure
from bench.mock import Behaviour, running

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))),
    reason="not on this machine: a C compiler",
)


@needs_compiler
def test_the_mock_is_faulty_as_it_says() -> None:
    behaviour = Behaviour(latency_ms=1, transient=0.2, refused=0.2, null=0.2, torn=0.2)
    texts = [f"第{number}个问题" for number in range(200)]

    async def ask(url: str) -> list[Reply | Failure]:
        retry = Retry(attempts=2, first_wait_s=0.001, max_wait_s=0.002, timeout_s=20)
        async with ChatClient(Endpoint(url, "bench", concurrency=8, retry=retry)) as client:
            return await asyncio.gather(
                *(
                    client.complete({"messages": [{"role": "user", "content": text}]})
                    for text in texts
                )
            )

    with running(behaviour) as mock:
        outcomes = asyncio.run(ask(mock.judge_url))
        stats = mock.stats()
    refused = [o for o in outcomes if isinstance(o, Failure)]
    assert {failure.kind for failure in refused} == {"content_filter"}
    assert len(refused) == stats["refused"]
    assert sum(isinstance(o, Reply) and o.content is None for o in outcomes) == stats["null"]
    verdicts = {o.content[:3] for o in outcomes if isinstance(o, Reply) and o.content}
    assert verdicts == {"YES", "NO."}
    assert all(20 < stats[kind] < 60 for kind in ("transient", "refused", "null", "torn"))
    assert stats["judge"] == stats["requests"] > stats["distinct"] == len(texts)
    assert (stats["resent_after_refusal"], stats["escapes"], stats["in_flight"]) == (0, 0, 0)
    # Which of them meet is the machine's affair; more than the client's limit never do.
    assert 1 < stats["most_in_flight"] <= 8


@pytest.mark.parametrize(
    ("figure", "passed"),
    [
        (Figure("compared", 3), None),
        (Figure("at most", 2, "", 2), True),
        (Figure("at most", 2.1, "", 2), False),
        (Figure("at least", 2, "", 2, least=True), True),
        (Figure("at least", 1.9, "", 2, least=True), False),
        (Figure("none", 0, "", 0), True),
        (Figure("none", 1, "", 0), False),
    ],
)
def test_a_missed_target_is_said(figure: Figure, passed: bool | None) -> None:
    assert figure.passed is passed
    assert ("FAIL" in figure.line()) is (passed is False)
