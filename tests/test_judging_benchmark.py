"""The benchmark itself, judged whole by a mock judge."""

import asyncio
import gzip
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from judging_bench import assert_accounted, judging, verdicts

from adhere.data import Row
from adhere.journal import read
from adhere.judging import JudgeRun
from adhere.judging.stage import align

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared"))
AGENTIF = SHARED / "data" / "agentif" / "eval.json.gz"


def made_up(rows: Sequence[Row]) -> list[Row]:
    """Give each row an answer of a few hundred characters; each 25th failed, pending or empty."""
    predictions = []
    for n, row in enumerate(rows):
        text = f"Answer {n}. First, I read the request.\n- step one\n- 第二步\n" + "Done. " * 40
        output: dict[str, Any] = {"content": text, "model_name": "made-up", "error": None}
        if n % 25 == 7:
            kind = ("server_error", "context_overflow", None)[n // 25 % 3]
            output["content"] = ""
            if kind is not None:
                output["error"] = {"kind": kind, "message": "-", "retryable": n // 25 % 3 == 0}
        predictions.append({"input": row["input"], "output": output})
    return predictions


def equal_questions(rows: Sequence[Row]) -> int:
    """Count the first steps that ask exactly what another one of the same item asks."""
    return sum(
        count - 1
        for row in rows
        for count in Counter(
            c["evaluation"][0]["exec"]
            for c in row["constraints"]
            if c["evaluation"][0]["type"] != "code"
        ).values()
    )


async def judge_benchmark(folder: Path, items: int | None) -> JudgeRun:
    """Judge the benchmark's first items twice, and check that nothing is lost or asked twice."""
    reference: list[Row] = json.loads(gzip.decompress(AGENTIF.read_bytes()))[:items]
    rows = align(made_up(reference), reference)
    answered = [row for row in rows if row["output"]["content"]]
    async with judging(folder, checkers=2) as bench:
        bench.concurrency = 64
        # Asked once each, since a reply that cannot be read is asked again with an equal body.
        run, asker = await bench.judge(rows, asks=1)
        assert_accounted(run, rows)
        stats = bench.mock.stats()
        # An equal body is an equal question of the same item, which gets a reply of its own.
        assert stats.resent_after_ok == equal_questions(answered)
        assert stats.requests == stats.answered == len(read(bench.path))
        assert asker.reused == 0
        again, asker = await bench.judge(rows, asks=1)
        assert bench.mock.stats().requests == stats.requests, "a second run sends nothing"
        assert asker.reused == stats.requests
        assert verdicts(again) == verdicts(run)
    return run


@pytest.mark.skipif(
    not AGENTIF.exists(), reason="not on this machine: AgentIF's eval.json.gz (ADHERE_SHARED)"
)
def test_the_benchmark_is_judged_whole(tmp_path: Path) -> None:
    run = asyncio.run(judge_benchmark(tmp_path, 100))
    assert len(run.rows) == 100
    assert {"followed", "violated", "not_applicable", "no_response", "prediction_pending"} <= set(
        run.counts
    )
