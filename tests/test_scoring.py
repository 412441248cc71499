"""Accounting under each policy, rates, coverage, and what a malformed row is answered with."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adhere.derived import read_record
from adhere.errors import ConfigError, DataError
from adhere.scoring import POLICIES, Accuracy, get_policy, score_file
from adhere.scoring.accuracy import compute_accuracy, outcomes
from adhere.scoring.metrics import group_means, macro_average, mean, sample_std
from adhere.scoring.parse import parse_results
from adhere.scoring.provenance import JudgeRun

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared"))

Row = dict[str, Any]
# How a message about a file that can be made again ends.
FREE = "Where the workflow wrote it, delete it and give the same command again: "


def constraint(score: bool | None = True, **keys: Any) -> Row:
    defaults: Row = {
        "id": 0,
        "dimension": "unconditional",
        "type": ["semantic"],
        "is_meta": False,
        "evaluation": [{"type": "llm", "exec": "Is it so?"}],
        "score": score,
        "null_reason": None,
    }
    return defaults | keys


def row(*constraints: Row, content: str | None = "An answer.", **output: Any) -> Row:
    return {
        "agent_name": "agent",
        "input": [{"role": "user", "content": "Do it."}],
        "output": {"content": content, "model_name": "m"} | output,
        "constraints": list(constraints),
    }


def failed(*constraints: Row, kind: str = "context_overflow", retryable: bool = False) -> Row:
    error = {"kind": kind, "message": "it failed", "retryable": retryable}
    return row(*constraints, content=None, error=error)


def unscored(reason: str, **keys: Any) -> Row:
    return constraint(None, null_reason=reason, **keys)


def score(rows: Sequence[Row], policy: str = "adhere") -> Accuracy:
    items = parse_results(json.loads(json.dumps(rows)), "results.json")
    chosen = get_policy(policy)
    return compute_accuracy(chosen, items, outcomes(chosen, items), JudgeRun())


def rates(accuracy: Accuracy) -> tuple[float | None, float | None]:
    return accuracy.CSR.rate, accuracy.ISR.rate


# --- policies -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "csr", "isr", "stats"),
    [
        ("adhere", (1, 3), (1, 2), {}),
        ("upstream-2025", (1, 1), (1, 1), {"row_absent": 2}),
        ("nemo-0.7", (1, 1), (1, 2), {"no_response": 2}),
    ],
)
@pytest.mark.parametrize(
    "lost",
    [
        row(unscored("no_response"), unscored("no_response"), content=""),
        row(unscored("no_response"), unscored("no_response"), content=" \n\t　"),
        row(unscored("no_response"), unscored("no_response"), content=None),
        failed(unscored("no_response"), unscored("no_response")),
        # Whatever was recorded for it: the output decides, not the reason.
        failed(constraint(True), unscored("judge_failed")),
        row(constraint(True), unscored("not_applicable"), content=""),
    ],
)
def test_empty_and_failed_responses_count_as_the_policy_says(
    lost: Row, policy: str, csr: tuple[int, int], isr: tuple[int, int], stats: dict[str, int]
) -> None:
    result = score([row(constraint(True)), lost], policy)
    assert (result.CSR.followed, result.CSR.scored) == csr
    assert (result.ISR.passed, result.ISR.counted) == isr
    assert result.failure_stats == stats
    assert result.coverage.expected == 3
    assert result.responses.empty_or_failed == 1
    assert result.retryable == 0


@pytest.mark.parametrize(
    ("policy", "isr", "stats"),
    [
        ("adhere", (1, 2), {"prediction_pending": 2}),
        ("upstream-2025", (1, 1), {"row_absent": 2}),
        ("nemo-0.7", (1, 2), {"prediction_pending": 2}),
    ],
)
def test_a_retryable_failure_is_no_violation(
    policy: str, isr: tuple[int, int], stats: dict[str, int]
) -> None:
    pending = failed(
        unscored("prediction_pending"),
        unscored("prediction_pending"),
        kind="rate_limited",
        retryable=True,
    )
    result = score([row(constraint(True)), pending], policy)
    assert (result.CSR.followed, result.CSR.scored) == (1, 1)
    assert (result.ISR.passed, result.ISR.counted) == isr
    assert result.failure_stats == stats
    assert result.responses.model_dump() == {
        "ok": 1,
        "empty_or_failed": 0,
        "truncated": 0,
        "pending": 1,
    }
    assert result.response_failures == {"rate_limited": 1}
    assert result.retryable == 2


@pytest.mark.parametrize(
    ("policy", "isr"), [("adhere", (0, 2)), ("upstream-2025", (1, 1)), ("nemo-0.7", (0, 2))]
)
def test_an_unscored_constraint_keeps_its_item_from_passing(
    policy: str, isr: tuple[int, int]
) -> None:
    rows = [
        row(constraint(True), unscored("judge_failed")),
        row(unscored("checker_timeout")),
        row(unscored("not_applicable")),
    ]
    result = score(rows, policy)
    assert (result.CSR.followed, result.CSR.scored) == (1, 1)
    assert (result.ISR.passed, result.ISR.counted) == isr
    assert result.failure_stats == {"checker_timeout": 1, "judge_failed": 1}
    assert result.coverage.not_applicable == 1


CODE = [{"type": "code", "exec": "…"}]
CONDITIONED_CODE = [{"type": "llm_conditional_check", "exec": "…"}, *CODE]


@pytest.mark.parametrize(
    ("evaluation", "steps", "is_checkers"),
    [
        (CODE, [{"type": "code", "result": None}], True),
        (CODE, None, True),
        (CONDITIONED_CODE, [{"type": "llm_conditional_check"}, {"type": "code"}], True),
        (CONDITIONED_CODE, [{"type": "llm_conditional_check"}], False),
        (CONDITIONED_CODE, None, False),
        ([{"type": "llm_conditional_check"}], [{"type": "llm_conditional_check"}], False),
    ],
)
def test_a_checkers_none_is_unscored_for_nemo_only(
    evaluation: list[Row], steps: list[Row] | None, is_checkers: bool
) -> None:
    rows = [row(constraint(True), unscored("not_applicable", evaluation=evaluation, steps=steps))]
    for policy in ("adhere", "upstream-2025"):
        result = score(rows, policy)
        assert rates(result) == (1.0, 1.0)
        assert result.coverage.not_applicable == 1
    nemo = score(rows, "nemo-0.7")
    assert rates(nemo) == (1.0, 0.0 if is_checkers else 1.0)
    assert nemo.failure_stats == ({"checker_none": 1} if is_checkers else {})


def test_a_repaired_checker_is_null_upstream() -> None:
    steps = [{"type": "code", "result": False, "repaired": True}]
    rows = [row(constraint(True), constraint(False, evaluation=CODE, steps=steps))]
    assert rates(score(rows, "adhere")) == (0.5, 0.0)
    assert rates(score(rows, "nemo-0.7")) == (0.5, 0.0)
    upstream = score(rows, "upstream-2025")
    assert rates(upstream) == (1.0, 1.0)
    assert upstream.failure_stats == {"checker_not_defined": 1}


def test_truncated_answers_are_scored_and_counted() -> None:
    rows = [
        row(constraint(True), finish_reason="length"),
        row(constraint(False), flags=["truncated"]),
        failed(unscored("no_response"), kind="thinking_cut_off"),
    ]
    result = score(rows)
    assert (result.CSR.followed, result.CSR.scored) == (1, 3)
    assert result.responses.ok == 2
    assert result.responses.truncated == 2
    assert result.response_failures == {"thinking_cut_off": 1}


def test_retryable_counts_what_a_retry_could_change() -> None:
    again = {"type": "llm", "retryable": True}
    rows = [
        row(
            unscored("judge_failed", steps=[again]),
            unscored("judge_unreadable", steps=[{"type": "llm"}]),
            unscored("not_applicable", steps=[again]),
            constraint(True, steps=[again]),
        ),
        failed(unscored("no_response", steps=[again])),
        failed(retryable=True),
    ]
    assert score(rows).retryable == 2


def test_files_of_others_null_and_missing_scores() -> None:
    conditional = [{"type": "llm_conditional_check"}, {"type": "llm"}]
    published: list[Row] = [
        {"evaluation": [{"type": "llm"}], "score": True},
        {"evaluation": [{"type": "llm"}], "score": None},
        {"evaluation": conditional, "score": None},
        # No score at all: upstream gave up on the item, so the condition is not known to fail.
        {"evaluation": conditional},
        {"evaluation": [{"type": "llm"}]},
    ]
    result = score([row(*published)])
    assert result.coverage.model_dump() == {
        "expected": 5,
        "scored": 1,
        "not_applicable": 1,
        "unscored": 3,
    }
    assert result.failure_stats == {"recorded_missing": 2, "recorded_null": 1}


def test_unknown_policy_names_the_allowed_ones() -> None:
    with pytest.raises(ConfigError, match=r"'strict'.*adhere, upstream-2025, nemo-0\.7"):
        get_policy("strict")


# --- breakdowns ---------------------------------------------------------------------------------


def test_names_lists_and_misspelt_keys() -> None:
    rows = [
        row(
            constraint(True, dimension="conditional", type=["formatting", "resource"]),
            constraint(False, dimension="example_driven", type="resource", is_meta=True),
            {"score": True, "type": [], "is meta": True},
            {"score": False, "dimension": "other", "type": ["new", "new"], "is_meat": True},
        )
    ]
    result = score(rows)
    counts = {
        name: (rate.followed, rate.scored)
        for name, rate in (result.by_dimension | result.by_type).items()
    }
    assert counts == {
        "vanilla": (0, 0),
        "condition": (1, 1),
        "example": (0, 1),
        "other": (0, 1),
        "formatting": (1, 1),
        "semantic": (0, 0),
        "tool": (1, 2),
        "new": (0, 1),
    }
    assert result.by_dimension["vanilla"].rate is None
    assert (result.meta.followed, result.meta.scored) == (1, 3)


def test_nothing_at_all_is_null_and_not_zero() -> None:
    result = score([])
    assert rates(result) == (None, None)
    assert result.meta.rate is None
    assert result.coverage.expected == 0


# --- metric cases -------------------------------------------------------------------------------


def cases(kind: str) -> list[Mapping[str, Any]]:
    path = SHARED / "cases" / "robustness.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    parsed = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
    found = [case for case in parsed if case["kind"] == kind]
    assert found
    return found


def case_rows(samples: Mapping[str, list[bool | None]]) -> list[Row]:
    return [
        row(
            *(
                constraint(value)
                if value is not None
                else unscored("no_response" if "empty answer" in name else "not_applicable")
                for value in values
            ),
            content="" if "empty answer" in name else "An answer.",
        )
        for name, values in samples.items()
    ]


def test_csr_and_isr_cases() -> None:
    for case in cases("csr_isr"):
        rows, expected = case_rows(case["input"]), case["expected"]
        assert rates(score(rows)) == (expected["csr"], expected["isr"])
        assert rates(score(rows, "upstream-2025")) == (
            expected["upstream_csr"],
            expected["upstream_isr"],
        )


def test_isr_sample_cases() -> None:
    for case in cases("isr_sample"):
        assert case["expected"] == "not counted"
        for policy in POLICIES:
            result = score(case_rows(case["input"]), policy)
            assert (result.ISR.rate, result.ISR.counted) == (None, 0)


def test_macro_average_cases() -> None:
    for case in cases("macro_average"):
        found = group_means(case["input"]) | {"macro": macro_average(case["input"])}
        assert {name: found[name] for name in case["expected"]} == case["expected"]


def test_std_cases() -> None:
    for case in cases("std"):
        assert sample_std(case["input"]) == case["expected"]


def test_mean_and_sample_std() -> None:
    assert mean([]) is None
    assert mean([0.5]) == 0.5
    assert sample_std([0.2, 0.4]) == pytest.approx(0.1414213562)
    assert sample_std([0.1, 0.1, 0.1]) == 0.0
    assert macro_average({"a": [], "b": []}) is None


# --- properties ---------------------------------------------------------------------------------

REASONS = ["not_applicable", "no_response", "prediction_pending", "judge_failed", "checker_error"]
STEPS = st.none() | st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["llm", "code", "llm_conditional_check"])},
        optional={"repaired": st.booleans(), "retryable": st.booleans(), "result": st.none()},
    ),
    max_size=2,
)
EVALUATION = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from(["llm", "code", "llm_conditional_check"])}),
    max_size=3,
)


@st.composite
def constraints(draw: st.DrawFn) -> Row:
    value = draw(st.sampled_from([True, False, None]))
    keys: Row = {
        "evaluation": draw(EVALUATION),
        "dimension": draw(st.sampled_from(["unconditional", "conditional", "x", None])),
        "type": draw(st.sampled_from(["resource", ["semantic", "formatting"], [], ["y"]])),
        "steps": draw(STEPS),
    }
    keys[draw(st.sampled_from(["is_meta", "is meta", "is_meat"]))] = draw(st.booleans())
    if value is None:
        keys["null_reason"] = draw(st.sampled_from([None, *REASONS]))
        return keys | draw(st.sampled_from([{}, {"score": None}]))
    return keys | {"score": value}


OUTPUTS = st.fixed_dictionaries(
    {"content": st.sampled_from(["text", "", None]), "model_name": st.just("m")},
    optional={
        "finish_reason": st.sampled_from(["stop", "length", None]),
        "flags": st.sampled_from([[], ["truncated"], None]),
        "error": st.none()
        | st.fixed_dictionaries({"kind": st.just("timeout"), "retryable": st.booleans()}),
    },
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"output": OUTPUTS, "constraints": st.lists(constraints(), max_size=4)},
        optional={"id": st.sampled_from([0, 7, "7", "问"])},
    ),
    max_size=4,
)
POLICY_NAMES = st.sampled_from(sorted(POLICIES))


@given(ROWS, POLICY_NAMES)
def test_rates_are_fractions_and_coverage_adds_up(rows: list[Row], policy: str) -> None:
    result = score(rows, policy)
    groups = [result.CSR, result.meta, *result.by_dimension.values(), *result.by_type.values()]
    pairs = [(group.rate, group.followed, group.scored) for group in groups]
    for rate, hits, total in [*pairs, (result.ISR.rate, result.ISR.passed, result.ISR.counted)]:
        assert 0 <= hits <= total
        assert rate is None if total == 0 else rate == hits / total
    covered = result.coverage
    assert covered.expected == sum(len(item["constraints"]) for item in rows)
    assert covered.expected == covered.scored + covered.not_applicable + covered.unscored
    assert covered.scored == result.CSR.scored
    assert covered.unscored == sum(result.failure_stats.values())
    counts = result.responses
    assert result.rows == len(rows) == counts.ok + counts.empty_or_failed + counts.pending
    assert counts.truncated <= counts.ok
    assert sum(result.response_failures.values()) == counts.empty_or_failed + counts.pending
    assert 0 <= result.ISR.counted <= len(rows)


@given(ROWS, POLICY_NAMES, st.randoms(use_true_random=False))
def test_order_does_not_matter(rows: list[Row], policy: str, random: Any) -> None:
    before = score(rows, policy)
    shuffled = [
        item | {"constraints": random.sample(item["constraints"], len(item["constraints"]))}
        for item in rows
    ]
    random.shuffle(shuffled)
    assert score(shuffled, policy) == before


@given(ROWS)
def test_policies_agree_on_clean_verdicts(rows: list[Row]) -> None:
    """Where nothing failed and no checker spoke, the policies cannot differ."""
    clean = [
        row(*(constraint(bool(cell.get("score"))) for cell in item["constraints"])) for item in rows
    ]
    results = {rates(score(clean, policy)) for policy in POLICIES}
    assert len(results) == 1


TEXTS = st.sampled_from(
    ["", " ", "llm", "true", "null", "type", "kind", "retryable", "\ufffd\u2028", "是"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
CONSTRAINT_KEYS = ["id", "dimension", "type", "is_meta", "is meta", "is_meat", "evaluation"]
CONSTRAINT_KEYS += ["score", "llm_output", "null_reason", "steps", "desc", "other_info"]
OUTPUT_KEYS = ["content", "finish_reason", "flags", "error", "usage", "latency_s", "reasoning"]


@given(st.sampled_from(CONSTRAINT_KEYS), JSON, POLICY_NAMES)
def test_junk_in_a_constraint_is_scored_or_named(key: str, junk: Any, policy: str) -> None:
    rows = [row(constraint()), row(constraint(), constraint() | {key: junk}) | {"id": 3}]
    try:
        assert score(rows, policy).coverage.expected == 3
    except DataError as error:
        assert f"results.json: item 2 (id 3): constraint 2: {key}" in str(error)


@given(st.sampled_from(OUTPUT_KEYS), JSON, POLICY_NAMES)
def test_junk_in_an_output_is_scored_or_named(key: str, junk: Any, policy: str) -> None:
    rows = [row(constraint()), row(constraint(), **{key: junk} if key != "content" else {})]
    if key == "content":
        rows[1]["output"]["content"] = junk
    try:
        assert score(rows, policy).rows == 2
    except DataError as error:
        assert f"results.json: item 2: output.{key}" in str(error)


@given(JSON)
def test_junk_in_a_row_is_scored_or_named(junk: Any) -> None:
    for bad in ({"constraints": junk}, {"output": junk}, {"constraints": [junk]}, {"id": junk}):
        try:
            score([row(constraint()), row(constraint()) | bad])
        except DataError as error:
            assert str(error).startswith("results.json: item 2")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (constraint() | {"score": "yes"}, r"score: found 'yes'; allowed: true, false or null"),
        (constraint() | {"score": 1}, r"score: found 1"),
        (constraint(True, null_reason="judge_failed"), r"null_reason: found 'judge_failed'"),
        (constraint(is_meta="no"), r"is_meta: found 'no'"),
        (constraint(type=[3]), r"type: found \[3\]"),
        (constraint(steps=[{"repaired": "yes"}]), r"steps.repaired: found 'yes'"),
        (constraint(evaluation=["llm"]), r"evaluation: found 'llm'"),
    ],
)
def test_malformed_constraints_are_refused_by_place(bad: Row, message: str) -> None:
    with pytest.raises(DataError, match=r"results\.json: item 2: constraint 2: " + message):
        score([row(constraint()), row(constraint(), bad)])


# --- files --------------------------------------------------------------------------------------

JUDGE_RUN = {
    "judge": {"name": "j", "hash": "a" * 64, "config": {"model": "x"}},
    "protocol": 1,
    "parser": "adhere",
    "dataset": {"name": "eval.first2", "sha256": "b" * 64, "limit": 2, "items": 2},
    "prediction": {"model": "a/b", "mode": "thinking", "run": 3, "hash": "c" * 64},
    "isolation": "strong",
    "warnings": ["be careful"],
    "demo": False,
    "tokens": {"prompt": 1},
}


def write_results(folder: Path, rows: Sequence[Row], run: Row | None = JUDGE_RUN) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.json"
    path.write_text(json.dumps(rows), "utf-8")
    if run is not None:
        (folder / "judge_run.json").write_text(json.dumps(run), "utf-8")
    return path


SAMPLE = [
    row(constraint(True, id=7, type="resource"), unscored("judge_failed", id="k")),
    row(unscored("no_response", evaluation=CONDITIONED_CODE), content="") | {"id": 12},
]


def test_accuracy_json_holds_the_contract(tmp_path: Path) -> None:
    results = write_results(tmp_path, SAMPLE)
    document = score_file(results, "adhere", tmp_path / "accuracy.json", None)
    assert json.loads((tmp_path / "accuracy.json").read_text("utf-8")) == document
    assert document["dataset"] == {"name": "eval", "sha256": "b" * 64}
    assert (document["limit"], document["rows"]) == (2, 2)
    assert (document["judge"], document["judge_hash"]) == ("j", "a" * 64)
    assert (document["protocol"], document["policy"]) == (1, "adhere")
    assert document["prediction"] == {
        "model": "a/b",
        "mode": "thinking",
        "run": 3,
        "hash": "c" * 64,
        "sampled": None,
        "outputs_sha256": None,
    }
    assert document["CSR"] == {"rate": 0.5, "followed": 1, "scored": 2}
    assert document["ISR"] == {"rate": 0.0, "passed": 0, "counted": 2}
    assert document["coverage"] == {
        "expected": 3,
        "scored": 2,
        "not_applicable": 0,
        "unscored": 1,
    }
    assert document["failure_stats"] == {"judge_failed": 1}
    assert (document["warnings"], document["demo"]) == (["be careful"], False)


def test_without_judge_run_names_are_unknown(tmp_path: Path) -> None:
    results = write_results(tmp_path, SAMPLE, run=None)
    document = score_file(results, "adhere", tmp_path / "accuracy.json", None)
    assert document["dataset"] == {"name": None, "sha256": None}
    assert set(document["prediction"].values()) == {None}
    unknown = ("judge", "judge_hash", "protocol", "limit", "parser", "isolation")
    assert [document[key] for key in unknown] == [None] * len(unknown)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"protocol": "1"}, "protocol"),
        ({"prediction": {"run": -1}}, "prediction.run"),
        ({"warnings": "none"}, "warnings"),
        ({"judge": ["j"]}, "judge"),
    ],
)
def test_malformed_judge_run_is_named(tmp_path: Path, change: Row, key: str) -> None:
    results = write_results(tmp_path, SAMPLE, JUDGE_RUN | change)
    named = rf"judge_run\.json: {key}: found .*; allowed: .*\. {FREE}"
    with pytest.raises(DataError, match=named) as raised:
        score_file(results, "adhere", tmp_path / "accuracy.json", None)
    assert "instance of" not in str(raised.value)


@pytest.mark.parametrize("rows", [SAMPLE[:1], [*SAMPLE, SAMPLE[0]]], ids=["cut", "doubled"])
def test_a_results_file_with_other_than_all_its_items_is_refused(
    tmp_path: Path, rows: list[Row]
) -> None:
    judged = JUDGE_RUN | {"dataset": {"name": "eval", "items": len(SAMPLE)}}
    results = write_results(tmp_path, rows, judged)
    said = rf"results\.json: holds {len(rows)} items, and judge_run\.json .* 2 were judged.* {FREE}"
    with pytest.raises(DataError, match=said):
        score_file(results, "adhere", tmp_path / "accuracy.json", None)
    assert not (tmp_path / "accuracy.json").exists()
    # Others' files have no record, and any number of items.
    (tmp_path / "judge_run.json").unlink()
    assert score_file(results, "adhere", tmp_path / "accuracy.json", None)["rows"] == len(rows)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"CSR": {"rate": 17, "followed": 9, "scored": 10}}, "CSR: rate: found 17.0, followed 9"),
        ({"CSR": {"rate": None, "followed": 9, "scored": 10}}, "CSR: rate: found None"),
        ({"CSR": {"rate": 0.9, "followed": 0, "scored": 0}}, "allowed: followed / scored"),
        ({"CSR": {"rate": 1.5, "followed": 3, "scored": 2}}, "between 0 and 1"),
        ({"CSR": {"rate": -0.5, "followed": -1, "scored": 2}}, "CSR.followed: .* at least 0"),
        ({"ISR": {"rate": 0.5, "passed": 1, "counted": 1}}, "allowed: passed / counted"),
        ({"by_type": {"x": {"rate": 1.0, "followed": 1, "scored": 2}}}, "by_type.x: rate"),
        ({"groups": {"rule": {"x": {"rate": 1.0, "followed": 1, "scored": 2}}}}, "groups.rule.x"),
        ({"step_deviation": {"rate": 0.1, "broken": 1, "steps": 2}}, "allowed: broken / steps"),
        ({"item_mean": 1.5}, "item_mean: found 1.5; allowed: at most 1"),
        ({"retryable": "x"}, 'retryable: found "x"; allowed: a whole number'),
    ],
)
def test_a_rate_that_is_not_what_was_counted_is_damage(
    tmp_path: Path, change: Row, said: str
) -> None:
    document = score_file(write_results(tmp_path, SAMPLE), "adhere", tmp_path / "a.json", None)
    assert read_record(tmp_path / "a.json", Accuracy).model_dump() == document
    (tmp_path / "a.json").write_text(json.dumps(document | change))
    with pytest.raises(DataError, match=rf"a\.json: .*{said}.*{FREE}"):
        read_record(tmp_path / "a.json", Accuracy)


def test_more_broken_steps_than_steps_are_refused() -> None:
    broken = row(constraint(False, steps=[{"type": "rule", "broken_steps": [0, 3]}]))
    with pytest.raises(DataError, match="trajectory_steps: found 1; allowed: at least 2"):
        score([broken | {"trajectory_steps": 1}])
    assert score([broken | {"trajectory_steps": 4}]).step_deviation is not None


@pytest.mark.parametrize("content", ["", "[{", "null", None])
def test_a_damaged_results_file_says_that_it_costs_nothing(
    tmp_path: Path, content: str | None
) -> None:
    results = tmp_path / "results.json"
    if content is None:
        results.mkdir()
    else:
        results.write_text(content)
    with pytest.raises(DataError, match=rf"results\.json: .*\. {FREE}") as raised:
        score_file(results, "adhere", tmp_path / "accuracy.json", None)
    assert "Errno" not in str(raised.value)
    results.rmdir() if content is None else results.unlink()
    with pytest.raises(DataError, match=r"results\.json: no such file$"):
        score_file(results, "adhere", tmp_path / "accuracy.json", None)


def test_verdicts_have_a_row_for_every_constraint(tmp_path: Path) -> None:
    results = write_results(tmp_path, SAMPLE)
    path = tmp_path / "verdicts.parquet"
    score_file(results, "adhere", tmp_path / "accuracy.json", path)
    names = {
        "model": "a/b",
        "mode": "thinking",
        "run": 3,
        "judge": "j",
        "dataset": "eval",
        "dataset_sha256": "b" * 64,
        "policy": "adhere",
    }
    cell: Row = {"dimension": "vanilla", "types": ["semantic"], "meta": False, "chain": "llm"}
    labels = ("category", "severity", "level", "rule", "failure_mode", "scenario")
    cell |= dict.fromkeys(labels) | {"broken_steps": []}
    ok = {"item": 0, "item_id": None, "response": "ok"}
    assert pq.read_table(path).to_pylist() == [
        names
        | cell
        | ok
        | {"constraint": 0, "constraint_id": "7", "types": ["tool"]}
        | {"verdict": "followed", "reason": None},
        names
        | cell
        | ok
        | {"constraint": 1, "constraint_id": "k", "verdict": "unscored", "reason": "judge_failed"},
        names
        | cell
        | {"item": 1, "item_id": "12", "constraint": 0, "constraint_id": "0"}
        | {"chain": "llm_conditional_check>code", "verdict": "violated"}
        | {"reason": "no_response", "response": "empty"},
    ]


def test_scoring_again_gives_the_same_bytes(tmp_path: Path) -> None:
    results = write_results(tmp_path, SAMPLE)
    written = []
    for name in ("first", "second"):
        paths = tmp_path / name / "accuracy.json", tmp_path / name / "verdicts.parquet"
        score_file(results, "nemo-0.7", *paths)
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1]


def test_by_hand(tmp_path: Path) -> None:
    results = write_results(tmp_path, SAMPLE)
    command = [sys.executable, str(ROOT / "scripts" / "score.py")]
    arguments = ["--input", str(results), "--output", str(tmp_path / "accuracy.json")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments, *more],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    good = run("--policy", "nemo-0.7", "--verdicts", str(tmp_path / "v.parquet"))
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads((tmp_path / "accuracy.json").read_text("utf-8"))["policy"] == "nemo-0.7"
    assert (tmp_path / "v.parquet").exists()

    bad = run("--policy", "strict")
    assert bad.returncode == 1
    assert len(bad.stderr.splitlines()) == 1
    assert "upstream-2025" in bad.stderr
