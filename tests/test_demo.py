"""The demonstration itself: a real model behind a real server, as model and as judge."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from workflow_project import ROOT, WorkflowProject

pytestmark = [pytest.mark.workflow, pytest.mark.engine]

PARTS = ("Snakefile", "rules", "scripts", "adhere", "envs", "profiles", "data", "configs")
OPTIONS = ("--profile", "profiles/demo", "--config", "repeats=1")


def run(project: WorkflowProject, *arguments: str) -> str:
    """Run the demonstration without any key and without the outside."""
    kept = {k: v for k, v in os.environ.items() if "KEY" not in k and "TOKEN" not in k}
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments, *OPTIONS],
        cwd=project.root,
        env=kept | {"no_proxy": "*", "https_proxy": "http://127.0.0.1:9"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_demonstration_runs_on_the_embedded_model(tmp_path: Path) -> None:
    project = WorkflowProject(tmp_path / "demo")
    project.root.mkdir()
    for part in (*PARTS, "judge_configs"):
        source, target = ROOT / part, project.root / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)
    run(project)
    prediction = "results/prediction/smollm2-135m__default/run1/smoke.json"
    rows = project.json(prediction)
    assert len(rows) == 5
    answered = [row["output"] for row in rows if row["output"]["error"] is None]
    assert answered and all(output["usage"]["completion_tokens"] > 0 for output in answered)
    made = project.json("results/prediction/smollm2-135m__default/run1/run_config.json")
    assert made["engine"]["name"] == "llamacpp" and made["engine"]["versions"]["xllamacpp"]
    folder = "results/scores/smollm2-135m__default/run1_smollm2-135m/smoke"
    accuracy = project.json(f"{folder}/accuracy.json")
    assert accuracy["coverage"]["expected"] == 60
    judged = project.json(f"{folder}/results.json")
    replies = [
        reply["content"]
        for row in judged
        for constraint in row["constraints"]
        for step in constraint["steps"]
        for reply in step.get("replies", [])
    ]
    assert len(replies) >= 20 and any(replies)
    summary = (project.root / "results/summary.md").read_text("utf-8")
    assert "These scores mean nothing" in summary
    assert "Nothing to be done" in run(project, "-n")
    # The answers are journaled: the file is written again without starting the model.
    shutil.rmtree(project.root / "logs" / "serve")
    (project.root / prediction).unlink()
    run(project, "predictions")
    assert project.json(prediction) == rows
    assert not list((project.root / "logs" / "serve").glob("*.server.log"))
