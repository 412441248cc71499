"""Names, places, variables, locks, the record of a job, the frame of a script, what is open."""

import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adhere import files, metadata
from adhere.costs.tokens import Tokens
from adhere.environment import expand, lookup, secret
from adhere.errors import AdhereError, ConfigError, DataError, told
from adhere.jsonio import read_json, write_json
from adhere.lifeline import Terminated
from adhere.locks import claim, claimed_by, folder_lock, lock
from adhere.names import check_dataset_name, check_mode_name, check_name, limited
from adhere.plan import Cell, Evaluation
from adhere.prediction import recorded
from adhere.scoring import get_policy
from adhere.scoring.accuracy import compute_accuracy
from adhere.scoring.provenance import JudgeRun
from adhere.status import (
    Attempts,
    judging_unrecorded,
    open_work,
    pending_predictions,
    prediction_unrecorded,
    retryable_verdicts,
    score_damaged,
    scored,
)
from adhere.workflow.writable import check_writable

# A busy machine is no reason to fail.
PATIENT = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

ROOT = Path(__file__).resolve().parents[1]
KEY = "sk-canary-0123456789"


def python(
    code: str, *arguments: object, cwd: Path | None = None, **env: str
) -> "subprocess.Popen[str]":
    """Start Python code with pipes; a key stands in its environment."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OPENAI_API_KEY": KEY} | env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@contextmanager
def running(code: str, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    """Run code that says "ready" and ends when its input does."""
    process = python(code + "\nprint('ready', flush=True)\nsys.stdin.read()", *arguments)
    try:
        assert said(process) == "ready"
        yield process
    finally:
        process.communicate(timeout=60)


# Names


@pytest.mark.parametrize("name", ["a", "Qwen3.5-4B", "a__b", "_a_", "模型", "a b", "x.first", "é"])
def test_names_that_a_file_may_have_are_fine(name: str) -> None:
    check_name(name, "configs/x.yaml")


@pytest.mark.parametrize(
    "name",
    ["", " a", "a ", ".a", "a.", "a/b", "..", "a\nb", "a\x00", "{a}", "a*", "$HOME", "d.first10"],
)
@pytest.mark.parametrize("check", [check_name, check_dataset_name])
def test_names_that_break_paths_or_patterns_are_refused(
    check: Callable[[str, str], None], name: str
) -> None:
    with pytest.raises(ConfigError, match=r"^configs/x\.yaml: name .*: rename it$"):
        check(name, "configs/x.yaml")


@pytest.mark.parametrize("name", ["e\u0301", "x" * 121, "é" * 61, "\udcff"])
def test_names_that_file_systems_differ_about_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^configs/x\.yaml: name .*: rename it$"):
        check_name(name, "configs/x.yaml")


@pytest.mark.parametrize("mode", ["", "a__b", "_a", "a_", "a b", "a/b", "-a", "a-", "é\u0301a"])
def test_modes_that_would_be_ambiguous_are_refused(mode: str) -> None:
    with pytest.raises(ConfigError, match=r"^configs/m\.yaml: mode name "):
        check_mode_name(mode, "configs/m.yaml")


# Places


def test_everything_lies_where_the_contract_says() -> None:
    root = Path("results")
    cell = Cell("m__x", "thinking", 2, "eval")
    evaluation = Evaluation(cell, "j_1")
    run = "results/prediction/m__x__thinking/run2"
    judged = "results/scores/m__x__thinking/run2_j_1"
    results = files.results(root, evaluation)
    assert [
        str(files.prediction(root, cell)),
        str(files.run_config(root, cell)),
        str(files.prediction_journal(root, cell)),
        str(results),
        str(files.judge_run(results)),
        str(files.judge_journal(root, evaluation)),
    ] == [
        f"{run}/eval.json",
        f"{run}/run_config.json",
        f"{run}/eval.partial.jsonl",
        f"{judged}/eval/results.json",
        f"{judged}/eval/judge_run.json",
        f"{judged}/eval.partial.jsonl",
    ]


def test_a_limited_run_shares_the_journals_and_nothing_else() -> None:
    root = Path("results")
    full, first = (Cell("m", "d", 1, limited("eval", n)) for n in (None, 20))
    assert files.prediction_journal(root, full) == files.prediction_journal(root, first)
    assert files.prediction(root, first).name == "eval.first20.json"
    judged = [Evaluation(cell, "j") for cell in (full, first)]
    one, other = (files.judge_journal(root, evaluation) for evaluation in judged)
    assert one == other
    one, other = (files.results(root, evaluation) for evaluation in judged)
    assert one != other


def accepted(name: str) -> bool:
    try:
        check_dataset_name(name, "configs/x.yaml")
    except ConfigError:
        return False
    return True


# Few characters, so that clashes would be found: those that the places put between names.
NAMES = st.text("a_.1", min_size=1, max_size=4).filter(accepted)
CELLS = st.builds(Cell, NAMES, st.sampled_from(["a", "1", "a_a", "a_1"]), st.integers(1, 12), NAMES)


@PATIENT
@given(CELLS, CELLS)
def test_different_cells_have_different_files(one: Cell, other: Cell) -> None:
    root = Path("r")
    for place in (files.prediction, files.prediction_journal):
        assert (place(root, one) == place(root, other)) == (one == other)
    for judged in (files.results, files.judge_journal):
        paths = {judged(root, Evaluation(cell, judge)) for cell in (one, other) for judge in "jk"}
        assert len(paths) == (2 if one == other else 4)


# Variables


def test_the_environment_wins_over_the_projects_env_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_bytes(
        b"\xef\xbb\xbf# comment\nFIRST_KEY=first\nexport FILE_ONLY='from file '\r\nBOTH=file\n"
        b"BLANK_HERE=file\nEMPTY=\nNO_VALUE\nLITERAL=${BOTH}-x\n"
    )
    before = dict(os.environ)
    for name in ("FIRST_KEY", "FILE_ONLY", "EMPTY", "NO_VALUE", "LITERAL", "NOWHERE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BOTH", " environment\n")
    monkeypatch.setenv("BLANK_HERE", " ")
    assert lookup("FIRST_KEY", tmp_path) == "first"
    assert lookup("FILE_ONLY", tmp_path) == "from file"
    assert lookup("BOTH", tmp_path) == "environment"
    assert lookup("BLANK_HERE", tmp_path) == "file"
    assert lookup("LITERAL", tmp_path) == "${BOTH}-x", "nothing in it is expanded"
    for name in ("EMPTY", "NO_VALUE", "NOWHERE"):
        assert lookup(name, tmp_path) is None
    assert lookup("FILE_ONLY", tmp_path / "elsewhere") is None
    assert os.environ.get("FILE_ONLY") == before.get("FILE_ONLY"), "nothing is exported"
    assert os.environ.get("FIRST_KEY") == before.get("FIRST_KEY")


def test_the_env_file_belongs_to_the_folder_not_to_its_relative_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".env").write_text(f"PLACE={name}\n")
        monkeypatch.chdir(tmp_path / name)
        assert lookup("PLACE", Path()) == name


def test_an_env_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=\xff\n")
    with pytest.raises(ConfigError, match=rf"{tmp_path}/\.env: cannot be read: [^\[]*$"):
        lookup("A", tmp_path)


def test_lines_of_an_env_file_that_set_nothing_are_named_where_a_variable_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("A", "B", "C"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / ".env"
    file.write_text("# keys\nA=1\n\n\nsk-canary-1 pasted\nEMPTY=\nB: sk-canary-2\nexport C\n")
    how = r"export {}, or put it in \.env \(there, no NAME=value: line 5, 7, 8\)"
    for name in ("B", "C"):
        with pytest.raises(ConfigError, match=how.format(name)) as caught:
            secret(name, tmp_path, "judge.yaml")
        assert "canary" not in str(caught.value)
        with pytest.raises(ConfigError, match=how.format(name)):
            expand(f"${{{name}}}", tmp_path, "judge.yaml")
    assert secret("A", tmp_path, "judge.yaml") == "1"


def test_a_virtual_environment_called_env_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert lookup("NOWHERE_AT_ALL", tmp_path) is None


def test_variables_in_a_text_are_replaced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST", "h:${PORT}")
    monkeypatch.setenv("PORT", "80")
    monkeypatch.delenv("UNSET", raising=False)
    where = "configs/m.yaml: api.base_url"
    assert (
        expand("http://${HOST}/${PORT}/$PORT/{x}", tmp_path, where)
        == "http://h:${PORT}/80/$PORT/{x}"
    )
    with pytest.raises(ConfigError, match=r"^configs/m\.yaml: api\.base_url: uses \$\{UNSET\}"):
        expand("http://${HOST}/${UNSET}", tmp_path, where)


def test_a_secret_is_found_and_never_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = "judge_configs/j.yaml: api_key_env"
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")
    assert secret("MY_KEY", tmp_path, where) == KEY
    assert secret(None, tmp_path, where) is None
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(ConfigError, match=r"^judge_configs/j\.yaml: api_key_env: names MY_KEY"):
        secret("MY_KEY", tmp_path, where)
    for inside in (" ", "\n", "\x07", "”", '"', "\\", "ä"):
        broken = f"{KEY}{inside}{KEY}"
        monkeypatch.setenv("MY_KEY", broken)
        with pytest.raises(ConfigError, match="the key in MY_KEY holds") as error:
            secret("MY_KEY", tmp_path, where)
        assert KEY not in str(error.value)


# Locks


CLAIM = """
import sys
from pathlib import Path
from adhere.locks import claim
handle = claim(Path(sys.argv[1]), "wait")
assert handle is not None
"""
LOCKED_FOLDER = """
import sys
from pathlib import Path
from adhere.locks import folder_lock
held = folder_lock(Path(sys.argv[1]))
held.__enter__()
"""


def test_a_claim_is_refused_with_the_holders_pid_and_ends_with_the_holder(tmp_path: Path) -> None:
    path = tmp_path / "new" / ".lock"
    path.parent.mkdir()
    path.write_text("12345678901234567890\n")
    with running(CLAIM, path) as holder:
        with pytest.raises(AdhereError, match=rf"\.lock: held by process {holder.pid}: go away"):
            claim(path, "go away")
        holder.kill()
        assert holder.wait(timeout=60) == -signal.SIGKILL
        assert claimed_by(path) == ""
        handle = claim(path, "go away", owner="host:1:2")
    assert handle is not None
    assert path.read_text() == f"{os.getpid()}\nhost:1:2\n"
    assert claimed_by(path) == "host:1:2" and claimed_by(tmp_path / "none") == ""
    os.close(handle)


def test_what_is_in_the_way_of_a_claim_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AdhereError, match=r"file/\.lock: cannot be made: "):
        claim(tmp_path / "file" / ".lock", "go away")


def test_a_folder_is_locked_for_one_at_a_time(tmp_path: Path) -> None:
    with running(LOCKED_FOLDER, tmp_path) as holder:
        handle = os.open(tmp_path / ".lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            lock(handle, wait=False)
        os.close(handle)
        # Ends its input, and with it the holder: the lock below is waited for until then.
        assert holder.stdin is not None
        holder.stdin.close()
        holder.stdin = None
        with folder_lock(tmp_path):
            assert holder.wait(timeout=60) == 0


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
def test_a_file_system_without_locks_is_worked_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(_handle: int, _operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert claim(tmp_path / ".lock", "go away") is None
    with folder_lock(tmp_path):
        pass


# The record of a job


def only_record(root: Path) -> dict[str, Any]:
    """Return the one record that lies where it belongs."""
    (path,) = root.rglob("*.json")
    assert re.fullmatch(
        r"run_metadata/m/run_metadata_\d{8}T\d{6}\.\d{6}Z_\d+\.json", str(path.relative_to(root))
    )
    content: dict[str, Any] = read_json(path)
    return content


def test_a_job_that_ends_well_leaves_its_record(tmp_path: Path) -> None:
    with metadata.job_record(tmp_path, "m", "judge") as record:
        record["tokens"] = {"prompt": 7}
        assert not [*tmp_path.rglob("*.json")], "written when the job ends"
    read = only_record(tmp_path)
    assert read == record
    assert (read["status"], read["stage"], read["model"]) == ("done", "judge", "m")
    assert read["duration_s"] >= 0
    assert {"adhere", "protocol", "python", "aiohttp", "orjson"} <= read["versions"].keys()
    assert "error" not in read


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConfigError("x.yaml: wrong"), "failed"),
        (KeyError("k"), "failed"),
        (Terminated(signal.SIGTERM), "interrupted"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_a_job_that_fails_leaves_its_record_and_its_error(
    tmp_path: Path, error: BaseException, status: str
) -> None:
    with pytest.raises(type(error)) as raised, metadata.job_record(tmp_path, "m", "predict"):
        raise error
    assert raised.value is error
    read = only_record(tmp_path)
    assert (read["status"], read["error"]) == (status, f"{type(error).__name__}: {error}")


def test_each_job_has_a_record_of_its_own(tmp_path: Path) -> None:
    for _ in range(20):
        with metadata.job_record(tmp_path, "m", "judge"):
            pass
    assert len([*tmp_path.rglob("*.json")]) == 20


def test_no_client_counts_nothing() -> None:
    assert metadata.client_figures([]) == {
        "answered": 0,
        "retries": 0,
        "failures": {},
        "tokens": asdict(Tokens()),
        "throttled": 0,
        "throttled_s": 0,
        "least_concurrency": None,
    }


# The frame of a script


ENDINGS = {
    "well": "pass",
    "named": "raise DataError('data/x.json: item 3: é is wrong\\nand more')",
    "unexpected": "deep(30)",
    # Ends of its own accord (with another code) when its input ends, which is after the signal.
    "SIGTERM": "print('ready', flush=True); sys.stdin.read()",
    "SIGINT": "print('ready', flush=True); sys.stdin.read()",
}
UNTRIED = {("by_hand", "SIGINT"), ("by_hand", "well")}
BY_HAND = """
import signal, sys
from adhere import cli
signal.signal(signal.SIGINT, signal.default_int_handler)
from adhere.errors import DataError
def deep(n):
    return deeper(n - 1) if n else {}["the missing key"]
