"""What is worth saying about a dataset that is in order, for whoever looks at it."""

from collections import Counter
from collections.abc import Iterator, Sequence

from adhere import labels
from adhere.data import Row, label, occurrences
from adhere.jsonio import fingerprint

# Keys of a constraint as AgentIF's files misspell them, and what they are read as.
_MISSPELT = {"is meta": "is_meta", "is_meat": "is_meta", "other info": "other_info"}


def notes(rows: Sequence[Row]) -> list[str]:
    """Return what is unusual or read otherwise than it stands in a checked dataset, a sentence a
    kind."""
    raws = [raw for row in rows for raw in row["constraints"]]
    found = Counter(key for raw in raws for key in _MISSPELT if key in raw)
    texts = [
        f"{_many(found[key], 'constraint')} with `{key}`: read as `{right}`"
        for key, right in _MISSPELT.items()
        if found[key]
    ]
    texts += _unusual_labels(rows)
    without = sum(row.get("id") is None for row in rows)
    if without:
        texts.append(f"{_many(without, 'item')} without `id`: known by position, as all are")
    twins = occurrences([fingerprint([row["input"], row["constraints"]]) for row in rows])
    if repeated := sum(number > 0 for number in twins):
        texts.append(f"{_many(repeated, 'item')} the same as another one: kept, and counted apart")
    own = sum("output" in row for row in rows)
    if own:
        texts.append(f"{_many(own, 'item')} with an `output` of its own: no model sees it")
    return texts


def _unusual_labels(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence for each label that AgentIF does not have, with where it stands first."""
    places: dict[tuple[str, str], list[str]] = {}
    for index, row in enumerate(rows):
        for number, raw in enumerate(row["constraints"], start=1):
            for found in labels.unusual(raw):
                places.setdefault(found, []).append(f"{label(index, row)} constraint {number}")
    for (key, value), where in places.items():
        more = f" and {len(where) - 1:,} more" if len(where) > 1 else ""
        yield (
            f"{where[0]}{more}: {key} {value!r:.60} is none of AgentIF's ({labels.usual(key)}): "
            "counted like any other, and a group of its own in reports"
        )


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("s" if number != 1 else "")
