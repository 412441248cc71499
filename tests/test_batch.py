"""Batches: what travels in one, what is kept for the next call, and what is never paid twice."""

import asyncio
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mock_batches import MockBatches
from mock_endpoint import ErrorBody, MockConfig, Reply, Rule, RunningMock, start_mock
from workflow_project import (
    KEY,
    WorkflowProject,
    judge_config,
    kill_tree,
    make_project,
    model_config,
)

from adhere.batch import BatchClient, courier, lines
from adhere.batch.follow import Pace
from adhere.batch.lines import MOST_BYTES, in_files, read_results, request_of
from adhere.batch.provider import Provider
from adhere.batch.submissions import Submissions
from adhere.client import Endpoint, Failure
from adhere.client import Reply as ChatReply
from adhere.config import Budget, JudgeConfig, ModelConfig, Prices, Retry
from adhere.config.load import parse
from adhere.costs.budget import BUDGET, Allowance
from adhere.costs.expected import exactly
from adhere.costs.forecast import Forecast
from adhere.costs.ledger import Amount, Ledger
from adhere.costs.money import cost
from adhere.costs.spent import tally
from adhere.costs.tokens import Tokens, tokens_of
from adhere.errors import ConfigError, EndpointError, JournalError
from adhere.jsonio import dumps, loads, write_json
from adhere.judging import Judge

FAST = Pace(quiet_s=0.05, first_s=0.01, longest_s=0.05)
ENOUGH = courier.LEAST


@pytest.fixture
def mock(tmp_path: Path) -> Iterator[RunningMock]:
    with start_mock(tmp_path, MockConfig(require_key=KEY)) as running:
        yield running


@pytest.fixture
def provider(mock: RunningMock) -> Iterator[MockBatches]:
    with MockBatches(mock.root_url, key=KEY) as running:
        yield running


def endpoint(provider: MockBatches, **fields: Any) -> Endpoint:
    retry = Retry(attempts=3, first_wait_s=0.01, max_wait_s=0.02)
    return Endpoint(provider.base_url, "configs/m.yaml", KEY, retry=retry, **fields)


def payload(number: int, **fields: Any) -> dict[str, Any]:
    message = {"role": "user", "content": f"[{number}] Say something."}
    return {"model": "m", "messages": [message], "max_tokens": 400, **fields}


Outcomes = list[ChatReply | Failure]


def ask(
    provider: MockBatches,
    path: Path,
    numbers: range,
    allowance: Allowance | None = None,
) -> Outcomes:
    """Ask questions at once, in a client and an event loop of their own."""

    async def run() -> Outcomes:
        made = BatchClient(endpoint(provider), allowance, path / "m.batches", FAST)
        async with made as client, asyncio.TaskGroup() as group:
            asked = [
                group.create_task(client.complete(payload(number), f"key {number}"))
                for number in numbers
            ]
        return [task.result() for task in asked]

    return asyncio.run(run())


def texts(outcomes: Outcomes) -> list[str | None]:
    assert all(isinstance(outcome, ChatReply) for outcome in outcomes), outcomes
    return [outcome.content for outcome in outcomes if isinstance(outcome, ChatReply)]


# Lines


def test_a_request_is_known_by_its_payload_and_key() -> None:
    first = request_of(payload(1), "a")
    assert first.id == request_of(payload(1), "a").id
    assert len({first.id, request_of(payload(1), "b").id, request_of(payload(2), "a").id}) == 3
    line = loads(first.line)
    assert line == {
        "custom_id": first.id,
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": payload(1),
    }
    assert first.line.count(b"\n") == 1


def test_files_keep_to_both_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [request_of(payload(number), "") for number in range(7)]
    assert [len(group) for group in in_files(requests, 3)] == [3, 3, 1]
    assert [r for group in in_files(requests, 3) for r in group] == requests
    assert list(in_files([])) == []
    size = len(requests[0].line)
    monkeypatch.setattr(lines, "MOST_BYTES", 2 * size)
    assert [len(group) for group in in_files(requests)] == [2, 2, 2, 1]
    # A request that is too large alone is the endpoint's to refuse.
    monkeypatch.setattr(lines, "MOST_BYTES", size - 1)
    assert [len(group) for group in in_files(requests)] == [1] * 7
    assert MOST_BYTES == 200_000_000


