"""Rules about answers that are data: CSV, dates; and the overlap with a reference."""

import csv as csv_module
import io
from datetime import date
from typing import Literal

import regex

from adhere.rules import measure
from adhere.rules.arguments import Count, Keywords, Percentage, Words, several, shown
from adhere.rules.registry import Arguments, Outcome, example
from adhere.rules.text import rule


@rule(
    "csv",
    passes=[
        example("id,name\n1,tea\n2,milk", columns=["id", "name"], rows=2),
        example('"id"\t"茶"\n"1"\t"a, b"', columns=["id", "茶"], delimiter="tab", quoted=True),
    ],
    fails=[
        example("id,name\n1,tea", columns=["id", "name"], rows=2),
        example("id,name\n1,tea,hot", columns=["id", "name"]),
        example('"id",name\n1,2', columns=["id", "name"], quoted=True),
    ],
)
def csv(
    text: str,
    columns: Keywords,
    rows: Count | None = None,
    delimiter: Literal["comma", "semicolon", "tab"] = "comma",
    quoted: bool = False,
) -> Outcome:
    """The answer is CSV: a header with these columns, every row as long, so many rows below it;
    with `quoted`, all fields in double quotes."""
    sign = {"comma": ",", "semicolon": ";", "tab": "\t"}[delimiter]
    try:
        table = list(csv_module.reader(io.StringIO(text.strip()), delimiter=sign, strict=True))
    except csv_module.Error as error:
        return Outcome(False, f"not CSV: {error}")
    if [field.strip() for field in table[0]] != columns:
        return Outcome(False, f"the header is {shown(sign.join(table[0]))}")
    ragged = [row for row in table if len(row) != len(columns)]
    if ragged:
        return Outcome(False, f"a row has {several(len(ragged[0]), 'field')}")
    bare = quoted and not all(_is_quoted(line, sign) for line in measure.lines(text))
    followed = not bare and rows in (None, len(table) - 1)
    return Outcome(
        followed, f"{several(len(table) - 1, 'row')}{', not all quoted' if bare else ''}"
    )


def _is_quoted(line: str, sign: str) -> bool:
    field = r'"(?:[^"]|"")*+"'
    return regex.fullmatch(rf"\s*{field}(?:{regex.escape(sign)} *{field})*+\s*", line) is not None


def _years(args: Arguments) -> None:
    if args["earliest"] > args["latest"]:
        raise ValueError("`earliest` is after `latest`")


@rule(
    "dates",
    valid=_years,
    passes=[example("1796-04-12, 1797-01-14"), example("1796-04-12", earliest=1769, latest=1821)],
    fails=[example("12 April 1796"), example("1796-02-30"), example("1899-01-01", latest=1821)],
)
def dates(text: str, earliest: Count = 1, latest: Count = 9999) -> Outcome:
    """The answer is a list of dates (YYYY-MM-DD), separated by commas, and nothing else; their
    years lie between `earliest` and `latest`."""
    for part in text.replace("，", ",").split(","):
        try:
            found = date.fromisoformat(part.strip()) if len(part.strip()) == 10 else None
        except ValueError:
            found = None
        if found is None or not earliest <= found.year <= latest:
            return Outcome(False, f"{shown(part)} is no such date")
    return Outcome(True, "dates only")


def _some_share(args: Arguments) -> None:
    share, tolerance = args["percentage"], args["tolerance"]
    if share - tolerance <= 0 and share + tolerance >= 100:
        raise ValueError("`tolerance` covers everything: nothing could violate it")


@rule(
    "trigram_overlap",
    valid=_some_share,
    passes=[
        example("green tea is hot", reference="green tea is hot", percentage=100),
        example("我喜欢喝茶", reference="他喜欢喝茶吧", percentage=66, tolerance=1),
    ],
    fails=[
        example("green tea is hot", reference="milk is cold today", percentage=50),
        example("green tea is hot", reference="green tea is hot", percentage=50),
    ],
)
def trigram_overlap(
    text: str,
    reference: Words,
    percentage: Percentage,
    tolerance: Percentage = 2,
    unit: Literal["word", "character"] = "word",
) -> Outcome:
    """This percentage (give or take `tolerance`) of the different trigrams of the answer are in
    the reference."""
    found, wanted = _trigrams(text, unit), _trigrams(reference, unit)
    share = 100 * len(found & wanted) / len(found) if found else 0
    followed = bool(found) and abs(share - percentage) <= tolerance
    return Outcome(followed, f"{share:.1f} % of the trigrams are in the reference")


def _trigrams(text: str, unit: str) -> set[tuple[str, ...]]:
    units = measure.words(measure.fold(text)) if unit == "word" else list(text)
    return set(zip(units, units[1:], units[2:], strict=False))