def deeper(n):
    return deep(n - 1)
def main():
    print("working", flush=True)
    ENDING
cli.by_hand(main)
"""
IN_WORKFLOW = """
import logging, signal, sys
from pathlib import Path
from types import SimpleNamespace
from adhere import cli
from adhere.errors import DataError
from adhere.jobs.judge import describe
from adhere.judging import Judge
from adhere.metadata import job_record
signal.signal(signal.SIGINT, signal.default_int_handler)
def deep(n):
    return deeper(n - 1) if n else {}["the missing key"]
def deeper(n):
    return deep(n - 1)
def run(job):
    assert job.plan.limit == 3
    assert (job.wildcards, job.input, job.output) == ({"run": "1"}, {"a": "in"}, {"b": "out"})
    assert job.params == {"p": "text"}
    assert job.log == Path("logs/deep/j.log")
    logging.getLogger("adhere").info("working on é")
    with job_record(Path("results"), "m", "judge") as record:
        record["judge"] = describe(Judge("j", job.plan.project.judges["j"]))
        ENDING
cli.in_workflow(
    SimpleNamespace(
        log=["logs/deep/j.log"], config={"limit": 3}, wildcards={"run": "1"},
        input={"a": "in"}, output={"b": "out"}, params={"p": "text"}, resources={"gpu": 2},
    ),
    run,
)
print("after", flush=True)
"""


def test_a_script_looks_for_garbage_seldom() -> None:
    code = "import gc; from adhere import cli; cli.by_hand(lambda: print(*gc.get_threshold()))"
    with python(code) as process:
        out, _ = process.communicate()
    assert process.returncode == 0
    youngest, *_ = map(int, out.split())
    assert youngest >= 10_000


@dataclass(frozen=True, slots=True)
class Ended:
    """How a script ended, and the folder it ran in."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def log(self) -> str:
        return (self.folder / "logs/deep/j.log").read_text("utf-8")

    @property
    def record(self) -> dict[str, Any]:
        return only_record(self.folder / "results")


