"""The chat client: what it retries, what it gives up, what it never tells, how much at a time."""

import asyncio
import hashlib
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web
from hypothesis import example, given, settings
from hypothesis import strategies as st
from looping import looped
from mock_endpoint import ErrorBody, MockConfig, MockEndpoint, Reply, Rule

from adhere import client as package
from adhere.client import ChatClient, Endpoint, Failure, chat
from adhere.client.reply import Reply as ChatReply
from adhere.config import Retry
from adhere.costs.tokens import Tokens
from adhere.errors import EndpointError

KEY = "sk-canary-0123456789"
OWNER = "configs/mock.yaml"


def patience(attempts: int = 3, timeout_s: float = 20.0) -> Retry:
    return Retry(attempts=attempts, first_wait_s=0.001, max_wait_s=0.002, timeout_s=timeout_s)


def endpoint(base_url: str, **fields: Any) -> Endpoint:
    return Endpoint(base_url=base_url, owner=OWNER, **{"retry": patience(), **fields})


def payload(text: str = "Hi", **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **fields}


@asynccontextmanager
async def mocked(
    *rules: Rule, config: MockConfig | None = None, **fields: Any
) -> AsyncIterator[tuple[ChatClient, MockEndpoint]]:
    """Open a mock that knows ``rules`` and a client of it."""
    config = (config or MockConfig()).model_copy(update={"rules": list(rules)})
    async with MockEndpoint(config) as mock, ChatClient(endpoint(mock.base_url, **fields)) as c:
        yield c, mock


@asynccontextmanager
async def served(handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> Any:
    """Serve whatever ``handler`` answers; yields the base URL."""
    runner = web.ServerRunner(web.Server(handler))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def answered(text: str = "Hello", **headers: str) -> web.Response:
    body = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
    return web.json_response(body, headers=headers)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that nobody listens on, kept from being given to others."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float | None]]:
    """Record (attempt, server's wish) of every wait, and wait no longer than a switch of tasks."""
    seen: list[tuple[int, float | None]] = []

    def record(_retry: Retry, attempt: int, retry_after_s: float | None) -> float:
        seen.append((attempt, retry_after_s))
        return 0.0

    monkeypatch.setattr(chat, "_wait", record)
    return seen


# Answers


@looped
async def test_an_answer() -> None:
    config = MockConfig(latency_s=0.05)
    async with mocked(Rule(reply=Reply(content="Hello")), config=config) as (client, mock):
        reply = await client.complete(payload())
        assert isinstance(reply, ChatReply)
        assert (reply.content, reply.finish_reason, reply.served_model) == ("Hello", "stop", "m")
        assert reply.system_fingerprint == "fp_mock"
        assert 0.049 <= reply.latency_s < 20
        assert (client.counts.answered, client.counts.retries) == (1, 0)
        assert mock.log()[0].path == "/v1/chat/completions"


@looped
async def test_the_body_is_utf8_as_it_is() -> None:
    seen: list[tuple[bytes, str | None]] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append((await request.read(), request.headers.get("Content-Type")))
        return answered()

    body = payload("你好 é \U0001f600 \u2028", temperature=0.7, extra={"z": [1, None]})
    async with served(handler) as url, ChatClient(endpoint(url)) as client:
        await client.complete(body)
    raw, kind = seen[0]
    assert kind == "application/json"
    assert "你好 é \U0001f600 \u2028".encode() in raw
    assert b"\\u" not in raw
    assert raw.startswith(b'{"model":"m","messages":[{"role":"user","content":')


@pytest.mark.parametrize("suffix", ["", "/"])
@looped
async def test_a_slash_at_the_end_of_the_address_changes_nothing(suffix: str) -> None:
    async with MockEndpoint() as mock, ChatClient(endpoint(mock.base_url + suffix)) as client:
        assert isinstance(await client.complete(payload()), ChatReply)
        assert mock.log()[0].path == "/v1/chat/completions"


@looped
async def test_tokens_are_summed_as_the_server_counts_them() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    odd = {"prompt_tokens": True, "completion_tokens": "5", "prompt_tokens_details": [1]}
    rules = [
        Rule(match="full", reply=Reply(usage=usage)),
        Rule(match="odd", reply=Reply(usage=odd)),
        Rule(match="none", reply=Reply(usage=None)),
    ]
    async with mocked(*rules) as (client, _):
        for text in ("full", "full", "odd", "none"):
            await client.complete(payload(text))
        assert client.counts.tokens == Tokens(4, 2, 20, 8, 10, 6)


# Retries

HEALED = {
    "500": Reply(status=500),
    "502, a page": Reply(status=502, raw_body="<html>bad gateway</html>"),
    "503": Reply(status=503),
    "529": Reply(status=529),
    "429": Reply(status=429),
    "reset": Reply(reset=True),
    "cut body": Reply(cut=True),
    "garbage": Reply(raw_body="garbage"),
    "truncated JSON": Reply(raw_body='{"choices": [{"mess'),
    "no choices": Reply(empty_choices=True),
    "error inside": Reply(raw_body='{"error": {"code": 429, "message": "slow down"}}'),
    "broken off": Reply(finish_reason="error"),
}


@pytest.mark.parametrize("fault", HEALED)
def test_a_passing_fault_is_tried_again(fault: str, waits: list[tuple[int, float | None]]) -> None:
    @looped
    async def test() -> None:
        async with mocked(Rule(times=2, reply=HEALED[fault])) as (client, mock):
            assert isinstance(await client.complete(payload()), ChatReply)
            assert mock.stats().requests == 3
            assert (client.counts.answered, client.counts.retries) == (1, 2)
            assert not client.counts.failures
            assert [attempt for attempt, _ in waits] == [1, 2]

    test()


@pytest.mark.parametrize("attempts", [1, 2, 4])
@looped
async def test_retries_have_a_bound(attempts: int) -> None:
    rule = Rule(match="bad", reply=Reply(status=503, error=ErrorBody(message="full")))
    async with mocked(rule, retry=patience(attempts)) as (client, mock):
        failure = await client.complete(payload("bad"))
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.status, failure.message) == ("server_error", 503, "full")
        assert failure.retryable
        assert mock.stats().requests == attempts
        assert client.counts.retries == attempts - 1
        assert client.counts.failures == {"server_error": 1}
        assert isinstance(await client.complete(payload("good")), ChatReply)


