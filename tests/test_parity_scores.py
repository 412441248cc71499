"""The published result files give the published figures under ``upstream-2025``."""

import csv
import os
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from adhere import jsonio
from adhere.scoring import get_policy
from adhere.scoring.accuracy import Accuracy, compute_accuracy, outcomes
from adhere.scoring.parse import parse_results
from adhere.scoring.provenance import JudgeRun

ROOT = Path(__file__).resolve().parents[1]
AGENTIF = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared")) / "data" / "agentif"

MODELS = ("Qwen3-32B", "claude-3-5-sonnet-20241022", "Mistral-7B-Instruct-v0.3")
GROUPS = ("vanilla", "condition", "example", "formatting", "semantic", "tool")

pytestmark = pytest.mark.skipif(not AGENTIF.exists(), reason=f"{AGENTIF} is not here")


@cache
def accuracy(model: str, policy: str) -> Accuracy:
    path = AGENTIF / "published" / f"{model}.results.json.gz"
    items = parse_results(jsonio.read_json(path), path.name)
    chosen = get_policy(policy)
    return compute_accuracy(chosen, items, outcomes(chosen, items), JudgeRun())


def figures(scores: Accuracy) -> dict[str, tuple[int, int]]:
    """Return each figure as (hits, total), under the names of the tables' columns."""
    groups = scores.by_dimension | scores.by_type | {"meta": scores.meta, "CSR": scores.CSR}
    return {name: (rate.followed, rate.scored) for name, rate in groups.items()} | {
        "ISR": (scores.ISR.passed, scores.ISR.counted)
    }


def percent(figure: tuple[int, int], places: int) -> Decimal:
    """Round a percentage exactly, from the integers that it is made of."""
    scaled = Fraction(100 * 10**places * figure[0], figure[1])
    whole = Decimal(scaled.numerator) / Decimal(scaled.denominator)
    return whole.quantize(Decimal(1), rounding=ROUND_HALF_EVEN).scaleb(-places)


def table(name: str) -> dict[str, dict[str, Any]]:
    with (AGENTIF / name).open(encoding="utf-8-sig", newline="") as stream:
        return {line["model"]: line for line in csv.DictReader(stream)}


@pytest.mark.parametrize("model", MODELS)
def test_the_papers_table(model: str) -> None:
    printed = table("table2.csv")[model]
    found = figures(accuracy(model, "upstream-2025"))
    names = (*GROUPS, "ISR", "CSR")
    assert len(names) == 8
    assert {name: percent(found[name], 1) for name in names} == {
        name: Decimal(printed[name]) for name in names
    }


@pytest.mark.parametrize("model", MODELS)
def test_the_recomputed_table(model: str) -> None:
    expected = table("recomputed.csv")[model]
    scores = accuracy(model, "upstream-2025")
    found = figures(scores)
    computed: dict[str, Decimal] = {
        name: percent(found[name], 2) for name in (*GROUPS, "meta", "ISR", "CSR")
    }
    counts = {f"n_{name}": found[name][1] for name in (*GROUPS, "meta", "CSR")} | {
        "n_instructions": scores.rows,
        "n_constraints": scores.coverage.expected,
        "n_null": scores.coverage.not_applicable + scores.coverage.unscored,
        "isr_counted": scores.ISR.counted,
    }
    computed |= {name: Decimal(count) for name, count in counts.items()}
    del expected["model"]
    assert computed == {name: Decimal(value) for name, value in expected.items()}


# What the files do not say is unscored: checkers without `def`, calls that failed, and the rest
# of each item whose condition check failed. The default policy lets none of these items pass.
@pytest.mark.parametrize(
    ("model", "passed", "counted", "stats"),
    [
        ("Qwen3-32B", 171, 707, {"recorded_null": 81, "recorded_missing": 80}),
        ("claude-3-5-sonnet-20241022", 173, 706, {"recorded_missing": 454, "recorded_null": 92}),
        ("Mistral-7B-Instruct-v0.3", 72, 706, {"recorded_missing": 591, "recorded_null": 102}),
    ],
)
def test_the_default_policy_on_the_same_files(
    model: str, passed: int, counted: int, stats: dict[str, int]
) -> None:
    ours, upstream = accuracy(model, "adhere"), accuracy(model, "upstream-2025")
    # Nothing failed to answer in these files, so the constraint rates are the same.
    assert ours.responses.ok == ours.rows
    assert ours.CSR == upstream.CSR
    assert ours.by_dimension == upstream.by_dimension
    assert ours.by_type == upstream.by_type
    assert (ours.ISR.passed, ours.ISR.counted) == (passed, counted)
    assert ours.failure_stats == stats
    assert sum(stats.values()) == ours.coverage.unscored == upstream.coverage.unscored


def test_every_published_file_is_covered() -> None:
    names = {path.name.removesuffix(".results.json.gz") for path in AGENTIF.glob("published/*.gz")}
    assert names == set(MODELS)
