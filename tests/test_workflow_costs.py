"""Tokens, money and the budget, through whole calls of Snakemake with a mock behind the models."""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from mock_endpoint import MockConfig, Reply, Rule, RunningMock, start_mock
from workflow_project import KEY, KEY_VARIABLE, WorkflowProject, make_project

from adhere.config import Prices, load_project
from adhere.config.load import parse
from adhere.costs.forecast import Forecast
from adhere.costs.money import cost
from adhere.costs.spent import tally
from adhere.jobs.estimate import forecasts
from adhere.journal import read
from adhere.plan import make_plan

pytestmark = pytest.mark.workflow

PRICES = {"input": 2.5, "cached_input": 1.25, "output": 10, "currency": "USD"}
JUDGE_PRICES = {"input": 0.1, "output": 0.4}
OPTIONS = ("--config", "modes=plain", "repeats=1")
ACCURACY = "results/scores/alpha__plain/run1_strict/tiny/accuracy.json"


@pytest.fixture
def mock(tmp_path: Path) -> Iterator[RunningMock]:
    with start_mock(tmp_path, MockConfig(require_key=KEY)) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, mock: RunningMock) -> WorkflowProject:
    """Forty items with a question each that can be told apart, at known prices."""
    made = make_project(tmp_path / "project", mock.base_url, mock.judge_url)
    items = []
    for number in range(40):
        steps = [{"type": "llm", "exec": f"[{number}] Is it polite? YES or NO. {{response}}"}]
        constraint = {"dimension": "unconditional", "type": "semantic", "evaluation": steps}
        messages = [{"role": "user", "content": f"({number}) Say something."}]
        items.append({"id": number, "input": messages, "constraints": [constraint]})
    made.write_dataset(items)
    made.change_yaml("configs/alpha.yaml", prices=PRICES)
    made.change_yaml("judge_configs/strict.yaml", prices=JUDGE_PRICES, concurrency=1)
    return made


def requests(mock: RunningMock) -> Counter[str]:
    """Count the answered requests by the number in their question."""
    contents = (entry.body["messages"][0]["content"] for entry in mock.log())
    return Counter(text.split(" ")[0] for text in contents)


def expenses(project: WorkflowProject, stage: str) -> dict[str, Any]:
    """Return the only account of a stage in the summary."""
    (found,) = (e for e in project.json("results/summary.json")["expenses"] if e["stage"] == stage)
    return dict(found)


def test_the_summary_says_what_everything_took(project: WorkflowProject) -> None:
    assert (called := project.snakemake(*OPTIONS)).code == 0, called.text
    rows = project.json("results/prediction/alpha__plain/run1/tiny.json")
    usages = [row["output"]["usage"] for row in rows]
    predicted, judged = expenses(project, "predict"), expenses(project, "judge")
    assert predicted["calls"] == judged["calls"] == 40
    for name, key in (("prompt", "prompt_tokens"), ("completion", "completion_tokens")):
        assert predicted[name] == sum(usage[key] for usage in usages)
    prompt, cached = predicted["prompt"], predicted["cached"]
    paid = (prompt - cached) * Decimal("2.5") + cached * Decimal("1.25")
    assert Decimal(predicted["cost"]) == (paid + predicted["completion"] * 10) / 1_000_000
    text = (project.root / "results/summary.md").read_text(encoding="utf-8")
    assert "## Tokens and cost" in text
    assert f"{predicted['prompt']:,}" in text


def test_a_changed_price_only_writes_the_summary_anew(project: WorkflowProject) -> None:
    assert project.snakemake(*OPTIONS).code == 0
    before = Decimal(expenses(project, "judge")["cost"])
    project.change_yaml("judge_configs/strict.yaml", prices={"input": 0.2, "output": 0.8})
    assert project.plan(*OPTIONS).jobs == {"aggregate": 1, "all": 1}
    assert project.snakemake(*OPTIONS).code == 0
    assert Decimal(expenses(project, "judge")["cost"]) == 2 * before


def test_what_was_asked_again_is_counted_too(project: WorkflowProject, mock: RunningMock) -> None:
    unreadable = Rule(judge=True, match="[7]", times=1, reply=Reply(content="Hm."))
    mock.configure(rules=[unreadable])
    assert project.snakemake(*OPTIONS).code == 0
    assert expenses(project, "judge")["calls"] == 41
    # Replies to a question that is no longer asked were paid for all the same.
    items = project.dataset()
    items[3]["constraints"][0]["evaluation"][0]["exec"] = "[3] Is it kind? YES or NO. {response}"
    project.write_dataset(items)
    assert project.snakemake(*OPTIONS).code == 0
    assert expenses(project, "judge")["calls"] == 42


