"""The workflow as a person uses it: Snakemake in a temporary copy, a mock behind the models."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from mock_endpoint import ErrorBody, MockConfig, Reply, Rule, RunningMock, start_mock
from workflow_project import (
    KEY,
    KEY_VARIABLE,
    WorkflowProject,
    judge_config,
    make_project,
    model_config,
)

pytestmark = pytest.mark.workflow

ALL_JOBS = {"predict": 4, "judge": 4, "score": 4, "aggregate": 1, "all": 1}
JUDGE_JOBS = {"judge": 4, "score": 4, "aggregate": 1, "all": 1}


@pytest.fixture(scope="module")
def shared_mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMock]:
    """One mock for the module; tests that count requests reset it."""
    with start_mock(tmp_path_factory.mktemp("mock"), MockConfig(require_key=KEY)) as mock:
        yield mock


@pytest.fixture(scope="module")
def finished_tree(
    tmp_path_factory: pytest.TempPathFactory, shared_mock: RunningMock
) -> WorkflowProject:
    """A project that ran to its end once; never changed, only copied."""
    shared_mock.configure(rules=[])
    root = tmp_path_factory.mktemp("finished") / "it's a project"
    project = make_project(root, shared_mock.base_url, shared_mock.judge_url)
    called = project.snakemake()
    assert called.code == 0, called.text
    assert called.jobs == ALL_JOBS
    return project


@pytest.fixture
def finished(tmp_path: Path, finished_tree: WorkflowProject) -> WorkflowProject:
    """A finished project of the test's own."""
    root = tmp_path / "it's a project"
    shutil.copytree(finished_tree.root, root, symlinks=True)
    return WorkflowProject(root)


@pytest.fixture
def mock(shared_mock: RunningMock) -> RunningMock:
    """The mock with its counters at zero and its faults off."""
    shared_mock.configure(rules=[])
    shared_mock.reset()
    return shared_mock


@pytest.fixture
def fresh(tmp_path: Path, mock: RunningMock) -> WorkflowProject:
    """A project in which nothing ran yet."""
    return make_project(tmp_path / "fresh", mock.base_url, mock.judge_url)


def test_first_run_writes_every_file_of_the_contract(finished: WorkflowProject) -> None:
    assert finished.plan().idle
    assert finished.plan("results/summary.md").idle
    for mode in ("plain", "thinking"):
        for run in (1, 2):
            rows = finished.json(f"results/prediction/alpha__{mode}/run{run}/tiny.json")
            assert [row["id"] for row in rows] == [0, 1, 2]
            assert all(row["output"]["content"] for row in rows)
            made = finished.json(f"results/prediction/alpha__{mode}/run{run}/run_config.json")
            assert made["identity"]["sampling"]["max_tokens"] in (1000, 2000)
            folder = f"results/scores/alpha__{mode}/run{run}_strict/tiny"
            judged = finished.json(f"{folder}/results.json")
            for row in judged:
                for constraint in row["constraints"]:
                    assert (constraint["score"] is None) == (constraint["null_reason"] is not None)
                    assert constraint["steps"]
            accuracy = finished.json(f"{folder}/accuracy.json")
            assert accuracy["coverage"]["expected"] == 7
            assert accuracy["judge"] == "strict"
    assert pq.read_table(finished.root / "results/verdicts.parquet").num_rows == 4 * 7
    summary = (finished.root / "results/summary.md").read_text("utf-8")
    assert "alpha" in summary and "±" in summary
    assert list((finished.root / "results/run_metadata/alpha").glob("run_metadata_*.json"))


def test_no_key_reaches_a_file(finished: WorkflowProject) -> None:
    files = [path for path in finished.root.rglob("*") if path.is_file()]
    assert len(files) > 50
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_dry_run_needs_no_key_and_shows_reasons(fresh: WorkflowProject) -> None:
    planned = fresh.plan(env={KEY_VARIABLE: None})
    assert planned.jobs == ALL_JOBS
    assert "reason: Missing output files" in planned.text


def test_comment_reruns_nothing(finished: WorkflowProject) -> None:
    for name in ("configs/alpha.yaml", "configs/global.yaml", "judge_configs/strict.yaml"):
        path = finished.root / name
        path.write_text("# a comment\n" + path.read_text("utf-8"), encoding="utf-8")
    assert finished.plan().idle


