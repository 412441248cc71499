"""Stored baselines: the verdicts of a measured state, small enough to be committed.

One file a dataset, ``{folder}/{dataset}.json``, with an entry for each model, mode and judge.
"""

from pathlib import Path
from typing import Literal

from adhere import jsonio
from adhere.derived import Record as Validated
from adhere.derived import read_record
from adhere.errors import DataError
from adhere.gate.record import Made, Record, Subject
from adhere.names import unlimited


class StoredItem(Validated):
    """One item: a digest of what the model was sent, and its verdicts by constraint, one letter
    a run (1 followed, 0 violated, - not applicable, ? no verdict)."""

    input: str
    verdicts: dict[str, str]


class Entry(Validated):
    """What one model, in one mode and by one judge, came to."""

    model: str
    mode: str
    judge: str
    judge_hash: str | None
    prediction_hash: str | None
    dataset_sha256: str | None
    protocol: int | None
    policy: str
    runs: list[int]
    coverage: float | None
    items: dict[str, StoredItem]

    @property
    def title(self) -> str:
        """Return its name in reports."""
        return f"{self.model} {self.mode}, judge {self.judge}"

    @property
    def made(self) -> Made:
        """Return what it was made with."""
        return Made(
            self.dataset_sha256,
            self.judge_hash,
            self.protocol,
            self.policy,
            self.prediction_hash,
        )


class Baseline(Validated):
    """The baseline of one dataset."""

    format: Literal[1]
    dataset: str
    entries: list[Entry]


def path_of(folder: str, dataset: str) -> Path:
    """Return the file of a dataset's baseline."""
    return Path(folder) / f"{dataset}.json"


def read(path: Path) -> Baseline | None:
    """Read a baseline; None where there is none. Raises DataError naming file and key."""
    remedy = "Restore the file as it was stored: a new baseline would take what is judged now"
    return read_record(path, Baseline, remedy) if path.exists() else None


def store(folder: str, records: list[Record]) -> None:
    """Write records into the baselines of their datasets; entries of others stay as they are.

    Raises DataError for what is no state to be measured against.
    """
    for record in records:
        _check(record)
    for dataset in dict.fromkeys(record.subject.dataset for record in records):
        path = path_of(folder, dataset)
        known = read(path)
        entries = {_name(entry): entry for entry in (known.entries if known else [])}
        mine = [_entry(record) for record in records if record.subject.dataset == dataset]
        entries |= {_name(entry): entry for entry in mine}
        ordered = [entries[name] for name in sorted(entries)]
        baseline = Baseline(format=1, dataset=dataset, entries=ordered)
        jsonio.write_json(path, baseline.model_dump())


def _check(record: Record) -> None:
    if unlimited(record.subject.dataset)[1] is not None:
        raise DataError(f"{record.subject.title}: a baseline needs all items: run without limit=")
    if record.retryable:
        raise DataError(
            f"{record.subject.title}: {record.retryable} verdicts may still change: run "
            "`snakemake retry` before this becomes a baseline"
        )
    if not record.scored:
        raise DataError(f"{record.subject.title}: nothing is scored: this can be no baseline")


def _name(entry: Entry) -> tuple[str, str, str]:
    return (entry.model, entry.mode, entry.judge)


def _entry(record: Record) -> Entry:
    made, subject = record.made, record.subject
    return Entry(
        model=subject.model,
        mode=subject.mode,
        judge=subject.judge,
        judge_hash=made.judge_hash,
        prediction_hash=made.prediction_hash,
        dataset_sha256=made.dataset_sha256,
        protocol=made.protocol,
        policy=made.policy,
        runs=list(record.runs),
        coverage=record.coverage,
        items={
            item.key: StoredItem(
                input=item.input,
                verdicts={constraint.key: constraint.verdicts for constraint in item.constraints},
            )
            for item in record.items
        },
    )


def entry_for(baseline: Baseline, subject: Subject, against: str | None) -> Entry | None:
    """Return what a subject is compared with; None where nothing fits.

    Of several that fit, the one in the same mode and by the same judge. Raises DataError where
    ``against`` names none.
    """
    entries = baseline.entries
    if against is not None:
        fitting = [e for e in entries if against in (e.model, f"{e.model}__{e.mode}")]
        if not fitting:
            known = ", ".join(f"{entry.model}__{entry.mode}" for entry in entries)
            raise DataError(
                f"gate.against: found {against!r}, which the baseline of {baseline.dataset} does "
                f"not hold (it holds: {known})"
            )
    else:
        fitting = [e for e in entries if (e.model, e.mode) == (subject.model, subject.mode)]
        fitting = fitting or (entries if len(entries) == 1 else [])
    same_mode = [entry for entry in fitting if entry.mode == subject.mode] or fitting
    same_judge = [entry for entry in same_mode if entry.judge == subject.judge] or same_mode
    return same_judge[0] if same_judge else None