def project(folder: Path) -> Path:
    """Make the smallest project in a folder."""
    (folder / "configs").mkdir(parents=True)
    (folder / "judge_configs").mkdir()
    (folder / "configs/global.yaml").write_text(
        "datasets: {own: d.json}\ndefault_datasets: [own]\ndefault_judge: j\n"
    )
    (folder / "judge_configs/j.yaml").write_text("model: j\napi_key_env: OPENAI_API_KEY\n")
    return folder


def start(code: str, ending: str, folder: Path) -> "subprocess.Popen[str]":
    return python(code.replace("ENDING", ENDINGS[ending]), cwd=project(folder))


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Ended]:
    """Every ending of both frames: (frame, ending) to how it came out; started all at once."""
    base = tmp_path_factory.mktemp("frames")
    started = {
        (frame, ending): start(code, ending, base / frame / ending)
        for frame, code in (("by_hand", BY_HAND), ("in_workflow", IN_WORKFLOW))
        for ending in ENDINGS
        if (frame, ending) not in UNTRIED
    }
    ended = {}
    for (frame, ending), process in started.items():
        said_first = ""
        if ending.startswith("SIG"):
            while not said_first.endswith("ready\n"):
                assert process.stdout is not None
                said_first += process.stdout.readline()
            process.send_signal(getattr(signal, ending))
        out, err = process.communicate(timeout=60)
        ended[frame, ending] = Ended(process.returncode, out, err, base / frame / ending)
    return ended