def test_transport_reruns_nothing(finished: WorkflowProject) -> None:
    finished.change_yaml("judge_configs/strict.yaml", concurrency=3)
    finished.change_yaml("configs/alpha.yaml", concurrency=3)
    finished.change_yaml("configs/global.yaml", concurrency=5)
    assert finished.plan().idle


def test_changed_judge_reruns_that_judge(finished: WorkflowProject, mock: RunningMock) -> None:
    finished.write_yaml("judge_configs/second.yaml", judge_config(mock.judge_url))
    assert finished.plan().jobs == JUDGE_JOBS
    assert finished.snakemake().code == 0
    finished.change_yaml("judge_configs/second.yaml", temperature=0.7)
    planned = finished.plan()
    assert planned.jobs == JUDGE_JOBS
    assert "run1_strict/tiny/results.json" not in planned.text.split("reasons:")[0].replace(
        "scores/alpha__plain/run1_strict/tiny/accuracy.json", ""
    )
    assert '"temperature":0.7' in planned.text


def test_changed_policy_reruns_score_and_aggregate(finished: WorkflowProject) -> None:
    jobs = {"score": 4, "aggregate": 1, "all": 1}
    assert finished.plan("--config", "policy=nemo-0.7").jobs == jobs
    finished.change_yaml("configs/global.yaml", policy="upstream-2025")
    assert finished.plan().jobs == jobs


def test_one_run_more_computes_one_run(finished: WorkflowProject, mock: RunningMock) -> None:
    planned = finished.snakemake("--config", "repeats=3")
    assert planned.code == 0, planned.text
    assert planned.jobs == {"predict": 2, "judge": 2, "score": 2, "aggregate": 1, "all": 1}
    assert mock.stats().models["alpha-1"] == 2 * 3
    assert finished.plan("--config", "repeats=3").idle


def test_new_mode_computes_that_mode(finished: WorkflowProject) -> None:
    config = model_config("http://127.0.0.1:9/v1", "alpha-1")
    content = {**config["modes"], "careful": {"temperature": 0.1}}
    finished.change_yaml("configs/alpha.yaml", modes=content)
    assert finished.plan().jobs == {
        "predict": 2,
        "judge": 2,
        "score": 2,
        "aggregate": 1,
        "all": 1,
    }


def test_changed_sampling_reruns_that_mode(finished: WorkflowProject) -> None:
    config = model_config("http://127.0.0.1:9/v1", "alpha-1")
    content = {**config["modes"], "plain": {**config["modes"]["plain"], "temperature": 0.6}}
    finished.change_yaml("configs/alpha.yaml", modes=content)
    planned = finished.plan()
    assert planned.jobs["predict"] == 2
    assert "alpha__thinking" not in "".join(
        line for line in planned.text.splitlines(True) if "output:" in line
    )


def test_new_model_file_adds_its_jobs(finished: WorkflowProject, mock: RunningMock) -> None:
    finished.write_yaml("configs/beta.yaml", model_config(mock.base_url, "beta-1"))
    assert finished.plan().jobs == ALL_JOBS
    finished.change_yaml("configs/beta.yaml", enabled=False)
    assert finished.plan().idle
    assert finished.plan("--config", "models=beta").jobs == ALL_JOBS


def test_changed_checker_asks_nothing_again(finished: WorkflowProject, mock: RunningMock) -> None:
    rows = finished.dataset()
    rows[1]["constraints"][0]["evaluation"][0]["exec"] = (
        "def check_following(response):\n    return False\n"
    )
    finished.write_dataset(rows)
    called = finished.snakemake()
    assert called.code == 0, called.text
    assert called.jobs == JUDGE_JOBS
    assert mock.stats().requests == 0
    judged = finished.json("results/scores/alpha__plain/run1_strict/tiny/results.json")
    assert judged[1]["constraints"][0]["score"] is False


def test_changed_prompt_asks_only_that_question(
    finished: WorkflowProject, mock: RunningMock
) -> None:
    rows = finished.dataset()
    rows[2]["constraints"][1]["evaluation"][0]["exec"] = "Is it friendly? YES or NO. {response}"
    finished.write_dataset(rows)
    called = finished.snakemake()
    assert called.jobs == JUDGE_JOBS
    stats = mock.stats()
    assert (stats.requests, stats.models) == (4, {"judge-1": 4})


