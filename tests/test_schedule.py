"""The order of serving: what a schedule promises, what Snakemake does with it, where times come
from."""

import itertools
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pulp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workflow_project import WorkflowProject, make_project

from adhere import files
from adhere.config import ModelConfig
from adhere.config.load import parse
from adhere.errors import ConfigError
from adhere.jsonio import loads, write_json
from adhere.plan import Cell
from adhere.scheduling import Job, Schedule, schedule, search
from adhere.scheduling.bounds import lower_bound
from adhere.scheduling.durations import Record, Serving, Work, earlier_runs, estimate
from adhere.scheduling.milp import ideal
from adhere.scheduling.report import Beside, describe
from adhere.scheduling.simulate import makespan, starts
from adhere.workflow import make_view

EPSILON = 1e-6


@st.composite
def instances(draw: st.DrawFn, most: int = 9) -> tuple[list[Job], int]:
    """Return jobs that fit into a pool of one to eight GPUs; some take none."""
    pool = draw(st.integers(1, 8))
    sizes = draw(st.lists(st.integers(0, pool), max_size=most))
    seconds = st.floats(0.5, 100_000.0, allow_nan=False)
    return [Job(f"m{i}", size, draw(seconds)) for i, size in enumerate(sizes)], pool


def best_of_all(jobs: Sequence[Job], pool: int) -> float:
    """Return the least makespan over every order."""
    gpus, seconds = [j.gpus for j in jobs], [j.seconds for j in jobs]
    orders = itertools.permutations(range(len(jobs)))
    return min(makespan(order, gpus, seconds, pool) for order in orders)


def assert_feasible(plan: Schedule) -> None:
    """Every job once, for its whole time, on lanes that nobody else has meanwhile."""
    assert sorted(j.name for j in plan.jobs) == sorted(p.job.name for p in plan.placements)
    for p in plan.placements:
        assert len(set(p.lanes)) == p.job.gpus
        assert all(0 <= lane < plan.pool for lane in p.lanes)
        assert p.end == p.start + p.job.seconds
    for one, other in itertools.combinations(plan.placements, 2):
        if set(one.lanes) & set(other.lanes):
            assert one.end <= other.start or other.end <= one.start


@settings(deadline=None, max_examples=150)
@given(instances())
def test_a_schedule_keeps_its_promises(instance: tuple[list[Job], int]) -> None:
    jobs, pool = instance
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "ideal", lambda *_: None)  # a machine without a solver
        plan = schedule(jobs, pool)
        assert schedule(jobs[::-1], pool) == plan
    assert {job.name for job in plan.jobs} == {job.name for job in jobs}
    assert_feasible(plan)
    assert plan.makespan >= plan.bound * (1 - EPSILON)
    assert plan.makespan <= plan.greedy * (1 + EPSILON)


def test_an_order_for_the_unforeseen_does_not_cost_the_foreseen() -> None:
    # On average over other durations another order is better, which as estimated takes 21,000 s.
    sizes = ((1, 8), (3, 2), (4, 5), (1, 9), (3, 4), (4, 3))
    jobs = [Job(f"m{i}", gpus, 1000.0 * seconds) for i, (gpus, seconds) in enumerate(sizes)]
    plan = schedule(jobs, 4)
    assert plan.makespan == plan.greedy == 20_000.0


@settings(deadline=None, max_examples=20)
@given(instances(most=5))
def test_bounds_are_bounds_and_the_solver_only_helps(instance: tuple[list[Job], int]) -> None:
    jobs, pool = instance
    least = best_of_all(jobs, pool)
    assert lower_bound(jobs, pool) <= least * (1 + EPSILON)
    plan = schedule(jobs, pool)
    assert_feasible(plan)
    assert plan.bound <= least * (1 + EPSILON)
    assert least <= plan.makespan * (1 + EPSILON) <= plan.greedy * (1 + 2 * EPSILON)


def test_the_program_bounds_what_simple_bounds_do_not() -> None:
    # Three jobs of 3 GPUs on 8: two at a time, though the area says 1.5 rounds.
    jobs = [Job(f"m{i}", 3, 3600.0) for i in range(3)]
    assert lower_bound(jobs, 8) == 3600.0 * 9 / 8
    solved = ideal(jobs, 8, reached=7200.0)
    assert solved is not None and solved.bound == 7200.0
    plan = schedule(jobs, 8)
    assert (plan.makespan, plan.bound, plan.solved) == (7200.0, 7200.0, True)


