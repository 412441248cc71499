"""The labels that people gave: read from their sheets, and brought to one for each verdict."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from adhere.csv_table import read_csv
from adhere.errors import DataError

FOLLOWED, VIOLATED, UNSURE = "followed", "violated", "unsure"
_WORDS = {
    FOLLOWED: ("followed", "f", "yes", "y", "1", "true"),
    VIOLATED: ("violated", "v", "no", "n", "0", "false"),
    UNSURE: ("unsure", "u", "?"),
}
_MEANING = {word: label for label, words in _WORDS.items() for word in words}


@dataclass(frozen=True, slots=True)
class Label:
    """What one person said of one verdict; None is unsure."""

    key: str
    labeller: str
    followed: bool | None
    note: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often two labellers agree on what both labelled, and Cohen's κ."""

    one: str
    other: str
    both: int
    agreed: int
    kappa: float | None


def read_labels(folder: Path) -> list[Label]:
    """Read every ``*.csv`` of a folder; rows without a label were not labelled.

    The labeller is named in a column, else by the file. Raises DataError naming file and row.
    """
    labels: dict[tuple[str, str], Label] = {}
    for path in sorted(folder.glob("*.csv")):
        for label in _labels(path):
            known = labels.setdefault((label.key, label.labeller), label)
            if known.followed is not label.followed:
                raise DataError(
                    f"{path}: {label.labeller} labelled {label.key} twice, and not alike: keep one"
                )
    return list(labels.values())


def _labels(path: Path) -> Iterable[Label]:
    for number, row in enumerate(read_csv(path), start=2):
        where = f"{path}: row {number}"
        if not row.get("key") or "label" not in row:
            raise DataError(f"{where}: needs the columns key and label, as the sheet has them")
        if not row["label"]:
            continue
        meaning = _MEANING.get(row["label"].lower())
        if meaning is None:
            raise DataError(
                f"{where}: label: found {row['label']!r:.40}; allowed: {', '.join(_WORDS)}"
            )
        followed = None if meaning == UNSURE else meaning == FOLLOWED
        labeller = row.get("labeller") or path.stem
        yield Label(row["key"], labeller, followed, row.get("note", ""))


def consensus(labels: Sequence[Label]) -> dict[str, bool | None]:
    """Return for each key what most labellers say; None where as many say one as the other."""
    votes: dict[str, Counter[bool]] = {}
    for label in labels:
        counted = votes.setdefault(label.key, Counter())
        if label.followed is not None:
            counted[label.followed] += 1
    return {
        key: None if counted[True] == counted[False] else counted[True] > counted[False]
        for key, counted in votes.items()
    }


def between_labellers(labels: Sequence[Label]) -> list[Agreement]:
    """Return the agreement of each two labellers who share verdicts."""
    told: dict[str, dict[str, bool]] = {}
    for label in labels:
        if label.followed is not None:
            told.setdefault(label.labeller, {})[label.key] = label.followed
    found = []
    for one, other in combinations(sorted(told), 2):
        both = sorted(told[one].keys() & told[other].keys())
        pairs = Counter((told[one][key], told[other][key]) for key in both)
        if both:
            agreed = pairs[True, True] + pairs[False, False]
            found.append(Agreement(one, other, len(both), agreed, kappa(pairs)))
    return found


def kappa(table: Counter[tuple[bool, bool]] | dict[tuple[bool, bool], float]) -> float | None:
    """Return Cohen's κ of a table of (one, other); None where chance alone would agree always."""
    total = sum(table.values())
    if not total:
        return None
    share = {(a, b): table.get((a, b), 0) / total for a in (True, False) for b in (True, False)}
    observed = share[True, True] + share[False, False]
    one, other = share[True, True] + share[True, False], share[True, True] + share[False, True]
    chance = one * other + (1 - one) * (1 - other)
    return None if chance >= 1 else (observed - chance) / (1 - chance)