def test_changed_message_asks_only_that_item(finished: WorkflowProject, mock: RunningMock) -> None:
    rows = finished.dataset()
    rows[0]["input"][0]["content"] = "Another question."
    finished.write_dataset(rows)
    assert finished.snakemake().jobs == ALL_JOBS
    assert mock.stats().models["alpha-1"] == 4


def test_dataset_formatting_reruns_nothing(finished: WorkflowProject) -> None:
    path = finished.root / "data/tiny.json"
    path.write_text(path.read_text("utf-8") + "\n\n", encoding="utf-8")
    assert finished.plan().idle


def test_limited_run_is_apart_and_reused(fresh: WorkflowProject, mock: RunningMock) -> None:
    options = ("--config", "limit=2", "modes=plain", "repeats=1")
    assert fresh.snakemake(*options).code == 0
    assert mock.stats().models["alpha-1"] == 2
    assert "first 2 items" in (fresh.root / "results/summary.md").read_text("utf-8")
    full = fresh.snakemake("--config", "modes=plain", "repeats=1")
    assert full.code == 0
    stats = mock.stats()
    assert stats.models["alpha-1"] == 3
    assert stats.resent_after_ok == 0
    rows = fresh.json("results/prediction/alpha__plain/run1/tiny.json")
    first = fresh.json("results/prediction/alpha__plain/run1/tiny.first2.json")
    assert rows[:2] == first
    summary = fresh.json("results/summary.json")
    assert len(summary["groups"]) == 2
    # A limit that leaves nothing out is the full run, which is there.
    assert fresh.plan("--config", "limit=999", "modes=plain", "repeats=1").idle


def test_an_enabled_model_without_the_mode_is_named(fresh: WorkflowProject) -> None:
    fresh.write_yaml("configs/beta.yaml", {"recorded": {}})
    called = fresh.snakemake("list", "--config", "modes=plain")
    assert called.code == 0, called.text
    line = "passed over: configs/beta.yaml: it has none of the modes asked for, only default\n"
    assert called.text.count(line) == 1


def test_predictions_then_evaluations_then_scores(
    fresh: WorkflowProject, mock: RunningMock
) -> None:
    called = fresh.snakemake("predictions")
    assert called.code == 0, called.text
    assert called.jobs == {"predict": 4, "predictions": 1}
    assert set(mock.stats().models) == {"alpha-1"}
    # A changed model is no reason to start it: what exists is judged.
    fresh.change_yaml("configs/alpha.yaml", modes={"plain": {"temperature": 0.9}})
    mock.reset()
    called = fresh.snakemake("evaluations", "--config", "models=alpha")
    assert called.code == 0, called.text
    assert called.jobs == {"judge": 4, "score": 4, "aggregate": 1, "evaluations": 1}
    assert set(mock.stats().models) == {"judge-1"}
    fresh.change_yaml("judge_configs/strict.yaml", temperature=0.9)
    mock.reset()
    called = fresh.snakemake("scores", "--config", "policy=nemo-0.7", env={KEY_VARIABLE: None})
    assert called.code == 0, called.text
    assert called.jobs == {"score": 4, "aggregate": 1, "scores": 1}
    assert mock.stats().requests == 0


def test_checkers_are_tried_out(finished: WorkflowProject, mock: RunningMock) -> None:
    called = finished.snakemake("checkers")
    assert called.code == 0, called.text
    assert "data/tiny.json: nothing to tell" in called.text
    rows = finished.dataset()
    for row in rows:
        step = {"type": "code", "exec": "def check_following(response):\n    return False\n"}
        row["constraints"][0]["evaluation"] = [step]
    finished.write_dataset(rows)
    called = finished.snakemake("checkers")
    assert "data/tiny.json: never true 1" in called.text
    assert "\nitem 1 (id 0) constraint 1 and 2 more: never true: on 14 texts" in called.text
    assert "item 2" not in called.text
    assert "every place of each: logs/checkers.log" in called.text
    every = ", ".join(f"item {n + 1} (id {n}) constraint 1" for n in range(3)) + ": never true"
    assert every in (finished.root / "logs/checkers.log").read_text("utf-8")
    assert every in finished.script("checkers", "--input", "data/tiny.json", "--places").stdout
    assert "and 2 more" in finished.script("checkers", "--input", "data/tiny.json").stdout
    assert mock.stats().requests == 0


