"""A team's repository: set, baseline, a worse agent, a red gate; and what people do afterwards."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from mock_endpoint import MockConfig, RunningMock, start_mock
from team_project import ITEMS, answers, instruction_set, make_team
from workflow_project import KEY, ROOT, WorkflowProject, judge_config

from adhere.csv_table import read_csv, write_csv
from adhere.instruction_set import read_set, to_rows
from adhere.jsonio import read_jsonl

pytestmark = pytest.mark.workflow

GATE = {
    "at_least": {"category.hard": 0.95},
    "no_worse": {"constraint_rate": 0.1, "all_pass_rate": 0.15},
}


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMock]:
    """The agent and the judge."""
    with start_mock(tmp_path_factory.mktemp("mock"), MockConfig(require_key=KEY)) as running:
        yield running


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, mock: RunningMock) -> WorkflowProject:
    """A team whose agent was good when it took its baseline; never changed, only copied."""
    answers(mock)
    project = make_team(tmp_path_factory.mktemp("team") / "repository", mock, gate=GATE)
    first = project.snakemake("gate")
    # There is nothing to compare with yet: that is no pass.
    assert first.code == 3, first.text
    assert "# Gate: not enough evidence" in first.text
    assert "there is no baseline: run `snakemake baseline`" in first.text
    stored = project.snakemake("baseline")
    assert stored.code == 0, stored.text
    assert stored.jobs == {"baseline": 1}
    return project


@pytest.fixture
def team(tmp_path: Path, finished: WorkflowProject) -> WorkflowProject:
    """A team of the test's own."""
    shutil.copytree(finished.root, tmp_path / "repository", symlinks=True)
    return WorkflowProject(tmp_path / "repository")


def test_the_gate_goes_red_and_names_the_reason(team: WorkflowProject, mock: RunningMock) -> None:
    same = team.snakemake("gate")
    assert same.code == 0, same.text
    assert same.jobs == {"gate": 1}
    assert "# Gate: pass" in same.text
    # In CI a pull request starts from the committed files.
    shutil.rmtree(team.root / "results")
    answers(mock, range(12))
    red = team.snakemake("gate")
    assert red.code == 1, red.text
    page = (team.root / "results/gate.md").read_text("utf-8")
    assert page in red.text
    for text in (
        "# Gate: fail",
        "category.hard: fail: below, and by more than chance",
        "constraint_rate: fail: worse than the baseline, by more than is allowed",
        "| item-3 ",
        "5 sentences, at most 2 required",
        "not JSON",
        "By rule or kind: json 12, sentences 12.",
    ):
        assert text in page, text
    document = team.json("results/gate.json")
    assert (document["outcome"], document["exit_code"]) == ("fail", 1)
    (subject,) = document["subjects"]
    assert {worse["item"] for worse in subject["got_worse"]} == {f"item-{n}" for n in range(12)}
    items = read_csv(team.root / "results/items.csv")
    assert len(items) == 2 * ITEMS
    assert sum(item["all_passed"] == "FALSE" for item in items) == 2 * 12
    again = team.script("gate")
    assert again.returncode == 1 and page in again.stdout
    summary = (team.root / "results/summary.md").read_text("utf-8")
    assert "| category hard " in summary and "worst rules: json 50.0 %" in summary


def test_rules_alone_need_no_judge_and_are_marked(team: WorkflowProject, mock: RunningMock) -> None:
    answers(mock)
    no_key = judge_config(mock.judge_url) | {"api_key_env": "NOT_SET"}
    team.write_yaml("judge_configs/strict.yaml", no_key)
    mock.reset()
    called = team.snakemake("gate", "--config", "judges=rules-only")
    assert called.code == 0, called.text
    assert mock.stats().requests == 0
    assert f"rules only: {2 * ITEMS} constraints that need a judge were not asked" in called.text
    assert "judge strict, and this is agent plain, judge rules-only" in called.text
    folder = "results/scores/agent__plain/run1_rules-only/team"
    accuracy = team.json(f"{folder}/accuracy.json")
    assert accuracy["comparable"] is False
    assert accuracy["failure_stats"] == {"not_asked": ITEMS}
    assert (accuracy["ISR"]["passed"], accuracy["ISR"]["counted"]) == (ITEMS, ITEMS)
    assert accuracy["retryable"] == 0
    groups = team.json("results/summary.json")["groups"]
    assert [group["judge"]["name"] for group in groups] == ["rules-only", "strict"]
    summary = (team.root / "results/summary.md").read_text("utf-8")
    assert "Rules only: what needs a judge was not asked." in summary
    dry = team.plan("--config", "judges=rules-only", "repeats=3", env={"NOT_SET": None})
    assert dry.jobs == {"predict": 1, "judge": 1, "score": 1, "aggregate": 1, "all": 1}


