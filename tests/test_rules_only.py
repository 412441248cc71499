"""The judge that asks nobody, and what the summary says of teams' groups."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from test_reporting import Tree
from workflow_project import model_config

from adhere.checkers import CheckerPool
from adhere.config import RULES_ONLY, JudgeConfig, load_project
from adhere.costs.budget import check_budget, judge_allowance
from adhere.errors import ConfigError
from adhere.jobs.estimate import forecasts
from adhere.jsonio import read_json, write_json
from adhere.judging import Judge, judge_rows
from adhere.judging.asking import Asker, Place
from adhere.plan import make_plan
from adhere.progress import Progress
from adhere.scoring.accuracy import Accuracy, compute_accuracy, outcomes
from adhere.scoring.parse import parse_results
from adhere.scoring.policies import get_policy
from adhere.scoring.provenance import JudgeRun

Row = dict[str, Any]


def project(root: Path, **more: Any) -> Path:
    """Write a small project: JSON is YAML too."""
    ask = {"type": "llm", "exec": "Is it polite? {response}"}
    constraints: list[Row] = [{"evaluation": [ask]}]
    messages = [{"role": "user", "content": "Say something."}]
    write_json(root / "data.json", [{"input": messages, "constraints": constraints}])
    content = {"datasets": {"d": "data.json"}, "default_datasets": ["d"], "default_judge": "j"}
    write_json(root / "configs/global.yaml", content | more)
    write_json(root / "configs/m.yaml", model_config("http://127.0.0.1:9/v1", "m"))
    write_json(root / "judge_configs/j.yaml", {"model": "j"})
    return root


def load(path: Path) -> list[Row]:
    """Return rows with an answer."""
    answer = {"content": "Hello.", "error": None}
    return [{**row, "output": answer} for row in read_json(path)]


def test_it_needs_no_file_and_runs_only_where_it_is_meant(tmp_path: Path) -> None:
    loaded = load_project(project(tmp_path))
    assert make_plan(loaded, {}).judges == ("j",)
    assert make_plan(loaded, {"judges": RULES_ONLY}).judges == (RULES_ONLY,)
    write_json(tmp_path / "judge_configs/j.yaml", {"model": "j", "enabled": False})
    loaded = load_project(project(tmp_path, default_judge=RULES_ONLY))
    assert make_plan(loaded, {}).judges == (RULES_ONLY, "j")
    write_json(tmp_path / "judge_configs/rules-only.yaml", {"model": "x"})
    with pytest.raises(ConfigError, match=r"judge_configs/rules-only\.yaml: this name stands for"):
        load_project(tmp_path)


def test_it_costs_nothing_and_needs_no_prices(tmp_path: Path) -> None:
    free = {"input": 0, "output": 0}
    root = project(tmp_path, budget={"money": 1})
    write_json(root / "configs/m.yaml", model_config("http://x/v1", "m") | {"prices": free})
    loaded = load_project(root)
    with pytest.raises(ConfigError, match="prices"):
        check_budget(loaded, ["m"], ["j"])
    check_budget(loaded, ["m"], [RULES_ONLY])
    assert judge_allowance(loaded, RULES_ONLY) is None
    lines = forecasts(make_plan(loaded, {"judges": f"{RULES_ONLY},j", "repeats": 1}))
    assert [line.asked for line in lines if line.stage == "judge"] == ["j"]


def test_every_question_is_left_out_with_its_reason() -> None:
    judge = Judge(RULES_ONLY, JudgeConfig(model="none", api_key_env=None))
    asker = Asker(judge, None, None)
    place = Place(0, 0, ("k", 0), (0,))
    answered = asyncio.run(asker.ask(place, "Is it polite?", 0, True))
    assert (answered.text, answered.verdict, answered.reason) == (None, None, "not_asked")
    assert answered.record == {"reason": "not_asked"}


def test_what_is_left_out_by_choice_is_no_failure(tmp_path: Path) -> None:
    rows = load(project(tmp_path) / "data.json")
    asker = Asker(Judge(RULES_ONLY, JudgeConfig(model="none", api_key_env=None)), None, None)

    async def judged() -> tuple[int, int]:
        with Progress("judge", "constraints") as progress:
            async with CheckerPool(workers=1) as pool:
                await judge_rows(rows, asker, pool, progress)
            return progress.done, progress.failed

    assert asyncio.run(judged()) == (1, 0)


def test_what_was_not_asked_fails_no_item_and_is_not_comparable() -> None:
    def scored(*pairs: tuple[bool | None, str | None]) -> Accuracy:
        made = [{"score": score, "null_reason": reason} for score, reason in pairs]
        rows = [{"output": {"content": "x"}, "constraints": made}]
        items = parse_results(rows, "results.json")
        policy = get_policy("adhere")
        return compute_accuracy(policy, items, outcomes(policy, items), JudgeRun())

    found = scored((True, None), (None, "not_asked"))
    assert (found.ISR.passed, found.ISR.counted, found.comparable) == (1, 1, False)
    assert (found.coverage.expected, found.coverage.scored) == (2, 1)
    found = scored((True, None), (None, "judge_failed"))
    assert (found.ISR.passed, found.ISR.counted, found.comparable) == (0, 1, True)
    # An item of questions alone is not counted.
    assert scored((None, "not_asked")).ISR.counted == 0


def item(score: bool, **labels: Any) -> Row:
    """Return one item with one constraint of a set."""
    labels = {"category": "format", "severity": "must", "level": "answer", "rule": "json"} | labels
    judged = {"evaluation": [{"type": "rule", "exec": {}}], "score": score, "null_reason": None}
    return {
        "output": {"content": "x"},
        "scenario": "refunds",
        "constraints": [judged | labels | {"failure_mode": "format"}],
    }


def test_groups_rules_and_failure_modes_stand_in_the_summary(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    items = [item(n % 4 > 0, rule="json" if n % 2 == 0 else "words") for n in range(8)]
    tree.add(0, 0, run=1, rows=items)
    tree.add(0, 0, run=2, rows=items)
    markdown, summary = tree.summary()
    assert "### By category, severity, level and scenario" in markdown
    for line in ("category format", "severity must", "level answer", "scenario refunds"):
        assert f"| {line} " in markdown
    assert "- m thinking: worst rules: json 50.0 %." in markdown
    assert "- m thinking: failure modes, in all runs: format 4." in markdown
    assert "spreads by" not in markdown
    (row,) = summary["groups"][0]["rows"]
    assert row["groups"]["rule"]["json"] == {"mean": 0.5, "std": 0.0, "runs": 2}
    assert row["item_mean"]["mean"] == 0.75 and row["step_deviation"] is None


def test_a_large_spread_is_warned_of(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.add(0, 0, run=1, rows=[item(n < 10) for n in range(20)])
    tree.add(0, 0, run=2, rows=[item(n < 12) for n in range(20)])
    markdown, _ = tree.summary()
    # 50 % and 60 %: a standard deviation of 7.1 points.
    assert "- m thinking: the constraint rate spreads by 7.1 points over the runs" in markdown
    assert "the all-pass rate spreads by 7.1 points" in markdown


def test_other_datasets_have_no_such_section(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.add(1, 2)
    assert "By category" not in tree.summary()[0]
