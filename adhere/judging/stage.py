"""Judge a prediction file: every constraint of every item, nothing dropped, nothing asked twice."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from adhere.checkers import CheckerPool
from adhere.data import Constraint, Row, constraints, label, occurrences, seen
from adhere.errors import DataError
from adhere.jsonio import fingerprint
from adhere.judging.asking import Asker, Place
from adhere.judging.chain import (
    NOT_APPLICABLE,
    NOT_ASKED,
    Check,
    Outcome,
    Question,
    Tools,
    run_chain,
)
from adhere.judging.evidence import Evidence
from adhere.prediction.answer import is_failed, is_pending
from adhere.progress import Progress
from adhere.verdict import parse
from adhere.workers import drain


@dataclass(slots=True)
class JudgeRun:
    """What judging came to: the judged rows, and counts of verdicts and reasons."""

    rows: list[Row]
    counts: Counter[str] = field(default_factory=Counter)
    retryable: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """One constraint to be judged."""

    row: Row
    evidence: Evidence
    constraint: Constraint
    place: Place

    @property
    def answer(self) -> str:
        """The text that the constraint is about."""
        return self.evidence.about(self.row["constraints"][self.constraint.index])


def align(predictions: Sequence[Row], reference: Sequence[Row] | None) -> list[Row]:
    """Join predictions with the dataset by position: constraints come from the dataset.

    Raises DataError where the two do not belong together. Without a reference the predictions'
    own constraints are used.
    """
    if reference is None:
        return list(predictions)
    if len(predictions) != len(reference):
        raise DataError(
            f"the prediction file has {len(predictions)} items, the dataset {len(reference)}: "
            "predict again, or give the dataset that was predicted"
        )
    for index, (row, wanted) in enumerate(zip(predictions, reference, strict=True)):
        if "input" not in row or seen(row) != seen(wanted):
            raise DataError(
                f"{label(index, row)}: the prediction answers another input than the dataset has: "
                "predict again, or give the dataset that was predicted"
            )
    return [
        {**wanted, "output": row["output"]}
        for row, wanted in zip(predictions, reference, strict=True)
    ]


async def judge_rows(
    rows: Sequence[Row], asker: Asker | None, pool: CheckerPool, progress: Progress
) -> JudgeRun:
    """Judge rows that hold `input`, `constraints` and `output`.

    ``asker`` may be None where no constraint asks a judge. Raises EndpointError when the judge's
    endpoint makes going on pointless; replies journaled until then are kept.
    """
    run, work = prepared(rows)
    total = sum(len(row["constraints"]) for row in run.rows)
    progress.start(total=total, done=total - len(work))
    asking = [w for w in work if any(s.asks_judge for s in w.constraint.steps)]
    checking = [w for w in work if not any(s.asks_judge for s in w.constraint.steps)]
    if asking and asker is None:
        raise DataError(
            f"{len(asking)} constraints ask a judge and none is named: name one with --judge"
        )
    # Two queues, so that neither the judge nor the checkers ever wait for the other.
    width = asker.client.width if asker and asker.client else 1
    queues = [
        (iter(asking), min(width, len(asking))),
        (iter(checking), min(2 * pool.workers, len(checking))),
    ]
    await drain(queues, lambda piece: _judge(piece, asker, pool, run, progress))
    return run


def prepared(rows: Sequence[Row]) -> tuple[JudgeRun, list[Work]]:
    """Return rows with every constraint unjudged, and the constraints that are to be judged."""
    run = JudgeRun([_unjudged(row) for row in rows])
    return run, list(_to_judge(run))


def _unjudged(row: Row) -> Row:
    """Copy a row with every constraint unjudged; a failed response decides them all at once."""
    reason = None
    if is_pending(row["output"]):
        reason = "prediction_pending"
    elif is_failed(row["output"]):
        reason = "no_response"
    fresh: Row = {"score": None, "llm_output": None, "null_reason": reason, "steps": []}
    return {**row, "constraints": [{**raw, **fresh} for raw in row["constraints"]]}


def _to_judge(run: JudgeRun) -> Iterator[Work]:
    inputs = [fingerprint(seen(row)) for row in run.rows]
    keys = list(zip(inputs, occurrences(inputs), strict=True))
    for index, row in enumerate(run.rows):
        if is_failed(row["output"]):
            run.counts.update(raw["null_reason"] for raw in row["constraints"])
            continue
        chains = constraints(row)
        prompts = [step.text for chain in chains for step in chain.steps]
        numbers = iter(occurrences(prompts))
        evidence = Evidence(row["output"], row.get("tools"))
        if evidence.trajectory is not None:
            row["trajectory_steps"] = len(evidence.trajectory.steps)
        for chain in chains:
            step_keys = tuple(next(numbers) for _ in chain.steps)
            place = Place(index, chain.index, keys[index], step_keys)
            yield Work(row, evidence, chain, place)


async def _judge(
    work: Work, asker: Asker | None, pool: CheckerPool, run: JudgeRun, progress: Progress
) -> None:
    outcome = await run_chain(
        work.constraint.steps, work.answer, tools_for(work, asker, pool.check)
    )
    record(run, work, outcome)
    undecided = outcome.score is None and outcome.null_reason not in (NOT_APPLICABLE, NOT_ASKED)
    retries = asker.client.counts.retries if asker and asker.client else 0
    progress.advance(failed=undecided, retries=retries)


def tools_for(work: Work, asker: Asker | None, check: Check) -> Tools:
    """Return what a constraint's chain works with."""

    async def ask(question: Question, position: int, verdict_wanted: bool) -> Any:
        assert asker is not None, "checked before the first chain runs"
        return await asker.ask(work.place, question, position, verdict_wanted)

    parser = asker.judge.config.parser if asker else "adhere"
    return Tools(ask, check, work.evidence.apply, lambda text: parse(text, parser))


def record(run: JudgeRun, work: Work, outcome: Outcome) -> None:
    """Keep one constraint's verdict and how it came about."""
    raw = work.row["constraints"][work.constraint.index]
    raw["score"] = outcome.score
    raw["llm_output"] = outcome.llm_output
    raw["null_reason"] = outcome.null_reason
    raw["steps"] = outcome.steps
    verdicts = {True: "followed", False: "violated", None: outcome.null_reason or "unscored"}
    run.counts[verdicts[outcome.score]] += 1
    run.retryable += any(step.get("retryable") for step in outcome.steps)