CODES = {"well": 0, "named": 1, "unexpected": 1, "SIGTERM": 143, "SIGINT": 130}


def test_a_script_ends_with_the_code_of_its_ending(
    endings: dict[tuple[str, str], Ended],
) -> None:
    for (frame, ending), ended in endings.items():
        assert ended.code == CODES[ending], ended
        assert ("after" in ended.out) is (ending == "well"), frame


def test_by_hand_a_named_error_is_one_message(endings: dict[tuple[str, str], Ended]) -> None:
    ended = endings["by_hand", "named"]
    assert ended.out == "working\n"
    assert ended.err == "error: data/x.json: item 3: é is wrong\nand more\n"
    assert endings["by_hand", "SIGTERM"].err == "ended by SIGTERM\n"


def test_by_hand_an_unexpected_error_is_shown_once_and_whole(
    endings: dict[tuple[str, str], Ended],
) -> None:
    err = endings["by_hand", "unexpected"].err
    assert err.count("Traceback") == 1
    assert err.endswith("KeyError: 'the missing key'\n")


def test_in_a_workflow_a_named_error_stands_in_the_log_and_on_stderr(
    endings: dict[tuple[str, str], Ended],
) -> None:
    ended = endings["in_workflow", "named"]
    message = "error: data/x.json: item 3: é is wrong\nand more\n"
    assert ended.err == f"{message}full log: logs/deep/j.log\n"
    assert re.fullmatch(
        rf"\d{{4}}-\d\d-\d\d [\d:]{{8}} working on é\n\d{{4}}-\d\d-\d\d [\d:]{{8}} {message}",
        ended.log,
    )
    assert "Traceback" not in ended.err + ended.log


