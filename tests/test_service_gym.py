"""The wirings of examples/nemo_gym, started by NeMo Gym itself, on demand.

``ADHERE_GYM=1`` installs nemo-gym 0.7.0 with what it depends on (1.1 GB, linked from uv's cache) in
a temporary environment, for which Python 3.13 must be there. All of Gym's servers share that one
environment, instead of one of this size for each. Policy and judge are the mock.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import pytest
from mock_endpoint import MockConfig, Reply, Rule, RunningMock, start_mock
from test_service_wiring import EXAMPLE, ROOT
from verifier import Json, ask, project

from adhere.jsonio import read_json, read_jsonl

GYM = "nemo-gym==0.7.0"
SERVERS = (
    "resources_servers/adhere",
    "responses_api_agents/simple_agent",
    "responses_api_models/vllm_model",
    "environment_servers/legacy_agent",
)
READY = "servers ready!"
READY_S = 300

pytestmark = pytest.mark.skipif(
    os.environ.get("ADHERE_GYM") != "1",
    reason="not on this machine: NeMo Gym itself (ADHERE_GYM=1 installs it, 1.1 GB, Python 3.13)",
)


@dataclass
class Gym:
    """An environment with nemo-gym, and a folder to run it in."""

    environment: Path
    folder: Path

    def command(self, *words: str) -> list[str]:
        """Return a command line of Gym for the example's folder, all servers in one environment."""
        search = ["--search-dir", str(ROOT / "examples" / "nemo_gym")]
        shared = ["++skip_venv_if_present=true", f"++uv_venv_dir={self.folder / 'environments'}"]
        gym = str(self.environment / "bin" / "gym")
        # Ctrl-C ends Gym; a process group in the background would hand on that it is ignored.
        return ["env", "--default-signal=INT", gym, *words, *search, *shared]

    def environ(self) -> dict[str, str]:
        """Return an environment without keys, whose home is the test's own."""
        kept = {k: v for k, v in os.environ.items() if not k.endswith(("_KEY", "_BASE_URL"))}
        path = f"{self.environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
        # Ray would join a cluster that somebody else has on this machine.
        return kept | {"HOME": str(self.folder), "PATH": path, "RAY_ADDRESS": "local"}


@dataclass
class Started:
    """``gym env start``, with what it and its servers print.

    ``settled`` is set once all servers are ready, or nothing more comes.
    """

    popen: "subprocess.Popen[str]"
    lines: list[str] = field(default_factory=list)
    settled: Event = field(default_factory=Event)

    def read(self) -> None:
        """Read what is printed, until the end."""
        assert self.popen.stdout is not None
        with self.popen.stdout as stream:
            for line in stream:
                self.lines.append(line)
                if READY in line:
                    self.settled.set()
        self.settled.set()

    def events(self) -> list[Json]:
        """Return the lines of the verifier's own log."""
        return [json.loads(line) for line in self.lines if line.startswith('{"time"')]


@pytest.fixture(scope="module")
def gym(tmp_path_factory: pytest.TempPathFactory) -> Gym:
    """Gym, with the environment in the place of those that it would make for its servers."""
    folder = tmp_path_factory.mktemp("gym")
    environment = folder / "env"
    uv = [sys.executable, "-m", "uv"]
    made = [*uv, "venv", "-q", "--no-python-downloads", "--python", "3.13", str(environment)]
    # Gym asks for 3.13.14; nothing that runs here needs more than 3.13.
    into = ["--python", str(environment), "--python-version", "3.13.14"]
    for command in (made, [*uv, "pip", "install", "-q", *into, GYM]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"not on this machine: {GYM}: {done.stderr.strip()[-300:]}")
    for server in SERVERS:
        place = folder / "environments" / server
        place.mkdir(parents=True)
        (place / ".venv").symlink_to(environment)
    return Gym(environment, folder)


@contextmanager
def started(gym: Gym, judge: RunningMock, config: str, *words: str) -> Iterator[Started]:
    """Start one of the wirings as the documentation says, and end it as Ctrl-C does."""
    own = project(gym.folder / "project", judge.judge_url)
    chosen = [f"++adhere_python={sys.executable}", f"++adhere_project={own}", "++adhere_judge=mock"]
    path = f"resources_servers/adhere/configs/{config}"
    command = gym.command("env", "start", "--config", path, *words, *chosen)
    env = gym.environ() | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command,
        cwd=gym.folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as popen:
        running = Started(popen)
        reader = Thread(target=running.read)
        reader.start()
        try:
            settled = running.settled.wait(READY_S)
            assert settled and any(READY in line for line in running.lines), running.lines[-30:]
            yield running
        finally:
            popen.send_signal(signal.SIGINT)
            reader.join()


def test_serve_only(gym: Gym, tmp_path: Path) -> None:
    row = read_jsonl(EXAMPLE)[0]
    message = {"type": "message", "content": [{"type": "output_text", "text": "{}"}]}
    with (
        start_mock(tmp_path, MockConfig(rules=[Rule(reply=Reply(content="YES"))])) as judge,
        started(gym, judge, "adhere_serve.yaml") as running,
    ):
        port = int(running.events()[0]["url"].rpartition(":")[2])
        status, content = ask(port, "/verify", row | {"response": {"output": [message]}})
        assert status == 200
        found = json.loads(content)
    assert found["isr_counted"] == 1
    assert running.events()[-1]["event"] == "ended"


def test_rollouts(gym: Gym, tmp_path: Path) -> None:
    output = tmp_path / "rollouts.jsonl"
    with start_mock(tmp_path, MockConfig()) as mock:
        policy = ["--model", "m", "--model-url", mock.base_url, "--model-api-key", "none"]
        policy += ["--model-type", "vllm_model"]
        with started(gym, mock, "adhere.yaml", *policy) as running:
            command = gym.command("eval", "run", "--no-serve", "--agent", "adhere_simple_agent")
            command += ["--input", str(EXAMPLE), "--output", str(output), "--num-repeats", "2"]
            done = subprocess.run(
                command, cwd=gym.folder, env=gym.environ(), capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        assert sum(entry.path.startswith("/v1/") for entry in mock.log()) == 10
    tasks, rollouts = read_jsonl(EXAMPLE), read_jsonl(output)
    assert len(rollouts) == 2 * len(tasks)
    for rollout in rollouts:
        constraints = tasks[rollout["_ng_task_index"]]["verifier_metadata"]["constraints"]
        decided = rollout["n_true"] + rollout["n_false"] + rollout["n_null"]
        assert decided == len(constraints)
        assert rollout["reward"] == rollout["isr_pass"]
    asked = [e["endpoint"] for e in running.events() if e["event"] == "answered"]
    assert asked.count("/seed_session") == asked.count("/verify") == 10
    (whole,) = read_json(output.with_name("rollouts_aggregate_metrics.json"))
    true, false = (sum(r[n] for r in rollouts) for n in ("n_true", "n_false"))
    assert whole["key_metrics"]["csr"] == pytest.approx(true / (true + false))
    assert "by_dimension/vanilla/accuracy" in whole["agent_metrics"]