def test_list_shows_what_is_done_and_missing(finished: WorkflowProject) -> None:
    called = finished.snakemake("list", "--config", "repeats=3")
    assert called.code == 0
    assert "alpha  plain     tiny     2/3        2/3" in called.text


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("models=alpa", "did you mean `alpha`?"),
        ("judges=strict,lenient", "judge_configs/lenient.yaml"),
        ("modes=slow", "there are: plain, thinking"),
        ("datasets=evil", "known: tiny, smoke"),
        ("limit=0", "whole number"),
        ("models=", "names nothing"),
        ("limt=5", "did you mean `limit`?"),
        ("repeats=0", "repeats"),
        ("policy=mine", "policy"),
    ],
)
def test_wrong_selection_is_one_line(fresh: WorkflowProject, argument: str, expected: str) -> None:
    called = fresh.snakemake("-n", "--config", argument)
    assert called.code == 1
    (line,) = [line for line in called.text.splitlines() if line.startswith("error:")]
    assert expected in line
    assert "Traceback" not in called.text


def test_missing_key_stops_before_the_first_job(fresh: WorkflowProject, mock: RunningMock) -> None:
    called = fresh.snakemake(env={KEY_VARIABLE: None})
    assert called.code == 1
    for place in ("configs/alpha.yaml: api.api_key_env", "judge_configs/strict.yaml: api_key_env"):
        assert f"{place}: names {KEY_VARIABLE}" in called.text, "all that is missing at once"
    assert mock.stats().requests == 0


def test_key_from_dotenv(fresh: WorkflowProject) -> None:
    (fresh.root / ".env").write_text(f"{KEY_VARIABLE}={KEY}\n", encoding="utf-8")
    options = ("--config", "repeats=1", "modes=plain")
    called = fresh.snakemake(*options, env={KEY_VARIABLE: None})
    assert called.code == 0, called.text


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(status=401), "check the key"),
        (Reply(status=404), "check `model` and `base_url`"),
        (
            Reply(status=400, error=ErrorBody(code="unsupported_parameter", param="top_p")),
            "write `not_sent`",
        ),
    ],
)
def test_refusing_endpoint_stops_its_model_only(
    fresh: WorkflowProject, mock: RunningMock, reply: Reply, expected: str
) -> None:
    mock.configure(rules=[Rule(match="dead-1", reply=reply)])
    fresh.write_yaml("configs/dead.yaml", model_config(mock.base_url, "dead-1"))
    called = fresh.snakemake("--config", "repeats=1", "modes=plain")
    assert called.code == 1
    assert "configs/dead.yaml" in called.text and expected in called.text
    assert "logs/predict/dead__plain/run1/tiny.log" in called.text
    summary = (fresh.root / "results/summary.md").read_text("utf-8")
    assert "alpha" in summary and "dead" not in summary


def test_unreachable_endpoint(fresh: WorkflowProject) -> None:
    fresh.write_yaml("configs/alpha.yaml", model_config("http://127.0.0.1:9/v1", "alpha-1"))
    called = fresh.snakemake("predictions", "--config", "repeats=1", "modes=plain")
    assert called.code == 1
    assert "configs/alpha.yaml: http://127.0.0.1:9/v1 unreachable" in called.text


def test_passing_failures_end_non_zero_and_retry(fresh: WorkflowProject, mock: RunningMock) -> None:
    options = ("--config", "repeats=1", "modes=plain")
    mock.configure(
        rules=[
            Rule(match="Question 1", judge=False, reply=Reply(status=503)),
            Rule(match="Is it short", judge=True, reply=Reply(status=500)),
        ]
    )
    called = fresh.snakemake(*options)
    assert called.code == 1
    incomplete = "incomplete: 1 prediction"
    assert incomplete in called.text
    rows = fresh.json("results/prediction/alpha__plain/run1/tiny.json")
    assert [bool(row["output"]["error"]) for row in rows] == [False, True, False]
    accuracy = fresh.json("results/scores/alpha__plain/run1_strict/tiny/accuracy.json")
    assert accuracy["coverage"]["expected"] == 7
    assert "snakemake retry" in (fresh.root / "results/summary.md").read_text("utf-8")
    # Still open: the same call does not end well because nothing is left to start.
    again = fresh.snakemake(*options)
    assert again.code == 1 and incomplete in again.text
    mock.configure(rules=[])
    mock.reset()
    retried = fresh.snakemake("retry", *options)
    assert retried.code == 0, retried.text
    assert mock.stats().models["alpha-1"] == 1
    assert fresh.plan(*options).idle
    accuracy = fresh.json("results/scores/alpha__plain/run1_strict/tiny/accuracy.json")
    assert accuracy["retryable"] == 0


