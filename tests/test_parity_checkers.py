"""The published verdicts of pure-code constraints come out again in our checker processes."""

import asyncio
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from adhere.checkers import CheckerPool, CheckResult
from adhere.checkers.source import repair

ROOT = Path(__file__).resolve().parents[1]
AGENTIF = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared")) / "data" / "agentif"
# Verdicts on record in each file.
SCORED = {
    "Qwen3-32B": 2034,
    "claude-3-5-sonnet-20241022": 1942,
    "Mistral-7B-Instruct-v0.3": 1939,
}
# Checkers without `def`, which AgentIF could not run: null in every published file.
REPAIRED = 60

pytestmark = pytest.mark.skipif(not AGENTIF.exists(), reason=f"{AGENTIF} is not here")


def pure_code(model: str) -> list[tuple[str, str, Any]]:
    """Return (answer, checker, recorded score) of every constraint that is one checker."""
    packed = AGENTIF / "published" / f"{model}.results.json.gz"
    return [
        (row["output"]["content"], constraint["evaluation"][0]["exec"], constraint.get("score"))
        for row in json.loads(gzip.decompress(packed.read_bytes()))
        for constraint in row["constraints"]
        if [step["type"] for step in constraint["evaluation"]] == ["code"]
    ]


def run(checks: list[tuple[str, str, Any]]) -> list[CheckResult]:
    async def main() -> list[CheckResult]:
        async with CheckerPool(workers=os.cpu_count() or 1) as pool:
            return await asyncio.gather(*(pool.check(source, text) for text, source, _ in checks))

    return asyncio.run(main())


def test_every_scored_check_is_counted() -> None:
    assert sum(SCORED.values()) == 5915


@pytest.mark.parametrize("model", SCORED)
def test_recorded_verdicts_come_out_again(model: str) -> None:
    scored = [check for check in pure_code(model) if check[2] is not None]
    assert len(scored) == SCORED[model]
    assert run(scored) == [CheckResult(score, None, None, False) for _, _, score in scored]


@pytest.mark.parametrize("model", SCORED)
def test_checkers_without_def_are_null_on_record_and_repaired_here(model: str) -> None:
    broken = [check for check in pure_code(model) if repair(check[1])[1]]
    assert len(broken) == REPAIRED
    assert [score for _, _, score in broken] == [None] * REPAIRED
    for result in run(broken):
        assert result.repaired
        assert type(result.value) is bool or result.reason == "checker_error"
