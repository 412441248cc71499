"""Files and folders that cannot be read or written, and what a call that fails says at its end."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from mock_endpoint import MockConfig, Reply, Rule, RunningMock, start_mock
from workflow_project import KEY, Called, WorkflowProject, make_project, model_config

pytestmark = pytest.mark.workflow

OPTIONS = ("--config", "repeats=1", "modes=plain")
JUDGED = "results/scores/alpha__plain/run1_strict"
KEPT = "is kept: the same command goes on from there"
# What lets root read and write whatever the modes of files say.
_ROOTS = "-dac_override,-dac_read_search"


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMock]:
    with start_mock(tmp_path_factory.mktemp("mock"), MockConfig(require_key=KEY)) as running:
        yield running


@pytest.fixture(scope="module")
def finished_tree(tmp_path_factory: pytest.TempPathFactory, mock: RunningMock) -> WorkflowProject:
    """A project that ran to its end once; never changed, only copied."""
    made = make_project(tmp_path_factory.mktemp("places") / "p", mock.base_url, mock.judge_url)
    called = made.snakemake(*OPTIONS)
    assert called.code == 0, called.text
    assert KEPT not in called.text
    return made


@pytest.fixture
def project(tmp_path: Path, finished_tree: WorkflowProject) -> WorkflowProject:
    root = tmp_path / "p"
    shutil.copytree(finished_tree.root, root, symlinks=True)
    return WorkflowProject(root)


@pytest.fixture(scope="module")
def ordinary() -> Sequence[str]:
    """What starts a command so that the modes of files count."""
    if os.geteuid():
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("not on this machine: setpriv (util-linux)")
    return ("setpriv", f"--bounding-set={_ROOTS}")


@contextmanager
def mode(path: Path, bits: int) -> Iterator[None]:
    before = path.stat().st_mode
    path.chmod(bits)
    try:
        yield
    finally:
        path.chmod(before)


def refused(called: Called, said: str) -> None:
    assert called.code == 1, called.text
    assert f"error: {said}" in called.text
    assert "Traceback" not in called.text
    assert "unexpected" not in called.text


@pytest.mark.parametrize("target", ["list", "estimate"])
def test_logs_that_cannot_be_written(
    project: WorkflowProject, ordinary: Sequence[str], target: str
) -> None:
    with mode(project.root / "logs", 0o555):
        called = project.snakemake(target, *OPTIONS, through=ordinary)
    refused(called, "logs: cannot be written in: correct its rights")


def test_results_that_cannot_be_written(project: WorkflowProject, ordinary: Sequence[str]) -> None:
    (project.root / "results/summary.md").unlink()
    with mode(project.root / "results", 0o555):
        assert project.snakemake("list", *OPTIONS, through=ordinary).code == 0
        called = project.snakemake(*OPTIONS, through=ordinary)
    refused(called, "results: cannot be written in: correct its rights")
    assert (project.root / "results/summary.json").exists(), "nothing is removed"


@pytest.mark.parametrize("folder", [f"{JUDGED}/tiny", "results/prediction/alpha__plain/run1"])
def test_a_selected_folder_that_cannot_be_read(
    project: WorkflowProject, ordinary: Sequence[str], folder: str
) -> None:
    with mode(project.root / folder, 0):
        refused(project.snakemake("-n", *OPTIONS, through=ordinary), folder)
        refused(project.snakemake("list", *OPTIONS, through=ordinary), folder)


@pytest.mark.parametrize("bits", [0, 0o444])
def test_what_else_cannot_be_read_is_named_in_the_summary(
    project: WorkflowProject, ordinary: Sequence[str], bits: int
) -> None:
    other = project.root / "results/scores/other__plain"
    other.mkdir()
    journal = project.root / JUDGED / "tiny.partial.jsonl"
    (project.root / "results/summary.md").unlink()
    with mode(other, bits), mode(journal, 0):
        called = project.snakemake(*OPTIONS, through=ordinary)
    assert called.code == 0, called.text
    summary = (project.root / "results/summary.md").read_text("utf-8")
    assert "| alpha | plain |" in summary
    said = "cannot be read: Permission denied"
    assert f"left out: results/scores/other__plain: {said}" in summary
    assert f"Not counted: {JUDGED}/tiny.partial.jsonl: {said}" in summary
    assert len(project.json("results/summary.json")["expenses_not_counted"]) == 2


def test_a_failed_job_ends_with_what_is_kept(project: WorkflowProject, mock: RunningMock) -> None:
    mock.configure(rules=[Rule(match="dead-1", reply=Reply(status=401))])
    project.write_yaml("configs/dead.yaml", model_config(mock.base_url, "dead-1"))
    assert KEPT not in project.plan(*OPTIONS).text
    # That no summary can be written is no reason for a traceback, either.
    summary = project.root / "results/summary.json"
    summary.unlink()
    (summary / "in the way").mkdir(parents=True)
    called = project.snakemake(*OPTIONS)
    mock.configure(rules=[])
    refused(called, "results/summary.json: cannot be written: Is a directory")
    assert called.text.count(KEPT) == 1
    assert "__onerror" not in called.text


def test_a_call_that_only_looks_on_says_nothing_of_it(project: WorkflowProject) -> None:
    (project.root / "data/tiny.json").unlink()
    called = project.snakemake("estimate", *OPTIONS)
    assert called.code == 1
    assert KEPT not in called.text


def test_an_interrupted_call_ends_with_what_is_kept(tmp_path: Path, mock: RunningMock) -> None:
    project = make_project(tmp_path / "p", mock.base_url, mock.judge_url)
    project.change_yaml("configs/alpha.yaml", concurrency=1)
    mock.reset()
    mock.configure(rules=[Rule(match="Question 2", judge=False, reply=Reply(hang_s=60))])
    running = subprocess.Popen(
        project.command(*OPTIONS),
        cwd=project.root,
        env=project.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    # One at a time: when the third is asked, two are answered and journaled.
    mock.until(requests=3)
    os.killpg(running.pid, signal.SIGINT)
    text, _ = running.communicate(timeout=60)
    mock.configure(rules=[])
    assert running.returncode != 0
    assert text.count(KEPT) == 1, text
    assert "Traceback" not in text
    called = project.snakemake(*OPTIONS)
    assert called.code == 0, called.text
    assert mock.stats().resent_after_ok == 0
