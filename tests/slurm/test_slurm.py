"""The whole workflow under profiles/slurm, on a real Slurm with fake GPUs."""

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import pytest
from cluster import GPUS, Cluster, SlurmJob
from cluster_project import MODELS, ClusterProject, files_with, make_cluster_project
from mock_endpoint import MockConfig, RunningMock, start_mock
from workflow_project import KEY, KEY_VARIABLE

# One worker runs them all, for one Slurm is enough.
pytestmark = [
    pytest.mark.slurm,
    pytest.mark.workflow,
    pytest.mark.engine,
    pytest.mark.xdist_group("slurm"),
]
ANSWERS = 6  # three items, two runs


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[RunningMock]:
    with start_mock(tmp_path, MockConfig(require_key=KEY)) as mock:
        yield mock


@pytest.fixture
def make(tmp_path: Path, cluster: Cluster, judge: RunningMock) -> Callable[[int], ClusterProject]:
    """Return a function that makes a project, whose models write so many tokens an answer."""

    def make(tokens: int) -> ClusterProject:
        return make_cluster_project(tmp_path / "project", cluster, judge.base_url, tokens)

    return make


def finished(made: ClusterProject) -> None:
    """Everything is predicted and scored, no answer was given twice, and nothing runs any more."""
    for model in MODELS:
        rows = made.rows(model)
        assert len(rows) == ANSWERS and all(row["output"]["error"] is None for row in rows)
        lines = made.journal_lines(model)
        assert len(lines) == len({line["fp"] for line in lines}) == ANSWERS
    summary = (made.project.root / "results" / "summary.md").read_text("utf-8")
    assert all(model in summary for model in MODELS)
    assert made.running_servers() == []


def two_at_work(made: ClusterProject) -> list[str]:
    """Return the models that are being served once two have answered something."""
    running = [model for model in MODELS if made.job_of(model, "RUNNING")]
    return running if all(map(made.journal_lines, running)) and len(running) == 2 else []


def overlap(one: SlurmJob, other: SlurmJob) -> bool:
    return one.start < other.end and other.start < one.end


def test_models_share_the_gpus_of_a_node(
    make: Callable[[int], ClusterProject], judge: RunningMock
) -> None:
    made = make(8)
    made.exports_key = False
    (made.project.root / ".env").write_text(f"{KEY_VARIABLE}={KEY}\n")
    with made.watched():
        called = made.run()
    assert called.code == 0, called.text
    finished(made)
    jobs = {job.comment.removeprefix("rule_serve_wildcards_"): job for job in made.table.values()}
    jobs = {model: job for model, job in jobs.items() if job.workdir == str(made.project.root)}
    print(made.report())
    # Only what takes GPUs went to a node; what calls an endpoint and what counts stayed here.
    assert sorted(jobs) == sorted(MODELS)
    assert {job.state for job in jobs.values()} == {"COMPLETED"}
    # Every server saw two of the four devices, and none that another one had at the time.
    assert sorted(server.model for server in made.servers.values()) == sorted(MODELS)
    devices = {server.model: set(server.gpus.split(",")) for server in made.servers.values()}
    assert all(len(seen) == 2 for seen in devices.values())
    assert set().union(*devices.values()) == {str(number) for number in range(GPUS)}
    overlapping = [pair for pair in combinations(MODELS, 2) if overlap(*(jobs[m] for m in pair))]
    assert overlapping and all(not devices[a] & devices[b] for a, b in overlapping)
    # The judge's key was used, and came to no file, job or process of the cluster.
    assert judge.stats().answered > 0
    assert made.leaks == set()
    assert files_with(KEY, made.project.root) == {str(made.project.root / ".env")}
    assert "Nothing to be done" in made.run("-n").text


def test_a_cancelled_job_and_a_dead_node_are_made_up_for(
    make: Callable[[int], ClusterProject], cluster: Cluster
) -> None:
    made = make(60)
    call = made.start()
    cancelled, lost = made.until(lambda: two_at_work(made), call)
    made.freeze_servers()
    job = made.job_of(cancelled, "RUNNING")
    assert job is not None
    # An exported key is in the environment that Slurm keeps of a job, but nothing shows it.
    shown = cluster.ask("scontrol", "show", "job") + cluster.ask("squeue", "--format=%all")
    assert KEY not in shown + cluster.ask("scontrol", "write", "batch_script", job.id, "-")
    cluster.ask("scancel", job.id)
    made.until(lambda: made.job_of(cancelled, "CANCELLED"), call)
    cluster.kill_node_daemon()
    cluster.declare_node_down()
    made.until(lambda: made.job_of(lost, "NODE_FAIL"), call)
    cluster.restart_node_daemon()
    called = made.ended(call)
    assert called.code != 0
    assert f"SLURM-job '{job.id}' failed, SLURM status is: 'CANCELLED'" in called.text
    assert "failed due to a node failure" in called.text
    kept = {model: made.journal_lines(model) for model in MODELS}
    assert kept[cancelled] and kept[lost]
    called = made.run()
    assert called.code == 0, called.text
    finished(made)
    for model in MODELS:
        assert made.journal_lines(model)[: len(kept[model])] == kept[model]


def test_a_later_call_takes_over_from_one_that_was_killed(
    make: Callable[[int], ClusterProject], cluster: Cluster
) -> None:
    made = make(60)
    call = made.start()
    served = made.until(lambda: two_at_work(made), call)
    first = [job for job in cluster.jobs() if job.workdir == str(made.project.root)]
    assert len(first) == 3
    call.kill()
    call.wait()
    # On the node nothing is lost with the login node: the servers go on answering.
    before = [len(made.journal_lines(model)) for model in served]
    made.until(
        lambda: any(len(made.journal_lines(m)) > n for m, n in zip(served, before, strict=True))
    )
    made.freeze_servers()
    called = made.run()
    assert called.code == 0, called.text
    finished(made)
    # Its successor's claim ended every job of the first call, the waiting one too.
    states = {job.id: job.state for job in cluster.jobs()}
    assert all(states[job.id] in ("FAILED", "COMPLETED") for job in first)
    assert "FAILED" in [states[job.id] for job in first]
