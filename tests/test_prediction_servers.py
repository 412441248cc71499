"""The order of asking, and several servers of one model."""

import itertools
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from mock_endpoint import MockEndpoint, Reply, Rule
from prediction_bench import KEY, Bench, benched, error, row

from adhere.client import ChatClient, Endpoint
from adhere.errors import EndpointError
from adhere.jsonio import read_json, read_jsonl
from adhere.metadata import client_figures
from adhere.prediction import collect, run_tasks
from adhere.progress import Progress


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