def test_in_a_workflow_an_unexpected_error_is_quoted_and_stands_whole_in_the_log(
    endings: dict[tuple[str, str], Ended],
) -> None:
    ended = endings["in_workflow", "unexpected"]
    quoted = ended.err.splitlines()
    assert quoted[0] == "unexpected error:"
    assert quoted[-2:] == ["KeyError: 'the missing key'", "full log: logs/deep/j.log"]
    assert 10 < len(quoted) <= 20
    assert "\n".join(quoted[1:-1]) in ended.log
    assert "Traceback" in ended.log
    assert "Traceback" not in ended.err, "only the end is quoted"


@pytest.mark.parametrize(
    ("ending", "status", "error"),
    [
        ("well", "done", None),
        ("named", "failed", "DataError: data/x.json: item 3: é is wrong\nand more"),
        ("unexpected", "failed", "KeyError: 'the missing key'"),
        ("SIGTERM", "interrupted", "Terminated: 143"),
        ("SIGINT", "interrupted", "Terminated: 130"),
    ],
)
def test_a_job_leaves_a_record_however_it_ends(
    endings: dict[tuple[str, str], Ended], ending: str, status: str, error: str | None
) -> None:
    ended = endings["in_workflow", ending]
    assert (ended.record["status"], ended.record.get("error")) == (status, error)
    assert ended.record["judge"]["config"] == {"model": "j", "api_key_env": "OPENAI_API_KEY"}
    if ending.startswith("SIG"):
        assert ended.log.endswith(f"ended by {ending}\n")


