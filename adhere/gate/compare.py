"""A record beside a baseline: what both have, item by item, and what got worse."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from adhere.gate.baseline import Entry
from adhere.gate.record import FOLLOWED, VIOLATED, Constraint, Item, Record, rate_of
from adhere.gate.statistics import Share
from adhere.scoring.metrics import mean


@dataclass(frozen=True, slots=True)
class Pair:
    """One constraint that has a verdict on both sides, with its verdicts before."""

    constraint: Constraint
    before: str

    @property
    def change(self) -> float:
        """Return how much more often it is followed now, -1 to 1."""
        now, then = rate_of(self.constraint.verdicts), rate_of(self.before)
        assert now is not None and then is not None, "pairs have verdicts on both sides"
        return now - then


@dataclass(frozen=True, slots=True)
class PairedItem:
    """One item with the constraints that have a verdict on both sides."""

    item: Item
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two sides have in common; ``notes`` say what they do not."""

    items: tuple[PairedItem, ...]
    notes: tuple[str, ...]


def compare(record: Record, entry: Entry) -> Comparison:
    """Pair a record with a baseline's entry."""
    counts: Counter[str] = Counter()
    items = tuple(_paired(record, entry, counts))
    return Comparison(items, tuple(_notes(record, entry, counts)))


def _paired(record: Record, entry: Entry, counts: Counter[str]) -> Iterable[PairedItem]:
    other_judge = record.made.judge_hash != entry.judge_hash
    for item in record.items:
        stored = entry.items.get(item.key)
        if stored is None:
            counts["new items"] += 1
            continue
        counts["reworded items"] += stored.input != item.input
        keys = {constraint.key for constraint in item.constraints}
        counts["constraints gone"] += len(stored.verdicts.keys() - keys)
        pairs = []
        for constraint in item.constraints:
            before = stored.verdicts.get(constraint.key)
            if before is None:
                counts["new constraints"] += 1
            elif other_judge and constraint.judged:
                counts["judged"] += 1
            elif rate_of(before) is not None and rate_of(constraint.verdicts) is not None:
                pairs.append(Pair(constraint, before))
        counts["items"] += bool(pairs)
        counts["constraints"] += len(pairs)
        yield PairedItem(item, tuple(pairs))
    counts["items gone"] = len(entry.items.keys() - {item.key for item in record.items})


def _notes(record: Record, entry: Entry, counts: Counter[str]) -> Iterable[str]:
    subject, made, before = record.subject, record.made, entry.made
    named = (entry.model, entry.mode, entry.judge)
    whom = (subject.model, subject.mode, subject.judge)
    yield (
        f"compared with the baseline of {entry.title} on {counts['constraints']} constraints of "
        f"{counts['items']} items that have a verdict on both sides; runs: {len(record.runs)} now, "
        f"{len(entry.runs)} then"
    )
    if named != whom:
        yield f"the baseline is of {entry.title}, and this is {' '.join(whom[:2])}, judge {whom[2]}"
    changed = ("new items", "items gone", "reworded items", "new constraints", "constraints gone")
    told = ", ".join(f"{name}: {counts[name]}" for name in changed if counts[name])
    if told or made.dataset_sha256 != before.dataset_sha256:
        told = told or "in nothing that is compared"
        yield f"the dataset differs from the baseline's ({told}): what both have is compared"
    if made.judge_hash != before.judge_hash:
        yield (
            "the judge is another than the baseline's, or configured otherwise: "
            f"{counts['judged']} constraints in which a judge has a part are not compared"
        )
    for name in ("protocol", "policy"):
        if getattr(made, name) != getattr(before, name):
            yield f"{name} was {getattr(before, name)} and is {getattr(made, name)}"


def changes(comparison: Comparison, metric: str) -> tuple[list[Share], float]:
    """Return each item's difference in a rate, and what one outcome contributes to it."""
    if metric == "all_pass_rate":
        return [_passing(paired) for paired in comparison.items if paired.pairs], 1.0
    chosen = [
        [pair.change for pair in paired.pairs if in_metric(pair.constraint, metric)]
        for paired in comparison.items
    ]
    if metric != "item_mean":
        return [Share(sum(found), len(found)) for found in chosen], 1.0
    means = [mean(found) for found in chosen if found]
    size = mean([len(found) for found in chosen if found])
    return [Share(each or 0.0, 1) for each in means], 1 / size if size else 1.0


def in_metric(constraint: Constraint, metric: str) -> bool:
    """Whether a constraint counts in a rate: a group's name and value, or all of them."""
    group, _, value = metric.partition(".")
    return not value or constraint.groups.get(group) == value


def _passing(paired: PairedItem) -> Share:
    """Return the change in how often an item passes, by its hard constraints on both sides."""
    hard = [pair for pair in paired.pairs if not pair.constraint.soft]
    now = _pass_rate([pair.constraint.verdicts for pair in hard])
    before = _pass_rate([pair.before for pair in hard])
    return Share(now - before, 1)


def _pass_rate(verdicts: list[str]) -> float:
    """Return the part of the runs in which nothing was violated; runs without a verdict count
    only where there are no others."""
    if not verdicts:
        return 1.0
    runs = [set(letters) for letters in zip(*verdicts, strict=True)]
    told = [run for run in runs if run & {FOLLOWED, VIOLATED}]
    return sum(VIOLATED not in run for run in told) / len(told) if told else 1.0


def got_worse(comparison: Comparison) -> list[tuple[Item, Pair]]:
    """Return what is followed less often than before, the greatest drop first."""
    found = [
        (paired.item, pair)
        for paired in comparison.items
        for pair in paired.pairs
        if pair.change < 0
    ]
    return sorted(found, key=lambda each: each[1].change)
