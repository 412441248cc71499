"""What is shipped around the verifier's service: NeMo Gym's wiring, and the example client."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from mock_endpoint import MockConfig, Reply, Rule, start_mock
from verifier import ask, code, project, started

from adhere.gym_data import from_gym
from adhere.jobs import serve_verifier
from adhere.jsonio import read_json, read_jsonl, write_json

ROOT = Path(__file__).resolve().parents[1]
AGENTIF = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared")) / "data" / "agentif"
WIRING = ROOT / "examples" / "nemo_gym" / "resources_servers" / "adhere"
EXAMPLE = WIRING / "data" / "example.jsonl"
CLIENT = ROOT / "examples" / "verifier_client.py"


def server(name: str) -> dict[str, Any]:
    """Return the server's part of one of Gym's configurations."""
    content = yaml.safe_load((WIRING / "configs" / name).read_text(encoding="utf-8"))
    found: dict[str, Any] = content["adhere"]["resources_servers"]["adhere"]
    return found


def test_the_example_is_our_smoke_dataset() -> None:
    smoke = read_json(ROOT / "data" / "smoke" / "eval.json")
    assert [from_gym(row) for row in read_jsonl(EXAMPLE)] == smoke


@pytest.mark.parametrize("name", ["adhere.yaml", "adhere_serve.yaml"])
def test_a_configuration_names_what_there_is(name: str) -> None:
    content = yaml.safe_load((WIRING / "configs" / name).read_text(encoding="utf-8"))
    assert (WIRING / server(name)["entrypoint"]).is_file()
    assert (ROOT / "judge_configs" / f"{content['adhere_judge']}.yaml").is_file()
    if name == "adhere.yaml":
        agent = content["adhere_simple_agent"]["responses_api_agents"]["simple_agent"]
        assert agent["resources_server"]["name"] in content
        assert (WIRING.parents[1] / agent["datasets"][0]["jsonl_fpath"]) == EXAMPLE
        fronted = content["adhere_environment_server"]["environment_servers"]["legacy_agent"]
        assert fronted["agent_server"]["name"] in content
    else:
        assert "adhere_simple_agent" not in content


def entry_point() -> ModuleType:
    """Load the file that Gym starts."""
    spec = importlib.util.spec_from_file_location("gym_app", WIRING / "app.py")
    assert spec is not None and spec.loader is not None
    app = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(app)
    return app


def test_its_options_are_the_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    app = entry_point()
    config = server("adhere.yaml") | {"host": "127.0.0.1", "port": 8412, "queue": 3}
    monkeypatch.setattr("sys.argv", ["serve_verifier.py", *app.arguments(config)])
    args = serve_verifier._arguments()
    assert (args.host, args.port, args.queue) == ("127.0.0.1", 8412, 3)
    assert (args.reward, args.mask_judge_failures) == ("isr", True)
    assert app.ROOT == ROOT
    numbers = set(app.OPTIONS) - {"host", "judge", "reward", "policy"}
    monkeypatch.setattr(
        "sys.argv", ["serve_verifier.py", *app.arguments(dict.fromkeys(numbers, 7))]
    )
    assert {vars(serve_verifier._arguments())[name] for name in numbers} == {7}


def test_gym_installs_nothing_of_ours() -> None:
    """Adhere and nemo-gym pin different releases, and Gym drops paths to a checkout anyway."""
    lines = (WIRING / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert lines and all(line.startswith("#") for line in lines)


@pytest.mark.parametrize("key", ["python", "project"])
def test_what_is_not_there_is_named(key: str, tmp_path: Path) -> None:
    there = {"python": sys.executable, "project": str(ROOT)}
    with pytest.raises(SystemExit, match=f"error: {key}: .*nowhere.* adhere_{key} "):
        entry_point().serve(there | {key: str(tmp_path / "nowhere")})


def test_gym_can_start_it(tmp_path: Path) -> None:
    """What Gym starts, from the point where Gym's own language has resolved the configuration."""
    with start_mock(tmp_path, MockConfig(rules=[Rule(reply=Reply(content="YES"))])) as judge:
        folder = project(tmp_path / "p", judge.judge_url)
        own = {"python": sys.executable, "project": str(folder), "judge": "mock"}
        config = server("adhere_serve.yaml") | own | {"host": "localhost", "port": 0}
        start = tmp_path / "start.py"
        start.write_text(f"import app\n\napp.serve({config!r})\n", encoding="utf-8")
        secrets = {"NEMO_GYM_CONFIG_PATH": "adhere", "NEMO_GYM_CONFIG_DICT": "policy_api_key: hush"}
        paths = os.pathsep.join([str(WIRING), str(ROOT)])
        service = started(tmp_path, script=start, PYTHONPATH=paths, **secrets)
        environ = Path(f"/proc/{service.popen.pid}/environ").read_bytes()
        assert b"hush" not in environ
        row = read_jsonl(EXAMPLE)[0]
        message = {"type": "message", "content": [{"type": "output_text", "text": "{}"}]}
        request = row | {"response": {"output": [message]}}
        status, content = ask(service.port, "/verify", request)
        assert status == 200
        found = json.loads(content)
        constraints = row["verifier_metadata"]["constraints"]
        assert found["n_true"] + found["n_false"] + found["n_null"] == len(constraints)
        service.popen.terminate()
        service.end()


def test_it_ends_with_gym(tmp_path: Path) -> None:
    own = {"python": sys.executable, "project": str(project(tmp_path, "http://127.0.0.1:9/v1"))}
    config = server("adhere_serve.yaml") | own | {"judge": "mock", "port": 0}
    start = [sys.executable, "-c", f"import app\n\napp.serve({config!r})"]
    gym = (
        f"import subprocess\n\nserver = subprocess.Popen({start!r})\ninput()\nserver.returncode = 0"
    )
    with subprocess.Popen(
        [sys.executable, "-c", gym],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(WIRING), str(ROOT)])},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stderr is not None
        assert json.loads(parent.stderr.readline())["event"] == "ready"
        _, log = parent.communicate("\n", timeout=60)
    assert json.loads(log.splitlines()[-1])["event"] == "ended"


def run_client(results: Path, rows: int) -> str:
    """Run the example and return what it printed."""
    done = subprocess.run(
        [sys.executable, str(CLIENT), str(results), "--rows", str(rows)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return done.stdout


def test_the_example_rewards_as_files_are_judged(tmp_path: Path) -> None:
    condition = {"type": "llm_conditional_check", "exec": "Does it apply? {response}"}
    asked = {"evaluation": [condition, {"type": "llm", "exec": "Good?"}], "llm_output": "NO"}
    row = {
        "input": [{"role": "user", "content": "Write."}],
        "constraints": [code("len(response) < 30"), asked],
        "output": {"content": "Short.", "model_name": "m"},
    }
    write_json(tmp_path / "results.json", [row, row | {"output": {"content": "x" * 40}}])
    assert "2 responses, 4 verdicts, mean reward 0.500" in run_client(tmp_path / "results.json", 9)


@pytest.mark.skipif(not AGENTIF.exists(), reason=f"{AGENTIF} is not here")
def test_published_responses_get_the_verdicts_of_files() -> None:
    told = run_client(AGENTIF / "published" / "Qwen3-32B.results.json.gz", 100)
    assert "100 responses" in told and "0 rows differ" in told
