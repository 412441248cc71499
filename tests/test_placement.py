"""Which jobs go to a cluster's nodes, and with what: profiles/slurm, without a Slurm."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from mock_endpoint import MockConfig, RunningMock, start_mock
from workflow_project import KEY, ROOT, WorkflowProject, make_project

pytestmark = pytest.mark.workflow

PROFILE = ("--profile", "profiles/slurm")
LOCAL = {"engine": "vllm", "model_path": "org/model", "max_model_len": 1024}


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[RunningMock]:
    with start_mock(tmp_path, MockConfig(require_key=KEY)) as mock:
        yield mock


@pytest.fixture
def project(tmp_path: Path, endpoint: RunningMock) -> WorkflowProject:
    """An API model, two local models, a judge behind an endpoint and one that its job serves."""
    made = make_project(tmp_path / "project", endpoint.base_url, endpoint.base_url)
    for name in ("small", "big-1"):
        made.write_yaml(f"configs/{name}.yaml", {**LOCAL, "modes": {"default": {}}})
    made.change_yaml("configs/big-1.yaml", tensor_parallel_size=4)
    own = {"model": "own", "local": {**LOCAL, "tensor_parallel_size": 2}}
    made.write_yaml("judge_configs/own.yaml", own)
    return made


@pytest.fixture
def refusing(tmp_path: Path) -> dict[str, str | None]:
    """An environment in which every command of Slurm is there and refuses, but that for looking."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sbatch", "scancel", "squeue", "sacct", "scontrol", "sinfo"):
        command = folder / name
        refuses = "" if name == "sinfo" else "echo refused >&2\nexit 1\n"
        command.write_text(f"#!/bin/sh\n{refuses}")
        command.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def placed(text: str) -> set[str]:
    """Return the rules of the jobs that were started, with ``local`` before those that ran here."""
    return set(re.findall(r"^((?:local)?rule \w+):$", text, re.MULTILINE))


def test_calls_run_here_or_on_nodes_and_servers_on_nodes(
    project: WorkflowProject, refusing: dict[str, str | None]
) -> None:
    selection = ("--config", "repeats=1")
    # An API model and a judge behind an endpoint: Slurm is not even asked.
    called = project.snakemake(*PROFILE, *selection, "models=alpha", "judges=strict", env=refusing)
    assert called.code == 0, called.text
    here = {"predict", "judge", "score", "aggregate", "all"}
    assert placed(called.text) == {f"localrule {rule}" for rule in here}
    called = project.snakemake(
        *PROFILE, *selection, "models=alpha,small", "judges=own", env=refusing
    )
    assert called.code != 0 and "SLURM sbatch failed" in called.text, called.text
    assert placed(called.text) == {"rule serve", "rule judge_served"}
    placement = project.root / "profiles" / "slurm" / "placement.yaml"
    assert yaml.safe_load(placement.read_text()) == {"calls": "here"}
    placement.write_text("calls: nodes\n")
    shutil.rmtree(project.root / "results" / "scores")
    (project.root / "results/prediction/alpha__plain/run1/tiny.json").unlink()
    called = project.snakemake(*PROFILE, *selection, "models=alpha", "judges=strict", env=refusing)
    assert called.code != 0 and "SLURM sbatch failed" in called.text, called.text
    assert placed(called.text) == {"rule predict", "rule judge"}


def test_a_model_gets_its_own_resources(project: WorkflowProject) -> None:
    text = project.plan(*PROFILE).text
    blocks = re.findall(r"^rule (serve|judge_served):\n((?:    .*\n)+)", text, re.MULTILINE)
    found: dict[str, dict[str, str]] = {}
    for rule, block in blocks:
        wildcard = re.search(r"wildcards: model=([^,\n]*)", block)
        assert wildcard is not None
        resources = dict(re.findall(r"(\w+)=([^,\n]*)", block.partition("resources: ")[2]))
        found[wildcard[1] if rule == "serve" else rule] = resources
    small, big = found["small"], found["big-1"]
    assert (small["gpu"], small["runtime"]) == ("1", "720")
    assert (big["gpu"], big["runtime"]) == ("4", "2880")
    assert (small["nodes"], small["cpus_per_gpu"], small["mem_mb_per_cpu"]) == ("1", "8", "8000")
    assert found["judge_served"]["gpu"] == "2"


def test_make_lets_snakemake_find_the_profile(tmp_path: Path) -> None:
    checkout, home = tmp_path / "checkout", tmp_path / "config"
    shutil.copytree(ROOT / "profiles", checkout / "profiles")
    shutil.copy2(ROOT / "Makefile", checkout)

    def make() -> int:
        env = {**os.environ, "XDG_CONFIG_HOME": str(home)}
        command = ["make", "slurm-profile"]
        return subprocess.run(command, cwd=checkout, env=env, capture_output=True).returncode

    link = home / "snakemake" / "slurm"
    assert [make(), make()] == [0, 0]
    assert link.resolve() == checkout / "profiles" / "slurm"
    link.unlink()
    link.mkdir()
    assert make() != 0 and list(link.iterdir()) == []
