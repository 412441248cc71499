"""The selection on the command line, applied to a configured project."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adhere.config import GlobalConfig, JudgeConfig, ModelConfig, Project
from adhere.data import load
from adhere.errors import ConfigError
from adhere.jsonio import write_json
from adhere.names import check_mode_name, check_name, limited, unlimited
from adhere.plan import OVERRIDES, SELECTION, Cell, Evaluation, make_plan

API = {"api": {"base_url": "http://host/v1", "model": "m"}}


def project(**fields: Any) -> Project:
    """Return a project with models on, two, off and 1, judges main, extra and spare."""
    content: dict[str, Any] = {
        "datasets": {"eval": "data/eval.json", "smoke": "data/smoke.json", "2026": "x.json"},
        "default_datasets": ["eval"],
        "default_judge": "main",
        **fields,
    }
    two: dict[str, dict[str, object]] = {"thinking": {}, "non-thinking": {}}
    models = {
        "on": ModelConfig.model_validate({**API, "modes": two}),
        "two": ModelConfig.model_validate({**API, "modes": {"thinking": {}, "low": {}}}),
        "off": ModelConfig.model_validate({**API, "enabled": False, "modes": {"hidden": {}}}),
        "1": ModelConfig.model_validate({**API, "enabled": False}),
    }
    judges = {
        "extra": JudgeConfig.model_validate({"model": "x"}),
        "main": JudgeConfig.model_validate({"model": "x"}),
        "spare": JudgeConfig.model_validate({"model": "x", "enabled": False}),
    }
    return Project(Path("/nowhere"), GlobalConfig.model_validate(content), models, judges)


def refused(selection: dict[str, Any]) -> str:
    """Return the message with which a selection is refused."""
    with pytest.raises(ConfigError) as caught:
        make_plan(project(), selection)
    return str(caught.value)


def test_without_a_selection_everything_enabled_runs() -> None:
    plan = make_plan(project(), {})
    assert plan.modes == {"on": ("thinking", "non-thinking"), "two": ("thinking", "low")}
    assert plan.judges == ("main", "extra")
    assert (plan.datasets, plan.limit, plan.retry) == (("eval",), None, False)
    cells = list(plan.cells())
    assert cells[0] == Cell("on", "thinking", 1, "eval")
    assert len(cells) == 2 * 2 * 3
    first = [Evaluation(cells[0], judge) for judge in ("main", "extra")]
    assert list(plan.evaluations())[:2] == first
    assert len(list(plan.evaluations())) == 2 * len(cells)


@pytest.mark.parametrize(
    "value", ["two,on", " two , on ", ["two", "on"], ("two", "on"), "two,on,two"]
)
def test_models_by_name_in_the_order_given(value: object) -> None:
    assert list(make_plan(project(), {"models": value}).modes) == ["two", "on"]


@pytest.mark.parametrize("value", ["off", "off,on", ["off"]])
def test_naming_a_disabled_model_runs_it(value: object) -> None:
    assert make_plan(project(), {"models": value}).modes["off"] == ("hidden",)


@pytest.mark.parametrize("value", [1, "1", [1]])
def test_names_that_snakemake_reads_as_numbers(value: object) -> None:
    assert make_plan(project(), {"models": value}).modes == {"1": ("default",)}
    assert make_plan(project(), {"datasets": 2026}).datasets == ("2026",)
    assert make_plan(project(), {"results_root": 2026}).results_root == Path("2026")


def test_naming_a_disabled_judge_runs_it_and_the_default_comes_first() -> None:
    assert make_plan(project(), {"judges": "spare"}).judges == ("spare",)
    assert make_plan(project(), {"judges": "spare,main,extra"}).judges == ("main", "extra", "spare")


def test_modes_are_taken_where_a_model_has_them() -> None:
    assert make_plan(project(), {"modes": "thinking"}).modes == {
        "on": ("thinking",),
        "two": ("thinking",),
    }
    assert make_plan(project(), {"modes": "low,non-thinking"}).modes == {
        "on": ("non-thinking",),
        "two": ("low",),
    }
    assert make_plan(project(), {"models": "off", "modes": "hidden"}).modes == {"off": ("hidden",)}


def test_an_enabled_model_without_the_mode_is_passed_over_and_named() -> None:
    plan = make_plan(project(), {"modes": "low"})
    assert plan.modes == {"two": ("low",)}
    assert plan.passed_over == ("on",)
    assert plan.remarks() == [
        "passed over: configs/on.yaml: it has none of the modes asked for, only thinking, "
        "non-thinking"
    ]
    assert make_plan(project(), {"modes": "low,thinking"}).remarks() == []


def test_a_named_model_without_the_mode_is_refused() -> None:
    assert refused({"models": "two,on", "modes": "low,hiden"}).startswith("--config modes=hiden")
    assert refused({"models": "two,on", "modes": "low"}) == (
        "--config modes=low: configs/on.yaml has none of them; it has: thinking, non-thinking: "
        "name another mode, or leave on out of `models`"
    )
    both = make_plan(project(), {"models": "two,on", "modes": "low,thinking"})
    assert both.modes == {"two": ("thinking", "low"), "on": ("thinking",)}


def test_modes_of_a_project_without_enabled_models() -> None:
    whole = project()
    models = {n: m for n, m in whole.models.items() if not m.enabled}
    plan = make_plan(Project(whole.root, whole.config, models, whole.judges), {"modes": "hidden"})
    assert plan.modes == {}


def test_overrides_take_the_place_of_fields() -> None:
    selection = {
        "repeats": 1,
        "policy": "nemo-0.7",
        "results_root": "elsewhere",
        "concurrency": 5,
    }
    before = project(gpus=["0", "1"], retry={"attempts": 2, "timeout_s": None})
    config = make_plan(before, selection).config
    assert (config.repeats, config.policy, config.results_root) == (1, "nemo-0.7", "elsewhere")
    assert config.concurrency == 5
    assert config.retry.attempts == 2 and config.gpus == ("0", "1")
    assert before.config.repeats == 3


def test_limited_runs_have_a_name_of_their_own() -> None:
    plan = make_plan(project(), {"limit": 20, "datasets": "eval,smoke", "repeats": 1})
    assert (plan.datasets, plan.limit) == (("eval", "smoke"), 20)
    assert {cell.dataset for cell in plan.cells()} == {"eval.first20", "smoke.first20"}


@pytest.mark.parametrize(("limit", "expected"), [(1, "own.first1"), (2, "own"), (999, "own")])
def test_a_limit_that_leaves_nothing_out_is_none(tmp_path: Path, limit: int, expected: str) -> None:
    row = {
        "input": [{"role": "user", "content": "x"}],
        "constraints": [{"evaluation": [{"type": "llm", "exec": "Fine?"}]}],
    }
    write_json(tmp_path / "own.json", [row, row])
    made = replace(project(datasets={"own": "own.json"}), root=tmp_path)
    plan = make_plan(made, {"limit": limit, "datasets": "own", "models": "two", "repeats": 1})
    assert {cell.dataset for cell in plan.cells()} == {expected}
    whole = load("own", tmp_path / "own.json")
    assert whole.named(limit) == expected
    assert whole.named(None) == "own"


def test_a_dataset_named_twice_runs_once() -> None:
    assert make_plan(project(), {"datasets": "smoke,smoke"}).datasets == ("smoke",)
    twice = project(default_datasets=["eval", "eval"])
    assert make_plan(twice, {}).datasets == ("eval",)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), ("true", True), (1, True), (False, False), ("False", False), (0, False)],
)
def test_retry(value: object, expected: bool) -> None:
    assert make_plan(project(), {"retry": value}).retry is expected


def test_nothing_given_is_nothing_selected() -> None:
    assert make_plan(project(), dict.fromkeys(("models", "modes", "judges", "limit"))) == make_plan(
        project(), {}
    )


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({"model": "on"}, "--config model=…: unknown key (did you mean `models`?); allowed: acc"),
        ({"colour": 1}, "--config colour=…: unknown key; allowed: accept_dataset, calls, concu"),
        ({"models": "onn"}, "--config models=onn: there is no configs/onn.yaml (did you mean `on`"),
        ({"models": "on,zzzzz"}, "--config models=zzzzz: there is no configs/zzzzz.yaml; known: o"),
        ({"models": 7}, "--config models=7: there is no configs/7.yaml; known: on, two, off, 1"),
        ({"models": ","}, "--config models=: names nothing; known: on, two, off, 1"),
        ({"models": []}, "--config models=: names nothing"),
        ({"judges": "man"}, "there is no judge_configs/man.yaml (did you mean `main`?); known: ex"),
        ({"datasets": "evl"}, "--config datasets=evl: not in configs/global.yaml (did you mean `e"),
        ({"modes": "thinkin"}, "--config modes=thinkin: no selected model has it (did you mean `t"),
        ({"models": "on", "modes": "low"}, "--config modes=low: no selected model has it; there a"),
        ({"limit": 0}, "--config limit=0: must be a whole number of items from 1"),
        ({"limit": -3}, "--config limit=-3: must be a whole number of items from 1"),
        ({"limit": 2.5}, "--config limit=2.5: must be a whole number of items from 1"),
        ({"limit": True}, "--config limit=True: must be a whole number of items from 1"),
        ({"limit": "many"}, "--config limit=many: must be a whole number of items from 1"),
        ({"retry": "maybe"}, "--config retry=maybe: must be true or false"),
        ({"calls": "there"}, "--config calls=there: must be here or nodes"),
        ({"repeats": 0}, "--config: repeats: found 0: must be at least 1"),
        ({"repeats": "three"}, "--config: repeats: found 'three': must be a whole number"),
        ({"repeats": True}, "--config: repeats: found true: must be a whole number"),
        ({"concurrency": 1.5}, "--config: concurrency: found 1.5: must be a whole number"),
        ({"policy": "nemo"}, "--config: policy: found 'nemo': must be `adhere`, `upstream-2025` "),
    ],
)
def test_wrong_selections(selection: dict[str, Any], expected: str) -> None:
    assert expected in refused(selection)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@given(
    st.dictionaries(
        st.sampled_from([*SELECTION, *OVERRIDES, "x"]),
        VALUES,
    )
)
def test_any_selection_is_a_plan_or_a_message(selection: dict[str, Any]) -> None:
    try:
        make_plan(project(), selection)
    except ConfigError as error:
        assert str(error).startswith("--config")


# Names


@given(st.text(max_size=20), st.none() | st.integers(1, 10**6))
def test_limited_names_can_be_split_again(name: str, limit: int | None) -> None:
    try:
        check_name(name, "x")
    except ConfigError:
        return
    assert unlimited(limited(name, limit)) == (name, limit)


@given(st.text(max_size=12), st.text(max_size=12))
def test_folders_of_models_and_modes_split_in_one_way(model: str, mode: str) -> None:
    try:
        check_name(model, "x")
        check_mode_name(mode, "x")
    except ConfigError:
        return
    assert f"{model}__{mode}".rpartition("__")[::2] == (model, mode)


@pytest.mark.parametrize("model", ["a", "a_", "a__", "a__b", "Qwen3.5-4B", "a b", "日本"])
@pytest.mark.parametrize("mode", ["thinking", "non-thinking", "a_b", "v1.2", "a+b", "思考"])
def test_usual_names_are_allowed_and_split(model: str, mode: str) -> None:
    check_name(model, "x")
    check_mode_name(mode, "x")
    assert f"{model}__{mode}".rpartition("__")[::2] == (model, mode)