def result(request_id: str, status: int | None, body: Any, error: Any = None) -> bytes:
    response = None if status is None else {"status_code": status, "body": body}
    return dumps({"custom_id": request_id, "response": response, "error": error}) + b"\n"


def test_lines_of_results_come_to_what_live_answers_would() -> None:
    answer = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
    content = b"".join(
        [
            result("ok", 200, {**answer, "usage": {"prompt_tokens": 7, "completion_tokens": 1}}),
            result("bare", 200, answer),
            result("empty", 200, {"choices": []}),
            result("filtered", 400, {"error": {"code": "content_filter", "message": "policy"}}),
            result("slow", 429, {"error": {"message": "Rate limit reached"}}),
            result("expired", None, None, {"code": "batch_expired", "message": "too late"}),
            b'{"custom_id": 5}\n',
            b"not JSON\n",
            b'{"custom_id": "torn", "resp',
        ]
    )
    found = read_results(content)
    assert found.keys() == {"ok", "bare", "empty", "filtered", "slow", "expired"}
    ok, bare = found["ok"], found["bare"]
    assert isinstance(ok, ChatReply) and isinstance(bare, ChatReply)
    assert ok.usage == {"prompt_tokens": 7, "completion_tokens": 1, "batch": True}
    assert tokens_of(bare.usage) == Tokens(calls=1, unmetered=1)
    kinds = {name: o.kind for name, o in found.items() if isinstance(o, Failure)}
    assert kinds == {
        "empty": "empty_choices",
        "filtered": "content_filter",
        "slow": "rate_limited",
        "expired": "batch_unanswered",
    }
    assert [o.retryable for o in found.values() if isinstance(o, Failure)] == [
        True,
        False,
        True,
        True,
    ]


# One batch


def test_what_waits_together_travels_together(
    provider: MockBatches, mock: RunningMock, tmp_path: Path
) -> None:
    asked = range(2 * ENOUGH)
    outcomes = ask(provider, tmp_path, asked)
    (batch,) = provider.batches.values()
    assert batch.ids == [request_of(payload(n), f"key {n}").id for n in asked]
    assert not provider.live
    assert len(set(texts(outcomes))) == len(asked)
    for outcome in outcomes:
        assert isinstance(outcome, ChatReply) and outcome.usage is not None
        assert outcome.usage["batch"] is True and outcome.usage["prompt_tokens"] > 0
    # Nothing is left to remember, and each reply belongs to its question.
    assert not (tmp_path / "m.batches").exists()
    said = {entry.body["messages"][0]["content"] for entry in mock.log()}
    assert said == {payload(n)["messages"][0]["content"] for n in asked}
    again = ask(provider, tmp_path, asked)
    assert texts(again) == texts(outcomes)
    assert len(provider.batches) == 2


def test_too_few_for_a_batch_are_asked_live(provider: MockBatches, tmp_path: Path) -> None:
    outcomes = ask(provider, tmp_path, range(ENOUGH - 1))
    assert len(texts(outcomes)) == len(provider.live) == ENOUGH - 1
    assert provider.uploads == 0
    usages = [outcome.usage for outcome in outcomes if isinstance(outcome, ChatReply)]
    assert all(usage is not None and "batch" not in usage for usage in usages)


