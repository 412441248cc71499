"""Which verdicts of judges people look at: a stratified sample, the same for the same seed."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from adhere import files
from adhere.config import Spotcheck
from adhere.data import JUDGED, Row
from adhere.derived import read_record
from adhere.gate.keys import constraint_keys, item_keys
from adhere.gate.record import Subject
from adhere.jsonio import fingerprint
from adhere.plan import Evaluation
from adhere.scoring.accuracy import Accuracy, outcomes
from adhere.scoring.found import title
from adhere.scoring.policies import Policy, Verdict, get_policy
from adhere.scoring.records import Cell
from adhere.scoring.results import read_results


class Stratum(NamedTuple):
    """Verdicts that are drawn from together: one judge, one type of constraint, one verdict."""

    judge: str
    type: str
    followed: bool


@dataclass(frozen=True, slots=True)
class Unit:
    """One verdict of a judge, and what a person needs to give their own.

    ``key`` is over what people look at (input, requirement, answer), so that a label stays with it
    whoever judged it; ``rank`` orders the draw.
    """

    key: str
    rank: str
    stratum: Stratum
    subject: Subject
    run: int
    item: str
    constraint: str
    asked: str
    requirement: str
    answer: str
    said: str


@dataclass(frozen=True, slots=True)
class Population:
    """All verdicts of judges, and what was scored without one: followed and scored by subject."""

    units: tuple[Unit, ...]
    followed: dict[Subject, int]
    scored: dict[Subject, int]


def population(root: Path, evaluations: Iterable[Evaluation], seed: int) -> Population:
    """Read every verdict of some scored files."""
    units: list[Unit] = []
    followed: dict[Subject, int] = {}
    scored: dict[Subject, int] = {}
    for evaluation in evaluations:
        cell = evaluation.cell
        subject = Subject(cell.dataset, cell.model, cell.mode, evaluation.judge)
        rates = read_record(files.accuracy(root, evaluation), Accuracy)
        path = files.results(root, evaluation)
        own = list(_units(path, get_policy(rates.policy), subject, (cell.run, seed)))
        units += own
        judged = sum(unit.stratum.followed for unit in own)
        followed[subject] = followed.get(subject, 0) + rates.CSR.followed - judged
        scored[subject] = scored.get(subject, 0) + rates.CSR.scored - len(own)
    return Population(tuple(units), followed, scored)


def _units(path: Path, policy: Policy, subject: Subject, run: tuple[int, int]) -> Iterable[Unit]:
    judged = read_results(path)
    rows, items = judged.rows, judged.items
    accounted = outcomes(policy, items)
    for name, row, item, verdicts in zip(item_keys(rows), rows, items, accounted, strict=True):
        if item.response != "ok":
            continue
        keys = constraint_keys(row["constraints"])
        for key, cell, outcome in zip(keys, item.cells, verdicts, strict=True):
            scored = outcome.verdict in (Verdict.FOLLOWED, Verdict.VIOLATED)
            if scored and JUDGED & set(cell.chain):
                yield _unit(row, cell, key, (subject, *run, name))


def _unit(row: Row, cell: Cell, key: str, place: tuple[Subject, int, int, str]) -> Unit:
    subject, run, seed, name = place
    raw = row["constraints"][cell.position]
    assert cell.score is not None, "only verdicts are drawn"
    answer = _answer(row, raw)
    known = fingerprint([row["input"], key, answer])[:16]
    kind = cell.labels.category or "+".join(cell.types) or "other"
    place_of = [seed, known, subject.dataset, subject.model, subject.mode, subject.judge, run]
    return Unit(
        key=known,
        rank=fingerprint(place_of),
        stratum=Stratum(subject.judge, kind, cell.score),
        subject=subject,
        run=run,
        item=name,
        constraint=title(raw, cell.position),
        asked="\n\n".join(f"[{m['role']}]\n{m['content']}" for m in row["input"]),
        requirement=_requirement(raw),
        answer=answer,
        said=raw.get("llm_output") or "",
    )


def _answer(row: Row, raw: dict[str, Any]) -> str:
    """Return what the constraint is about: the answer, or the trajectory as judges see it."""
    from adhere.judging.evidence import Evidence

    return Evidence(row["output"], row.get("tools")).about(raw)


def _requirement(raw: dict[str, Any]) -> str:
    """Return the requirement in words, else the first prompt that the judge was given."""
    words = raw.get("desc")
    if isinstance(words, str) and words.strip():
        return words
    prompts = [step["exec"] for step in raw["evaluation"] if step["type"] in JUDGED]
    return "\n\n".join(prompts)


def draw(units: Sequence[Unit], settings: Spotcheck) -> list[Unit]:
    """Draw from each stratum the configured share, and so many at least as there should be.

    What is drawn depends on the seed and on each verdict alone: more results leave it in place, as
    far as the share allows. Returned in an order that tells nothing, each text once.
    """
    strata: dict[Stratum, list[Unit]] = {}
    for unit in units:
        strata.setdefault(unit.stratum, []).append(unit)
    drawn: dict[str, Unit] = {}
    for stratum in sorted(strata):
        same = sorted(strata[stratum], key=lambda unit: unit.rank)
        wanted = max(math.ceil(settings.share * len(same)), settings.at_least)
        drawn |= {unit.key: unit for unit in same[:wanted]}
    return [drawn[key] for key in sorted(drawn)]