def test_without_solver_or_proof_there_is_no_ideal(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [Job(f"m{i}", 1 + i % 5, 1000.0 + 137 * i) for i in range(10)]
    assert ideal(jobs, 8, reached=schedule(jobs, 8).greedy, limit_s=0.001) is None
    monkeypatch.setattr(pulp, "LpSolverDefault", None)
    assert ideal(jobs[:3], 8, reached=7200.0) is None


def test_a_large_model_is_not_starved() -> None:
    small = [Job(f"s{i}", 1, 1000.0) for i in range(20)]
    jobs = [*small, Job("large", 3, 20_000.0)]
    assert schedule(jobs, 4).makespan == 20_000.0
    last = (*range(20), 20)
    assert makespan(last, [j.gpus for j in jobs], [j.seconds for j in jobs], 4) == 25_000.0


def test_nothing_is_held_back_and_equal_ends_are_taken_one_by_one() -> None:
    # 0 and 1 end together; 2 wants both their GPUs, 3 takes the first that is free.
    assert starts((0, 1, 2, 3), (1, 1, 2, 1), (5.0, 5.0, 1.0, 9.0), 2) == {0: 0, 1: 0, 3: 5, 2: 14}


def test_a_job_larger_than_the_pool_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"configs/big\.yaml: it takes 8 GPUs.* pool has 4"):
        schedule([Job("big", 8, 1.0)], 4)


def test_a_chart_fits_a_terminal() -> None:
    jobs = [Job(f"model-{i}", 1 + i % 4, 600.0 * (i + 1), 10, "crude rule") for i in range(30)]
    text = describe(schedule(jobs, 16), True, Beside(["cloud"], ["local-judge"]))
    chart = [line for line in text.splitlines() if line.startswith("GPU ")]
    assert [len(line) for line in chart] == [80] * 16
    assert "Asked over an API, and not scheduled: cloud." in text
    assert text.endswith("when no model that waits fits: local-judge.")
    assert max(map(len, text.splitlines())) <= 100


def test_a_chart_names_the_devices_of_the_pool() -> None:
    plan = schedule([Job("a", 2, 600.0), Job("b", 1, 900.0)], 3)
    named = ("5", "GPU-3f2a19b0-77aa-4c11-9d55-0123456789ab", "MIG-a1")
    text = describe(plan, True, Beside(), named)
    chart = [line for line in text.splitlines() if line.startswith(("GPU", "MIG"))]
    assert [line[:13] for line in chart] == ["GPU 5        ", "GPU-3f2a19b0 ", "MIG-a1       "]
    assert {len(line) for line in chart} == {80}
    # Without names, or where their beginnings are the same, they are numbered.
    for names in ((), ("MIG-GPU-3f2a/1/0", "MIG-GPU-3f2a/2/0", "0")):
        lines = describe(plan, True, Beside(), names).splitlines()
        labels = [line[:6] for line in lines if line.startswith(("GPU", "MIG"))]
        assert labels == ["GPU 0 ", "GPU 1 ", "GPU 2 "]


# What Snakemake does

SNAKEFILE = """
import json
JOBS = json.load(open("jobs.json"))

rule all:
    input: expand("{model}.done", model=JOBS)

rule serve:
    output: "{model}.done"
    priority: lambda w: JOBS[w.model]["priority"]
    resources: gpu=lambda w: JOBS[w.model]["gpus"]
    shell:
        "echo {wildcards.model} >> started; "
        "until [ -e {wildcards.model}.end ] || [ -e all.end ]; do sleep 0.02; done; touch {output}"
"""

TWO_INSTANCES = [
    # The large one is third in rank and passed over until all others have ended.
    ([("a", 2, 3.0), ("b", 2, 5.0), ("large", 4, 4.0), ("c", 2, 4.5), ("d", 1, 2.25)], 4),
    ([("x", 3, 9.0), ("y", 2, 2.0), ("z", 1, 1.0), ("w", 2, 3.5), ("v", 4, 1.25)], 5),
]


