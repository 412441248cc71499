"""Killed at random moments and started again: everything continues, nothing is asked twice."""

import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from mock_endpoint import MockConfig, RunningMock, start_mock
from workflow_project import KEY, WorkflowProject, make_project

from adhere import journal

pytestmark = pytest.mark.workflow

ITEMS = 60
QUESTIONS = 3
KILLS_PREDICTING = 12
KILLS_JUDGING = 20
CONCURRENCY = 2
OPTIONS = ("--config", "modes=plain", "repeats=1", f"concurrency={CONCURRENCY}")
PREDICTIONS = "results/prediction/alpha__plain/run1/tiny.partial.jsonl"
REPLIES = "results/scores/alpha__plain/run1_strict/tiny.partial.jsonl"


def dataset() -> list[dict[str, Any]]:
    """Return items whose every request can be told apart by its text."""
    code = {"type": "code", "exec": "def check_following(response):\n    return 'a' in response\n"}
    items = []
    for item in range(ITEMS):
        chains: list[list[dict[str, str]]] = [
            [{"type": "llm", "exec": f"[{item}/{number}] Is it so? YES or NO. {{response}}"}]
            for number in range(QUESTIONS)
        ]
        constraints = [
            {"id": number, "dimension": "unconditional", "type": "semantic", "evaluation": chain}
            for number, chain in enumerate([*chains, [code]])
        ]
        messages = [{"role": "user", "content": f"[{item}] Say something."}]
        items.append({"id": item, "input": messages, "constraints": constraints})
    return items


@pytest.fixture
def slow_mock(tmp_path: Path) -> Iterator[RunningMock]:
    """A mock that takes long enough for a kill to fall between two answers."""
    config = MockConfig(require_key=KEY, latency_s=0.01, log_entries=100_000)
    with start_mock(tmp_path, config) as mock:
        yield mock


def start(project: WorkflowProject) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        project.command(*OPTIONS),
        cwd=project.root,
        env=project.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL a process and all its descendants, and wait until none is left."""
    parent = psutil.Process(process.pid)
    family = [*parent.children(recursive=True), parent]
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait(timeout=30)
    psutil.wait_procs(family, timeout=30)


def journaled(project: WorkflowProject, name: str) -> set[str]:
    """Return the places that a journal holds, as they are written into the requests."""
    entries = journal.read(project.root / name).values()
    if name == PREDICTIONS:
        return {f"[{entry['item']}]" for entry in entries}
    return {f"[{entry['item']}/{entry['constraint']}]" for entry in entries}


def asked(mock: RunningMock) -> list[str]:
    """Return the place of every request since the last reset."""
    return [entry.body["messages"][0]["content"].split(" ")[0] for entry in mock.log()]


def outcome(project: WorkflowProject) -> tuple[Any, Any]:
    folder = "results/scores/alpha__plain/run1_strict/tiny"
    accuracy = project.json(f"{folder}/accuracy.json")
    contents = [
        row["output"]["content"]
        for row in project.json("results/prediction/alpha__plain/run1/tiny.json")
    ]
    return contents, {key: accuracy[key] for key in ("CSR", "ISR", "coverage", "failure_stats")}


def test_killed_thirty_times_and_nothing_asked_twice(
    tmp_path: Path, slow_mock: RunningMock
) -> None:
    project = make_project(tmp_path / "killed", slow_mock.base_url, slow_mock.judge_url)
    project.write_dataset(dataset())
    points = random.Random(20261130)
    stages = {PREDICTIONS: ITEMS, REPLIES: ITEMS * QUESTIONS}
    inside: Counter[str] = Counter()
    for stage, kills in ((PREDICTIONS, KILLS_PREDICTING), (REPLIES, KILLS_JUDGING)):
        while inside[stage] < kills:
            before = {name: journaled(project, name) for name in stages}
            left = stages[stage] - len(before[stage])
            assert left > kills - inside[stage], "the stage ended before its kills"
            slow_mock.reset()
            process = start(project)
            # A stage's first answers, then the kill, which falls wherever the job then is.
            rest = 0 if stage == PREDICTIONS else ITEMS - len(before[PREDICTIONS])
            most = max(1, left // (kills - inside[stage] + 1))
            slow_mock.until(answered=rest + points.randint(1, most))
            kill_tree(process)
            after = {name: journaled(project, name) for name in stages}
            assert not {*asked(slow_mock)} & (before[PREDICTIONS] | before[REPLIES])
            inside[stage] += 0 < len(after[stage]) < stages[stage]
    before = {name: journaled(project, name) for name in stages}
    slow_mock.reset()
    called = project.snakemake(*OPTIONS)
    assert called.code == 0, called.text
    assert not {*asked(slow_mock)} & (before[PREDICTIONS] | before[REPLIES])
    assert project.plan(*OPTIONS).idle

    undisturbed = make_project(tmp_path / "calm", slow_mock.base_url, slow_mock.judge_url)
    undisturbed.write_dataset(dataset())
    assert undisturbed.snakemake(*OPTIONS).code == 0
    assert outcome(project) == outcome(undisturbed)
    assert sum(inside.values()) >= 30
