"""Agents' recorded runs: judged like any other model's answers, and no model is asked."""

from pathlib import Path
from typing import Any

import pytest
from mock_endpoint import MockConfig, Reply, Rule, RunningMock, start_mock
from workflow_project import KEY, WorkflowProject, make_project

from adhere.config import Project, load_project
from adhere.data import Dataset, given, seen
from adhere.errors import ConfigError, DataError
from adhere.jsonio import fingerprint, read_json
from adhere.plan import make_plan
from adhere.prediction import asks_model, task_of, unanswered
from adhere.status import prediction_differs

GOOD = """Thought: I look the order up before I say anything.
Action: find_order
Action Input: {"order": "A-%d"}
Observation: shipped on Monday
Final Answer: Your order A-%d was shipped on Monday.
"""
# Answers from nothing.
BAD = "Thought: I know that already.\nFinal Answer: Your order A-%d was shipped.\n"
KEYLESS: dict[str, str | None] = {"MOCK_API_KEY": None}


def rules_set(items: int, **extra: Any) -> dict[str, Any]:
    """Return a set whose items want a look-up before the answer."""
    constraints = [
        {"id": "looks-up", "rule": "must_call_tool", "args": {"tool": "find_order"}},
        {"id": "says-when", "rule": "contains", "args": {"keyword": "Monday"}},
    ]
    texts = {"instruction": "Tell the customer where the order is.", "constraints": constraints}
    return {"items": [{"id": f"o{n}", **texts, **extra} for n in range(items)]}


def record(root: Path, folder: str, bad: tuple[int, ...] = (), items: int = 3) -> None:
    """Write an agent's runs."""
    (root / folder).mkdir(parents=True, exist_ok=True)
    for number in range(items):
        text = BAD % number if number in bad else GOOD % (number, number)
        (root / folder / f"o{number}.txt").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Any:
    config = MockConfig(
        require_key=KEY, rules=[Rule(judge=False, reply=Reply(content="Ask on Monday."))]
    )
    with start_mock(tmp_path_factory.mktemp("mock"), config) as running:
        yield running


@pytest.fixture
def made(tmp_path: Path, mock: RunningMock) -> WorkflowProject:
    project = make_project(tmp_path / "p", mock.base_url, mock.judge_url)
    project.write_yaml("data/orders.yaml", rules_set(3))
    project.change_yaml(
        "configs/global.yaml",
        datasets={"orders": "data/orders.yaml"},
        default_datasets=["orders"],
        default_judge="rules-only",
    )
    (project.root / "judge_configs" / "strict.yaml").unlink()
    project.write_yaml("configs/agent-v1.yaml", {"recorded": {"trajectories": "runs/v1/{id}.txt"}})
    record(project.root, "runs/v1", bad=(1,))
    return project


def loaded(project: WorkflowProject) -> Project:
    return load_project(project.root)


def cell_task(project: WorkflowProject, model: str = "agent-v1") -> Any:
    plan = make_plan(loaded(project), {"models": model})
    return task_of(plan.project, next(plan.cells()))


def test_recorded_runs_are_judged_and_nothing_is_asked(
    made: WorkflowProject, mock: RunningMock
) -> None:
    asked = mock.stats().requests
    called = made.snakemake("--config", "models=agent-v1", env=KEYLESS)
    assert called.code == 0, called.text
    assert mock.stats().requests == asked
    rows = made.json("results/prediction/agent-v1__default/run1/orders.json")
    assert [row["output"]["flags"] for row in rows] == [["recorded"]] * 3
    assert rows[0]["output"]["content"] == "Your order A-0 was shipped on Monday."
    assert rows[0]["output"]["trajectory"] == GOOD % (0, 0)
    scores = "results/scores/agent-v1__default/run1_rules-only/orders"
    judged = made.json(f"{scores}/results.json")
    assert [[c["score"] for c in row["constraints"]] for row in judged] == [
        [True, True],
        [False, False],
        [True, True],
    ]
    config = made.json("results/prediction/agent-v1__default/run1/run_config.json")
    assert config["engine"]["name"] == "recorded"
    # Recorded once, so there is one run although `repeats` says two.
    assert not (made.root / "results/prediction/agent-v1__default/run2").exists()
    assert " of " not in _row_of(made.root, "agent-v1")
    assert made.plan("--config", "models=agent-v1", env=KEYLESS).idle

    record(made.root, "runs/v1")
    planned = made.plan("--config", "models=agent-v1", env=KEYLESS)
    assert planned.jobs["predict"] == 1
    called = made.snakemake("--config", "models=agent-v1", env=KEYLESS)
    assert called.code == 0, called.text
    assert made.json(f"{scores}/accuracy.json")["CSR"]["rate"] == 1.0


