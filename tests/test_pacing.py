"""Rates, back-off and the semaphore that both move: what they allow, at any moment."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from looping import looped
from mock_endpoint import MockConfig, MockEndpoint, Rule
from mock_endpoint import Reply as MockReply

from adhere.client import ChatClient, Endpoint, Reply
from adhere.client.endpoint import ClientCounts
from adhere.client.pacing import BURST_S, Backoff, Pace, TokenEstimate
from adhere.client.sharing import FOLDER_VARIABLE
from adhere.client.slots import Slots
from adhere.config import Retry

# Rates


def sent(pace: Pace, now: float, until: float) -> list[float]:
    """Send as much as the pace allows; return when."""
    times = []
    while (now := now + pace.delay(now)) < until:
        pace.book(1)
        times.append(now)
    return times


@given(st.integers(1, 3000), st.lists(st.floats(0, 40), min_size=1, max_size=6))
def test_no_minute_holds_more_than_the_rate(per_minute: int, lulls: list[float]) -> None:
    """However work comes and goes, any 60 s have the rate at most, within rounding."""
    pace, now, times = Pace(per_minute, 0.0), 0.0, list[float]()
    for lull in lulls:
        times += sent(pace, now + lull, now + lull + 20)
        now += lull + 20
    first = 0
    for last, time in enumerate(times):
        while times[first] <= time - 60 + 1e-6:
            first += 1
        assert last - first + 1 <= per_minute


@given(st.integers(60, 3000), st.lists(st.tuples(st.booleans(), st.floats(0, 1)), max_size=60))
def test_a_part_that_wanders_brings_no_more(
    per_minute: int, turns: list[tuple[bool, float]]
) -> None:
    """Two jobs between whom the rate goes to and fro send what one would, but for one each."""
    paces = Pace(per_minute, 0.0), Pace(per_minute, 0.0)
    for pace in paces:
        pace.take_share(0.0, 0.0)
    number = 0
    for second, (turned, part) in enumerate(turns):
        now = float(second)
        paces[turned].take_share(part, now)
        paces[not turned].take_share(1.0 - part, now)
        number += sum(len(sent(pace, now, now + 1)) for pace in paces)
    assert number <= (len(turns) + BURST_S) * per_minute / 60 + 2


def test_a_rate_is_used(per_minute: int = 600) -> None:
    times = sent(Pace(per_minute, 0.0), 0.0, 600.0)
    assert len(times) > 0.98 * 10 * per_minute
    assert sum(time == 0 for time in times) <= per_minute / 60 + 1


def test_without_a_part_nothing_is_sent() -> None:
    pace = Pace(600, 0.0)
    pace.take_share(0.0, 0.0)
    assert pace.delay(1e6) > 0
    pace.take_share(0.5, 1e6)
    assert pace.delay(1e6 + 3) == 0


def test_what_was_booked_too_much_is_given_back() -> None:
    pace = Pace(6100, 0.0)  # a hundred a second
    pace.book(1100)
    assert pace.delay(0.0) == pytest.approx(10)
    pace.book(-500)
    assert pace.delay(0.0) == pytest.approx(5)
    pace.book(-5000)
    assert pace.delay(0.0) == 0


def test_tokens_are_guessed_from_the_replies_there_were() -> None:
    estimate = TokenEstimate(8192)
    assert estimate.of(400) == 100 + 8192
    estimate.learn(10)
    estimate.learn(30)
    assert estimate.of(400) == 100 + 20


# Back-off


def rounds(backoff: Backoff, most: int, number: int) -> list[int]:
    """Play rounds with a provider that refuses what is beyond ``most`` at once."""
    sizes = []
    for _ in range(number):
        size, this = backoff.size, backoff.round
        for place in range(size):
            backoff.learn(this, refused=place >= most)
        sizes.append(backoff.size)
    return sizes


def test_a_real_limit_is_found_and_held() -> None:
    counts = ClientCounts()
    sizes = rounds(Backoff(64, counts), 16, 30)
    assert sizes[:3] == [33, 18, 19]
    assert all(16 <= size <= 21 for size in sizes[2:])
    assert counts.least_concurrency == min(sizes)


def test_where_everything_is_refused_one_is_left_and_all_come_back() -> None:
    backoff = Backoff(64, ClientCounts())
    assert rounds(backoff, 0, 10)[-1] == 1
    assert rounds(backoff, 64, 16)[-1] == 64


def test_refusals_that_mean_nothing_cost_little() -> None:
    backoff = Backoff(64, ClientCounts())
    for number in range(10_000):
        backoff.learn(backoff.round, refused=number % 10 == 0)
    assert backoff.size >= 32


def test_what_was_sent_before_a_change_does_not_count_again() -> None:
    backoff = Backoff(8, ClientCounts())
    rounds(backoff, 4, 1)
    size = backoff.size
    for _ in range(8):
        assert not backoff.learn(0, refused=True)
    assert backoff.size == size


@given(st.integers(1, 100), st.lists(st.booleans(), max_size=500))
def test_the_size_stays_within_its_bounds(limit: int, outcomes: list[bool]) -> None:
    backoff = Backoff(limit, ClientCounts())
    for refused in outcomes:
        backoff.learn(backoff.round, refused=refused)
        assert 1 <= backoff.size <= limit


# The semaphore


@looped
async def test_a_larger_size_lets_in_at_once_and_a_smaller_one_throws_nobody_out() -> None:
    slots, leave = Slots(1), asyncio.Event()

    async def one() -> None:
        async with slots:
            await leave.wait()

    tasks = [asyncio.create_task(one()) for _ in range(5)]
    await asyncio.sleep(0)
    assert (slots.taken, slots.demand()) == (1, 5)
    slots.size = 4
    assert slots.taken == 4
    slots.size = 2
    assert slots.taken == 4
    leave.set()
    await asyncio.gather(*tasks)
    assert slots.taken == 0
    assert (slots.demand(), slots.demand()) == (5, 0)


@looped
async def test_a_cancelled_one_takes_no_place() -> None:
    slots = Slots(1)
    async with slots:
        waiting = [asyncio.create_task(slots.__aenter__()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
    # The second is let in and cancelled at once, before it runs.
    waiting[1].cancel()
    await asyncio.wait(waiting)
    assert [task.cancelled() for task in waiting] == [True, True, False]
    assert (slots.taken, slots.demand()) == (1, 4)


@looped
async def test_a_retry_queues_up_where_the_size_was_lowered() -> None:
    slots = Slots(2)
    async with slots, slots:
        slots.size = 1
        again = asyncio.create_task(slots.again())
        await asyncio.sleep(0)
        assert (slots.taken, again.done()) == (1, False)
        slots.size = 2
        await again
        assert slots.taken == 2
    assert slots.taken == 0


@looped
async def test_a_retry_that_is_cancelled_in_the_queue_leaves_once() -> None:
    slots = Slots(2)

    async def one() -> None:
        async with slots:
            await slots.again()

    async with slots:
        slots.size = 0
        task = asyncio.create_task(one())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert slots.taken == 1
    assert slots.taken == 0


# The client


def endpoint(mock: MockEndpoint, **fields: Any) -> Endpoint:
    retry = Retry(attempts=6, first_wait_s=0.001, max_wait_s=5.0)
    return Endpoint(mock.base_url, "configs/m.yaml", retry=retry, **fields)


def payload(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


@looped
async def test_a_wish_to_wait_holds_for_every_request() -> None:
    refusal = Rule(match="first", times=1, reply=MockReply(status=429, retry_after=0.7))
    async with MockEndpoint(MockConfig(rules=[refusal])) as mock:
        async with ChatClient(endpoint(mock)) as client:
            first = asyncio.create_task(client.complete(payload("first")))
            await mock.until(finished=1)
            while not client.counts.throttled:
                await asyncio.sleep(0.001)
            loop = asyncio.get_running_loop()
            started = loop.time()
            assert isinstance(await client.complete(payload("second")), Reply)
            assert loop.time() - started > 0.5
            assert isinstance(await first, Reply)
            assert client.counts.throttled == 1
            assert client.counts.throttled_s == pytest.approx(0.7)
        assert mock.stats().requests == 3


@looped
async def test_a_window_that_is_full_is_waited_for_by_all_together() -> None:
    config = MockConfig(most_in_window=20, window_s=1.0)
    async with MockEndpoint(config) as mock, ChatClient(endpoint(mock, concurrency=16)) as client:
        replies = await asyncio.gather(*(client.complete(payload(f"{n}")) for n in range(60)))
        assert all(isinstance(reply, Reply) for reply in replies)
        # Two windows fill up, and the requests in flight then are all that meets a refusal.
        assert mock.stats().statuses[429] <= 2 * 16
        assert client.counts.throttled_s > 0


@looped
async def test_only_refusals_for_load_lower_the_concurrency() -> None:
    rules = [Rule(times=30, reply=MockReply(status=503)), Rule(times=30, reply=MockReply(cut=True))]
    async with MockEndpoint(MockConfig(rules=rules)) as mock:
        async with ChatClient(endpoint(mock, concurrency=8)) as client:
            await asyncio.gather(*(client.complete(payload(f"{n}")) for n in range(40)))
        assert (client.counts.throttled, client.counts.least_concurrency) == (0, None)


@pytest.mark.parametrize("status", [429, 529])
def test_overload_lowers_the_concurrency(status: int) -> None:
    @looped
    async def run() -> None:
        rules = [Rule(times=8, reply=MockReply(status=status))]
        async with MockEndpoint(MockConfig(rules=rules)) as mock:
            async with ChatClient(endpoint(mock, concurrency=8)) as client:
                await asyncio.gather(*(client.complete(payload(f"{n}")) for n in range(8)))
            assert (client.counts.throttled, client.counts.least_concurrency) == (8, 4)

    run()


@looped
async def test_a_rate_of_tokens_is_kept() -> None:
    async with MockEndpoint(MockConfig(reply_chars=400)) as mock:
        # Booked at their whole budget, ten requests would take five minutes.
        place = endpoint(mock, tokens_per_minute=61 * 1000, budget=30_000)
        async with ChatClient(place) as client:
            loop = asyncio.get_running_loop()
            first = await client.complete(payload("first"))
            assert isinstance(first, Reply)
            started = loop.time()
            await asyncio.gather(*(client.complete(payload(f"{n:8}")) for n in range(30)))
            taken = loop.time() - started
            tokens = client.counts.tokens.total
        # A thousand a second; a second's worth at once, and the last one booked by an estimate.
        assert tokens > 2500
        assert taken >= (tokens - 300) / 1000 - BURST_S - 0.5


@looped
async def test_without_a_folder_a_client_goes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "file" / "folder"))
    async with MockEndpoint() as mock:
        place = endpoint(mock, shared=True, requests_per_minute=6000)
        async with ChatClient(place) as client:
            assert isinstance(await client.complete(payload("Hi")), Reply)
    assert f"name a folder that can be written and has locks in {FOLDER_VARIABLE}" in caplog.text


@looped
async def test_a_shared_endpoint_alone_has_everything_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    async with (
        MockEndpoint(MockConfig(latency_s=3600)) as mock,
        ChatClient(endpoint(mock, shared=True, concurrency=8)) as client,
    ):
        tasks = [asyncio.create_task(client.complete(payload(f"{n}"))) for n in range(20)]
        assert (await mock.until(in_flight=8)).max_in_flight == 8
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    (folder,) = tmp_path.iterdir()
    assert [path.name for path in folder.iterdir()] == ["lock"]