@looped
async def test_a_hanging_server_is_a_timeout() -> None:
    rule = Rule(reply=Reply(hang_s=60))
    async with mocked(rule, retry=patience(2, timeout_s=0.2)) as (client, mock):
        failure = await client.complete(payload())
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.retryable) == ("timeout", True)
        assert failure.message == "no complete reply within 0.2 s"
        assert client.counts.retries == 1
        assert mock.stats().requests <= 2


@looped
async def test_a_reply_that_trickles_in_has_the_same_limit() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_length = 1000
        await response.prepare(request)
        with suppress(ConnectionError):  # the client has gone
            for _ in range(1000):
                await response.write(b" ")
                await asyncio.sleep(0.01)
        return response

    async with (
        served(handler) as url,
        ChatClient(endpoint(url, retry=patience(2, timeout_s=0.2))) as client,
    ):
        failure = await client.complete(payload())
        assert isinstance(failure, Failure)
        assert (failure.kind, client.counts.retries) == ("timeout", 1)


@pytest.mark.parametrize(
    ("message", "kind", "retryable"),
    [
        ("nobody knows why", "bad_request", True),
        ("maximum context length is 5 tokens", "context_overflow", False),
        ("content filter", "content_filter", False),
    ],
)
@looped
async def test_a_refused_request_is_not_repeated(message: str, kind: str, retryable: bool) -> None:
    rule = Rule(reply=Reply(status=400, error=ErrorBody(message=message)))
    async with mocked(rule) as (client, mock):
        failure = await client.complete(payload())
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.retryable) == (kind, retryable)
        assert mock.stats().requests == 1
        assert client.counts.retries == 0


@looped
async def test_a_budget_that_no_wait_makes_smaller_is_not_repeated() -> None:
    async with mocked(config=MockConfig(context_tokens=50)) as (client, mock):
        failure = await client.complete(payload(max_tokens=100))
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.context_tokens) == ("context_overflow", 50)
        assert failure.retryable
        assert mock.stats().requests == 1