def test_empty_dataset_and_missing_dataset(fresh: WorkflowProject) -> None:
    fresh.write_dataset([])
    called = fresh.snakemake("-n")
    assert called.code == 1
    assert "data/tiny.json: holds no item" in called.text
    (fresh.root / "data/tiny.json").unlink()
    called = fresh.snakemake("-n")
    assert called.code == 1
    assert "data/tiny.json" in called.text and "data/README.md" in called.text


def test_results_elsewhere(fresh: WorkflowProject, tmp_path: Path) -> None:
    elsewhere = tmp_path / "other disk" / "run 1"
    options = ("--config", "repeats=1", "modes=plain", f"results_root={elsewhere}")
    called = fresh.snakemake(*options)
    assert called.code == 0, called.text
    assert (elsewhere / "summary.md").exists()
    assert not (fresh.root / "results").exists()
    assert fresh.plan(*options).idle


def test_second_workflow_is_refused(fresh: WorkflowProject, mock: RunningMock) -> None:
    mock.configure(rules=[Rule(match="Question", judge=False, reply=Reply(hang_s=60))])
    options = ("predictions", "--config", "repeats=1", "modes=plain")
    first = subprocess.Popen(
        fresh.command(*options),
        cwd=fresh.root,
        env=fresh.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        mock.until(requests=1)
        second = fresh.snakemake(*options)
        assert second.code == 1
        assert "another workflow is working on these results" in second.text
        # Looking on is allowed.
        assert fresh.snakemake("list", *options[1:]).code == 0
    finally:
        first.kill()
        first.wait(timeout=60)


def test_judge_changed_half_way_does_not_mix(fresh: WorkflowProject) -> None:
    options = ("--config", "modes=plain", "repeats=2")
    scores = "results/scores/alpha__plain/run{}_strict/tiny/accuracy.json"
    assert fresh.snakemake(scores.format(1), *options).code == 0
    fresh.change_yaml("judge_configs/strict.yaml", temperature=0.3)
    assert fresh.snakemake(scores.format(2), *options).code == 0
    done = fresh.script("aggregate", "--repeats", "2")
    assert done.returncode == 0, done.stderr
    groups = fresh.json("results/summary.json")["groups"]
    assert len({group["judge"]["hash"] for group in groups}) == 2
    assert [row["CSR"]["runs"] for group in groups for row in group["rows"]] == [1, 1]
    assert "judge config" in (fresh.root / "results/summary.md").read_text("utf-8")
    # The next full call makes them alike again.
    assert fresh.snakemake(*options).code == 0
    (group,) = fresh.json("results/summary.json")["groups"]
    assert [row["CSR"]["runs"] for row in group["rows"]] == [2]


def test_judge_that_answers_nothing_is_an_error(fresh: WorkflowProject, mock: RunningMock) -> None:
    mock.configure(rules=[Rule(judge=True, reply=Reply(status=503))])
    options = ("--config", "modes=plain", "repeats=1")
    called = fresh.snakemake(*options)
    assert called.code == 1
    assert "judge_configs/strict.yaml" in called.text and "none of the requests" in called.text
    assert not list(fresh.root.glob("results/scores/*/*/*/results.json"))
    mock.configure(rules=[])
    assert fresh.snakemake(*options).code == 0


@pytest.mark.parametrize(
    ("file", "changes", "jobs"),
    [
        ("judge_configs/strict.yaml", {"temperature": 0.7}, JUDGE_JOBS),
        ("configs/alpha.yaml", {"modes": {"plain": {"temperature": 0.9}}}, None),
        ("configs/global.yaml", {"policy": "nemo-0.7"}, {"score": 4, "aggregate": 1, "all": 1}),
    ],
)
def test_a_change_is_noticed_without_snakemakes_records(
    finished: WorkflowProject, file: str, changes: dict[str, object], jobs: dict[str, int] | None
) -> None:
    shutil.rmtree(finished.root / ".snakemake")
    assert finished.plan().idle
    finished.change_yaml(file, **changes)
    planned = finished.plan().jobs
    assert planned == jobs or (jobs is None and planned["predict"] == 2)


def test_a_changed_dataset_is_noticed_without_snakemakes_records(
    finished: WorkflowProject,
) -> None:
    shutil.rmtree(finished.root / ".snakemake")
    rows = finished.dataset()
    rows[0]["constraints"][0]["evaluation"][0]["exec"] += "\n"
    finished.write_dataset(rows)
    assert finished.plan().jobs == JUDGE_JOBS


@pytest.mark.parametrize(
    ("deleted", "jobs"),
    [
        ("results/prediction/alpha__plain/run1/tiny.json", {"predict": 1, "judge": 1, "score": 1}),
        ("results/scores/alpha__plain/run1_strict/tiny/results.json", {"judge": 1, "score": 1}),
        ("results/scores/alpha__plain/run1_strict/tiny/accuracy.json", {"score": 1}),
    ],
)
def test_a_deleted_file_comes_back(
    finished: WorkflowProject, mock: RunningMock, deleted: str, jobs: dict[str, int]
) -> None:
    before = (finished.root / deleted).read_bytes()
    (finished.root / deleted).unlink()
    called = finished.snakemake()
    assert called.code == 0, called.text
    assert called.jobs == {**jobs, "aggregate": 1, "all": 1}
    assert (finished.root / deleted).read_bytes() == before
    assert mock.stats().requests == 0
    assert finished.plan().idle


RUN_CONFIG = "results/prediction/alpha__plain/run1/run_config.json"
JUDGED = "results/scores/alpha__plain/run1_strict/tiny"


@pytest.mark.parametrize(
    ("damaged", "content", "jobs", "reason"),
    [
        (RUN_CONFIG, '{"datasets": [5]}', {"predict": 1, "judge": 1, "score": 1}, "run_config"),
        (RUN_CONFIG, None, {"predict": 1, "judge": 1, "score": 1}, "run_config_damaged_or_gone"),
        (f"{JUDGED}/judge_run.json", "null", {"judge": 1, "score": 1}, "judge_run_damaged"),
        (f"{JUDGED}/judge_run.json", None, {"judge": 1, "score": 1}, "judge_run_damaged_or_gone"),
        (f"{JUDGED}/accuracy.json", "null", {"score": 1}, "score_damaged"),
        (f"{JUDGED}/accuracy.json", "a folder", {"score": 1}, "score_damaged"),
    ],
)
def test_a_damaged_file_is_made_again(
    finished: WorkflowProject,
    mock: RunningMock,
    damaged: str,
    content: str | None,
    jobs: dict[str, int],
    reason: str,
) -> None:
    path = finished.root / damaged
    before = path.read_bytes()
    path.unlink()
    if content == "a folder":
        path.mkdir()
    elif content is not None:
        path.write_text(content)
    called = finished.snakemake()
    assert called.code == 0, called.text
    assert called.jobs == {**jobs, "aggregate": 1, "all": 1}
    assert reason in called.text
    again, first = json.loads(path.read_bytes()), json.loads(before)
    for key in ("duration_s", "tokens"):  # nothing was asked
        again.pop(key, None), first.pop(key, None)
    assert again == first
    assert mock.stats().requests == 0
    assert finished.plan().idle


def test_limited_and_full_files_of_a_run_are_judged_together(
    fresh: WorkflowProject, mock: RunningMock
) -> None:
    options = ("--config", "modes=plain", "repeats=1")
    assert fresh.snakemake("predictions", *options, "limit=2").code == 0
    assert fresh.snakemake("predictions", *options).code == 0
    mock.configure(latency_s=0.3)
    try:
        called = fresh.snakemake("evaluations", *options, "judges=strict")
    finally:
        mock.configure(latency_s=0.0)
    assert called.code == 0, called.text
    assert called.jobs["judge"] == 2


def test_results_root_that_is_a_file(fresh: WorkflowProject) -> None:
    (fresh.root / "taken").write_text("", encoding="utf-8")
    called = fresh.snakemake("-n", "--config", "results_root=taken")
    assert called.code == 1
    assert "error: results_root: taken is a file" in called.text
