"""``verdicts.parquet``: one row for every constraint, whatever became of it."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from adhere import jsonio
from adhere.scoring.accuracy import Accuracy
from adhere.scoring.policies import Outcome
from adhere.scoring.records import Item, Labels

# The columns that hold one value for a whole file; null where no judge_run.json named them.
NAMES = pa.schema(
    [
        ("model", pa.string()),
        ("mode", pa.string()),
        ("run", pa.int32()),
        ("judge", pa.string()),
        ("dataset", pa.string()),
        ("dataset_sha256", pa.string()),
        ("policy", pa.string()),
    ]
)
# What a team's instruction set says, null elsewhere; files of earlier versions lack these columns.
TEAM = pa.schema(
    [
        ("category", pa.string()),
        ("severity", pa.string()),
        ("level", pa.string()),
        ("rule", pa.string()),
        ("failure_mode", pa.string()),
        ("scenario", pa.string()),
        ("broken_steps", pa.list_(pa.int32())),
    ]
)
# Positions count from 0; ``chain`` joins the step types with ">".
SCHEMA = pa.schema(
    [
        *NAMES,
        ("item", pa.int32()),
        ("item_id", pa.string()),
        ("constraint", pa.int32()),
        ("constraint_id", pa.string()),
        ("dimension", pa.string()),
        ("types", pa.list_(pa.string())),
        ("meta", pa.bool_()),
        ("chain", pa.string()),
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("response", pa.string()),
        *TEAM,
    ]
)


def verdict_table(
    items: Sequence[Item], accounted: Sequence[Sequence[Outcome]], scores: Accuracy
) -> pa.Table:
    """Return the verdicts of one ``results.json``, in the order of its items and constraints."""
    rows = [
        (item, cell, outcome)
        for item, row in zip(items, accounted, strict=True)
        for cell, outcome in zip(item.cells, row, strict=True)
    ]
    names = {
        "model": scores.prediction.model,
        "mode": scores.prediction.mode,
        "run": scores.prediction.run,
        "judge": scores.judge,
        "dataset": scores.dataset.name,
        "dataset_sha256": scores.dataset.sha256,
        "policy": scores.policy,
    }
    columns: dict[str, pa.Array] = {
        name: pa.repeat(pa.scalar(value, NAMES.field(name).type), len(rows))
        for name, value in names.items()
    }
    columns |= {
        "item": [item.position for item, _, _ in rows],
        "item_id": [item.id for item, _, _ in rows],
        "constraint": [cell.position for _, cell, _ in rows],
        "constraint_id": [cell.id for _, cell, _ in rows],
        "dimension": [cell.dimension for _, cell, _ in rows],
        "types": [cell.types for _, cell, _ in rows],
        "meta": [cell.meta for _, cell, _ in rows],
        "chain": [">".join(cell.chain) for _, cell, _ in rows],
        "verdict": [outcome.verdict.value for _, _, outcome in rows],
        "reason": [outcome.reason for _, _, outcome in rows],
        "response": [item.response for item, _, _ in rows],
        "scenario": [item.scenario for item, _, _ in rows],
        "broken_steps": [cell.broken_steps for _, cell, _ in rows],
    }
    for label in Labels.__dataclass_fields__:
        columns[label] = [getattr(cell.labels, label) for _, cell, _ in rows]
    return pa.table(columns, schema=SCHEMA)


def write_verdicts(path: Path, table: pa.Table) -> None:
    """Write a table as Parquet, atomically."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    jsonio.write_bytes(path, sink.getvalue().to_pybytes())
