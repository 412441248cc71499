"""The verifier's service among strangers: limits, tokens, hostile bodies, and a decent end."""

import asyncio
import http.client
import json
import os
import random
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from mock_endpoint import MockConfig, MockEndpoint, Reply, Rule, RunningMock, start_mock
from verifier import Json, Running, ask, code, llm, project, rollout, serving, started

from adhere import cli
from adhere.data import Row
from adhere.errors import ConfigError
from adhere.jobs import serve_verifier
from adhere.service.logs import JsonLines
from adhere.service.settings import Limits, Settings, listen

TOKEN = "canary-token-0123456789"
KEY = "sk-canary-0123456789"
TEXT = "canary response, which is nobody's business"
FOREVER = code("[0 for _ in iter(int, 1)]")
SHORT = code("len(response) < 30")
MIB = 2**20


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMock]:
    """A judge that says yes, at its leisure where it is asked slowly."""
    rules = [Rule(match="slowly", reply=Reply(hang_s=600)), Rule(reply=Reply(content="YES"))]
    config = MockConfig(rules=rules, require_key=None)
    with start_mock(tmp_path_factory.mktemp("mock"), config) as running:
        yield running


async def until(condition: Callable[[], object]) -> None:
    """Wait until something holds; the machine may be slow."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def test_others_need_a_token() -> None:
    with pytest.raises(ConfigError, match=r"--host 0\.0\.0\.0: others can reach .* --token-env"):
        listen(Settings(host="0.0.0.0"))
    with pytest.raises(ConfigError, match=r"--host ::: others can reach"):
        listen(Settings(host="::"))
    with pytest.raises(ConfigError, match="fewer than 16 characters"):
        listen(Settings(token="short"))
    with listen(Settings(host="localhost")), listen(Settings(host="0.0.0.0", token=TOKEN)):
        pass
    with pytest.raises(ConfigError, match="no such address"):
        listen(Settings(host="no.such.host.invalid"))
    with pytest.raises(ConfigError, match="--port: found 99999: must be from 0"):
        listen(Settings(port=99999))
    with listen(Settings()) as taken, pytest.raises(ConfigError, match="cannot listen there"):
        listen(Settings(port=taken.getsockname()[1]))
    assert TOKEN not in repr(Settings(token=TOKEN))


def test_the_token_is_asked_for(mock: RunningMock) -> None:
    async def main() -> None:
        async with serving(mock.judge_url, Settings(token=TOKEN)) as service:
            body = rollout("Short.", SHORT)
            for wrong in ("", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer", "Bearer ä"):
                for path in ("/verify", "/v1/verify", "/nowhere"):
                    status, found = await service.post(path, body, Authorization=wrong)
                    assert (status, found["error"]["kind"]) == (401, "unauthorized")
                for path in ("/metrics", "/openapi.json", "/v1/about", "/reverify_mode"):
                    assert (await service.get(path, Authorization=wrong))[0] == 401
                assert (await service.get("/healthz", Authorization=wrong))[0] == 200
            right = {"Authorization": f"Bearer {TOKEN}"}
            assert (await service.post("/verify", body, **right))[0] == 200
            assert (await service.get("/metrics", **right))[0] == 200

    asyncio.run(main())


def test_a_name_that_was_made_to_lead_here(mock: RunningMock) -> None:
    async def main() -> None:
        async with serving(mock.judge_url) as service:
            port = service.url.rpartition(":")[2]
            body = rollout("x", SHORT)
            for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "[::2]"):
                status, found = await service.post("/verify", body, Host=host)
                assert (status, found["error"]["kind"]) == (403, "other_host")
            for host in ("localhost", f"localhost:{port}", f"[::1]:{port}", "::1", "127.0.0.2"):
                assert (await service.post("/verify", body, Host=host))[0] == 200, host
        async with serving(mock.judge_url, Settings(token=TOKEN)) as service:
            headers = {"Host": "gateway.example", "Authorization": f"Bearer {TOKEN}"}
            assert (await service.post("/verify", body, **headers))[0] == 200

    asyncio.run(main())


def test_without_a_judge_only_questions_are_left_out(tmp_path: Path) -> None:
    folder = project(tmp_path, "http://127.0.0.1:9/v1")
    service = started(folder, "--judge", "rules-only", "--mask-judge-failures")
    content = ask(service.port, "/verify", rollout("x", SHORT, llm("Good?")))[1]
    found = json.loads(content)
    assert (found["n_true"], found["n_error"], found["mask_sample"]) == (1, 1, True)
    assert found["failure_reason"] == "constraint 2: not_asked"
    service.popen.terminate()
    service.end()
    assert service.popen.returncode == 0


def test_what_is_too_much_is_refused_while_it_is_read(mock: RunningMock) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65536

    async def main() -> None:
        limits = Limits(body_bytes=MIB, held_bytes=2 * MIB, body_s=1)
        async with serving(mock.judge_url, Settings(limits=limits)) as service:
            before = psutil.Process().memory_info().rss
            for body in (b" " * (100 * MIB), endless()):
                with suppress(aiohttp.ClientConnectionError):
                    assert await service.raw("/verify", body) == (413, "too_large")
            assert psutil.Process().memory_info().rss - before < 150 * MIB
            assert (await service.post("/verify", rollout("x", SHORT)))[0] == 200
            assert service.engine.gate.held == service.engine.gate.open == 0

            never = asyncio.Event()

            async def slow() -> AsyncIterator[bytes]:
                yield b"{"
                await never.wait()

            assert await service.raw("/verify", slow()) == (408, "slow_body")

    asyncio.run(main())


def test_a_long_body_gets_its_refusal_by_its_length_alone(mock: RunningMock) -> None:
    async def main() -> None:
        async with serving(mock.judge_url) as service:
            host, port = "127.0.0.1", int(service.url.rpartition(":")[2])
            reader, writer = await asyncio.open_connection(host, port)
            head = b"POST /verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            writer.write(head + b"Expect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n")
            status = await reader.readline()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            assert status.startswith(b"HTTP/1.1 413")

    asyncio.run(main())


NESTED = 100_000
BAD = {
    "empty": (b"", 422),
    "no JSON": (b"{", 400),
    "bad UTF-8": (b'{"response": "\xff\xfe"}', 400),
    "NaN": (b'{"response": NaN}', 400),
    "infinity": (b'{"x": 1e999, "y": "\\ud800"}', 400),
    "deep list": (b"[" * NESTED + b"]" * NESTED, 400),
    "deep object": (b'{"a":' * NESTED + b"1" + b"}" * NESTED, 400),
    "deep with a surrogate": (b'{"a\\ud800":' * NESTED + b"1" + b"}" * NESTED, 400),
    "too deep to be written": (b'{"response":' + b"[" * 600 + b"]" * 600 + b"}", 400),
    "a number of many digits": (b'{"response": ' + b"9" * 5000 + b"}", 400),
    "a list": (b"[]", 422),
    "null": (b"null", 422),
    "a text": (b'"x"', 422),
    "UTF-16": ('{"response": "x"}'.encode("utf-16"), 400),
}


@pytest.mark.parametrize("path", ["/verify", "/v1/verify", "/v1/verify/batch"])
def test_hostile_bodies_are_refused(mock: RunningMock, path: str) -> None:
    async def main() -> None:
        async with serving(mock.judge_url) as service:
            for name, (body, status) in BAD.items():
                assert (await service.raw(path, body))[0] == status, name
            for kind in ("text/plain", "application/x-www-form-urlencoded", "text/json", "json"):
                body = json.dumps(rollout("x", SHORT)).encode()
                assert await service.raw(path, body, kind) == (415, "content_type")

    asyncio.run(main())


def test_a_wrong_content_type_is_named(mock: RunningMock) -> None:
    async def main() -> None:
        async with serving(mock.judge_url) as service:
            body = json.dumps(rollout("x", SHORT))
            url = f"{service.url}/verify"
            async with service.session.post(url, data=body) as answer:
                told = (await answer.json())["error"]["message"]
            assert told == (
                "the body is sent as text/plain: send it with `Content-Type: application/json`"
            )
            for kind in ("application/json; charset=utf-8", "application/vnd.mine+json"):
                headers = {"Content-Type": kind}
                async with service.session.post(url, data=body, headers=headers) as answer:
                    assert answer.status == 200, kind

    asyncio.run(main())


WRONG: list[Json] = [
    {"constraints": None},
    {"constraints": []},
    {"constraints": 3},
    {"constraints": [3]},
    {"constraints": [None]},
    {"constraints": [{}]},
    {"constraints": [{"evaluation": []}]},
    {"constraints": [{"evaluation": [{"type": "shell", "exec": "rm"}]}]},
    {"constraints": [{"evaluation": [{"type": "code", "exec": 5}]}]},
    {"constraints": [{"evaluation": [{"type": "rule", "exec": {"rule": "nope"}}]}]},
    {"constraints": [{"evaluation": [{"type": "rule", "exec": {"rule": ["json"]}}]}]},
    {"constraints": [{"rule": "json", "ask": "both"}]},
    {"constraints": [{"rule": "json", "surprise": 1}]},
    {"constraints": {"no_such_rule": True}},
    {"constraints": [SHORT] * 1001},
    {"constraints": [llm("{response}" * 101)]},
    {"constraints": [llm("{response}" * 90)], "response": "x" * MIB},
    {"constraints": [SHORT], "messages": [{"role": "user", "content": "x"}], "response": None},
    {"constraints": [SHORT], "messages": [{}], "response": None},
    {"constraints": [SHORT], "trajectory": 3},
    {"constraints": [SHORT], "trajectory": {"steps": 3}, "response": None},
    {"constraints": [SHORT], "trajectory": [[]], "response": None},
    {"constraints": [SHORT], "trajectory": "no format", "response": None},
]


def test_what_is_wrong_is_named(mock: RunningMock) -> None:
    async def main() -> None:
        async with serving(mock.judge_url) as service:
            for wrong in WRONG:
                item = {k: v for k, v in ({"response": "x"} | wrong).items() if v is not None}
                status, found = await service.post("/v1/verify", item)
                assert (status, found["error"]["kind"]) == (422, "invalid"), str(item)[:200]
                assert len(found["error"]["message"]) < 2000

    asyncio.run(main())


STRANGE: list[Json] = [
    {"response": {"output": 5}},
    {"response": {"output": [5, None, {"type": "message"}, {"type": "message", "content": [[]]}]}},
    {"response": {"incomplete_details": 5}},
    {"responses_create_params": {"input": 5}},
    {"responses_create_params": {"input": [5, {"content": {"text": 3}}, {"role": 5}]}},
    {"verifier_metadata": None},
    {"verifier_metadata": {"constraints": None, "query_id": "x", "turn_id": True}},
    {"extra": {"deep": [[]]}},
]


def test_gyms_server_takes_what_is_strange(mock: RunningMock) -> None:
    async def main() -> None:
        async with serving(mock.judge_url) as service:
            for strange in STRANGE:
                status, found = await service.post("/verify", rollout("x", SHORT) | strange)
                assert status == 200, (strange, found)
            metas: tuple[Any, ...] = (
                [],
                {"constraints": [{"evaluation": 3}]},
                {"constraints": [SHORT | {"dimension": 5}]},
            )
            for meta in metas:
                body = rollout("x") | {"verifier_metadata": meta}
                assert (await service.post("/verify", body))[0] == 422

    asyncio.run(main())


def test_a_full_queue_says_when_to_come_again(mock: RunningMock) -> None:
    async def main() -> None:
        limits = Limits(running=1, waiting=1)
        async with serving(mock.judge_url, Settings(limits=limits)) as service:
            slow = rollout("x", llm("slowly"))
            tasks = [asyncio.create_task(service.post("/verify", slow)) for _ in range(2)]
            await until(lambda: service.engine.gate.open == 2)
            async with service.session.post(f"{service.url}/verify", json=slow) as answer:
                assert answer.status == 429
                assert 1 <= int(answer.headers["Retry-After"]) <= 60
                assert (await answer.json())["error"]["kind"] == "busy"
            assert (await service.get("/healthz"))[0] == 200
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # Their clients are gone, so there is room again.
            await until(lambda: service.engine.gate.open == 0)
            assert (await service.post("/verify", rollout("x", SHORT)))[0] == 200

    asyncio.run(main())


def test_bodies_share_a_memory(mock: RunningMock) -> None:
    async def main() -> None:
        limits = Limits(held_bytes=MIB)
        async with serving(mock.judge_url, Settings(limits=limits)) as service:
            long = "x" * (MIB * 2 // 3)
            first = asyncio.create_task(service.post("/verify", rollout(long, llm("slowly"))))
            await until(lambda: service.engine.gate.running == 1)
            status, found = await service.post("/verify", rollout(long, SHORT))
            assert (status, found["error"]["kind"]) == (429, "busy")
            assert (await service.post("/verify", rollout("x", SHORT)))[0] == 200
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)

    asyncio.run(main())


def test_the_deadline_ends_what_is_under_way() -> None:
    rules = [Rule(reply=Reply(hang_s=600))]

    async def main() -> None:
        async with MockEndpoint(MockConfig(rules=rules)) as judge:
            limits = Limits(deadline_s=1)
            async with serving(judge.judge_url, Settings(limits=limits)) as service:
                for body in (rollout("x", FOREVER), rollout("x", llm("Good?"))):
                    status, found = await service.post("/verify", body)
                    assert (status, found["error"]["kind"]) == (504, "deadline")
                await until(lambda: judge.stats().in_flight == 0)
                server = psutil.Process(service.engine.pool.server_pids[0])
                await until(lambda: not server.children())
                assert (await service.post("/verify", rollout("x", SHORT)))[1]["n_true"] == 1

    asyncio.run(main())


def test_a_client_that_goes_away_ends_its_work() -> None:
    rules = [Rule(reply=Reply(hang_s=600))]

    async def main() -> None:
        async with (
            MockEndpoint(MockConfig(rules=rules)) as judge,
            serving(judge.judge_url) as service,
        ):
            items = {"items": [{"response": "x", "constraints": [llm("Good?")]}] * 3}
            for path, body in (
                ("/verify", rollout("x", llm("Good?"))),
                ("/v1/verify/batch", items),
            ):
                task = asyncio.create_task(service.post(path, body))
                await until(lambda: judge.stats().in_flight > 0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await until(lambda: judge.stats().in_flight == 0)
                await until(lambda: service.engine.gate.open == 0)

    asyncio.run(main())


def test_all_requests_share_the_judges_limit() -> None:
    async def main() -> None:
        async with (
            MockEndpoint(MockConfig(latency_s=0.02)) as judge,
            serving(judge.judge_url, concurrency=3) as service,
        ):
            body = rollout("x", *[llm(f"Good {n}?") for n in range(6)])
            await asyncio.gather(*(service.post("/verify", body) for _ in range(6)))
            assert judge.stats().requests == 36
            assert judge.stats().max_in_flight == 3

    asyncio.run(main())


def test_figures_for_prometheus(mock: RunningMock) -> None:
    async def main() -> None:
        async with serving(mock.judge_url) as service:
            await service.post("/verify", rollout("x", SHORT, llm("Good?"), code("1 / 0")))
            await service.post("/verify", {})
            await service.post("/no/such/path/canary", {})
            figures = (await service.get("/metrics"))[1].splitlines()
            for line in (
                'adhere_requests_total{endpoint="/verify",status="200"} 1.0',
                'adhere_requests_total{endpoint="/verify",status="422"} 1.0',
                'adhere_requests_total{endpoint="other",status="404"} 1.0',
                'adhere_verdicts_total{reason="",verdict="followed"} 2.0',
                'adhere_verdicts_total{reason="checker_error",verdict="unscored"} 1.0',
                'adhere_judge_calls_total{outcome="answered"} 1.0',
                "adhere_running 0.0",
            ):
                assert line in figures
            assert not any("canary" in line for line in figures)

    asyncio.run(main())


def test_the_log_tells_no_secret_and_no_text(tmp_path: Path) -> None:
    with start_mock(tmp_path, MockConfig(require_key=KEY)) as judge:
        folder = project(tmp_path / "p", judge.judge_url, api_key_env="MOCK_KEY")
        service = started(folder, "--token-env", "TOKEN", TOKEN=TOKEN, MOCK_KEY=KEY)
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        body = rollout(TEXT, SHORT, llm("Good?"), code("1 / 0"), query_id=12)
        status, content = ask(service.port, "/verify", body, **bearer, **{"X-Request-Id": "r-1"})
        assert status == 200
        assert KEY.encode() not in content and TOKEN.encode() not in content
        assert ask(service.port, f"/verify?{TEXT.split()[0]}", body)[0] == 401
        assert ask(service.port, f"/{TEXT.split()[0]}", body, **bearer)[0] == 404
        assert KEY.encode() not in ask(service.port, "/metrics", **bearer)[1]
        for process in psutil.Process(service.popen.pid).children(recursive=True):
            assert TOKEN not in "".join(process.environ().values())
        service.popen.send_signal(signal.SIGTERM)
        lines = service.end()
        assert service.popen.returncode == 0
        told = next(line for line in lines if line.get("request") == "r-1")
        assert told | {"ms": 0, "time": ""} == {
            "time": "",
            "level": "info",
            "event": "answered",
            "request": "r-1",
            "method": "POST",
            "endpoint": "/verify",
            "status": 200,
            "ms": 0,
            "bytes": len(json.dumps(body)),
            "items": 1,
            "followed": 1,
            "violated": 1,
            "unscored": 1,
        }
        everything = json.dumps(lines)
        assert not any(secret in everything for secret in ("canary", KEY, TOKEN))


def test_on_the_way_out_nothing_more_is_taken(mock: RunningMock) -> None:
    async def main() -> None:
        async with serving(mock.judge_url) as service:
            slow = asyncio.create_task(service.post("/verify", rollout("x", llm("slowly"))))
            await until(lambda: service.engine.gate.running == 1)
            gate = service.engine.gate
            gate.draining = True
            assert (await service.get("/readyz"))[0] == 503
            assert (await service.get("/healthz"))[0] == 200
            status, found = await service.post("/verify", rollout("x", SHORT))
            assert (status, found["error"]["kind"]) == (503, "draining")
            gate.draining = False
            service.server.stop()
            assert gate.draining
            slow.cancel()
            await asyncio.gather(slow, return_exceptions=True)

    asyncio.run(main())


def test_a_fault_of_the_server_is_named_and_tells_no_text(
    mock: RunningMock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_row: Row) -> Row:
        raise ValueError(TEXT)

    async def main() -> None:
        async with serving(mock.judge_url) as service:
            with monkeypatch.context() as patch:
                patch.setattr(service.engine, "verdicts", fails)
                status, found = await service.post("/verify", rollout("x", SHORT))
            assert (status, found["error"]["kind"]) == (500, "internal")
            assert TEXT not in str(found)
            assert (await service.post("/verify", rollout("x", SHORT)))[0] == 200

    asyncio.run(main())
    lines = [JsonLines().format(record) for record in caplog.records if record.exc_info]
    assert lines and all('"exception":"ValueError"' in line for line in lines)
    assert not any(TEXT in line for line in lines)


def test_the_end_finishes_what_was_accepted(tmp_path: Path) -> None:
    with start_mock(tmp_path, MockConfig(latency_s=2)) as judge:
        service = started(project(tmp_path / "p", judge.judge_url), "--concurrency", "1")
        connections = []
        for _ in range(2):
            connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
            body = json.dumps(rollout("x", llm("Good?")))
            connection.request("POST", "/verify", body, {"Content-Type": "application/json"})
            connections.append(connection)
        judge.until(requests=1)
        service.popen.send_signal(signal.SIGTERM)
        statuses = [connection.getresponse().status for connection in connections]
        with pytest.raises(ConnectionRefusedError):
            ask(service.port, "/healthz")
        for connection in connections:
            connection.close()
        lines = service.end()
        assert service.popen.returncode == 0
        assert statuses == [200, 200]
        assert [line["event"] for line in lines] == ["draining", "answered", "answered", "ended"]


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with start_mock(tmp_path, MockConfig(latency_s=300)) as judge:
        service = started(project(tmp_path / "p", judge.judge_url))
        checkers = psutil.Process(service.popen.pid).children(recursive=True)
        assert checkers
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        body = json.dumps(rollout("x", llm("Good?"), FOREVER))
        connection.request("POST", "/verify", body, {"Content-Type": "application/json"})
        judge.until(requests=1)
        service.popen.send_signal(signal.SIGTERM)
        assert service.popen.stderr is not None
        assert json.loads(service.popen.stderr.readline())["event"] == "draining"
        service.popen.send_signal(signal.SIGINT)
        lines = service.end()
        connection.close()
        assert lines[-1]["event"] == "ended" and lines[-1]["at_once"]
        assert service.popen.returncode == 0
        _, alive = psutil.wait_procs(checkers, timeout=30)
        assert not alive


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--host", "0.0.0.0"), "others can reach this address"),
        (("--token-env", "NO_SUCH"), "--token-env NO_SUCH: the variable is not set"),
        (("--judge", "mcok"), r"--judge mcok: there is no judge_configs/mcok\.yaml"),
        (("--port", "-1"), ""),
        (("--help",), ""),
    ],
)
def test_it_does_not_start_with_what_is_wrong(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(project(tmp_path, "http://127.0.0.1:9/v1"))
    monkeypatch.setattr("sys.argv", ["serve_verifier.py", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.by_hand(serve_verifier.main)
    assert ended.value.code == (
        0 if arguments == ("--help",) else 2 if "--port" in arguments else 1
    )
    assert message.replace("\\", "") in capsys.readouterr().err


def test_a_soak_leaves_nothing_behind(mock: RunningMock) -> None:
    me = psutil.Process()

    async def round_of(service: Running, size: int) -> None:
        rng = random.Random(0)
        bodies: list[tuple[str, Any]] = [
            ("/verify", rollout("x" * 20_000, SHORT, *[llm(f"Good {n}?") for n in range(11)])),
            ("/v1/verify/batch", {"items": [{"response": "x", "constraints": [SHORT]}] * 5}),
            ("/v1/verify", {"response": 3}),
        ]
        async with asyncio.TaskGroup() as group:
            for _ in range(size):
                path, body = rng.choice(bodies)
                group.create_task(
                    drop(service, path, body) if rng.random() < 0.2 else read(service, path, body)
                )

    async def read(service: Running, path: str, body: Any) -> None:
        async with service.session.post(service.url + path, json=body) as answer:
            await answer.read()

    async def drop(service: Running, path: str, body: Any) -> None:
        """Leave in the middle."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await read(service, path, body)

    async def main() -> None:
        async with serving(mock.judge_url) as service:
            for _ in range(3):
                await round_of(service, 40)
            gate = service.engine.gate
            await until(lambda: gate.open == 0)
            files, memory = me.num_fds(), me.memory_info().rss
            for _ in range(6):
                await round_of(service, 40)
            await until(lambda: gate.open == 0)
            assert (gate.running, gate.held) == (0, 0)
            assert len(asyncio.all_tasks()) < 20
            # Connections are kept for a while, by the client at most as many as it had at once.
            assert me.num_fds() <= files + 2 * 40
            assert me.memory_info().rss - memory < 30 * MIB

    asyncio.run(main())
    assert os.getpid() == me.pid
