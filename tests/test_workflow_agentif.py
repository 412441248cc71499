"""AgentIF's own file through the whole workflow, with a mock behind model and judge."""

import json
import os
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from mock_endpoint import MockConfig, start_mock
from workflow_project import KEY, ROOT, make_project

pytestmark = pytest.mark.workflow

SHARED = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared"))
DATASET = SHARED / "data" / "agentif" / "eval.json.gz"


@pytest.mark.skipif(not DATASET.exists(), reason=f"AgentIF's file is not at {DATASET}")
def test_every_row_and_constraint_is_accounted_for(tmp_path: Path) -> None:
    with start_mock(tmp_path, MockConfig(require_key=KEY)) as mock:
        project = make_project(tmp_path / "project", mock.base_url, mock.judge_url)
        project.change_yaml(
            "configs/global.yaml",
            datasets={"eval": str(DATASET)},
            default_datasets=["eval"],
            repeats=1,
            checkers={},
        )
        called = project.snakemake("--config", "modes=plain")
        assert called.code == 0, called.text
        stats = mock.stats()
    assert stats.models["alpha-1"] == 707
    # Equal questions of different places are asked apart; no place is asked twice.
    journal = project.root / "results/scores/alpha__plain/run1_strict/eval.partial.jsonl"
    fingerprints = [json.loads(line)["fp"] for line in journal.read_bytes().splitlines()]
    assert len(fingerprints) == len(set(fingerprints)) == stats.models["judge-1"]
    rows = project.json("results/prediction/alpha__plain/run1/eval.json")
    assert len(rows) == 707
    folder = "results/scores/alpha__plain/run1_strict/eval"
    judged = project.json(f"{folder}/results.json")
    constraints = [c for row in judged for c in row["constraints"]]
    assert len(constraints) == 8449
    assert all((c["score"] is None) == (c["null_reason"] is not None) for c in constraints)
    accuracy = project.json(f"{folder}/accuracy.json")
    coverage = accuracy["coverage"]
    assert coverage["expected"] == 8449
    assert coverage["scored"] + coverage["not_applicable"] + coverage["unscored"] == 8449
    assert accuracy["ISR"]["counted"] <= 707
    assert pq.read_table(project.root / folder / "verdicts.parquet").num_rows == 8449
    reasons = Counter(c["null_reason"] for c in constraints if c["null_reason"])
    # The mock answers some questions with a list, which is no verdict.
    assert set(reasons) == {"not_applicable", "checker_error", "not_defined", "judge_unreadable"}
    assert sum(accuracy["failure_stats"].values()) == coverage["unscored"]
