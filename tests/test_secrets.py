"""A canary key is used all through a run with failures, and then looked for everywhere."""

import subprocess
import threading
from pathlib import Path

import psutil
import pytest
from mock_endpoint import ErrorBody, MockConfig, Reply, Rule, start_mock
from workflow_project import KEY, WorkflowProject, make_project, model_config

pytestmark = pytest.mark.workflow


def run_watched(project: WorkflowProject, *arguments: str) -> tuple[int, str, set[str]]:
    """Run Snakemake; return its exit code, its output, and every command line seen meanwhile."""
    process = subprocess.Popen(
        project.command(*arguments),
        cwd=project.root,
        env=project.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    listing: set[str] = set()
    ended = threading.Event()

    def watch() -> None:
        parent = psutil.Process(process.pid)
        while not ended.wait(0.02):
            try:
                family = [parent, *parent.children(recursive=True)]
                listing.update(" ".join(member.cmdline()) for member in family)
            except psutil.Error:
                continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    output, _ = process.communicate(timeout=300)
    ended.set()
    watcher.join()
    return process.returncode, output, listing


def test_the_canary_is_nowhere(tmp_path: Path) -> None:
    echo = ErrorBody(message=f"Incorrect API key provided: {KEY}", code="invalid_api_key")
    rules = [
        Rule(match="refused-1", reply=Reply(status=401, error=echo)),
        Rule(match="Question 1", judge=False, reply=Reply(status=500, error=echo)),
        Rule(match="Question 2", judge=False, reply=Reply(status=400, error=echo)),
        Rule(match="Is it short", judge=True, reply=Reply(status=503, error=echo)),
    ]
    with start_mock(tmp_path, MockConfig(require_key=KEY, rules=rules)) as mock:
        project = make_project(tmp_path / "project", mock.base_url, mock.judge_url)
        project.write_yaml("configs/refused.yaml", model_config(mock.base_url, "refused-1"))
        code, output, listing = run_watched(project)
        assert code == 1
        assert "configs/refused.yaml" in output
        # The key was really used, and the server really said it back.
        assert mock.stats().answered > 0
        statuses = mock.stats().statuses
        assert statuses.keys() >= {200, 400, 401, 500}
        more = [project.snakemake("list"), project.snakemake("retry"), project.plan()]
    assert KEY not in output
    assert all(KEY not in called.text for called in more)
    assert len(listing) > 3
    assert not [line for line in listing if KEY in line]
    files = [path for path in project.root.rglob("*") if path.is_file()]
    names = {path.relative_to(project.root).parts[0] for path in files}
    assert {"results", "logs", ".snakemake"} <= names
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
