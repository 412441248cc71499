"""The mock endpoint does what tests rely on: every reply, every fault, every count."""

import ast
import asyncio
import hashlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import psutil
import pytest
from looping import looped
from mock_endpoint import (
    NO_STATUS,
    ErrorBody,
    MockConfig,
    MockEndpoint,
    Reply,
    Rule,
    count_tokens,
    start_mock,
)
from pydantic import ValidationError

TESTS = Path(__file__).parent
COMMAND = [sys.executable, "-m", "mock_endpoint"]


@dataclass
class Answer:
    """A reply as the client saw it."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = self.body["choices"][0]["message"]
        return message

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.body["error"]
        return error


@dataclass
class Client:
    """A client of one mock."""

    mock: MockEndpoint
    session: aiohttp.ClientSession

    async def raw(self, prompt: str = "Hi", *, url: str | None = None, **fields: Any) -> bytes:
        """Send a prompt, return the bytes of a reply that has status 200."""
        return (await self._post(prompt, url, fields))[2]

    async def ask(self, prompt: str = "Hi", *, url: str | None = None, **fields: Any) -> Answer:
        """Send a prompt, return the parsed reply."""
        status, headers, data = await self._post(prompt, url, fields)
        return Answer(status, orjson.loads(data), headers)

    async def _post(
        self, prompt: str, url: str | None, fields: dict[str, Any]
    ) -> tuple[int, dict[str, str], bytes]:
        messages = [{"role": "user", "content": prompt}]
        body = orjson.dumps({"model": "m", "messages": messages} | fields)
        address = f"{url or self.mock.base_url}/chat/completions"
        async with self.session.post(address, data=body) as response:
            return response.status, dict(response.headers), await response.read()

    async def get(self, path: str) -> Any:
        async with self.session.get(self.mock.root_url + path) as response:
            return orjson.loads(await response.read())


@asynccontextmanager
async def client(*rules: Rule, key: str | None = None, **config: Any) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        MockEndpoint(MockConfig(rules=list(rules), **config)) as mock,
        aiohttp.ClientSession(headers=headers) as session,
    ):
        yield Client(mock, session)


# Default replies


@looped
async def test_default_text_depends_on_messages_and_seed_only() -> None:
    async with client(reply_chars=200) as c:
        first = (await c.ask("A", seed=1)).message["content"]
        assert (await c.ask("A", seed=1, temperature=0.3)).message["content"] == first
        assert (await c.ask("A", seed=2)).message["content"] != first
        assert (await c.ask("B", seed=1)).message["content"] != first
        assert (await c.ask("A")).message["content"] != first
        assert len(first) == 200


@looped
async def test_default_text_is_sometimes_chinese() -> None:
    async with client(chinese_share=0.25) as c:
        texts = [(await c.ask("A", seed=n)).message["content"] for n in range(60)]
    assert 5 <= sum(not text.isascii() for text in texts) <= 30


@looped
async def test_usage_counts_prompt_and_completion() -> None:
    async with client() as c:
        answer = await c.ask("x" * 400)
    usage, written = answer.body["usage"], count_tokens(answer.message["content"])
    assert usage["prompt_tokens"] == 100
    assert usage["completion_tokens"] == written
    assert usage["total_tokens"] == 100 + written
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 0}
    assert usage["prompt_tokens_details"] == {"cached_tokens": 48}


@looped
async def test_parts_of_a_message_are_one_prompt() -> None:
    parts = [{"type": "text", "text": "needle"}, {"type": "text", "text": "more"}]
    async with client(Rule(match="needle\nmore", reply=Reply(content="found"))) as c:
        answer = await c.ask(messages=[{"role": "user", "content": parts}])
    assert answer.message["content"] == "found"


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
@looped
async def test_thinking_fills_the_reasoning_field(name: str) -> None:
    async with client(reasoning_field=name) as c:
        thinking = await c.ask(chat_template_kwargs={"enable_thinking": True})
        plain = await c.ask(chat_template_kwargs={"enable_thinking": False})
    details = thinking.body["usage"]["completion_tokens_details"]
    assert details["reasoning_tokens"] == count_tokens(thinking.message[name]) > 0
    assert thinking.message["content"]
    assert set(plain.message) == {"role", "content"}


@looped
async def test_output_limit_clips_the_text_and_then_the_thinking() -> None:
    async with client(reply_chars=400, chinese_share=0) as c:
        plain = await c.ask(max_tokens=10)
        cut = await c.ask(max_completion_tokens=10, chat_template_kwargs={"enable_thinking": True})
    assert len(plain.message["content"]) == 40
    assert plain.body["choices"][0]["finish_reason"] == "length"
    assert plain.body["usage"]["completion_tokens"] == 10
    assert cut.message["content"] is None
    assert len(cut.message["reasoning"]) == 40
    assert cut.body["choices"][0]["finish_reason"] == "length"


@looped
async def test_judges_answer_verdicts_by_path_or_by_model_name() -> None:
    async with client() as c:
        verdicts = [(await c.ask(f"{n}?", url=c.mock.judge_url)).message for n in range(40)]
        named = [(await c.ask(f"{n}?", model="My-Judge")).message for n in range(40)]
    assert {message["content"] for message in verdicts} == {"YES", "NO"}
    assert named == verdicts


@pytest.mark.parametrize("prompt", ["Give a list of a", "请输出列表", "Extract the names"])
@looped
async def test_judges_asked_for_a_list_answer_one(prompt: str) -> None:
    async with client() as c:
        text = (await c.ask(prompt, url=c.mock.judge_url)).message["content"]
    assert all(isinstance(item, str) for item in ast.literal_eval(text))


@looped
async def test_yes_share_sets_the_judges_mood() -> None:
    async with client(yes_share=1.0) as c:
        texts = [(await c.ask(f"{n}?", model="judge")).message["content"] for n in range(20)]
    assert set(texts) == {"YES"}


# Rules


@looped
async def test_first_matching_rule_wins() -> None:
    rules = (
        Rule(match="apple", reply=Reply(content="by prompt")),
        Rule(match="big-", reply=Reply(content="by model")),
        Rule(match="日", reply=Reply(content="三")),
    )
    async with client(*rules) as c:
        assert (await c.ask("an apple", model="big-1")).message["content"] == "by prompt"
        assert (await c.ask("a pear", model="big-1")).message["content"] == "by model"
        assert (await c.ask("今日")).message["content"] == "三"
        assert (await c.ask("a pear")).message["content"].startswith(("Answer", "回答"))


@looped
async def test_a_rule_can_be_for_judges_only() -> None:
    rules = (
        Rule(judge=True, reply=Reply(content="j")),
        Rule(judge=False, reply=Reply(content="p")),
    )
    async with client(*rules) as c:
        assert (await c.ask(url=c.mock.judge_url)).message["content"] == "j"
        assert (await c.ask()).message["content"] == "p"


@looped
async def test_a_reply_sets_every_part_of_the_completion() -> None:
    reply = Reply(
        content=None,
        reasoning="hm",
        reasoning_field="reasoning_content",
        finish_reason="length",
        usage={"prompt_tokens": 7},
        served_model="other",
        system_fingerprint="fp2",
    )
    async with client(Rule(match="set", reply=reply), Rule(reply=Reply(usage=None))) as c:
        answer, bare = await c.ask("set"), await c.ask("x")
    assert answer.message == {"role": "assistant", "content": None, "reasoning_content": "hm"}
    assert answer.body["choices"][0]["finish_reason"] == "length"
    assert answer.body["usage"] == {"prompt_tokens": 7}
    assert (answer.body["model"], answer.body["system_fingerprint"]) == ("other", "fp2")
    assert bare.body["usage"] is None
    assert (bare.body["model"], bare.body["system_fingerprint"]) == ("m", "fp_mock")


@looped
async def test_usage_follows_a_set_content() -> None:
    async with client(Rule(reply=Reply(content="x" * 40, reasoning="y" * 20))) as c:
        usage = (await c.ask()).body["usage"]
    assert usage["completion_tokens"] == 15
    assert usage["completion_tokens_details"]["reasoning_tokens"] == 5


@looped
async def test_content_filter() -> None:
    async with client(Rule(reply=Reply(filter=True))) as c:
        answer = await c.ask()
    assert answer.body["choices"][0]["finish_reason"] == "content_filter"
    assert answer.message["content"] == ""


@looped
async def test_error_status_with_its_body_and_retry_after() -> None:
    error = ErrorBody(type="t", code=17, param="p", message="text")
    rules = (
        Rule(match="set", reply=Reply(status=503, error=error, retry_after=2)),
        Rule(reply=Reply(status=429, retry_after="Wed, 21 Oct 2026 07:28:00 GMT")),
    )
    async with client(*rules) as c:
        answer, default = await c.ask("set"), await c.ask("x")
        stats = c.mock.stats()
    assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
    assert answer.error == {"type": "t", "code": 17, "param": "p", "message": "text"}
    assert (default.status, default.error["code"]) == (429, "rate_limit_exceeded")
    assert default.headers["Retry-After"] == "Wed, 21 Oct 2026 07:28:00 GMT"
    assert stats.statuses == {503: 1, 429: 1}
    assert stats.answered == 0


@looped
async def test_empty_choices_and_raw_bodies_are_no_answers() -> None:
    rules = (
        Rule(match="empty", reply=Reply(empty_choices=True)),
        Rule(match="html", reply=Reply(status=502, raw_body="<html>")),
        Rule(match="torn", reply=Reply(raw_body='{"choices": [')),
    )
    async with client(*rules) as c:
        assert (await c.ask("empty")).body["choices"] == []
        assert await c.raw("html") == b"<html>"
        assert await c.raw("torn") == b'{"choices": ['
        await c.raw("torn")
        stats = c.mock.stats()
    assert stats.statuses == {200: 3, 502: 1}
    assert (stats.answered, stats.resent_after_ok) == (0, 0)


@looped
async def test_cut_replies_end_before_their_declared_length() -> None:
    async with client(Rule(times=1, reply=Reply(cut=True))) as c:
        with pytest.raises(aiohttp.ClientPayloadError):
            await c.raw()
        assert (await c.ask()).status == 200
        stats = c.mock.stats()
    assert (stats.answered, stats.resent_after_ok, stats.statuses) == (1, 0, {200: 2})


@looped
async def test_reset_connections_get_no_status() -> None:
    async with client(Rule(times=1, reply=Reply(reset=True))) as c:
        with pytest.raises(aiohttp.ClientOSError, match="reset by peer"):
            await c.raw()
        assert (await c.ask()).status == 200
        stats, log = c.mock.stats(), c.mock.log()
    assert stats.statuses == {NO_STATUS: 1, 200: 1}
    assert [(entry.status, entry.answered) for entry in log] == [(NO_STATUS, False), (200, True)]


@looped
async def test_a_client_that_leaves_a_hanging_request_is_seen() -> None:
    async with client(Rule(reply=Reply(hang_s=3600))) as c:
        request = asyncio.create_task(c.raw())
        assert (await c.mock.until(in_flight=1)).finished == 0
        assert c.mock.log()[0].status is None
        request.cancel()
        stats = await c.mock.until(finished=1)
    assert (stats.in_flight, stats.statuses) == (0, {NO_STATUS: 1})


@looped
async def test_the_end_of_the_mock_cuts_hanging_requests_off() -> None:
    async with aiohttp.ClientSession() as session:
        async with MockEndpoint(MockConfig(rules=[Rule(reply=Reply(hang_s=3600))])) as mock:
            request = asyncio.create_task(Client(mock, session).raw())
            await mock.until(in_flight=1)
        with pytest.raises(aiohttp.ClientConnectionError):
            await request


@looped
async def test_hang_and_latency_are_waited() -> None:
    loop = asyncio.get_running_loop()
    async with client(Rule(reply=Reply(hang_s=0.02)), latency_s=0.02) as c:
        start = loop.time()
        await c.raw()
        assert loop.time() - start >= 0.039  # timers may fire one clock tick early


@looped
async def test_times_counts_matching_requests_and_then_the_next_rule_applies() -> None:
    rules = (
        Rule(match="a", times=2, reply=Reply(status=500)),
        Rule(match="a", times=1, reply=Reply(status=429)),
    )
    async with client(*rules) as c:
        assert (await c.ask("b")).status == 200
        assert [(await c.ask("a", seed=n)).status for n in range(4)] == [500, 500, 429, 200]
        c.mock.reset()
        assert (await c.ask("a")).status == 500


@looped
async def test_times_per_body_heals_each_body_by_itself() -> None:
    async with client(Rule(times_per_body=1, reply=Reply(status=500))) as c:
        statuses = [(await c.ask(prompt)).status for prompt in ("a", "b", "a", "b", "a")]
    assert statuses == [500, 500, 200, 200, 200]


@looped
async def test_probability_hits_the_same_bodies_every_time() -> None:
    rule = Rule(probability=0.3, reply=Reply(status=500))

    async def statuses(seed: int) -> list[int]:
        async with client(rule, seed=seed) as c:
            return [(await c.ask(f"{n}")).status for n in range(100)]

    first = await statuses(1)
    assert 15 <= first.count(500) <= 45
    assert await statuses(1) == first
    assert await statuses(2) != first


# Refusals


@looped
async def test_vllm_refuses_prompt_and_output_apart() -> None:
    async with client(context_tokens=100) as c:
        prompt, output = await c.ask("x" * 400), await c.ask("x" * 40, max_tokens=101)
        clamped = await c.ask("x" * 360, max_tokens=100)
        card = (await c.get("/v1/models"))["data"][0]
    assert (prompt.status, prompt.error["param"], prompt.error["code"]) == (
        400,
        "input_tokens",
        400,
    )
    assert (output.status, output.error["param"]) == (400, "max_tokens")
    assert prompt.error["type"] == output.error["type"] == "BadRequestError"
    assert clamped.body["usage"]["completion_tokens"] == 10
    assert clamped.body["choices"][0]["finish_reason"] == "length"
    assert card["max_model_len"] == 100


@looped
async def test_openai_refuses_the_sum() -> None:
    async with client(context_tokens=100, flavour="openai") as c:
        assert (await c.ask("x" * 360, max_tokens=10)).status == 200
        refused = await c.ask("x" * 360, max_tokens=11)
    assert (refused.status, refused.error["code"]) == (400, "context_length_exceeded")


@looped
async def test_llamacpp_refuses_the_prompt_with_its_numbers() -> None:
    async with client(context_tokens=100, flavour="llamacpp") as c:
        assert (await c.ask("x" * 360, max_tokens=1000)).status == 200
        refused = await c.ask("x" * 404)
    assert (refused.status, refused.error["type"]) == (400, "exceed_context_size_error")
    assert (refused.error["n_prompt_tokens"], refused.error["n_ctx"]) == (101, 100)


@pytest.mark.parametrize(("key", "status"), [("right", 200), ("wrong", 401), (None, 401)])
@looped
async def test_key_is_required_and_only_its_hash_is_kept(key: str | None, status: int) -> None:
    async with client(require_key="right", key=key) as c:
        answer, models = await c.ask(), await c.get("/v1/models")
        entry = c.mock.log()[0]
    assert answer.status == entry.status == status
    assert ("error" in models) == (status == 401)
    expected = hashlib.sha256(f"Bearer {key}".encode()).hexdigest() if key else None
    assert entry.authorization_sha256 == expected
    assert entry.has_authorization == (key is not None)
    assert key is None or key not in entry.model_dump_json()


@looped
async def test_unknown_models_are_refused_and_known_ones_listed() -> None:
    async with client(models=["a", "b"]) as c:
        refused, known = await c.ask(model="c"), await c.ask(model="b")
        listed = await c.get("/v1/models")
    assert (refused.status, refused.error["code"]) == (404, "model_not_found")
    assert known.status == 200
    assert [card["id"] for card in listed["data"]] == ["a", "b"]


@looped
async def test_refused_parameters_are_named() -> None:
    async with client(refused_parameters=["top_k"]) as c:
        refused = await c.ask(top_k=5)
        assert (await c.ask(top_p=0.5)).status == 200
    assert (refused.status, refused.error["code"]) == (400, "unsupported_parameter")
    assert refused.error["param"] == "top_k"


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"model": "m"}', b'{"messages": []}'])
@looped
async def test_malformed_requests_are_refused(body: bytes) -> None:
    async with client() as c:
        url = f"{c.mock.base_url}/chat/completions"
        async with c.session.post(url, data=body) as response:
            assert response.status == 400
        assert c.mock.log()[0].status == 400


@looped
async def test_streams_and_unknown_paths_are_refused() -> None:
    async with client() as c:
        assert (await c.ask(stream=True)).error["param"] == "stream"
        assert (await c.ask(url=c.mock.root_url)).status == 404


# Counts, log, control


@looped
async def test_stats_count_what_was_sent_again_after_an_answer() -> None:
    async with client(Rule(match="b", times=1, reply=Reply(status=500))) as c:
        for prompt, model in (("a", "m"), ("a", "m"), ("b", "m"), ("b", "n"), ("b", "n")):
            await c.ask(prompt, model=model)
        stats = c.mock.stats()
        assert await c.get("/stats") == orjson.loads(stats.model_dump_json())
    assert (stats.requests, stats.finished, stats.answered) == (5, 5, 4)
    assert (stats.distinct_bodies, stats.resent_after_ok) == (3, 2)
    assert stats.models == {"m": 3, "n": 2}
    assert stats.statuses == {200: 4, 500: 1}


@looped
async def test_max_in_flight_is_kept() -> None:
    async with client(Rule(reply=Reply(hang_s=3600))) as c:
        requests = [asyncio.create_task(c.raw()) for _ in range(5)]
        await c.mock.until(in_flight=5)
        for request in requests:
            request.cancel()
        await c.mock.until(finished=5)
        c.mock.configure(rules=[])
        await c.raw()
        stats = c.mock.stats()
    assert (stats.max_in_flight, stats.in_flight) == (5, 0)


@looped
async def test_log_returns_bodies_as_sent() -> None:
    async with client() as c:
        sent = {"seed": 3, "temperature": 0.7, "chat_template_kwargs": {"enable_thinking": False}}
        await c.ask("你好", url=c.mock.judge_url, **sent)
        entry = c.mock.log()[0]
        assert (await c.get("/log"))[0] == orjson.loads(entry.model_dump_json())
    messages = [{"role": "user", "content": "你好"}]
    assert entry.body == {"model": "m", "messages": messages, **sent}
    assert (entry.path, entry.model) == ("/judge/v1/chat/completions", "m")
    assert (entry.status, entry.answered) == (200, True)


@pytest.mark.parametrize("bound", [{"log_entries": 2}, {"log_bytes": 150}])
@looped
async def test_log_is_bounded_by_entries_and_bytes(bound: dict[str, Any]) -> None:
    async with client(**bound) as c:
        for number in range(5):
            await c.raw(seed=number)
        seeds = [entry.body["seed"] for entry in c.mock.log()]
        assert c.mock.stats().requests == 5
    assert seeds == [3, 4]


@looped
async def test_configure_changes_only_what_it_names() -> None:
    async with client(Rule(times=1, reply=Reply(content=None)), reply_chars=50) as c:
        assert (await c.ask()).message["content"] is None
        c.mock.configure(models=["m"])
        assert len((await c.ask()).message["content"]) == 50
        c.mock.configure(rules=[Rule(reply=Reply(status=500))])
        assert (await c.ask()).status == 500
        assert c.mock.config.models == ["m"]
        with pytest.raises(ValidationError, match="latency"):
            c.mock.configure(latency=1)
        with pytest.raises(ValueError, match="no such count: \\['statuses'\\]"):
            await c.mock.until(statuses=1)


@looped
async def test_reset_forgets_requests_still_in_flight() -> None:
    async with client(Rule(match="slow", reply=Reply(hang_s=3600))) as c:
        slow = asyncio.create_task(c.raw("slow"))
        await c.mock.until(in_flight=1)
        waiting = asyncio.create_task(c.mock.until(answered=1))
        await asyncio.sleep(0)  # lets the waiter register
        c.mock.reset()
        slow.cancel()
        await c.raw("fast")
        stats = await waiting
    assert (stats.requests, stats.finished, stats.statuses) == (1, 1, {200: 1})


@looped
async def test_config_over_http_is_validated() -> None:
    async with client() as c:
        url = f"{c.mock.root_url}/config"
        async with c.session.post(url, data=b'{"reply_chars": 10}') as response:
            assert response.status == 200
        assert (await c.get("/config"))["reply_chars"] == 10
        for bad in (b'{"reply_chars": 0}', b'{"no": 1}', b"[]", b"{"):
            async with c.session.post(url, data=bad) as response:
                assert response.status == 400
        assert (await c.get("/config"))["reply_chars"] == 10


# As a process


def test_process_answers_and_is_controlled(tmp_path: Path) -> None:
    config = MockConfig(require_key="secret", rules=[Rule(reply=Reply(content=None))])
    with start_mock(tmp_path, config) as mock:

        async def ask(key: str) -> int:
            headers = {"Authorization": f"Bearer {key}"}
            body = b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}'
            url = f"{mock.judge_url}/chat/completions"
            async with (
                aiohttp.ClientSession(headers=headers) as session,
                session.post(url, data=body) as response,
            ):
                assert ('"content":null' in await response.text()) == (response.status == 200)
                return response.status

        assert asyncio.run(ask("secret")) == 200
        assert mock.until(answered=1).statuses == {200: 1}
        mock.configure(require_key="other", rules=[])
        assert asyncio.run(ask("secret")) == 401
        assert [entry.status for entry in mock.log()] == [200, 401]
        with pytest.raises(TimeoutError):
            mock.until(timeout_s=0.05, answered=2)
        with pytest.raises(ValueError, match="no such count"):
            mock.until(nothing=1)
        mock.reset()
        assert mock.stats().requests == 0
    assert mock.process.returncode == 0
    assert b"secret" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_process_that_cannot_start_says_why(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="the mock did not start"):
        start_mock(tmp_path)


def test_command_writes_its_port_and_stops_by_itself(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    command = [*COMMAND, "--port-file", str(port_file), "--max-seconds", "0.2"]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"http://127.0.0.1:{port_file.read_text().strip()}/v1\n"


def test_command_refuses_a_wrong_config(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"rule": []}')
    command = [*COMMAND, "--config", str(path)]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert str(path) in done.stderr
    assert "rule" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG and pidfd are Linux's")
def test_process_dies_with_its_parent(tmp_path: Path) -> None:
    parent_code = (
        "import sys, pathlib, mock_endpoint\n"
        "mock = mock_endpoint.start_mock(pathlib.Path(sys.argv[1]))\n"
        "print(mock.process.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", parent_code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(TESTS)},
    )
    assert parent.stdout is not None
    handle = os.pidfd_open(int(parent.stdout.readline()))
    try:
        assert select.select([handle], [], [], 0)[0] == []
        parent.send_signal(signal.SIGKILL)
        parent.communicate(timeout=30)
        assert select.select([handle], [], [], 30)[0] == [handle]
    finally:
        os.close(handle)


def test_one_core_serves_1500_requests_a_second(tmp_path: Path) -> None:
    count, connections = 1200, 16
    prompt = "字word" * 600

    async def load(root_url: str) -> None:
        url = f"{root_url}/v1/chat/completions"
        async with aiohttp.ClientSession() as session:

            async def send(first: int) -> None:
                for number in range(first, count, connections):
                    message = {"role": "user", "content": f"{number} {prompt}"}
                    body = orjson.dumps({"model": "m", "messages": [message]})
                    async with session.post(url, data=body) as response:
                        assert response.status == 200
                        await response.read()

            await asyncio.gather(*(send(first) for first in range(connections)))

    with start_mock(tmp_path) as mock:
        process = psutil.Process(mock.process.pid)
        before = process.cpu_times()
        asyncio.run(load(mock.root_url))
        after = process.cpu_times()
        assert mock.stats().answered == count
    # CPU time, since other work on the machine must not decide.
    cpu_s = after.user + after.system - before.user - before.system
    assert count / cpu_s >= 1500
