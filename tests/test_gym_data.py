"""AgentIF's datasets as NeMo Gym's task files, and back."""

import gzip
import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from workflow_project import make_project

from adhere import cli, jsonio
from adhere.errors import AdhereError, DataError
from adhere.gym_data import from_gym, to_gym
from adhere.jobs import convert

ROOT = Path(__file__).resolve().parents[1]
AGENTIF = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared")) / "data" / "agentif"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
KEYS = st.sampled_from(["id", "query_id", "turn_id", "domain", "tools", "input", "other"])


def rows(**fixed: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    extra = st.dictionaries(KEYS.filter(lambda key: key not in fixed), VALUES, max_size=4)
    return st.builds(lambda a, b: {**a, **b}, extra, st.fixed_dictionaries(fixed))


CONSTRAINTS = st.lists(st.dictionaries(st.sampled_from(["id", "type"]), VALUES), max_size=2)
MESSAGES = st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": st.text()}))
AGENTIF_ROWS = rows(input=MESSAGES, constraints=CONSTRAINTS)
GYM_ROWS = rows(
    responses_create_params=rows(input=MESSAGES),
    verifier_metadata=rows(constraints=CONSTRAINTS),
)


@given(AGENTIF_ROWS)
def test_a_row_comes_back(row: dict[str, Any]) -> None:
    assert from_gym(to_gym(row)) == row


@given(GYM_ROWS)
def test_a_gym_row_comes_back(row: dict[str, Any]) -> None:
    assert to_gym(from_gym(row)) == row


def test_what_gym_reads_is_where_gym_reads_it() -> None:
    messages = [{"role": "user", "content": "Say yes."}]
    constraint = {"id": 0, "evaluation": [], "score": True}
    row = {"input": messages, "constraints": [constraint], "query_id": 7, "domain": "law"}
    assert to_gym(row) == {
        "responses_create_params": {"input": messages},
        "verifier_metadata": {
            "constraints": [{"id": 0, "evaluation": []}],
            "query_id": 7,
            "domain": "law",
        },
    }
    assert row["constraints"] == [constraint]


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"responses_create_params": {"input": "text"}}, "responses_create_params.input"),
        ({"responses_create_params": 3}, "responses_create_params"),
        ({"responses_create_params": {"input": []}}, "verifier_metadata"),
    ],
)
def test_a_row_that_cannot_be_converted_is_named(row: dict[str, Any], key: str) -> None:
    with pytest.raises(DataError, match=f"^{key}: found"):
        from_gym(row)


def by_hand(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> None:
    monkeypatch.setattr("sys.argv", ["convert.py", *map(str, arguments)])
    convert.main()


@pytest.mark.skipif(not AGENTIF.exists(), reason=f"{AGENTIF} is not here")
def test_the_whole_benchmark_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = AGENTIF / "eval.json.gz"
    by_hand(monkeypatch, "--input", source, "--output", tmp_path / "gym.jsonl")
    by_hand(monkeypatch, "--input", tmp_path / "gym.jsonl", "--output", tmp_path / "eval.json")
    original = orjson.loads(gzip.decompress(source.read_bytes()))
    assert len(original) == 707
    assert jsonio.read_json(tmp_path / "eval.json") == original


def test_a_file_of_both_forms_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = [{"input": []}, {"responses_create_params": {}}]
    jsonio.write_json(tmp_path / "both.json", both)
    with pytest.raises(AdhereError, match="rows of both forms"):
        by_hand(monkeypatch, "--input", tmp_path / "both.json", "--output", tmp_path / "out.json")


def test_the_script_has_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["convert.py", "--help"])
    with pytest.raises(SystemExit) as ended:
        cli.by_hand(convert.main)
    assert ended.value.code == 0


@pytest.mark.workflow
def test_the_rule_writes_the_selected_datasets(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/judge/v1")
    called = project.snakemake("gym_data", "--config", "datasets=smoke")
    assert called.code == 0, called.text
    written = jsonio.read_jsonl(project.root / "results" / "gym" / "smoke.jsonl")
    smoke = jsonio.read_json(project.root / "data" / "smoke" / "eval.json")
    assert [from_gym(row) for row in written] == smoke
