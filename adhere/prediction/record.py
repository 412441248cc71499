"""``run_config.json``: what the predictions of a run were made with, a report for each dataset."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from adhere import files
from adhere.derived import Count, Provenance, Record, readable
from adhere.jsonio import write_json
from adhere.locks import folder_lock
from adhere.plan import Cell


class _Report(Record):
    """What others need of a dataset's report; the file says more."""

    hash: str | None = None
    inputs_sha256: str | None = None
    outputs_sha256: str | None = None
    sampling: dict[str, Any] | None = None
    sampled: bool | None = None
    attempt: str = ""
    pending: Count = 0
    errors: dict[str, Count] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)


class _RunConfig(Provenance):
    hash: str | None = None
    engine: dict[str, Any] = Field(default_factory=dict)
    datasets: dict[str, Any] = Field(default_factory=dict)


def recorded(root: Path, cell: Cell) -> dict[str, Any] | None:
    """Return what run_config.json says of a cell whose prediction file exists, else None.

    A report that is damaged is none: it is written again with its prediction file, free.
    """
    if not files.prediction(root, cell).exists():
        return None
    return _read(files.run_config(root, cell)).datasets.get(cell.dataset)


def record(path: Path, dataset: str, content: Mapping[str, Any], report: Mapping[str, Any]) -> None:
    """Write a dataset's report beside those of the others.

    Each says what it was predicted with; above them, in ``content``, stands what was used last.
    An empty ``engine`` says that nothing was asked: what is on record stays.
    """
    with folder_lock(path.parent):
        known = _read(path)
        engine = content["engine"]
        if known.hash == content["hash"]:
            engine = engine or known.engine
        write_json(
            path, {**content, "engine": engine, "datasets": known.datasets | {dataset: report}}
        )


def _read(path: Path) -> _RunConfig:
    """Return what a file says, without what is damaged in it."""
    known = readable(path, _RunConfig) or _RunConfig()
    whole = {name: report for name, report in known.datasets.items() if _is_whole(report)}
    return known.model_copy(update={"datasets": whole})


def _is_whole(report: object) -> bool:
    try:
        _Report.model_validate(report)
    except ValidationError:
        return False
    return True