def test_no_key_is_written_or_said_anywhere(endings: dict[tuple[str, str], Ended]) -> None:
    for ended in endings.values():
        assert KEY not in ended.out + ended.err
        for path in ended.folder.rglob("*"):
            assert not path.is_file() or KEY not in path.read_text("utf-8"), path


def test_a_broken_project_is_one_message_of_the_job(tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "configs/global.yaml").write_text("datasets: [")
    process = python(IN_WORKFLOW.replace("ENDING", "pass"), cwd=folder)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.startswith("error: configs/global.yaml: not valid YAML")
    assert err.endswith("full log: logs/deep/j.log\n")


def test_what_the_system_says_of_a_file_is_one_message(tmp_path: Path) -> None:
    folder = project(tmp_path)
    ending = "Path('absent/x').read_text()"
    said = "error: absent/x: No such file or directory: correct the path or its rights, and start"
    for code, end in ((BY_HAND, "again\n"), (IN_WORKFLOW, "full log: logs/deep/j.log\n")):
        process = python(
            code.replace("import signal", "from pathlib import Path\nimport signal").replace(
                "ENDING", ending
            ),
            cwd=folder,
        )
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert err.startswith(said)
        assert err.endswith(end)
        assert "Traceback" not in err
    # An error of no file's is a mistake of ours, and shown whole.
    assert told(OSError(errno.EIO, "what")) is None


def test_a_log_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "logs").write_text("a file")
    process = python(IN_WORKFLOW.replace("ENDING", "pass"), cwd=folder)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.fullmatch(r"error: logs\S*: Not a directory: correct the path .*\n", err), err


