"""Scoring: from recorded verdicts to CSR and ISR under a named policy."""

from pathlib import Path
from typing import Any

from adhere import jsonio
from adhere.data import load_rows
from adhere.scoring.accuracy import Accuracy, compute_accuracy, outcomes
from adhere.scoring.parse import parse_results
from adhere.scoring.policies import POLICIES, get_policy
from adhere.scoring.provenance import read_judge_run
from adhere.scoring.verdicts import verdict_table, write_verdicts

__all__ = ["POLICIES", "Accuracy", "get_policy", "score_file"]


def score_file(results: Path, policy: str, accuracy: Path, verdicts: Path | None) -> dict[str, Any]:
    """Score one ``results.json`` (or JSONL, plain or gzip) and return what ``accuracy.json`` holds.

    Writes ``accuracy`` and, where ``verdicts`` names a file, one row per constraint as
    Parquet. Names, checksum and hashes come from the ``judge_run.json`` beside ``results``.

    Raises ConfigError for an unknown policy and DataError for a malformed file, naming item,
    constraint and key.
    """
    chosen = get_policy(policy)
    items = parse_results(load_rows(results), str(results))
    accounted = outcomes(chosen, items)
    scores = compute_accuracy(chosen, items, accounted, read_judge_run(results))
    if verdicts is not None:
        write_verdicts(verdicts, verdict_table(items, accounted, scores))
    document = scores.model_dump()
    jsonio.write_json(accuracy, document)
    return document
