"""envs/apptainer/vllm: the engine's command line reaches the container as it is.

The container program is a stand-in that shows what it was asked: the real one is on no machine that
these tests know.
"""

import subprocess
from pathlib import Path

import pytest

from adhere.engines import vllm

FOLDER = Path(__file__).resolve().parents[1] / "envs" / "apptainer"
STAND_IN = '#!/bin/sh\nprintf \'%s\\n\' "$@" "devices=$CUDA_VISIBLE_DEVICES"\n'


def run(folder: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": f"{folder}:/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": "2,3", **variables}
    command = [str(FOLDER / "vllm"), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["apptainer", "singularity"])
def test_vllm_runs_in_the_image_on_the_jobs_devices(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(STAND_IN)
    (tmp_path / name).chmod(0o755)
    done = run(tmp_path, "serve", "my model", VLLM_IMAGE="/images/vllm.sif", VLLM_BIND="/data")
    assert done.stdout.splitlines() == [
        *("exec", "--nv", "--bind", "/data", "/images/vllm.sif"),
        *("vllm", "serve", "my model", "devices=2,3"),
    ]
    done = run(tmp_path, "serve", "m", VLLM_IMAGE="/images/vllm.sif")
    assert done.stdout.splitlines()[:4] == ["exec", "--nv", "/images/vllm.sif", "vllm"]


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    done = run(tmp_path, "serve", "m")
    assert done.returncode != 0 and "VLLM_IMAGE: name an image" in done.stderr
    done = run(tmp_path, "serve", "m", VLLM_IMAGE="/images/vllm.sif")
    assert done.returncode == 127 and "neither apptainer nor singularity" in done.stderr


def test_the_engine_finds_it_on_path() -> None:
    launcher = vllm.launcher(str(FOLDER))
    assert list(launcher) == [str(FOLDER / "vllm"), "serve"]
