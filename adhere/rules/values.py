"""Numbers in an answer, as whole tokens.

A number is written in digits of any script: ``391``, ``1,234.5``, ``-3``, ``.5``, ``1e5``, ``50%``,
``3kg``, ``３９１元``. Thousands may be grouped by a comma, an apostrophe, an underscore or a
no-break space. What is only part of a name, a version or an ordinal (``v2``, ``1.2.3``, ``3rd``)
is none.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated

import regex
from pydantic import Field

from adhere.rules.arguments import Count, Number, bounds, within
from adhere.rules.registry import Outcome, example
from adhere.rules.text import rule

_RUN = regex.compile(
    r"(?:(?<![\p{L}\p{N})\]])[-−])?+[[\p{L}\p{N}_.,'’]--[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]]++",
    regex.V1,
)
_NUMBER = regex.compile(
    r"(?P<sign>[-−]?)(?P<digits>(?:\d{1,3}(?P<group>[,'’_])\d{3}(?:(?P=group)\d{3})*|\d+)(?:\.\d+)?|\.\d+)"
    r"(?P<exponent>[eE][+-]?\d{1,3})?(?P<unit>[^\W\d_]*)"
)
_SPACED_GROUP = regex.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_ORDINAL = {"st", "nd", "rd", "th"}
_HALF_WIDTH = str.maketrans("．－", ".-")


def numbers(text: str) -> Iterator[Decimal]:
    """Yield the numbers of a text in their order."""
    text = _SPACED_GROUP.sub(",", text.translate(_HALF_WIDTH))
    for run in _RUN.finditer(text):
        token = run.group().rstrip(".,'’").lstrip(",'’")
        whole = _NUMBER.fullmatch(token)
        # Without a space after it, a comma may also separate: 391,92.
        parts = [token] if whole else token.split(",")
        for part in parts:
            match = _NUMBER.fullmatch(part)
            if match and match["unit"].casefold() not in _ORDINAL:
                yield _value(match)


def _value(match: "regex.Match[str]") -> Decimal:
    digits = regex.sub(r"[,'’_]", "", match["digits"])
    sign = "-" if match["sign"] else ""
    return Decimal(f"{sign}{digits}{match['exponent'] or ''}")


@rule(
    "calc",
    passes=[
        example("17 × 23 = 391.", value=391),
        example("The sum is 1,391.50 euros.", value=1391.5),
        example("结果是３９１。", value=391),
    ],
    fails=[
        example("The result is 1391.", value=391),
        example("It is 391.5, or -391.", value=391),
        example("Model v391, the 391st.", value=391),
    ],
)
def calc(text: str, value: Number, tolerance: Annotated[Number, Field(ge=0)] = 0) -> Outcome:
    """A computed value occurs as a number of its own, whatever way it is written."""
    wanted, off = Decimal(str(value)), Decimal(str(tolerance))
    found = list(numbers(text))
    followed = any(wanted - off <= number <= wanted + off for number in found)
    first = ", ".join(f"{number:.12g}" for number in found[:5])
    more = ", …" if len(found) > 5 else ""
    return Outcome(followed, f"numbers found: {first}{more}" if found else "no number")


@rule(
    "number_count",
    valid=bounds,
    passes=[example("In 2024 we sold 1,200 cups.", min=2, max=2), example("三只猫，2只狗", max=1)],
    fails=[example("In 2024.", min=2), example("1, 2, 3", max=2)],
)
def number_count(text: str, min: Count | None = None, max: Count | None = None) -> Outcome:
    """The number of numbers written in digits."""
    return within(sum(1 for _ in numbers(text)), "number", min, max)


@rule(
    "numbers_are",
    passes=[example("14, 21, 28", values=[14, 21, 28]), example("先3后5", values=[3, 5])],
    fails=[example("14, 21", values=[14, 21, 28]), example("21, 14", values=[14, 21])],
)
def numbers_are(text: str, values: Annotated[list[Number], Field(min_length=1)]) -> Outcome:
    """The numbers of the answer are exactly these, in this order."""
    found = list(numbers(text))
    shown = ", ".join(f"{number:.12g}" for number in found[:8])
    followed = found == [Decimal(str(value)) for value in values]
    return Outcome(followed, f"numbers found: {shown}" if found else "no number")