def test_items_with_a_recording_ask_no_model_of_any_kind(
    made: WorkflowProject, mock: RunningMock
) -> None:
    content = rules_set(3)
    for number in (0, 2):
        content["items"][number]["trajectory"] = f"../runs/v1/o{number}.txt"
    made.write_yaml("data/orders.yaml", content)
    asked = mock.stats().requests
    called = made.snakemake("predictions", "--config", "models=alpha", "modes=plain", "repeats=1")
    assert called.code == 0, called.text
    assert mock.stats().requests == asked + 1
    rows = made.json("results/prediction/alpha__plain/run1/orders.json")
    assert [row["output"]["flags"] for row in rows] == [["recorded"], [], ["recorded"]]
    assert rows[1]["output"]["content"] == "Ask on Monday."
    # With all of them recorded, neither a key nor a server is needed.
    content["items"][1]["trajectory"] = "../runs/v1/o1.txt"
    made.write_yaml("data/orders.yaml", content)
    local = {"engine": "llamacpp", "model_path": "/no/such.gguf", "max_model_len": 512}
    made.write_yaml("configs/local.yaml", {**local, "modes": {"plain": {}}})
    called = made.snakemake(
        "predictions", "--config", "models=alpha,local", "modes=plain", env=KEYLESS
    )
    assert called.code == 0, called.text
    assert "serve" not in called.jobs
    assert mock.stats().requests == asked + 1


def test_missing_recordings_are_named_before_anything_runs(made: WorkflowProject) -> None:
    for number in (0, 2):
        (made.root / f"runs/v1/o{number}.txt").unlink()
    called = made.snakemake("--config", "models=agent-v1,alpha")
    assert called.code != 0
    expected = (
        "configs/agent-v1.yaml: recorded: no trajectory for 2 of 3 items of orders: "
        "item 1 (id o0) (runs/v1/o0.txt), item 3 (id o2) (runs/v1/o2.txt)"
    )
    assert expected in called.text
    assert not (made.root / "results").exists()


def test_a_recording_that_cannot_be_read_is_named_before_anything_runs(
    made: WorkflowProject,
) -> None:
    (made.root / "runs/v1/o1.txt").write_text('{"schema_version": "ATIF-v9"}', encoding="utf-8")
    called = made.snakemake("--config", "models=agent-v1")
    assert called.code != 0
    assert "runs/v1/o1.txt" in called.text
    assert "ATIF-v9" in called.text


def test_a_limit_needs_only_the_first_recordings(made: WorkflowProject) -> None:
    (made.root / "runs/v1/o2.txt").unlink()
    plan = make_plan(loaded(made), {"models": "agent-v1", "limit": 2})
    assert unanswered([task_of(plan.project, cell) for cell in plan.cells()]) == 0
    with pytest.raises(DataError, match=r"item 3 \(id o2\)"):
        cell_task(made)


def test_a_changed_file_is_another_input(made: WorkflowProject) -> None:
    before = cell_task(made)
    (made.root / "runs/v1/o1.txt").write_text(GOOD % (9, 9), encoding="utf-8")
    after = cell_task(made)
    same = [a == b for a, b in zip(before.fingerprints, after.fingerprints, strict=True)]
    assert same == [True, False, True]
    assert before.dataset.inputs_sha256 != after.dataset.inputs_sha256
    assert before.dataset.sha256 == after.dataset.sha256


