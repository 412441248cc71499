"""The shipped instruction set: it loads, shows every kind of thing, and no rule of it is idle."""

import datetime
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from mock_endpoint import MockConfig, Reply, Rule, start_mock
from workflow_project import ROOT, judge_config, make_project

from adhere.config import load_project
from adhere.config.strict_yaml import read_located
from adhere.data import Row, constraints, is_recorded, load
from adhere.gate.review import overdue
from adhere.judging.evidence import Evidence
from adhere.rule_steps import REGISTRIES
from adhere.trajectories import load_one

PATH = ROOT / "data" / "teams" / "set.yaml"
DATASET = load("teams", PATH)
ROWS: dict[str, Row] = {row["id"]: row for row in DATASET.rows}
CONTENT: Any = read_located(PATH, "set").content
ITEMS: list[dict[str, Any]] = CONTENT["items"]
ANSWERS: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "teams_answers.yaml").read_text(encoding="utf-8")
)
CHINESE, KANA = re.compile(r"[\u4e00-\u9fff]"), re.compile(r"[\u3040-\u30ff]")
WRITTEN = [c for item in ITEMS for c in item.get("constraints", ()) if isinstance(c, dict)]
RULES = [
    pytest.param(row, place, id=f"{name}-{place}-{step.text[-40:]}")
    for name, row in ROWS.items()
    for place, chain in enumerate(constraints(row))
    for step in chain.steps
    if step.type == "rule"
]


def verdict(row: Row, place: int, answer: Any) -> bool | None:
    """Return what a rule says of an answer of the file."""
    output = {"content": answer}
    if not isinstance(answer, str):
        output = {"content": answer["final_answer"], "trajectory": answer}
    found = Evidence(output)
    return found.apply(constraints(row)[place].steps[0].text, found.answer).verdict


@pytest.mark.parametrize(("row", "place"), RULES)
def test_every_rule_can_be_followed_and_violated(row: Row, place: int) -> None:
    answers = ANSWERS[row["id"]]
    assert verdict(row, place, answers["good"]) is True
    assert False in [verdict(row, place, answer) for answer in answers["bad"]]


def test_there_are_answers_for_every_item() -> None:
    assert set(ANSWERS) == set(ROWS)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if is_recorded(row)])
def test_recorded_runs_keep_to_the_rules(name: str) -> None:
    row = ROWS[name]
    output = {
        "content": load_one(row["trajectory"]).final_answer,
        "trajectory": row["trajectory"],
    }
    evidence = Evidence(output)
    for chain, raw in zip(constraints(row), row["constraints"], strict=True):
        if chain.steps[0].type == "rule":
            applied = evidence.apply(chain.steps[0].text, evidence.answer)
            assert applied.verdict is not False, (raw, applied)


def test_size_and_languages() -> None:
    assert 45 <= len(ROWS) <= 60
    texts = [item["instruction"] for item in ITEMS]
    japanese = [text for text in texts if KANA.search(text)]
    chinese = [text for text in texts if CHINESE.search(text) and not KANA.search(text)]
    assert len(japanese) >= 3
    assert len(chinese) >= 12
    assert len(texts) - len(japanese) - len(chinese) >= 25


def test_every_kind_of_thing_occurs() -> None:
    raws = [raw for row in ROWS.values() for raw in row["constraints"]]
    for key, values in {
        "category": {"hard", "process", "format", "content"},
        "severity": {"must", "should"},
        "level": {"answer", "step", "goal"},
        "failure_mode": {"format", "process", "omission", "hallucination", "other"},
    }.items():
        assert {raw[key] for raw in raws} == values
    assert {step["type"] for raw in raws for step in raw["evaluation"]} == {
        "rule",
        "code",
        "llm",
        "llm_conditional_check",
    }
    assert any(raw.get("about") == "trajectory" for raw in raws)
    assert {key for c in WRITTEN for key in c.get("provenance", ())} >= {"source", "added_from"}
    assert any("loose" in c for c in WRITTEN)
    assert {type(item.get("layout")) for item in ITEMS} == {type(None), str, list}
    assert any(isinstance(item["constraints"], dict) for item in ITEMS if "constraints" in item)
    assert any("verification" in item for item in ITEMS)
    assert {type(item.get("input")) for item in ITEMS} == {type(None), str, dict, list}
    recorded = [row["trajectory"] for row in ROWS.values() if is_recorded(row)]
    assert {load_one(content).format for content in recorded} == {"react", "steps", "openai-chat"}
    live = [row for row in ROWS.values() if row.get("tools")]
    assert len(live) >= 8
    assert all(row["tool_responses"] for row in live)


def test_rules_of_many_kinds_occur() -> None:
    used = Counter(
        raw["rule"] for row in ROWS.values() for raw in row["constraints"] if "rule" in raw
    )
    text, trajectory = (set(used) & set(registry) for registry in REGISTRIES)
    assert len(text) >= 25
    assert trajectory == set(REGISTRIES[1])


def test_scenarios_hold_the_edges() -> None:
    counts = Counter(row["scenario"] for row in ROWS.values())
    for edge in ("contradiction", "refusal", "missing-tool", "long-input"):
        assert counts[edge] >= 3, edge


def test_it_is_registered_and_nothing_is_overdue() -> None:
    config = load_project(ROOT).config
    assert config.datasets["teams"] == "data/teams/set.yaml"
    assert "teams" not in config.default_datasets
    assert not overdue(DATASET, datetime.date(2028, 9, 13))
    assert overdue(DATASET, datetime.date(2028, 9, 15))


def test_it_runs_through_the_workflow(tmp_path: Path) -> None:
    """Every item gets a verdict on every constraint; recorded items are asked of nobody."""
    rules = [
        Rule(match="Extract the materials", judge=True, reply=Reply(content="['linen', 'wool']")),
        Rule(judge=True, reply=Reply(content="YES")),
    ]
    with start_mock(tmp_path, MockConfig(rules=rules)) as mock:
        project = make_project(tmp_path / "p", mock.base_url, mock.judge_url)
        shutil.copytree(ROOT / "data/teams", project.root / "data/teams")
        project.change_yaml(
            "configs/global.yaml",
            datasets={"teams": "data/teams/set.yaml"},
            default_datasets=["teams"],
            repeats=1,
        )
        project.write_yaml("judge_configs/strict.yaml", judge_config(mock.judge_url))
        called = project.snakemake("--config", "modes=plain")
        assert called.code == 0, called.text
        rows = project.json("results/scores/alpha__plain/run1_strict/teams/results.json")
        asked = sum("/judge/" not in entry.path for entry in mock.log())
    raws = [raw for row in rows for raw in row["constraints"]]
    undecided = [raw["null_reason"] for raw in raws if raw["score"] is None]
    assert len(rows) == len(ROWS)
    assert set(undecided) <= {"not_applicable"}
    assert {raw["score"] for raw in raws if raw["evaluation"][0]["type"] == "rule"} >= {True, False}
    for row in rows:
        assert ("recorded" in row["output"]["flags"]) == is_recorded(ROWS[row["id"]])
    assert asked == sum(not is_recorded(row) for row in ROWS.values())