@looped
async def test_a_cancelled_request_frees_its_place() -> None:
    rules = [Rule(match="slow", reply=Reply(hang_s=60))]
    async with mocked(*rules, concurrency=1) as (client, mock):
        slow = asyncio.ensure_future(client.complete(payload("slow")))
        await mock.until(requests=1)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert isinstance(await client.complete(payload("quick")), ChatReply)


# Waiting


def test_the_servers_wish_reaches_the_wait(waits: list[tuple[int, float | None]]) -> None:
    later = datetime.now(UTC) + timedelta(seconds=90)
    rules = [
        Rule(times=1, reply=Reply(status=429, retry_after=7)),
        Rule(times=1, reply=Reply(status=503, retry_after=format_datetime(later, usegmt=True))),
        Rule(times=1, reply=Reply(status=500)),
        Rule(times=1, reply=Reply(status=429, retry_after="soon")),
    ]

    @looped
    async def test() -> None:
        async with mocked(*rules, retry=patience(5)) as (client, _):
            assert isinstance(await client.complete(payload()), ChatReply)

    test()
    assert waits[0] == (1, 7.0)
    attempt, seconds = waits[1]
    assert attempt == 2
    assert seconds is not None
    assert 60 < seconds <= 90
    assert waits[2:] == [(3, None), (4, None)]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("12", 12.0),
        ("0.5", 0.5),
        (" 3 ", 3.0),
        ("-4", 0.0),
        ("nan", 0.0),
        ("inf", float("inf")),
        ("", None),
        ("soon", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:00", 0.0),
    ],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    assert chat._retry_after(value) == seconds


@settings(deadline=None)
@given(st.text() | st.datetimes().map(format_datetime) | st.floats().map(str))
@example("Mon, 01 Jan 99999 00:00:00 GMT")
@example("Mon, 01 Jan 2035 00:00:00 +9999999999999999")
@example("Mon, 01 Jan 0001 00:00:00 +2300")
@example("Fri, 31 Dec 9999 23:59:59 -2300")
def test_no_retry_after_does_harm(value: str) -> None:
    seconds = chat._retry_after(value)
    assert seconds is None or seconds >= 0
    wait = chat._wait(Retry(max_wait_s=60.0), 1, seconds)
    assert 0 <= wait <= 60.25


@settings(deadline=None)
@given(st.integers(1, 2000))
def test_waits_double_up_to_a_limit(attempt: int) -> None:
    wait = chat._wait(Retry(first_wait_s=1.0, max_wait_s=60.0), attempt, None)
    longest = min(2.0 ** min(attempt - 1, 9), 60.0)
    assert longest / 2 <= wait <= longest


# Giving up

FATAL: dict[str, tuple[Reply, str, str]] = {
    "key": (
        Reply(status=401, error=ErrorBody(message="Wrong key.")),
        "unauthorised: HTTP 401: Wrong key.",
        "check the key that `api_key_env` names",
    ),
    "right": (
        Reply(status=403, error=ErrorBody(message="Not yours.")),
        "unauthorised: HTTP 403: Not yours.",
        "check the key that `api_key_env` names",
    ),
    "model": (
        Reply(status=404, error=ErrorBody(message="No such model.")),
        "not found: HTTP 404: No such model.",
        "check `model` and `base_url`",
    ),
    "money": (
        Reply(status=402, error=ErrorBody(message="Pay first.")),
        "quota: HTTP 402: Pay first.",
        "what is answered is kept",
    ),
    "quota": (
        Reply(status=429, error=ErrorBody(message="Spent.", code="insufficient_quota")),
        "quota: HTTP 429: Spent.",
        "what is answered is kept",
    ),
    "parameter": (
        Reply(status=400, error=ErrorBody(message="Unsupported parameter: 'top_k'")),
        "refused parameter: HTTP 400: Unsupported parameter: 'top_k'",
        "`not_sent`",
    ),
    "method": (
        Reply(status=405, raw_body="Method Not Allowed"),
        "refused: HTTP 405: Method Not Allowed",
        "check `base_url`",
    ),
}