def test_files_are_split_and_all_are_collected(
    provider: MockBatches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MOST_BYTES", len(request_of(payload(10), "").line) * ENOUGH)
    outcomes = ask(provider, tmp_path, range(10, 10 + 3 * ENOUGH))
    assert len(texts(outcomes)) == 3 * ENOUGH
    assert [len(batch.ids) for batch in provider.batches.values()] == [ENOUGH] * 3
    assert len(set(provider.lines)) == 3 * ENOUGH


# Faults


def test_the_unanswered_rest_of_an_expired_batch_goes_into_another(
    provider: MockBatches, mock: RunningMock, tmp_path: Path
) -> None:
    provider.change(expire=[ENOUGH])
    outcomes = ask(provider, tmp_path, range(2 * ENOUGH))
    assert len(texts(outcomes)) == 2 * ENOUGH
    first, second = provider.batches.values()
    assert second.ids == first.ids[ENOUGH:]
    assert mock.stats().resent_after_ok == 0 and not provider.live


def test_patience_with_batches_ends(provider: MockBatches, tmp_path: Path) -> None:
    provider.change(expire=[0] * 9)
    outcomes = ask(provider, tmp_path, range(ENOUGH))
    assert len(provider.batches) == 3
    assert {(o.kind, o.retryable) for o in outcomes if isinstance(o, Failure)} == {
        ("batch_unanswered", True)
    }
    assert all("batch_expired" in o.message for o in outcomes if isinstance(o, Failure))


def test_failed_lines_are_asked_again_and_refused_ones_are_not(
    provider: MockBatches, mock: RunningMock, tmp_path: Path
) -> None:
    policy = ErrorBody(message="rejected by our content policy", code="content_filter")
    mock.configure(
        rules=[
            Rule(match="[3]", reply=Reply(status=400, error=policy)),
            Rule(match="[4]", times=1, reply=Reply(status=503)),
            Rule(match="[5]", times=1, reply=Reply(empty_choices=True)),
        ]
    )
    outcomes = ask(provider, tmp_path, range(ENOUGH))
    refused = outcomes.pop(3)
    assert isinstance(refused, Failure) and refused.kind == "content_filter"
    assert len(texts(outcomes)) == ENOUGH - 1
    # Two are too few for a batch.
    assert len(provider.batches) == 1
    asked_live = sorted(body["messages"][0]["content"][:3] for body in provider.live)
    assert asked_live == ["[4]", "[5]"]


def test_a_rejected_line_does_not_take_the_others_with_it(
    provider: MockBatches, tmp_path: Path
) -> None:
    error = {"code": "invalid_request", "message": "Line 3 is no request.", "line": 3}
    provider.change(reject=[[error]])
    outcomes = ask(provider, tmp_path, range(ENOUGH + 1))
    refused = outcomes.pop(2)
    assert isinstance(refused, Failure)
    assert (refused.kind, refused.message) == ("bad_request", "Line 3 is no request.")
    assert len(texts(outcomes)) == ENOUGH
    first, second = provider.batches.values()
    assert second.ids == first.ids[:2] + first.ids[3:]
    assert not provider.live


def test_an_unknown_model_ends_the_stage(provider: MockBatches, tmp_path: Path) -> None:
    error = {"code": "model_not_found", "message": "The model `m` does not exist.", "line": None}
    provider.change(reject=[[error]])
    with pytest.raises(ExceptionGroup) as caught:
        ask(provider, tmp_path, range(ENOUGH))
    assert all(isinstance(error, EndpointError) for error in caught.value.exceptions)
    assert "configs/m.yaml" in str(caught.value.exceptions[0])
    assert "check `model`" in str(caught.value.exceptions[0])
    assert len(provider.batches) == 1


def test_a_full_queue_gets_smaller_batches_one_after_the_other(
    provider: MockBatches, tmp_path: Path
) -> None:
    provider.change(most_lines=ENOUGH)
    outcomes = ask(provider, tmp_path, range(4 * ENOUGH))
    assert len(texts(outcomes)) == 4 * ENOUGH
    done = [b for b in provider.batches.values() if b.status == "completed"]
    assert [len(batch.ids) for batch in done] == [ENOUGH] * 4
    assert not provider.live


def test_an_endpoint_without_batches_says_so(provider: MockBatches, tmp_path: Path) -> None:
    provider.change(no_batches=True)
    with pytest.raises(ExceptionGroup) as caught:
        ask(provider, tmp_path, range(ENOUGH))
    assert "remove `batch`" in str(caught.value.exceptions[0])
    assert KEY not in str(caught.value.exceptions[0])


def test_an_endpoint_without_a_key_gets_no_other_key(
    provider: MockBatches, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The stand-in takes this key, which no configuration names.
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    async def look() -> None:
        remote = Provider(replace(endpoint(provider), api_key=None))
        try:
            with pytest.raises(EndpointError, match="HTTP 401"):
                await remote.uploaded("a file")
        finally:
            await remote.close()

    asyncio.run(look())


def test_a_lost_answer_creates_no_second_batch(provider: MockBatches, tmp_path: Path) -> None:
    provider.change(create="lost")
    assert len(texts(ask(provider, tmp_path, range(ENOUGH)))) == ENOUGH
    assert (provider.uploads, len(provider.batches)) == (1, 1)


def test_a_key_that_is_quoted_is_taken_out(
    provider: MockBatches, mock: RunningMock, tmp_path: Path
) -> None:
    mock.configure(rules=[Rule(match="[7]", reply=Reply(content=f"Your key is {KEY}."))])
    assert texts(ask(provider, tmp_path, range(ENOUGH)))[7] == "Your key is [key]."


# The next call


def cut_short(provider: MockBatches, path: Path, numbers: range) -> None:
    """Ask, and leave when the provider has what it needs."""

    async def run() -> None:
        async with BatchClient(endpoint(provider), None, path / "m.batches", FAST) as client:
            work = [
                asyncio.ensure_future(client.complete(payload(number), f"key {number}"))
                for number in numbers
            ]
            # A batch that is asked about is noted; one whose creation hangs is not.
            hangs = bool(provider.faults.create)
            await asyncio.to_thread(
                provider.until, lambda: provider.creations if hangs else provider.polls
            )
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    asyncio.run(run())


def test_a_batch_on_its_way_is_joined_by_whoever_wants_a_part_of_it(
    provider: MockBatches, tmp_path: Path
) -> None:
    provider.change(hold=True)
    cut_short(provider, tmp_path, range(ENOUGH))
    provider.change()
    # A budget that is too small for a batch does not keep from what is paid for already.
    ledger = Ledger(tmp_path / "spent")
    ledger.start(Amount())
    allowance = Allowance(parse(Budget, {"tokens": 10}, "budget"), None, ledger, "m")
    outcomes = ask(provider, tmp_path, range(5), allowance)
    assert len(texts(outcomes)) == 5
    usages = [outcome.usage for outcome in outcomes if isinstance(outcome, ChatReply)]
    assert ledger.read().tokens == sum(tokens_of(usage).total for usage in usages)
    left = Submissions(tmp_path / "m.batches")
    assert left.holding(request_of(payload(4), "key 4").id) is None
    assert left.holding(request_of(payload(5), "key 5").id) is not None
    outcomes = ask(provider, tmp_path, range(5, 2 * ENOUGH + 5))
    assert len(texts(outcomes)) == 2 * ENOUGH
    first, second = provider.batches.values()
    assert not set(first.ids) & set(second.ids) and len(second.ids) == ENOUGH + 5
    assert not (tmp_path / "m.batches").exists()


@pytest.mark.parametrize(
    ("numbers", "uploads", "deleted"), [(range(ENOUGH), 1, 0), (range(1, ENOUGH + 1), 2, 1)]
)
def test_an_upload_without_a_batch_is_used_or_deleted(
    provider: MockBatches, tmp_path: Path, numbers: range, uploads: int, deleted: int
) -> None:
    provider.change(create="hang_before")
    cut_short(provider, tmp_path, range(ENOUGH))
    assert not provider.batches
    provider.change()
    assert len(texts(ask(provider, tmp_path, numbers))) == ENOUGH
    assert (provider.uploads, len(provider.deleted)) == (uploads, deleted)
    (batch,) = provider.batches.values()
    assert set(batch.ids) == {request_of(payload(n), f"key {n}").id for n in numbers}


def test_a_batch_that_is_gone_is_made_again(provider: MockBatches, tmp_path: Path) -> None:
    provider.change(hold=True)
    cut_short(provider, tmp_path, range(ENOUGH))
    provider.batches.clear()
    provider.change()
    assert len(texts(ask(provider, tmp_path, range(ENOUGH)))) == ENOUGH
    assert len(provider.batches) == 1


def test_a_file_that_is_no_list_of_batches_is_refused(
    provider: MockBatches, tmp_path: Path
) -> None:
    write_json(tmp_path / "m.batches", [{"ids": 5}])
    with pytest.raises(ExceptionGroup) as caught:
        ask(provider, tmp_path, range(ENOUGH))
    assert isinstance(caught.value.exceptions[0], JournalError)
    assert "m.batches: is no list" in str(caught.value.exceptions[0])
    assert not provider.batches


# Money


def test_what_comes_by_batch_costs_its_part() -> None:
    prices = parse(Prices, {"input": 2, "cached_input": 1, "output": 10}, "prices")
    live = Tokens(calls=1, prompt=1000, cached=400, completion=100)
    assert cost(live.in_batch(), prices) == cost(live, prices) / 2
    assert cost(live.in_batch() + live, prices) == cost(live, prices) * 3 / 2
    fifth = prices.model_copy(
        update={
            "batch_factor": parse(
                Prices, {"input": 0, "output": 0, "batch_factor": 0.2}, "prices"
            ).batch_factor
        }
    )
    assert cost(live.in_batch(), fifth) * 5 == cost(live, prices)
    with pytest.raises(ConfigError, match="batch_factor"):
        parse(Prices, {"input": 1, "output": 1, "batch_factor": 1.5}, "prices")
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "batch": True}
    line = dumps({"fp": "a", "reply": {"usage": usage, "latency_s": 0.0}})
    assert tally(line + b"\n") == Tokens(1, 0, 10, 0, 2).in_batch()


def test_an_estimate_counts_with_batches() -> None:
    prices = parse(Prices, {"input": 2, "output": 10}, "prices")
    calls, prompt, output = exactly(10), exactly(1000), exactly(100)
    forecast = Forecast("judge", "j", calls, prompt, output, "", prices, local=False)
    batch = Forecast("judge", "j", calls, prompt, output, "", prices, local=False, batch=True)
    assert forecast.cost is not None and batch.cost is not None
    assert [2 * amount for amount in batch.cost] == list(forecast.cost)


def test_a_budget_is_set_aside_and_never_passed(provider: MockBatches, tmp_path: Path) -> None:
    bound = request_of(payload(100), "").bound.total
    budget = parse(Budget, {"tokens": 2 * ENOUGH * bound + 1}, "budget")
    ledger = Ledger(tmp_path / "spent")
    ledger.start(Amount())
    outcomes = ask(
        provider, tmp_path, range(100, 100 + 3 * ENOUGH), Allowance(budget, None, ledger, "m")
    )
    # Not all fit at once; when the first batch took less than it might have, the rest went, too.
    assert [len(batch.ids) for batch in provider.batches.values()] == [2 * ENOUGH, ENOUGH]
    usages = [o.usage for o in outcomes if isinstance(o, ChatReply)]
    assert len(usages) == 3 * ENOUGH
    assert ledger.read().tokens == sum(tokens_of(usage).total for usage in usages)
    assert not provider.live


def test_a_batch_that_is_joined_counts_while_it_is_on_its_way(
    provider: MockBatches, tmp_path: Path
) -> None:
    provider.change(hold=True)
    cut_short(provider, tmp_path, range(ENOUGH))
    ledger = Ledger(tmp_path / "spent")
    ledger.start(Amount())
    budget = parse(Budget, {"tokens": 1_000_000}, "budget")
    allowance = Allowance(budget, None, ledger, "m")

    async def join() -> None:
        path = tmp_path / "m.batches"
        async with BatchClient(endpoint(provider), allowance, path, FAST) as client:
            asked = asyncio.ensure_future(client.complete(payload(3), "key 3"))
            await asyncio.sleep(0)
            assert not asked.done()
            asked.cancel()

    asyncio.run(join())
    assert ledger.read().tokens == request_of(payload(3), "key 3").bound.total


def test_a_spent_budget_sends_nothing(provider: MockBatches, tmp_path: Path) -> None:
    budget = parse(Budget, {"tokens": 10}, "budget")
    ledger = Ledger(tmp_path / "spent")
    ledger.start(Amount(tokens=10))
    outcomes = ask(provider, tmp_path, range(ENOUGH), Allowance(budget, None, ledger, "m"))
    assert {o.kind for o in outcomes if isinstance(o, Failure)} == {BUDGET}
    assert len(outcomes) == ENOUGH and not provider.live and not provider.uploads


# Configuration


def test_batches_identify_nothing() -> None:
    plain = parse(JudgeConfig, {"model": "j"}, "judge")
    batched = parse(JudgeConfig, {"model": "j", "batch": True}, "judge")
    assert Judge("j", plain).hash == Judge("j", batched).hash
    local = {"model_path": "m.gguf", "max_model_len": 100}
    with pytest.raises(ConfigError, match="batches need an endpoint"):
        parse(JudgeConfig, {"model": "j", "batch": True, "local": local}, "judge")
    assert parse(ModelConfig, model_config("http://h/v1", "m"), "m").api is not None


# Whole workflows


OPTIONS = ("--config", "modes=plain", "repeats=1")
FOLDER = "results/scores/alpha__plain/run1_strict"


def dataset(items: int) -> list[dict[str, Any]]:
    """Items with two questions each: one alone, and one after a condition."""
    rows = []
    for item in range(items):
        alone = [{"type": "llm", "exec": f"[{item}/0] Is it so? YES or NO. {{response}}"}]
        condition = {"type": "llm_conditional_check", "exec": f"[{item}/1] Applies? {{response}}"}
        then = {"type": "llm", "exec": f"[{item}/2] Is it short? YES or NO. {{response}}"}
        constraints = [
            {"id": number, "dimension": "unconditional", "type": "semantic", "evaluation": chain}
            for number, chain in enumerate([alone, [condition, then]])
        ]
        messages = [{"role": "user", "content": f"[{item}] Say something."}]
        rows.append({"id": item, "input": messages, "constraints": constraints})
    return rows


def batched(root: Path, provider: MockBatches, items: int = 3 * ENOUGH) -> WorkflowProject:
    project = make_project(root, provider.base_url, provider.judge_url)
    project.write_dataset(dataset(items))
    project.write_yaml(
        "judge_configs/strict.yaml", judge_config(provider.judge_url) | {"batch": True}
    )
    return project


def verdicts(project: WorkflowProject) -> list[Any]:
    rows = project.json(f"{FOLDER}/tiny/results.json")
    return [[c["score"], c["null_reason"]] for row in rows for c in row["constraints"]]


def nothing_secret(project: WorkflowProject) -> None:
    for path in project.root.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


@pytest.mark.workflow
def test_a_workflow_by_batches_comes_to_the_same(
    tmp_path: Path, mock: RunningMock, provider: MockBatches
) -> None:
    live = batched(tmp_path / "live", provider)
    live.change_yaml("judge_configs/strict.yaml", batch=False)
    called = live.snakemake(*OPTIONS)
    assert called.code == 0, called.text
    assert provider.live and not provider.batches
    provider.live.clear()
    mock.reset()
    project = batched(tmp_path / "batched", provider)
    prices = {"input": 1, "output": 10}
    model = model_config(provider.base_url, "alpha-1")
    model["api"]["batch"] = True
    project.write_yaml("configs/alpha.yaml", model | {"prices": prices})
    called = project.snakemake(*OPTIONS)
    assert called.code == 0, called.text
    assert verdicts(project) == verdicts(live)
    assert {verdict[0] for verdict in verdicts(live)} == {True, False, None}
    # Predictions, the first questions, and those that follow a condition that holds.
    sizes = [len(batch.ids) for batch in provider.batches.values()]
    assert sizes[:2] == [3 * ENOUGH, 6 * ENOUGH] and len(sizes) == 3
    assert mock.stats().resent_after_ok == 0 and not provider.live
    (predicted, judged) = project.json("results/summary.json")["expenses"]
    tokens = Tokens(**{k: predicted[k] for k in ("calls", "prompt", "cached", "completion")})
    full = cost(tokens, parse(Prices, prices, "prices"))
    assert float(predicted["cost"]) == float(full) / 2
    assert predicted["batch_prompt"] == predicted["prompt"]
    assert judged["batch_completion"] == judged["completion"]
    assert not list(project.root.rglob("*.batches"))
    assert project.plan(*OPTIONS).idle
    logs = "".join(path.read_text() for path in project.root.glob("logs/**/*.log"))
    assert f"batch batch_1: completed, {6 * ENOUGH} of {6 * ENOUGH} answered" in logs
    nothing_secret(project)


@pytest.mark.workflow
@pytest.mark.parametrize("moment", ["hang_before", "hang_after", "pending"])
def test_killed_and_no_batch_is_paid_twice(
    tmp_path: Path, mock: RunningMock, provider: MockBatches, moment: str
) -> None:
    project = batched(tmp_path / "killed", provider, ENOUGH)
    if moment == "pending":
        provider.change(hold=True)
    else:
        provider.change(create=moment)
    process = project.start(*OPTIONS)
    try:
        if moment == "pending":
            provider.until(lambda: provider.polls)
        else:
            provider.until(lambda: provider.creations)
    finally:
        kill_tree(process)
    (noted,) = project.root.rglob("*.batches")
    assert len(loads(noted.read_bytes())) == 1
    nothing_secret(project)
    provider.change()
    called = project.snakemake(*OPTIONS)
    assert called.code == 0, called.text
    first = next(iter(provider.batches.values()))
    assert len(first.ids) == 2 * ENOUGH
    # What follows a condition may be asked live, where it is too little for a batch.
    assert provider.uploads == len(provider.batches) <= 2
    assert len(set(provider.lines)) == len(provider.lines)
    judged = [body for body in provider.live if body["model"] == "judge-1"]
    assert all("/2]" in body["messages"][0]["content"] for body in judged)
    assert mock.stats().resent_after_ok == 0
    assert not list(project.root.rglob("*.batches"))


@pytest.mark.workflow
def test_a_terminated_job_leaves_its_batch_and_says_so(
    tmp_path: Path, mock: RunningMock, provider: MockBatches
) -> None:
    project = batched(tmp_path / "ended", provider, ENOUGH)
    provider.change(hold=True)
    process = project.start(*OPTIONS)
    try:
        provider.until(lambda: provider.polls)
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=60)
    finally:
        if process.poll() is None:
            kill_tree(process)
    logs = "".join(path.read_text() for path in project.root.glob("logs/**/*.log"))
    assert "batches that go on at the endpoint: 1" in logs
    provider.change()
    assert project.snakemake(*OPTIONS).code == 0
    assert len(set(provider.lines)) == len(provider.lines)
    assert mock.stats().resent_after_ok == 0


@pytest.mark.workflow
def test_only_what_no_journal_holds_is_sent(
    tmp_path: Path, mock: RunningMock, provider: MockBatches
) -> None:
    project = batched(tmp_path / "mixed", provider, 2 * ENOUGH)
    project.change_yaml("judge_configs/strict.yaml", batch=False)
    called = project.snakemake(*OPTIONS, "limit=10")
    assert called.code == 0, called.text
    assert not provider.batches
    live = len(provider.live)
    project.change_yaml("judge_configs/strict.yaml", batch=True)
    provider.change(expire=[ENOUGH])
    called = project.snakemake(*OPTIONS)
    assert called.code == 0, called.text
    first, second = list(provider.batches.values())[:2]
    assert len(first.ids) == 2 * (2 * ENOUGH - 10)
    assert set(first.ids[ENOUGH:]) <= set(second.ids)
    assert not set(first.ids[:ENOUGH]) & set(second.ids)
    assert mock.stats().resent_after_ok == 0
    assert len(provider.live) >= live
