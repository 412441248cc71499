"""Names and places that break careless workflows."""

import os
import shutil
from pathlib import Path

import pytest
from mock_endpoint import MockConfig, start_mock
from workflow_project import KEY, make_project, model_config

pytestmark = pytest.mark.workflow

MODELS = ("a b", "a_b", "a__b", "a.b", "org--model-1.5", "模型 一")
OPTIONS = ("--config", "modes=plain", "repeats=1")


def test_names_that_differ_in_one_character_stay_apart(tmp_path: Path) -> None:
    with start_mock(tmp_path, MockConfig(require_key=KEY)) as mock:
        project = make_project(tmp_path / "l'été 2026", mock.base_url, mock.judge_url)
        (project.root / "configs/alpha.yaml").unlink()
        for number, name in enumerate(MODELS):
            project.write_yaml(f"configs/{name}.yaml", model_config(mock.base_url, f"m/{number}"))
        called = project.snakemake(*OPTIONS)
        assert called.code == 0, called.text
        stats = mock.stats()
        assert {stats.models[f"m/{number}"] for number in range(len(MODELS))} == {3}
        assert project.plan(*OPTIONS).idle
        (group,) = project.json("results/summary.json")["groups"]
        assert {row["model"] for row in group["rows"]} == set(MODELS)
        for number, name in enumerate(MODELS):
            made = project.json(f"results/prediction/{name}__plain/run1/run_config.json")
            assert (made["model"], made["identity"]["model"]) == (name, f"m/{number}")
        # One of two alike is changed: the other is not touched.
        project.change_yaml("configs/a_b.yaml", modes={"plain": {"temperature": 0.9}})
        assert project.plan(*OPTIONS).jobs["predict"] == 1


def test_home_and_results_elsewhere(tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("not on this machine: a second file system at /dev/shm")
    results = memory / f"adhere test {os.getpid()}"
    with start_mock(tmp_path, MockConfig(require_key=KEY)) as mock:
        project = make_project(tmp_path / "project", mock.base_url, mock.judge_url)
        options = (*OPTIONS, f"results_root={results}")
        # A home in which nothing can be made, also not by root. Snakemake itself wants a cache.
        environment = {"HOME": "/proc/self/fdinfo", "XDG_CACHE_HOME": str(tmp_path / "cache")}
        try:
            called = project.snakemake(*options, env=environment)
            assert called.code == 0, called.text
            assert (results / "summary.md").exists()
            assert project.plan(*options, env=environment).idle
        finally:
            shutil.rmtree(results, ignore_errors=True)