@pytest.mark.parametrize("answered_before", [False, True])
@pytest.mark.parametrize("name", FATAL)
@looped
async def test_what_every_request_would_meet_stops_the_job(
    name: str, answered_before: bool
) -> None:
    reply, said, advice = FATAL[name]
    async with mocked(Rule(match="bad", reply=reply)) as (client, mock):
        if answered_before:
            await client.complete(payload("good"))
        with pytest.raises(EndpointError) as caught:
            await client.complete(payload("bad"))
        message = str(caught.value)
        assert message.startswith(f"{OWNER}: {mock.base_url} ")
        assert said in message
        assert advice in message
        assert "\n" not in message
        assert mock.stats().requests == 1 + answered_before
        assert client.counts.retries == 0


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@looped
async def test_a_redirect_is_named_and_not_followed(status: int) -> None:
    seen: list[str] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append(request.path)
        if request.path.startswith("/v1/"):
            return web.Response(status=status, headers={"Location": "/elsewhere/v1"})
        return answered()

    async with served(handler) as url, ChatClient(endpoint(url, api_key=KEY)) as client:
        with pytest.raises(EndpointError, match=f"HTTP {status}: .* redirects to /elsewhere/v1"):
            await client.complete(payload())
    assert seen == ["/v1/chat/completions"]


@looped
async def test_another_success_than_200_is_one() -> None:
    async def handler(_request: web.BaseRequest) -> web.Response:
        response = answered("created")
        response.set_status(201)
        return response

    async with served(handler) as url, ChatClient(endpoint(url)) as client:
        reply = await client.complete(payload())
        assert isinstance(reply, ChatReply)
        assert reply.content == "created"


@looped
async def test_unreachable_from_the_start(closed_port: int) -> None:
    url = f"http://127.0.0.1:{closed_port}/v1"
    async with ChatClient(endpoint(url)) as client:
        with pytest.raises(EndpointError) as caught:
            await client.complete(payload())
        assert client.counts.retries == 2
    message = str(caught.value)
    assert message.startswith(f"{OWNER}: {url} unreachable: ")
    assert "check `base_url`, and that the server runs" in message


@looped
async def test_a_name_that_does_not_resolve() -> None:
    async with ChatClient(endpoint("http://nowhere.invalid/v1")) as client:
        with pytest.raises(EndpointError, match=r"nowhere\.invalid/v1 unreachable"):
            await client.complete(payload())


@looped
async def test_a_host_that_never_answers_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "_CONNECT_S", 0.1)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        address = deaf.getsockname()
        waiting = []
        try:
            # The kernel takes a few connections by itself, and then drops the rest.
            for _ in range(4):
                connection = socket.socket()
                connection.setblocking(False)
                connection.connect_ex(address)
                waiting.append(connection)
            url = f"http://127.0.0.1:{address[1]}/v1"
            async with ChatClient(endpoint(url, retry=patience(2))) as client:
                with pytest.raises(EndpointError, match=r"unreachable: no connection within 0.1 s"):
                    await client.complete(payload())
        finally:
            for connection in waiting:
                connection.close()


@looped
async def test_a_server_that_goes_away_and_comes_back() -> None:
    async with MockEndpoint() as mock:
        url, port = mock.base_url, mock.port
        async with ChatClient(endpoint(url, retry=patience(4))) as client:
            assert isinstance(await client.complete(payload("a")), ChatReply)
            await mock.__aexit__(None, None, None)
            first = await client.complete(payload("b"))
            assert isinstance(first, Failure)
            assert (first.kind, first.retryable, first.fatal) == ("unreachable", True, False)
            assert client.counts.retries == 3
            # The whole patience was spent once; every other request looks once and goes on.
            for text in "cdef":
                assert isinstance(await client.complete(payload(text)), Failure)
            assert client.counts.retries == 3
            assert client.counts.failures == {"unreachable": 5}
            async with MockEndpoint(
                MockConfig(rules=[Rule(times=2, match="h", reply=Reply(status=500))]), port=port
            ):
                assert isinstance(await client.complete(payload("g")), ChatReply)
                # It is back, and so is the patience.
                assert isinstance(await client.complete(payload("h")), ChatReply)
            assert client.counts.retries == 5


