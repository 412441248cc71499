"""Killed at random moments and started again: everything continues, nothing is asked twice."""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mock_endpoint import ErrorBody, MockConfig, Reply, Rule, RunningMock, start_mock
from workflow_project import KEY, WorkflowProject, kill_tree, make_project

from adhere import journal
from adhere.jsonio import loads

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
            process = project.start(*OPTIONS)
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


FAULTS = [
    Rule(probability=0.1, times_per_body=1, reply=Reply(status=503)),
    Rule(probability=0.1, times_per_body=1, reply=Reply(reset=True)),
    Rule(probability=0.1, times_per_body=1, reply=Reply(raw_body='{"choices": [{"mess')),
    Rule(probability=0.1, reply=Reply(status=400, error=ErrorBody(message="our content policy"))),
    Rule(probability=0.1, reply=Reply(content=None)),
]


def unjournaled(project: WorkflowProject, mock: RunningMock) -> int:
    """Return how many answers of the mock no journal holds a line for; refusals are none."""
    lines = []
    for name in (PREDICTIONS, REPLIES):
        path = project.root / name
        lines += [loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
    kept = [line.get("output") or line["reply"] for line in lines]
    answers = sum((k.get("error") or {}).get("kind") in ("empty_answer", None) for k in kept)
    return mock.stats().answered - answers


def patient_project(root: Path, mock: RunningMock) -> WorkflowProject:
    """A project whose patience outlasts every fault that a retry heals."""
    project = make_project(root, mock.base_url, mock.judge_url)
    retry = {"attempts": 6, "first_wait_s": 0.01, "max_wait_s": 0.05, "timeout_s": 30.0}
    project.change_yaml("configs/global.yaml", retry=retry)
    project.write_dataset(dataset())
    return project


def test_faults_and_kills_change_no_number(tmp_path: Path, slow_mock: RunningMock) -> None:
    slow_mock.configure(rules=FAULTS)
    undisturbed = patient_project(tmp_path / "calm", slow_mock)
    assert undisturbed.snakemake(*OPTIONS).code == 0
    calm = slow_mock.stats()
    assert unjournaled(undisturbed, slow_mock) == 0
    numbers = outcome(undisturbed)
    assert len(numbers[0]) == ITEMS
    assert numbers[1]["coverage"]["expected"] == ITEMS * (QUESTIONS + 1)
    assert numbers[1]["coverage"]["unscored"] > 0
    assert {400, 503, 200} <= calm.statuses.keys()

    slow_mock.reset()
    project = patient_project(tmp_path / "killed", slow_mock)
    for enough in (ITEMS // 2, calm.requests // 2):
        process = project.start(*OPTIONS)
        slow_mock.until(requests=enough)
        kill_tree(process)
    slow_mock.until(finished=slow_mock.stats().requests)
    in_flight = unjournaled(project, slow_mock)
    assert 0 <= in_flight <= 2 * CONCURRENCY
    called = project.snakemake(*OPTIONS)
    assert called.code == 0, called.text
    assert unjournaled(project, slow_mock) == in_flight
    assert outcome(project) == numbers