def test_places_are_looked_at_before_anything_is_written(tmp_path: Path) -> None:
    check_writable([str(tmp_path / "made/later/x.json")])
    (tmp_path / "logs").write_text("a file")
    with pytest.raises(DataError, match=r"logs: is a file, and results or logs go below it"):
        check_writable([str(tmp_path / "logs/list.log")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs"]


# What is open


def evaluated(root: Path, cell: Cell, *, pending: object = 0, retryable: object = 0) -> Evaluation:
    """Write what a finished cell leaves that says whether anything is open."""
    evaluation = Evaluation(cell, "j")
    write_json(files.prediction(root, cell), [])
    write_json(files.run_config(root, cell), {"datasets": {cell.dataset: {"pending": pending}}})
    results = files.results(root, evaluation)
    write_json(results, [])
    write_json(files.judge_run(results), {"retryable": retryable})
    return evaluation


@pytest.mark.parametrize(
    ("pending", "retryable", "said"),
    [
        (0, 0, None),
        (1, 0, "incomplete: 1 prediction failed"),
        (2, 0, "incomplete: 2 predictions failed"),
        (0, 1, "incomplete: 1 verdict failed"),
        (3, 4, "incomplete: 3 predictions and 4 verdicts failed"),
    ],
)
def test_one_line_says_what_may_be_tried_again(
    tmp_path: Path, pending: int, retryable: int, said: str | None
) -> None:
    cell = Cell("m", "d", 1, "eval")
    evaluation = evaluated(tmp_path, cell, pending=pending, retryable=retryable)
    assert pending_predictions(tmp_path, cell) == pending
    assert retryable_verdicts(tmp_path, evaluation) == retryable
    line = open_work(tmp_path, [cell], [evaluation])
    if said is None or line is None:
        assert line is said
    else:
        assert line.startswith(said)
        assert "snakemake retry" in line
        assert "\n" not in line


def test_open_work_adds_up_over_what_is_finished(tmp_path: Path) -> None:
    cells = [Cell("m", "d", run, "eval") for run in (1, 2, 3)]
    judged = [evaluated(tmp_path, c, pending=c.run, retryable=10 * c.run) for c in cells[:2]]
    evaluations = [*judged, Evaluation(cells[2], "j")]
    line = open_work(tmp_path, cells, evaluations)
    assert line is not None
    assert line.startswith("incomplete: 3 predictions and 30 verdicts ")
    assert open_work(tmp_path, [], []) is None
    files.prediction(tmp_path, cells[0]).unlink()
    assert pending_predictions(tmp_path, cells[0]) == 0, "it is to be computed anyway"


def test_an_evaluation_is_finished_with_its_score(tmp_path: Path) -> None:
    evaluation = evaluated(tmp_path, Cell("m", "d", 1, "eval"))
    assert not scored(tmp_path, evaluation)
    accuracy = files.accuracy(tmp_path, evaluation)
    whole = compute_accuracy(get_policy("adhere"), [], [], JudgeRun()).model_dump()
    write_json(accuracy, whole)
    assert scored(tmp_path, evaluation)
    assert not score_damaged(tmp_path, evaluation)
    for damaged in (None, {}, whole | {"CSR": {"rate": 17, "followed": 9, "scored": 10}}):
        write_json(accuracy, damaged)
        assert not scored(tmp_path, evaluation)
        assert score_damaged(tmp_path, evaluation)


DAMAGED_RUN_CONFIGS = [
    "null",
    "[]",
    "{",
    '{"datasets": [5]}',
    '{"datasets": {"eval": [5]}}',
    '{"datasets": {"eval": {"pending": "x"}}}',
    '{"datasets": {"eval": {"pending": null}}}',
    '{"datasets": {"eval": {"errors": ["budget"]}}}',
    '{"datasets": {}}',
]
DAMAGED_JUDGE_RUNS = ["null", "[]", "{", '{"retryable": "x"}', '{"retryable": -1}', '{"judge": 1}']


@pytest.mark.parametrize("content", DAMAGED_RUN_CONFIGS)
def test_a_damaged_record_of_predictions_is_none(tmp_path: Path, content: str) -> None:
    cell = Cell("m", "d", 1, "eval")
    evaluated(tmp_path, cell)
    assert recorded(tmp_path, cell) == {"pending": 0}
    files.run_config(tmp_path, cell).write_text(content)
    assert recorded(tmp_path, cell) is None
    assert open_work(tmp_path, [cell], []) is None
    # Without a journal it is another's file, which costs something to make again.
    assert not prediction_unrecorded(tmp_path, cell)
    files.prediction_journal(tmp_path, cell).touch()
    assert prediction_unrecorded(tmp_path, cell)


@pytest.mark.parametrize("content", DAMAGED_JUDGE_RUNS)
def test_a_damaged_record_of_judging_is_none(tmp_path: Path, content: str) -> None:
    evaluation = evaluated(tmp_path, Cell("m", "d", 1, "eval"), retryable=1)
    files.judge_run(files.results(tmp_path, evaluation)).write_text(content)
    assert retryable_verdicts(tmp_path, evaluation) == 0
    assert open_work(tmp_path, [], [evaluation]) is None
    assert not judging_unrecorded(tmp_path, evaluation)
    files.judge_journal(tmp_path, evaluation).touch()
    assert judging_unrecorded(tmp_path, evaluation)


@pytest.mark.parametrize("content", ["null", "[1]", "{", '{"a": 1}'])
def test_damaged_names_of_attempts_are_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "attempts.json"
    path.write_text(content)
    attempts = Attempts(path, again=True)
    assert attempts.of(Path("a"), 0) == ""
    name = attempts.of(Path("a"), 1)
    attempts.save()
    assert Attempts(path, again=False).of(Path("a"), 0) == name