def test_runs_recorded_apart_are_runs(made: WorkflowProject) -> None:
    made.write_yaml("configs/agent-v1.yaml", {"recorded": {"trajectories": "r/{run}/{id}.txt"}})
    record(made.root, "r/1")
    record(made.root, "r/2", bad=(0,))
    plan = make_plan(loaded(made), {"models": "agent-v1"})
    tasks = [task_of(plan.project, cell) for cell in plan.cells()]
    assert [task.cell.run for task in tasks] == [1, 2]
    assert tasks[0].dataset.rows[0]["trajectory"] == GOOD % (0, 0)
    assert tasks[1].dataset.rows[0]["trajectory"] == BAD % 0


def test_items_keep_their_own_recording_where_there_is_no_file(made: WorkflowProject) -> None:
    content = rules_set(3)
    content["items"][2]["trajectory"] = "../kept.txt"
    made.write_yaml("data/orders.yaml", content)
    (made.root / "kept.txt").write_text(BAD % 7, encoding="utf-8")
    (made.root / "runs/v1/o2.txt").unlink()
    rows = cell_task(made).dataset.rows
    assert [row["trajectory"] for row in rows] == [GOOD % (0, 0), BAD % 1, BAD % 7]
    made.write_yaml("configs/agent-v1.yaml", {"recorded": {}})
    with pytest.raises(DataError, match="no trajectory for 2 of 3 items"):
        cell_task(made)


def test_an_id_is_no_way_out_of_the_folder(made: WorkflowProject) -> None:
    content = rules_set(1)
    content["items"][0]["id"] = "../../configs/global"
    made.write_yaml("data/orders.yaml", content)
    with pytest.raises(DataError) as caught:
        cell_task(made)
    reason = "item 1 (id ../../configs/global) (an id with `..` or a leading `/` names no file)"
    assert reason in str(caught.value)


def test_the_format_may_be_named(made: WorkflowProject) -> None:
    recorded = {"trajectories": "runs/v1/{id}.txt", "format": "react"}
    made.write_yaml("configs/agent-v1.yaml", {"recorded": recorded})
    task = cell_task(made)
    assert task.dataset.rows[0]["trajectory_format"] == "react"
    made.write_yaml("configs/agent-v1.yaml", {"recorded": {**recorded, "format": "atif"}})
    with pytest.raises(DataError, match=r"o0\.txt"):
        cell_task(made)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"recorded": {"trajectories": "runs/v1.json"}}, "must hold {id}"),
        ({"recorded": {}, "modes": {"plain": {}}}, "has `modes` beside `recorded`"),
        (
            {"recorded": {}, "api": {"base_url": "http://h/v1", "model": "m"}},
            "`api` and `recorded`",
        ),
        ({"recorded": {}, "model_path": "/m"}, "`model_path` and `recorded`"),
    ],
)
def test_wrong_configurations_are_refused(
    made: WorkflowProject, content: dict[str, Any], words: str
) -> None:
    made.write_yaml("configs/agent-v1.yaml", content)
    with pytest.raises(ConfigError, match=words):
        loaded(made)


def test_ordinary_datasets_keep_their_fingerprints() -> None:
    """Journals of earlier versions stay valid: what a plain item is asked is its messages."""
    rows = tuple({"id": n, "input": [{"role": "user", "content": str(n)}]} for n in range(2))
    assert [given(row) for row in rows] == [row["input"] for row in rows]
    assert [seen(row) for row in rows] == [row["input"] for row in rows]
    dataset = Dataset("d", Path("d"), rows, "", 2)
    assert dataset.inputs_sha256 == fingerprint([row["input"] for row in rows])


def test_an_existing_prediction_knows_its_recordings(made: WorkflowProject) -> None:
    called = made.snakemake("predictions", "--config", "models=agent-v1")
    assert called.code == 0, called.text
    project = loaded(made)
    plan = make_plan(project, {"models": "agent-v1"})
    cell = next(plan.cells())
    task = task_of(project, cell)
    assert not prediction_differs(project, cell, task.dataset)
    assert not asks_model(task.dataset.rows)
    record(made.root, "runs/v1", bad=(0,))
    assert prediction_differs(project, cell, task.dataset)
    rows = read_json(made.root / "results/prediction/agent-v1__default/run1/orders.json")
    assert len(rows) == 3


def _row_of(root: Path, model: str) -> str:
    """Return a model's line in the summary's first table."""
    lines = (root / "results" / "summary.md").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("|") and model in line)
