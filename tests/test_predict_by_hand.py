"""``python scripts/predict.py`` as a person uses it: results, messages and exit codes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from mock_endpoint import ErrorBody, MockConfig, Reply, Rule, RunningMock, start_mock

from adhere.errors import AdhereError
from adhere.jobs import predict_by_hand
from adhere.jsonio import read_json, read_jsonl, write_json

ROOT = Path(__file__).resolve().parents[1]
KEY = "sk-canary-0123456789"


@dataclass(frozen=True, slots=True)
class Called:
    """What a call came to."""

    code: int
    out: str
    err: str


@dataclass
class Desk:
    """A folder to work in, and a mock endpoint."""

    folder: Path
    mock: RunningMock

    @property
    def output(self) -> Path:
        return self.folder / "out" / "predictions.json"

    @property
    def journal(self) -> Path:
        return self.folder / "out" / "predictions.partial.jsonl"

    def command(self, *arguments: str, given: bool = True) -> list[str]:
        """Return a command line; ``given`` names the mock as the endpoint."""
        command = [sys.executable, str(ROOT / "scripts" / "predict.py")]
        if given:
            command += ["--input", "data.json", "--output", "out/predictions.json"]
            command += ["--base-url", self.mock.base_url, "--model-id", "org/m"]
        return [*command, *arguments]

    def call(self, *arguments: str, given: bool = True, **env: str) -> Called:
        done = subprocess.run(
            self.command(*arguments, given=given),
            cwd=self.folder,
            env=self.environment(**env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Called(done.returncode, done.stdout, done.stderr)

    def refused(
        self, monkeypatch: pytest.MonkeyPatch, *arguments: str, given: bool = True
    ) -> tuple[int, str]:
        """Call in this process what is refused; return the exit code and the message.

        ``test_a_refusal_is_one_line`` and others show that a process does the same with it.
        """
        monkeypatch.chdir(self.folder)
        monkeypatch.setenv("MOCK_KEY", KEY)
        monkeypatch.setattr(sys, "argv", self.command(*arguments, given=given)[1:])
        with pytest.raises((AdhereError, SystemExit)) as caught:
            predict_by_hand.main()
        if isinstance(caught.value, SystemExit):
            assert isinstance(caught.value.code, int)
            return caught.value.code, ""
        return 1, str(caught.value)

    def environment(self, **env: str) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(ROOT), "MOCK_KEY": KEY, **env}

    def configure(self, **model: Any) -> None:
        """Make the folder a project with the API model ``m``, which is asked with impatience."""
        retry = {"attempts": 2, "first_wait_s": 0.01, "max_wait_s": 0.01, "timeout_s": 20.0}
        config = {
            "datasets": {"d": "data.json"},
            "default_datasets": ["d"],
            "default_judge": "j",
            "retry": retry,
        }
        api = {"base_url": self.mock.base_url, "model": "org/m", "api_key_env": "MOCK_KEY"}
        content = {"api": api, "modes": {"plain": {"max_tokens": 50}, "thinking": {}}, **model}
        self.write("configs/global.yaml", config)
        self.write("configs/m.yaml", content)
        self.write("judge_configs/j.yaml", {"model": "judge"})

    def write(self, name: str, content: object) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(content), encoding="utf-8")

    def rows(self) -> list[dict[str, Any]]:
        written: list[dict[str, Any]] = read_json(self.output)
        return written


def item(text: str) -> dict[str, Any]:
    steps = [{"type": "llm", "exec": "Is it right?"}]
    return {
        "input": [{"role": "user", "content": text}],
        "constraints": [{"evaluation": steps}],
        "kept": text,
    }


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMock]:
    with start_mock(tmp_path_factory.mktemp("mock")) as running:
        yield running


@pytest.fixture
def desk(tmp_path: Path, mock: RunningMock) -> Desk:
    mock.configure(**MockConfig().model_dump())
    mock.reset()
    write_json(tmp_path / "data.json", [item(f"question {n}") for n in range(4)])
    return Desk(tmp_path, mock)


def test_help(desk: Desk) -> None:
    called = desk.call("--help", given=False)
    assert (called.code, called.err) == (0, "")
    for option in ("--input", "--output", "--model", "--mode", "--base-url", "--model-id",
                   "--api-key-env", "--sampling", "--run", "--limit", "--concurrency"):  # fmt: skip
        assert option in called.out


def test_any_endpoint(desk: Desk) -> None:
    desk.mock.configure(require_key=KEY, latency_s=0.2)
    sampling = '{"temperature": 0.7, "enable_thinking": true, "max_tokens": 900}'
    called = desk.call("--sampling", sampling, "--api-key-env", "MOCK_KEY", "--concurrency", "2")
    assert (called.code, called.out) == (0, "out/predictions.json: 4 items, 0 failed or empty\n")
    rows = desk.rows()
    assert [row["kept"] for row in rows] == [f"question {n}" for n in range(4)]
    assert all(row["output"]["content"] and row["output"]["reasoning"] for row in rows)
    assert {row["output"]["model_name"] for row in rows} == {"org_m"}
    assert len({row["output"]["content"] for row in rows}) == 4
    bodies = [entry.body for entry in desk.mock.log()]
    assert [body.pop("messages")[0]["content"] for body in bodies] != []
    assert bodies == 4 * [
        {
            "model": "org/m",
            "temperature": 0.7,
            "top_p": 0.95,
            "max_tokens": 900,
            "chat_template_kwargs": {"enable_thinking": True},
        }
    ]
    assert desk.mock.stats().max_in_flight == 2
    # Progress is told in plain lines, since stderr is no terminal.
    assert "predict org_m: 4/4 items" in called.err
    assert "\x1b" not in called.err


def test_a_configured_model(desk: Desk) -> None:
    desk.configure()
    desk.mock.configure(require_key=KEY)
    arguments = ("--input", "data.json", "--output", "out/predictions.json", "--model", "m")
    called = desk.call(*arguments, "--mode", "plain", "--limit", "2", "--run", "3", given=False)
    assert (called.code, called.out) == (0, "out/predictions.json: 2 items, 0 failed or empty\n")
    assert len(desk.rows()) == 2
    assert {entry.body["max_tokens"] for entry in desk.mock.log()} == {50}
    everything = f"{called.out}{called.err}"
    files = [path for path in desk.folder.rglob("*") if path.is_file()]
    assert KEY not in everything
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_key_that_is_quoted_is_told_nowhere(desk: Desk) -> None:
    desk.mock.configure(
        rules=[Rule(reply=Reply(status=401, error=ErrorBody(message=f"Bad key {KEY}.")))]
    )
    called = desk.call("--api-key-env", "MOCK_KEY")
    assert called.code == 1
    assert KEY not in called.out + called.err
    assert f"error: command line: {desk.mock.base_url} unauthorised: HTTP 401: Bad key [key]." in (
        called.err
    )


def test_the_same_command_continues(desk: Desk) -> None:
    desk.configure()
    desk.mock.configure(
        rules=[
            Rule(match="question 1", reply=Reply(status=503)),
            Rule(match="question 2", reply=Reply(content="")),
        ]
    )
    arguments = ("--input", "data.json", "--output", "out/predictions.json", "--model", "m")
    called = desk.call(*arguments, "--mode", "plain", given=False)
    assert called.code == 1
    assert called.out == "out/predictions.json: 4 items, 2 failed or empty\n"
    last = called.err.splitlines()[-1]
    assert last.startswith("error: out/predictions.json: 1 of 4 items failed for a reason that may")
    assert "run the same command again" in last
    errors = [(row["output"]["error"] or {}).get("kind") for row in desk.rows()]
    assert errors == [None, "server_error", "empty_answer", None]
    desk.mock.configure(rules=[])
    desk.mock.reset()
    called = desk.call(*arguments, "--mode", "plain", given=False)
    assert (called.code, called.out) == (
        0,
        "out/predictions.json: 4 items, 1 failed or empty\n",
    )
    assert "3 from earlier" in called.err
    assert [entry.body["messages"][0]["content"] for entry in desk.mock.log()] == ["question 1"]


def test_a_killed_call_continues(desk: Desk) -> None:
    slow = [Rule(match="question 3", reply=Reply(hang_s=60))]
    desk.mock.configure(rules=slow)
    process = subprocess.Popen(
        desk.command("--concurrency", "1"),
        cwd=desk.folder,
        env=desk.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        desk.mock.until(requests=4)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(read_jsonl(desk.journal)) == 3
    desk.mock.configure(rules=[])
    assert desk.call("--concurrency", "1").code == 0
    assert len(desk.rows()) == 4
    # The one in flight is sent again; nothing that was answered is.
    assert (desk.mock.stats().requests, desk.mock.stats().resent_after_ok) == (5, 0)


def test_a_terminated_call_says_so_and_keeps_what_it_has(desk: Desk) -> None:
    desk.mock.configure(rules=[Rule(match="question 3", reply=Reply(hang_s=60))])
    with subprocess.Popen(
        desk.command("--concurrency", "1"),
        cwd=desk.folder,
        env=desk.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        desk.mock.until(requests=4)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in err
    assert err.endswith(
        "ended by SIGTERM\n"
        "answers that came in are kept beside the output: the same command goes on from there\n"
    )
    assert len(read_jsonl(desk.journal)) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: --input, --output"),
        (["--input", "d", "--output", "o"], "give either --model (of configs/) or --base-url"),
        (
            ["--input", "d", "--output", "o", "--model", "m", "--base-url", "http://h/v1"],
            "give either --model (of configs/) or --base-url",
        ),
        (["--input", "d", "--output", "o", "--base-url", "http://h/v1"], "needs --model-id"),
        (
            ["--input", "d", "--output", "o", "--model", "m", "--sampling", "{}"],
            "--sampling belongs to --base-url, not to --model",
        ),
        (
            ["--input", "d", "--output", "o", "--model", "m", "--api-key-env", "K"],
            "--api-key-env belongs to --base-url",
        ),
    ],
)
def test_a_wrong_command_line(
    desk: Desk,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert desk.refused(monkeypatch, *arguments, given=False) == (2, "")
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--limit", "0"], 2, "argument --limit: must be a whole number from 1, found '0'"),
        (["--limit", "-1"], 2, "argument --limit"),
        (["--run", "first"], 2, "argument --run: must be a whole number from 1, found 'first'"),
        (["--concurrency", "0"], 2, "argument --concurrency"),
        (["--sampling", "{temperature: 1}"], 2, "argument --sampling: not valid JSON"),
        (["--sampling", '{"top_p": NaN}'], 2, "argument --sampling: not valid JSON"),
        (["--sampling", '{"temprature": 1}'], 1, "did you mean `temperature`?"),
        (["--sampling", '{"temperature": "hot"}'], 1, "command line: modes.default.temperature"),
        (["--sampling", "[1]"], 1, "command line: modes.default"),
        (["--mode", "a__b"], 1, "--mode: mode name 'a__b'"),
        (["--base-url", "host:80/v1"], 1, "command line: api.base_url"),
        (["--base-url", "http://${NO_SUCH_HOST}/v1"], 1, "command line: api.base_url: uses ${NO_S"),
        (["--api-key-env", "NO_SUCH_KEY"], 1, "command line: api.api_key_env: names NO_SUCH_KEY"),
        (["--api-key-env", KEY], 1, "must be the name of an environment variable"),
        (["--input", "missing.json"], 1, "missing.json: no such file"),
        (["--input", "empty.json"], 1, "empty.json: holds no item"),
        (["--input", "broken.json"], 1, "broken.json: not valid JSON"),
        (["--input", "odd.json"], 1, "odd.json: item 1: input: message 1: role and content"),
        (["--output", "."], 1, "--output .: is a folder"),
        (["--output", "./data.json"], 1, "--output data.json: is the dataset itself"),
    ],
)
def test_bad_input(
    desk: Desk,
    arguments: list[str],
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (desk.folder / "empty.json").write_text("[]")
    (desk.folder / "broken.json").write_text('[{"input": ')
    (desk.folder / "odd.json").write_text(json.dumps([item("a") | {"input": [{"role": "user"}]}]))
    found, said = desk.refused(monkeypatch, *arguments)
    out, err = capsys.readouterr()
    assert (found, out) == (code, "")
    assert message in said + err
    assert KEY not in said + err
    assert desk.mock.stats().requests == 0
    assert not desk.output.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "m"], "--mode default: m has the modes plain, thinking"),
        (["--model", "x"], "--model x: there is no configs/x.yaml (there are: local, m)"),
        (["--model", "local"], "is served by the workflow: run `snakemake predictions --config"),
    ],
)
def test_a_model_that_cannot_be_asked(
    desk: Desk, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.configure()
    desk.write(
        "configs/local.yaml", {"model_path": "x", "max_model_len": 9, "modes": {"default": {}}}
    )
    files = ("--input", "data.json", "--output", "o.json")
    code, said = desk.refused(monkeypatch, *files, *arguments, given=False)
    assert code == 1
    assert message in said


def test_no_project_here(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("--input", "data.json", "--output", "o.json", "--model", "m")
    refused = desk.refused(monkeypatch, *arguments, given=False)
    assert refused == (1, "configs/global.yaml: no such file")


def test_an_endpoint_that_is_not_there(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.configure(api={"base_url": "http://127.0.0.1:9/v1", "model": "org/m"})
    arguments = ("--input", "data.json", "--output", "o.json", "--model", "m", "--mode", "plain")
    code, said = desk.refused(monkeypatch, *arguments, given=False)
    assert code == 1
    assert said.startswith("configs/m.yaml: http://127.0.0.1:9/v1 unreachable: ")
    assert "check `base_url`" in said
    assert not (desk.folder / "o.json").exists()


def test_a_refusal_is_one_line(desk: Desk) -> None:
    desk.mock.configure(refused_parameters=["top_p"])
    called = desk.call()
    assert (called.code, called.out) == (1, "")
    last = called.err.splitlines()[-1]
    assert last.startswith(f"error: command line: {desk.mock.base_url} refused parameter: HTTP 400")
    assert "Unsupported parameter: 'top_p'" in last
    assert "Traceback" not in called.err


def test_an_unknown_model(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.mock.configure(models=["other"])
    code, said = desk.refused(monkeypatch)
    assert code == 1
    assert "not found: HTTP 404: The model `org/m` does not exist." in said
