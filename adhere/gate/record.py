"""What the runs of one model came to, item by item and constraint by constraint."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adhere import files
from adhere.data import JUDGED, Row
from adhere.derived import read_record
from adhere.errors import DataError
from adhere.gate.keys import constraint_keys, item_keys
from adhere.jsonio import fingerprint
from adhere.plan import Evaluation
from adhere.scoring.accuracy import GROUPS, Accuracy, outcomes, passes
from adhere.scoring.found import found, title
from adhere.scoring.policies import Policy, Verdict, get_policy
from adhere.scoring.records import Item as ScoredItem
from adhere.scoring.results import read_results

# One letter a run.
FOLLOWED, VIOLATED, NOT_APPLICABLE, UNSCORED = "1", "0", "-", "?"
_LETTERS = {
    Verdict.FOLLOWED: FOLLOWED,
    Verdict.VIOLATED: VIOLATED,
    Verdict.NOT_APPLICABLE: NOT_APPLICABLE,
    Verdict.UNSCORED: UNSCORED,
}


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured: a model in a mode on a dataset, by one judge."""

    dataset: str
    model: str
    mode: str
    judge: str

    @property
    def title(self) -> str:
        """Return its name in reports."""
        return f"{self.model} {self.mode} on {self.dataset}, judge {self.judge}"


@dataclass(frozen=True, slots=True)
class Made:
    """What must be equal in all runs of a subject, and is said where it differs from a baseline."""

    dataset_sha256: str | None
    judge_hash: str | None
    protocol: int | None
    policy: str
    prediction_hash: str | None


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint with its verdicts, one letter a run, and why it was violated.

    ``judged`` says that a judge has a part in them.
    """

    key: str
    title: str
    verdicts: str
    groups: Mapping[str, str]
    soft: bool
    judged: bool
    why: str


@dataclass(frozen=True, slots=True)
class Item:
    """One item: a digest of what the model was sent, and for each run whether it passed."""

    key: str
    input: str
    passes: tuple[bool | None, ...]
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """The runs of one subject."""

    subject: Subject
    made: Made
    runs: tuple[int, ...]
    items: tuple[Item, ...]
    expected: int
    scored: int
    not_asked: int
    retryable: int

    @property
    def coverage(self) -> float | None:
        """Return which part of what applied and was asked has a verdict."""
        return self.scored / self.expected if self.expected else None


def rate_of(verdicts: str) -> float | None:
    """Return the part of the scored runs in which a constraint was followed."""
    scored = verdicts.count(FOLLOWED) + verdicts.count(VIOLATED)
    return verdicts.count(FOLLOWED) / scored if scored else None


def records(root: Path, evaluations: Iterable[Evaluation]) -> list[Record]:
    """Read the scored runs of some evaluations, by subject.

    Raises DataError where runs of one subject were not made alike.
    """
    by_subject: dict[Subject, list[Evaluation]] = {}
    for evaluation in evaluations:
        cell = evaluation.cell
        subject = Subject(cell.dataset, cell.model, cell.mode, evaluation.judge)
        by_subject.setdefault(subject, []).append(evaluation)
    return [_record(root, subject, same) for subject, same in by_subject.items()]


def _record(root: Path, subject: Subject, evaluations: Sequence[Evaluation]) -> Record:
    ordered = sorted(evaluations, key=lambda evaluation: evaluation.cell.run)
    scores = [read_record(files.accuracy(root, each), Accuracy) for each in ordered]
    made = [_made(score) for score in scores]
    for each, other in zip(ordered, made, strict=True):
        if other != made[0]:
            raise DataError(
                f"{files.results(root, each)}: run {each.cell.run} was made otherwise than run "
                f"{ordered[0].cell.run} ({_differences(made[0], other)}): they cannot be counted "
                "together; run `snakemake` to bring all of them up to date"
            )
    policy = get_policy(made[0].policy)
    runs = [_run(files.results(root, each), policy) for each in ordered]
    not_asked = sum(score.failure_stats.get("not_asked", 0) for score in scores)
    applicable = sum(s.coverage.expected - s.coverage.not_applicable for s in scores)
    return Record(
        subject=subject,
        made=made[0],
        runs=tuple(each.cell.run for each in ordered),
        items=_joined(runs, [str(files.results(root, each)) for each in ordered]),
        expected=applicable - not_asked,
        scored=sum(score.coverage.scored for score in scores),
        not_asked=not_asked,
        retryable=sum(score.retryable for score in scores),
    )


def _made(score: Accuracy) -> Made:
    return Made(
        dataset_sha256=score.dataset.sha256,
        judge_hash=score.judge_hash,
        protocol=score.protocol,
        policy=score.policy,
        prediction_hash=score.prediction.hash,
    )


def _differences(one: Made, other: Made) -> str:
    names = [name for name in Made.__slots__ if getattr(one, name) != getattr(other, name)]
    return ", ".join(name.removesuffix("_sha256").replace("_", " ") for name in names)


def _run(path: Path, policy: Policy) -> list[Item]:
    judged = read_results(path)
    rows, items = judged.rows, judged.items
    accounted = outcomes(policy, items)
    return [
        Item(
            key=key,
            input=fingerprint(row.get("input"))[:12],
            passes=(passes(policy, item, row_outcomes),),
            constraints=_constraints(row, item, [_LETTERS[o.verdict] for o in row_outcomes]),
        )
        for key, row, item, row_outcomes in zip(
            item_keys(rows), rows, items, accounted, strict=True
        )
    ]


def _constraints(row: Row, item: ScoredItem, letters: Sequence[str]) -> tuple[Constraint, ...]:
    raws = row["constraints"]
    lost = f"no response: {item.failure}" if item.failure else ""
    return tuple(
        Constraint(
            key=key,
            title=title(raw, position),
            verdicts=letter,
            groups=_groups(raw, row),
            soft=item.cells[position].labels.soft,
            judged=bool(JUDGED & set(item.cells[position].chain)),
            why=(lost or found(raw)) if letter == VIOLATED else "",
        )
        for position, (key, raw, letter) in enumerate(
            zip(constraint_keys(raws), raws, letters, strict=True)
        )
    )


def _groups(raw: Mapping[str, Any], row: Row) -> dict[str, str]:
    values = {name: row.get(name) if name == "scenario" else raw.get(name) for name in GROUPS}
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _joined(runs: Sequence[list[Item]], paths: Sequence[str]) -> tuple[Item, ...]:
    """Join the runs' items; all runs were judged with one dataset, so they have the same ones."""
    first = [[item.key, *(c.key for c in item.constraints)] for item in runs[0]]
    for run, path in zip(runs, paths, strict=True):
        if [[item.key, *(c.key for c in item.constraints)] for item in run] != first:
            raise DataError(
                f"{path}: holds other items or constraints than {paths[0]}: judge both again"
            )
    return tuple(_merged(same) for same in zip(*runs, strict=True))


def _merged(items: Sequence[Item]) -> Item:
    return Item(
        key=items[0].key,
        input=items[0].input,
        passes=tuple(item.passes[0] for item in items),
        constraints=tuple(
            Constraint(
                key=same[0].key,
                title=same[0].title,
                verdicts="".join(constraint.verdicts for constraint in same),
                groups=same[0].groups,
                soft=same[0].soft,
                judged=same[0].judged,
                why=next((constraint.why for constraint in same if constraint.why), ""),
            )
            for same in zip(*(item.constraints for item in items), strict=True)
        ),
    )
