"""`python scripts/judge.py`, as a person calls it: in a process of its own, in a project folder."""

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
from mock_endpoint import MockConfig, Reply, Rule, RunningMock, start_mock

from adhere.data import Row
from adhere.errors import AdhereError, EndpointError
from adhere.jobs import judge_by_hand
from adhere.jsonio import read_json, write_json

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "judge.py"
KEY = "sk-canary-0123456789"
TRUE = "def check_following(response):\n    return True\n"
IS_SHORT = "def check_following(response):\n    return len(response) < 30\n"


@dataclass(frozen=True, slots=True)
class Called:
    """How one call ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A project folder, and the script called in it."""

    path: Path

    def start(self, *arguments: str | Path, **env: str) -> "subprocess.Popen[str]":
        """Start the script; no key is in its environment unless it is given here."""
        kept = {k: v for k, v in os.environ.items() if not k.endswith(("_KEY", "_BASE_URL"))}
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), *map(str, arguments)],
            cwd=self.path,
            env=kept | {"PYTHONPATH": str(ROOT)} | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def judge(self, *arguments: str | Path, **env: str) -> Called:
        """Run the script to its end."""
        return ended(self.start(*arguments, **env))

    def rows(self, name: str) -> list[Row]:
        """Read a results file."""
        content: list[Row] = read_json(self.path / name)
        return content


def ended(process: "subprocess.Popen[str]") -> Called:
    """Wait for a call to end."""
    out, err = process.communicate(timeout=60)
    return Called(process.returncode, out, err)


def row(text: str, answer: object, *steps: tuple[str, str], **more: object) -> Row:
    evaluation = [{"type": kind, "exec": source} for kind, source in steps]
    return {
        "id": text,
        "input": [{"role": "user", "content": text}],
        "constraints": [{"evaluation": [step]} for step in evaluation],
        "output": {"content": answer, "model_name": "m", **more},
    }