def test_a_budget_stops_judging_and_a_raised_one_asks_nothing_twice(
    project: WorkflowProject, mock: RunningMock
) -> None:
    assert project.snakemake("predictions", *OPTIONS).code == 0
    rows = project.json("results/prediction/alpha__plain/run1/tiny.json")
    spent = sum(row["output"]["usage"]["total_tokens"] for row in rows)
    project.change_yaml("configs/global.yaml", budget={"tokens": spent + 400})
    stopped = project.snakemake(*OPTIONS)
    assert stopped.code != 0
    assert "`budget` of configs/global.yaml is reached" in stopped.text
    accuracy = project.json(ACCURACY)
    assert 0 < accuracy["coverage"]["scored"] < 40
    assert accuracy["failure_stats"] == {"budget": 40 - accuracy["coverage"]["scored"]}
    asked = requests(mock)
    judged = expenses(project, "judge")
    overshoot = judged["prompt"] + judged["completion"] - 400

    project.change_yaml("configs/global.yaml", budget={"tokens": 1_000_000})
    assert (retried := project.snakemake("retry", *OPTIONS)).code == 0, retried.text
    assert project.json(ACCURACY)["coverage"]["scored"] == 40
    assert set(requests(mock).values()) == {1}
    assert asked <= requests(mock)
    # A job with one request at a time goes over by one reply at most.
    journal = read(project.root / "results/scores/alpha__plain/run1_strict/tiny.partial.jsonl")
    assert len(journal) == 40
    assert 0 <= overshoot < max(line["reply"]["usage"]["total_tokens"] for line in journal.values())


def test_jobs_at_the_same_time_share_the_budget(
    project: WorkflowProject, mock: RunningMock
) -> None:
    both = ("--config", "repeats=1")
    project.change_yaml("configs/alpha.yaml", concurrency=2)
    project.change_yaml("configs/global.yaml", budget={"money": 0.02})
    stopped = project.snakemake(*both)
    assert stopped.code != 0
    assert "raise `budget` in configs/global.yaml" in stopped.text
    paid = [
        cost(tally(line), parse(Prices, PRICES, "prices"))
        for path in (project.root / "results").glob("prediction/*/run1/tiny.partial.jsonl")
        for line in path.read_bytes().splitlines()
    ]
    # Two jobs with two requests on their way each.
    assert Decimal("0.02") <= sum(paid) < Decimal("0.02") + 4 * max(paid)
    asked = mock.stats().answered
    assert asked < 2 * 40

    project.change_yaml("configs/global.yaml", budget={"money": 10})
    assert (retried := project.snakemake("retry", *both)).code == 0, retried.text
    assert mock.stats().answered == 4 * 40
    assert mock.stats().resent_after_ok == 0


def test_a_budget_of_money_without_prices_is_refused_before_anything_runs(
    project: WorkflowProject, mock: RunningMock
) -> None:
    project.change_yaml("judge_configs/strict.yaml", prices=None)
    project.change_yaml("configs/global.yaml", budget={"money": 1})
    for arguments in (("-n", *OPTIONS), OPTIONS):
        refused = project.snakemake(*arguments)
        assert refused.code != 0
        assert "error: judge_configs/strict.yaml: has no `prices`" in refused.text
    assert mock.stats().requests == 0
    # Looking on and what calls no judge are not concerned.
    assert project.snakemake("estimate", *OPTIONS).code == 0
    assert project.snakemake("predictions", *OPTIONS).code == 0


def test_an_estimate_asks_nothing_and_holds(
    project: WorkflowProject, mock: RunningMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    smoke = {"datasets": "smoke", "repeats": 2}
    words = ("--config", *(f"{key}={value}" for key, value in smoke.items()))
    shown = project.snakemake("estimate", *words, env={KEY_VARIABLE: None})
    assert shown.code == 0, shown.text
    assert mock.stats().requests == 0
    assert not (project.root / "results").exists()
    monkeypatch.chdir(project.root)

    def expected() -> list[Forecast]:
        return forecasts(make_plan(load_project(Path()), smoke))

    first = expected()
    assert first[0].asked in shown.text
    assert project.snakemake("predictions", *words).code == 0
    second = expected()
    assert [forecast.stage for forecast in second] == ["judge"]
    assert project.snakemake(*words).code == 0
    assert expected() == []
    took = project.json("results/summary.json")["expenses"]
    for forecast in [*first, *second]:
        assert_holds(forecast, [e for e in took if belongs(e, forecast)])
    # One run more, by what the two before it took.
    smoke["repeats"] = 3
    third = expected()
    assert [forecast.calls.high for forecast in third[:2]] == [5, 5]
    assert project.snakemake("--config", "datasets=smoke", "repeats=3").code == 0
    took = [e for e in project.json("results/summary.json")["expenses"] if e["run"] == 3]
    for forecast in third:
        assert_holds(forecast, [e for e in took if belongs(e, forecast)])


def belongs(expense: dict[str, Any], forecast: Forecast) -> bool:
    """Whether an account of the summary is of what was estimated."""
    if expense["stage"] == "judge":
        return bool(forecast.asked == expense["judge"])
    return forecast.asked == f"{expense['model']} {expense['mode']}"


# A range of tokens rests on five or ten replies here, whose lengths differ: some miss it a little.
_FAR = 2


def assert_holds(forecast: Forecast, took: list[dict[str, Any]]) -> None:
    """Fail where calls lie outside of what was expected, or tokens and money far outside."""
    calls = sum(expense["calls"] for expense in took)
    assert forecast.calls.low <= calls <= forecast.calls.high, (forecast.asked, calls)
    for name, span in (("prompt", forecast.prompt), ("completion", forecast.output)):
        taken = sum(expense[name] for expense in took)
        assert span.low / _FAR <= taken <= span.high * _FAR, (forecast.asked, name, taken, span)
    assert forecast.cost is not None
    low, high = forecast.cost
    cost = sum(Decimal(expense["cost"]) for expense in took)
    assert low / _FAR <= cost <= high * _FAR, (forecast.asked, cost, forecast.cost)
