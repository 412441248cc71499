"""Scoring: from recorded verdicts to CSR and ISR under a named policy."""

from pathlib import Path
from typing import Any

from adhere import jsonio
from adhere.scoring.accuracy import Accuracy, compute_accuracy, outcomes
from adhere.scoring.items import write_items
from adhere.scoring.policies import POLICIES, get_policy
from adhere.scoring.results import read_results

__all__ = ["POLICIES", "Accuracy", "get_policy", "score_file"]


def score_file(
    results: Path,
    policy: str,
    accuracy: Path,
    verdicts: Path | None,
    table: Path | None = None,
) -> dict[str, Any]:
    """Score one ``results.json`` (or JSONL, plain or gzip) and return what ``accuracy.json`` holds.

    Writes ``accuracy`` and, where ``verdicts`` names a file, one row per constraint as Parquet;
    where ``table`` names one, one row per item as CSV. Names, checksum and hashes come from the
    ``judge_run.json`` beside ``results``.

    Raises ConfigError for an unknown policy and DataError for a malformed file (see
    ``read_results``).
    """
    chosen = get_policy(policy)
    judged = read_results(results)
    accounted = outcomes(chosen, judged.items)
    scores = compute_accuracy(chosen, judged.items, accounted, judged.run)
    if verdicts is not None:
        # Imported here: reading a score, which planning does, need not load what writes tables.
        from adhere.scoring.verdicts import verdict_table, write_verdicts

        write_verdicts(verdicts, verdict_table(judged.items, accounted, scores))
    if table is not None:
        write_items(table, judged.rows, judged.items, accounted, chosen)
    document = scores.model_dump()
    jsonio.write_json(accuracy, document)
    return document