def scores(rows: list[Row]) -> list[list[bool | None]]:
    return [[c["score"] for c in r["constraints"]] for r in rows]


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMock]:
    """A judge that wants a key."""
    config = MockConfig(require_key=KEY)
    with start_mock(tmp_path_factory.mktemp("mock"), config) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, mock: RunningMock) -> Folder:
    """A project with two judges that the mock serves.

    They say yes, and no to whatever mentions a trumpet.
    """
    mock.configure(
        rules=[
            Rule(match="trumpet", reply=Reply(content="NO")),
            Rule(match="hangs", reply=Reply(hang_s=600)),
            Rule(reply=Reply(content="YES")),
        ]
    )
    mock.reset()
    files: dict[str, dict[str, Any]] = {
        "configs/global.yaml": {
            "datasets": {"own": "data.json"},
            "default_datasets": ["own"],
            "default_judge": "mock",
            "concurrency": 1,
            "retry": {"attempts": 1},
            "checkers": {"workers": 1},
        },
        "judge_configs/mock.yaml": {
            "base_url": mock.judge_url,
            "model": "m",
            "api_key_env": "MOCK_KEY",
        },
        "judge_configs/other.yaml": {
            "base_url": "${MOCK_URL}",
            "model": "o",
            "api_key_env": "MOCK_KEY",
        },
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return Folder(tmp_path)


def test_a_prediction_file_is_judged_and_a_second_call_asks_nothing(
    folder: Folder, mock: RunningMock
) -> None:
    """The constraints of --reference count; what is published by others is read as it is."""
    llm = ("llm", "Is it in tune? {response}")
    predictions = [
        row("one", "A short answer.", ("llm", "An old question?")),
        row("two", "A trumpet, which is a longer answer.", llm),
        row("three", None, llm),
        # Other predictors leave the thinking where it was.
        row("four", "<think>Shall I play the trumpet?</think>\nA song.", llm),
        row("five", "<think>This never ends", llm),
    ]
    reference = [
        {key: value for key, value in r.items() if key != "output"}
        | {"constraints": [{"evaluation": [{"type": k, "exec": e}]} for k, e in (llm, check)]}
        for r in predictions
        for check in [("code", IS_SHORT)]
    ]
    write_json(folder.path / "predictions.json", predictions)
    write_json(folder.path / "reference.json", reference)
    (folder.path / ".env").write_text(f"MOCK_KEY={KEY}\n")
    arguments = ("--input", "predictions.json", "--output", "out/results.json")

    called = folder.judge(*arguments, "--reference", "reference.json")
    assert (called.code, called.out.count("\n")) == (0, 1), called
    assert "out/results.json: 4 no_response, 4 followed, 2 violated" in called.out
    assert "judge predictions.json: 10/10 constraints" in called.err
    rows = folder.rows("out/results.json")
    assert scores(rows) == [[True, True], [False, False], [None] * 2, [True, True], [None] * 2]
    assert [r["id"] for r in rows] == ["one", "two", "three", "four", "five"]
    assert rows[3]["output"]["content"] == "A song."
    assert rows[3]["output"]["reasoning"] == "Shall I play the trumpet?"
    assert rows[4]["output"]["error"]["kind"] == "thinking_unclosed"
    assert [r["constraints"][0]["null_reason"] for r in rows[2:5:2]] == ["no_response"] * 2
    asked = [entry.body["messages"][0]["content"] for entry in mock.log()]
    assert sorted(asked) == [
        f"Is it in tune? {answer}"
        for answer in ("A short answer.", "A song.", "A trumpet, which is a longer answer.")
    ]

    before = (folder.path / "out/results.json").read_bytes()
    again = folder.judge(*arguments, "--reference", "reference.json")
    assert (again.code, mock.stats().requests) == (0, 3)
    assert (folder.path / "out/results.json").read_bytes() == before

    own = folder.judge(
        *("--input", "predictions.json", "--output", "own.json", "--judge", "other"),
        MOCK_URL=mock.judge_url,
    )
    assert own.code == 0, own
    assert scores(folder.rows("own.json")) == [[True], [False], [None], [True], [None]]
    assert mock.stats().models == {"m": 3, "o": 3}
    for path in folder.path.rglob("*"):
        if path.is_file() and path.name != ".env":
            assert KEY.encode() not in path.read_bytes(), path
    assert KEY not in called.out + called.err + own.out + own.err


def test_checkers_alone_need_no_judge_and_no_key(folder: Folder, mock: RunningMock) -> None:
    for judge in ("mock", "other"):
        (folder.path / f"judge_configs/{judge}.yaml").write_text(
            "model: m\napi_key_env: NOT_SET\nbase_url: http://127.0.0.1:9/v1\n"
        )
    write_json(folder.path / "p.json", [row("one", "Short.", ("code", TRUE), ("code", IS_SHORT))])
    called = folder.judge("--input", "p.json", "--output", "r.json")
    assert called.code == 0, called
    assert scores(folder.rows("r.json")) == [[True, True]]
    assert mock.stats().requests == 0


ASKS = row("one", "Short.", ("llm", "Fine?"))
ODD = row("odd", "Short.", ("magic", "Fine?"))


def write_inputs(path: Path) -> None:
    """Write the files that the cases below name."""
    write_json(path / "p.json", [ASKS])
    write_json(path / "other.json", [ASKS | {"input": [{"role": "user", "content": "x"}]}])
    write_json(path / "dataset.json", [{k: v for k, v in ASKS.items() if k != "output"}])
    write_json(path / "odd.json", [ASKS, ODD])
    (path / "torn.json").write_text('[{"input": ')
    (path / "folder").mkdir()


@pytest.mark.parametrize(
    ("arguments", "key", "message"),
    [
        (("p.json",), None, "judge_configs/mock.yaml: api_key_env: names MOCK_KEY"),
        (("absent.json",), KEY, "absent.json: no such file"),
        (
            ("p.json", "--judge", "nobody"),
            KEY,
            "--judge nobody: there is no judge_configs/nobody.yaml (there are: mock, other, "
            "rules-only)",
        ),
    ],
    ids=["key", "file", "judge"],
)
def test_an_error_is_one_message_and_exit_code_1(
    folder: Folder, arguments: tuple[str, ...], key: str | None, message: str
) -> None:
    write_inputs(folder.path)
    env = {"MOCK_KEY": key} if key else {}
    called = folder.judge("--input", *arguments, "--output", "r.json", **env)
    (last,) = [line for line in called.err.splitlines() if line.startswith("error: ")]
    assert (called.code, called.out) == (1, "")
    assert message in last
    assert "Traceback" not in called.err
    assert "sk-" not in called.err
    assert not (folder.path / "r.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("p.json", "--judge", "other"), "judge_configs/other.yaml: base_url: uses ${MOCK_URL}"),
        (("torn.json",), "torn.json: not valid JSON"),
        (("dataset.json",), "dataset.json: item 1 (id one): has no `output`"),
        (
            ("odd.json",),
            "odd.json: item 2 (id odd): constraint 1: evaluation step 1: type: found 'magic'",
        ),
        (
            ("p.json", "--reference", "other.json"),
            "p.json: item 1 (id one): the prediction answers another input",
        ),
        (("p.json", "--reference", "absent.json"), "absent.json: no such file"),
        (("p.json", "--output", "folder"), "--output folder: is a folder"),
        (("p.json", "--output", "p.json/r.json"), "p.json/r.partial.jsonl: cannot be opened"),
    ],
)
def test_each_problem_names_its_place(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    write_inputs(folder.path)
    monkeypatch.chdir(folder.path)
    monkeypatch.setenv("MOCK_KEY", KEY)
    monkeypatch.delenv("MOCK_URL", raising=False)
    monkeypatch.setattr(sys, "argv", ["judge.py", "--output", "r.json", "--input", *arguments])
    with pytest.raises(AdhereError) as error:
        judge_by_hand.main()
    assert message in str(error.value)
    assert KEY not in str(error.value)
    assert not (folder.path / "r.json").exists()


def test_a_refused_key_is_named_by_its_file(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_inputs(folder.path)
    monkeypatch.chdir(folder.path)
    monkeypatch.setenv("MOCK_KEY", "sk-wrong-987")
    monkeypatch.setattr(sys, "argv", ["judge.py", "--input", "p.json", "--output", "r.json"])
    with pytest.raises(EndpointError, match=r"^judge_configs/mock\.yaml: http.* unauthorised") as e:
        judge_by_hand.main()
    assert "sk-wrong" not in str(e.value)


def test_help_says_what_there_is(folder: Folder) -> None:
    called = folder.judge("--help")
    assert called.code == 0
    for option in ("--input", "--output", "--reference", "--judge"):
        assert option in called.out


def test_a_call_that_is_ended_continues_where_it_was(folder: Folder, mock: RunningMock) -> None:
    rows = [row(f"q{n}", f"Answer {n}.", ("llm", "Fine?")) for n in range(30)]
    rows.append(row("last", "This one hangs.", ("llm", "Fine?")))
    write_json(folder.path / "p.json", rows)
    arguments = ("--input", "p.json", "--output", "r.json")
    process = folder.start(*arguments, MOCK_KEY=KEY)
    mock.until(answered=30, in_flight=1)
    journal = folder.path / "r.partial.jsonl"
    process.send_signal(signal.SIGTERM)
    called = ended(process)
    assert called.code == 128 + signal.SIGTERM
    assert called.err.endswith(
        "ended by SIGTERM\n"
        "replies that came in are kept beside the output: the same command goes on from there\n"
    )
    assert not (folder.path / "r.json").exists()
    # One request at a time: when the last one was sent, all the others had been journaled.
    assert journal.read_bytes().count(b"\n") == 30

    mock.configure(rules=[Rule(reply=Reply(content="YES"))])
    mock.reset()
    assert folder.judge(*arguments, MOCK_KEY=KEY).code == 0
    assert mock.stats().requests == 1
    assert scores(folder.rows("r.json")) == [[True]] * 31