LOST = {
    "unreachable": None,
    "timeout": Reply(hang_s=60),
    "connection lost": Reply(reset=True),
    "server error": Reply(status=502, raw_body="<html>bad gateway</html>"),
}


@pytest.mark.parametrize("kind", LOST)
def test_an_endpoint_that_died_stops_the_job(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "_LOST_BEFORE_GIVING_UP", 3)
    reply = LOST[kind]
    rules = [] if reply is None else [Rule(match="lost", reply=reply)]

    @looped
    async def test() -> None:
        retry = patience(2, timeout_s=0.2)
        async with mocked(*rules, concurrency=1, retry=retry) as (client, mock):
            assert isinstance(await client.complete(payload("good")), ChatReply)
            if reply is None:
                await mock.__aexit__(None, None, None)
            for _ in range(2):
                assert isinstance(await client.complete(payload("lost")), Failure)
            with pytest.raises(EndpointError, match=f"/v1 {kind}: .*what is answered is kept"):
                await client.complete(payload("lost"))

    test()


@looped
async def test_an_answer_shows_that_an_endpoint_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "_LOST_BEFORE_GIVING_UP", 3)
    rule = Rule(match="bad", reply=Reply(status=500))
    async with mocked(rule, concurrency=1) as (client, _):
        for text in ["bad", "bad", "good"] * 3:
            await client.complete(payload(text))
        assert client.counts.answered == 3


@looped
async def test_as_many_are_lost_at_once_as_are_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "_LOST_BEFORE_GIVING_UP", 3)
    rule = Rule(match="bad", reply=Reply(status=500))
    async with mocked(rule, concurrency=8) as (client, _):
        lost = await asyncio.gather(*(client.complete(payload("bad")) for _ in range(15)))
        assert {failure.kind for failure in lost if isinstance(failure, Failure)} == {
            "server_error"
        }
        with pytest.raises(EndpointError):
            await client.complete(payload("bad"))


@looped
async def test_refusals_of_unknown_kind_stop_a_job_without_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chat, "_REFUSALS_BEFORE_GIVING_UP", 3)
    bad = Rule(match="bad", reply=Reply(status=400, error=ErrorBody(message="Bad request.")))
    async with mocked(bad) as (client, _):
        for _ in range(2):
            assert isinstance(await client.complete(payload("bad")), Failure)
        with pytest.raises(EndpointError, match="bad request: HTTP 400: Bad request"):
            await client.complete(payload("bad"))
    async with mocked(bad) as (client, _):
        await client.complete(payload("good"))
        for _ in range(6):
            assert isinstance(await client.complete(payload("bad")), Failure)


@looped
async def test_quick_refusals_do_not_stop_slow_answers() -> None:
    bad = Rule(match="bad", reply=Reply(status=400, error=ErrorBody(message="Bad request.")))
    slow = Rule(match="slow", reply=Reply(hang_s=0.2))
    async with mocked(bad, slow) as (client, _):
        texts = ["slow", *["bad"] * 63]
        outcomes = await asyncio.gather(*(client.complete(payload(text)) for text in texts))
        assert isinstance(outcomes[0], ChatReply)
        assert all(isinstance(outcome, Failure) for outcome in outcomes[1:])


@pytest.mark.parametrize(
    "base_url", ["http://", "http://host:99999/v1", "ftp://host/v1", "http://[::1/v1", "host/v1"]
)
def test_an_address_that_is_none(base_url: str) -> None:
    with pytest.raises(EndpointError) as caught:
        ChatClient(endpoint(base_url))
    assert str(caught.value).startswith(f"{OWNER}: {base_url}: ")


# The key


@looped
async def test_the_key_is_sent() -> None:
    async with mocked(config=MockConfig(require_key=KEY), api_key=KEY) as (client, mock):
        assert isinstance(await client.complete(payload()), ChatReply)
        digest = hashlib.sha256(f"Bearer {KEY}".encode()).hexdigest()
        assert mock.log()[0].authorization_sha256 == digest


@looped
async def test_without_a_key_no_header_is_sent() -> None:
    async with mocked() as (client, mock):
        await client.complete(payload())
        assert not mock.log()[0].has_authorization