@pytest.mark.workflow
@pytest.mark.parametrize(("rows", "pool"), TWO_INSTANCES)
def test_snakemake_starts_jobs_as_simulated(
    tmp_path: Path, rows: list[tuple[str, int, float]], pool: int
) -> None:
    names, gpus, seconds = zip(*rows, strict=True)
    simulated = starts(range(len(rows)), gpus, seconds, pool)
    content = {row[0]: {"gpus": row[1], "priority": len(rows) - i} for i, row in enumerate(rows)}
    write_json(tmp_path / "jobs.json", content)
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    command = [sys.executable, "-m", "snakemake", "--scheduler", "greedy", "--quiet"]
    command += ["--cores", "9", "--resources", f"gpu={pool}"]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    with running:
        try:
            # Jobs end when they are told to, in the simulated order, and not by the clock.
            ends = sorted((simulated[i] + seconds[i], i) for i in simulated)
            now = 0.0
            for end, index in ends:
                wait_for_starts(
                    tmp_path, running, {names[i] for i in simulated if simulated[i] <= now}
                )
                (tmp_path / f"{names[index]}.end").touch()
                now = end
            assert running.wait(60) == 0
        finally:
            (tmp_path / "all.end").touch()
            running.kill()
    # Other priorities are no reason to compute anything again.
    write_json(tmp_path / "jobs.json", {n: c | {"priority": 7} for n, c in content.items()})
    again = subprocess.run([*command, "-n"], cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0 and "serve" not in again.stdout + again.stderr


def wait_for_starts(folder: Path, running: subprocess.Popen[bytes], expected: set[str]) -> None:
    """Wait until as many jobs as expected have started, and see that it is these."""
    started: set[str] = set()
    limit = time.monotonic() + 60
    while len(started) < len(expected):
        assert running.poll() is None and time.monotonic() < limit, (started, expected)
        time.sleep(0.02)
        path = folder / "started"
        started = set(path.read_text().split()) if path.exists() else set()
    assert started == expected


# Where durations come from


def local_model(**fields: Any) -> dict[str, Any]:
    """Return the file of a local model with a thinking mode and a plain one."""
    modes = {"thinking": {}, "plain": {}}
    return {"model_path": "/models/m", "max_model_len": 4096, "modes": modes} | fields


def serving(concurrency: int = 10, servers: int = 1, **fields: Any) -> Serving:
    """Return how such a model is served."""
    return Serving(parse(ModelConfig, local_model(**fields), "m.yaml"), servers, concurrency)


def test_without_records_or_estimate_a_crude_rule_says_so() -> None:
    plain, source = estimate(serving(), [Work("plain", 100)], [])
    assert (plain, source) == (120.0 + 25.0 * 10, "crude rule")
    thinking, _ = estimate(serving(), [Work("thinking", 100)], [])
    assert thinking == 120.0 + 4 * 25.0 * 10
    assert estimate(serving(tensor_parallel_size=8), [Work("plain", 100)], [])[0] > plain
    # Fewer items than requests in flight take as long as one answer.
    assert estimate(serving(), [Work("plain", 1)], []) == estimate(
        serving(), [Work("plain", 10)], []
    )


def test_a_stated_estimate_scales_with_what_is_left() -> None:
    work = [Work("plain", 707), Work("thinking", 707)]
    assert estimate(serving(hours_per_run=1.5), work, []) == (3 * 3600.0, "hours_per_run")
    assert estimate(serving(hours_per_run=1.5, servers=2), work, [])[0] == 1.5 * 3600.0


def test_earlier_runs_come_before_estimates_and_modes_are_told_apart() -> None:
    both = Record(("plain", "thinking"), answered=100, servers=1, idle_s=60.0, asking_s=250.0)
    model = serving(hours_per_run=9.0)
    # Per wave of ten answers: 25 s on average, a thinking one counting four times a plain one.
    assert estimate(model, [Work("plain", 200)], [both]) == (60.0 + 10.0 * 20, "1 earlier run")
    assert estimate(model, [Work("thinking", 200)], [both])[0] == 60.0 + 40.0 * 20
    alone = Record(("thinking",), answered=100, servers=1, idle_s=60.0, asking_s=700.0)
    assert estimate(model, [Work("thinking", 200)], [both, alone])[0] == 60.0 + 70.0 * 20
    # A try-out of three items is one wave, not 3 tenths of one.
    short = Record(("plain",), answered=3, servers=1, idle_s=60.0, asking_s=5.0)
    assert estimate(model, [Work("plain", 200)], [short])[0] == 60.0 + 5.0 * 20
    shared = Record(("plain",), answered=200, servers=2, idle_s=60.0, asking_s=100.0)
    assert estimate(model, [Work("plain", 200)], [shared])[0] == 60.0 + 10.0 * 20


def test_records_that_say_nothing_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "run_metadata" / "m"
    good = {
        "stage": "serve",
        "cells": [{"mode": "plain"}],
        "answered": 12,
        "servers": [{}],
        "durations": {"starting_s": 40.0, "asking_s": 30.0, "stopping_s": 2.0},
    }
    for number in range(7):
        write_json(folder / f"run_metadata_{number}.json", good | {"answered": number})
    write_json(folder / "run_metadata_7.json", good | {"stage": "judge"})
    write_json(folder / "run_metadata_8.json", {"stage": "serve", "answered": 5})
    (folder / "run_metadata_9.json").write_text("{")
    found = earlier_runs(tmp_path, "m")
    assert found == [Record(("plain",), n, 1, 42.0, 30.0) for n in (6, 5, 4, 3, 2)]
    assert earlier_runs(tmp_path, "another") == []


# The workflow


@pytest.fixture
def project(tmp_path: Path) -> WorkflowProject:
    """A project with three local models on four GPUs, and one behind an API."""
    made = make_project(tmp_path / "project", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1")
    made.change_yaml("configs/global.yaml", gpus=["0", "1", "2", "3"])
    for name, gpus, hours in (("small", 1, 50.0), ("tiny", 1, 10.0), ("large", 3, 200.0)):
        fields = local_model(num_gpus=gpus, hours_per_run=hours)
        made.write_yaml(f"configs/{name}.yaml", fields)
    return made


@pytest.mark.workflow
def test_the_target_plan_shows_the_order_and_starts_nothing(project: WorkflowProject) -> None:
    project.change_yaml("configs/global.yaml", gpus=["4", "5", "6", "7"])
    called = project.snakemake("plan", env={"CUDA_VISIBLE_DEVICES": None})
    assert called.code == 0, called.text
    assert called.jobs == {"plan": 1}
    assert "3 local models left to be served on 4 GPUs." in called.text
    assert re.search(r"^A +0:00 .* 3 +12 +large +hours_per_run$", called.text, re.M)
    assert re.findall(r"^GPU (\d) ", called.text, re.M) == ["4", "5", "6", "7"]
    assert "Asked over an API, and not scheduled: alpha." in called.text
    assert not (project.root / "results").exists()


@pytest.mark.workflow
def test_models_are_served_in_the_order_of_the_plan(project: WorkflowProject) -> None:
    called = project.plan("predictions", env={"CUDA_VISIBLE_DEVICES": None})
    assert called.jobs["serve"] == 3
    found = re.findall(r"wildcards: model=(\w+)\n(?:    .*\n)*?    priority: (\d)", called.text)
    ranks = {model: int(priority) for model, priority in found}
    assert ranks == {"large": 3, "small": 2, "tiny": 1}


def test_only_what_is_left_is_planned(project: WorkflowProject) -> None:
    made = make_view(project.root, {"models": "large,alpha"}, ("plan",))
    (job,) = made.serve.jobs
    assert (job.name, job.gpus, job.items) == ("large", 3, 12)
    journal = files.prediction_journal(project.root / "results", Cell("large", "plain", 1, "tiny"))
    journal.parent.mkdir(parents=True)
    journal.write_text("{}\n{}\n")
    (left,) = make_view(project.root, {"models": "large"}, ("plan",)).serve.jobs
    assert left.items == 10
    assert left.seconds == pytest.approx(job.seconds * 10 / 12)


@pytest.mark.workflow
def test_by_hand_the_plan_takes_any_number_of_gpus(project: WorkflowProject) -> None:
    command = ("plan", "--models", "large,small", "--json", "--gpus")
    plan = loads(project.script(*command, "3").stdout.encode())
    assert [job["model"] for job in plan["jobs"]] in (["large", "small"], ["small", "large"])
    assert plan["pool"] == 3
    assert plan["makespan_s"] == plan["lower_bound_s"]
    refused = project.script(*command, "2")
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: configs/large.yaml: takes 3 GPUs, and there are 2")
