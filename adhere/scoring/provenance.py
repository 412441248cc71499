"""The ``judge_run.json`` beside a ``results.json``; published trees have none."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from adhere.derived import Count, Provenance, read_record

JUDGE_RUN = "judge_run.json"


class JudgeInfo(Provenance):
    """Which judge config, and the hash (64 hex digits) over all of it that can change a verdict."""

    name: str | None = None
    hash: str | None = None


class DatasetInfo(Provenance):
    """Which dataset; ``sha256`` is over its parsed content, ``limit`` None for all its items.

    ``items`` is how many of them were judged.
    """

    name: str | None = None
    sha256: str | None = None
    limit: int | None = None
    items: Count | None = None


class PredictionInfo(Provenance):
    """Which sample of which model; runs of one sampling share ``hash``.

    ``sampled`` says whether two runs may be expected to differ, ``outputs_sha256`` is over all
    answers of the run.
    """

    model: str | None = None
    mode: str | None = None
    run: Annotated[int, Field(ge=0, le=999_999_999)] | None = None
    hash: str | None = None
    sampled: bool | None = None
    outputs_sha256: str | None = None


class JudgeRun(Provenance):
    """How a ``results.json`` came about; None is unknown.

    ``isolation`` is the level under which checkers ran (in the file with what it allows them).
    ``counts`` are verdicts and reasons, ``retryable`` how many verdicts a retry could change.
    """

    judge: JudgeInfo = JudgeInfo()
    dataset: DatasetInfo = DatasetInfo()
    prediction: PredictionInfo = PredictionInfo()
    protocol: int | None = None
    parser: str | None = None
    isolation: str | None = None
    warnings: list[str] = Field(default_factory=list)
    demo: bool = False
    counts: dict[str, Count] = Field(default_factory=dict)
    retryable: Count = 0

    @field_validator("isolation", mode="before")
    @classmethod
    def _level(cls, value: object) -> object:
        return value.get("level") if isinstance(value, dict) else value


def read_judge_run(results: Path) -> JudgeRun:
    """Read the record beside a ``results.json``; all unknown where there is none.

    Raises DataError naming file and key where it is malformed.
    """
    path = results.with_name(JUDGE_RUN)
    return read_record(path, JudgeRun) if path.exists() else JudgeRun()