def test_the_key_is_told_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[object] = []
    echo = ErrorBody(message=f"Your key {KEY} is wrong.")
    rules = [
        Rule(match="fatal", reply=Reply(status=401, error=echo)),
        Rule(match="final", reply=Reply(status=400, error=echo)),
        Rule(match="busy", reply=Reply(status=500, error=echo)),
        Rule(match="gone", reply=Reply(reset=True)),
        Rule(match="inside", reply=Reply(raw_body=f'{{"error": {{"message": "{KEY}"}}}}')),
        Rule(match="answer", reply=Reply(content=f"You sent {KEY}.", served_model=KEY)),
    ]

    @looped
    async def test() -> None:
        async with mocked(*rules, api_key=KEY) as (client, _):
            told.extend([repr(client), repr(client.endpoint), repr(client.counts)])
            for text in ("final", "busy", "gone", "inside", "answer"):
                told.append(await client.complete(payload(text)))
            with pytest.raises(EndpointError) as caught:
                await client.complete(payload("fatal"))
            told.append(caught.value)

    test()
    assert KEY not in repr(told)
    assert KEY not in caplog.text
    assert "Your key [key] is wrong." in str(told[-1])


def test_a_key_that_a_server_quotes_with_escapes_is_taken_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    key = "sk-canary/0123+4567="
    escaped = key.replace("/", "\\/").replace("+", "\\u002b")
    told: list[object] = []

    @looped
    async def test() -> None:
        answer = f'{{"choices": [{{"message": {{"content": "You sent {escaped}."}}}}]}}'
        rules = [
            Rule(match="answer", reply=Reply(raw_body=answer)),
            Rule(reply=Reply(status=400, raw_body=f'{{"error": {{"message": "{escaped}"}}}}')),
        ]
        async with mocked(*rules, api_key=key) as (client, _):
            told.extend([await client.complete(payload(text)) for text in ("answer", "refused")])

    test()
    assert key not in repr(told) + caplog.text
    assert repr(told).count("[key]") == 2


def test_the_key_leaves_the_process_by_the_header_only(closed_port: int) -> None:
    @looped
    async def test() -> None:
        async with ChatClient(
            endpoint(f"http://127.0.0.1:{closed_port}/v1", api_key=KEY)
        ) as client:
            with pytest.raises(EndpointError) as caught:
                await client.complete(payload())
            assert KEY not in str(caught.value)

    test()


# How much at a time


@pytest.mark.parametrize("limit", [1, 3, 16])
@looped
async def test_concurrency_reaches_its_limit_and_never_exceeds_it(limit: int) -> None:
    async with mocked(Rule(match="slow", reply=Reply(hang_s=60)), concurrency=limit) as (c, mock):
        held = [asyncio.ensure_future(c.complete(payload(f"slow {n}"))) for n in range(limit + 3)]
        await mock.until(in_flight=limit)
        for request in held:
            request.cancel()
        await asyncio.gather(*held, return_exceptions=True)
        await mock.until(finished=limit)
        assert mock.stats().requests == limit
        await asyncio.gather(*(c.complete(payload(f"{n}")) for n in range(3 * limit)))
        assert c.counts.answered == 3 * limit
        assert mock.stats().max_in_flight == limit


@looped
async def test_cookies_of_a_load_balancer_are_not_kept() -> None:
    seen: list[str | None] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append(request.headers.get("Cookie"))
        return answered(**{"Set-Cookie": "replica=3; Path=/"})

    async with served(handler) as url:
        # By a name: addresses have no cookies anyway.
        named = endpoint(url.replace("127.0.0.1", "localhost"))
        async with ChatClient(named) as client:
            for _ in range(2):
                assert isinstance(await client.complete(payload()), ChatReply)
    assert seen == [None, None]


@looped
async def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with mocked() as (client, _):
        assert isinstance(await client.complete(payload()), ChatReply)


def test_the_longest_wait_follows_the_budget() -> None:
    assert endpoint("http://h/v1", retry=Retry(), budget=1000).timeout_s == 220.0
    assert endpoint("http://h/v1", retry=Retry(timeout_s=5.0), budget=1000).timeout_s == 5.0


def test_the_package_offers_what_it_needs() -> None:
    assert sorted(package.__all__) == ["ChatClient", "Endpoint", "Failure", "Reply"]