def test_a_changed_set_is_compared_on_what_both_have(
    team: WorkflowProject, mock: RunningMock
) -> None:
    answers(mock)
    content = instruction_set(ITEMS + 1)
    for item in content["items"]:
        item["instruction"] = item["instruction"].replace("Give", "Please give")
    provenance = {"review_by": "2020-02-29"}
    content["items"][0]["constraints"] = [
        {"id": "json", "rule": "json", "category": "hard", "provenance": provenance}
    ]
    team.write_yaml("data/team.yaml", content)
    called = team.snakemake("gate")
    assert called.code == 0, called.text
    # One item is new, and three constraints of the first one are gone.
    told = f"new items: 1, reworded items: {ITEMS}, constraints gone: 3"
    assert f"the dataset differs from the baseline's ({told})" in called.text
    assert f"on {4 * ITEMS - 3} constraints of {ITEMS} items" in called.text
    due = "team: item-0: json: review was due on 2020-02-29"
    assert due in called.text
    assert due in team.snakemake("list").text


def test_failures_are_kept_and_become_items(team: WorkflowProject, mock: RunningMock) -> None:
    shutil.rmtree(team.root / "results")
    answers(mock, range(2))
    assert team.snakemake().code == 0
    called = team.snakemake("archive")
    assert called.code == 0, called.text
    assert called.jobs == {"archive": 1}
    assert "4 new failures, 4 seen again; 4 in all" in called.text
    entries = read_jsonl(team.root / "archive/failures.jsonl")
    assert {(entry["item"], entry["constraint"], entry["count"]) for entry in entries} == {
        (f"item-{n}", name, 2) for n in range(2) for name in ("json", "short")
    }
    done = team.script("archive", "--to-set", "data/new.yaml", "--kind", "format")
    assert done.returncode == 0, done.stderr
    rows = to_rows(read_set(team.root / "data/new.yaml"))
    assert [row["id"] for row in rows] == ["team-item-0", "team-item-1"]
    again = team.script("archive", "--to-set", "data/new.yaml")
    assert again.returncode == 1 and "exists already" in again.stderr


def test_people_check_the_judge(team: WorkflowProject) -> None:
    called = team.snakemake("spotcheck")
    assert called.code == 0, called.text
    assert called.jobs == {"spotcheck": 1}
    rows = read_csv(team.root / "spotcheck/sheet.csv")
    # A tenth of the judge's verdicts at least; every one of them said followed.
    assert len(rows) >= 0.1 * 2 * ITEMS
    assert all(row["requirement"] == "The answer must be polite." for row in rows)
    labels = [
        [row["key"], "violated" if n == 0 else "followed", "rude" if n == 0 else ""]
        for n, row in enumerate(rows)
    ]
    write_csv(team.root / "spotcheck/labels/ann.csv", ["key", "label", "note"], labels)
    called = team.snakemake("spotcheck")
    assert called.code == 0, called.text
    assert "ann: rude" in called.text
    report = team.json("spotcheck/report.json")
    (judge,) = report["judges"]
    (error,) = judge["errors"]
    assert (error["type"], error["judge_said"], error["verdicts"]) == (
        "content",
        "followed",
        2 * ITEMS,
    )
    (rate,) = report["rates"]
    assert rate["measured"] == 1.0
    # A quarter of what is scored comes from the judge.
    wrong = error["wrong"] / error["labelled"]
    assert rate["corrected"]["value"] == pytest.approx(1 - wrong / 4)
    assert rate["corrected"]["low"] < rate["corrected"]["value"] < rate["corrected"]["high"] <= 1


@pytest.mark.parametrize(("bad", "code", "warned"), [(0, 0, False), (3, 0, True), (14, 1, False)])
def test_the_github_actions_example_runs(
    team: WorkflowProject, mock: RunningMock, bad: int, code: int, warned: bool
) -> None:
    example = yaml.safe_load((ROOT / "examples/github-actions/gate.yml").read_text("utf-8"))
    (step,) = [s for s in example["jobs"]["gate"]["steps"] if s.get("name") == "Gate"]
    shutil.rmtree(team.root / "results")
    activate = team.root / ".venv/bin/activate"
    activate.parent.mkdir(parents=True)
    activate.write_text(f"export PATH='{Path(sys.executable).parent}':$PATH\n", encoding="utf-8")
    summary = team.root / "step-summary.md"
    answers(mock, range(bad))
    selection = example["env"]["SELECTION"]
    selection = selection.replace("my-agent", "agent").replace("my-set", "team")
    done = subprocess.run(
        # As the runner starts a step's script.
        ["bash", "--noprofile", "--norc", "-e", "-c", step["run"]],
        cwd=team.root,
        env=team.environment({"SELECTION": selection, "GITHUB_STEP_SUMMARY": str(summary)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == code, done.stdout
    assert ("::warning title=Gate::" in done.stdout) is warned
    outcome = {0: "pass", 3: "not enough evidence", 14: "fail"}[bad]
    assert summary.read_text("utf-8").startswith(f"# Gate: {outcome}")


def test_what_is_missing_is_said_in_a_line(team: WorkflowProject) -> None:
    shutil.rmtree(team.root / "results")
    called = team.snakemake("baseline")
    assert called.code == 1
    assert "nothing that is selected is scored: run `snakemake` first" in called.text
    team.change_yaml("configs/global.yaml", gate={"no_worse": {"CSR": 0.1}})
    called = team.snakemake("gate", "-n")
    assert called.code == 1
    assert (
        "configs/global.yaml: gate.no_worse: " in called.text and "'CSR' is no rate" in called.text
    )
