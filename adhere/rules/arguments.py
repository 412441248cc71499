"""Types of rules' arguments, checks of several together, and words for what was found."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from adhere.rules.patterns import compiled
from adhere.rules.registry import Arguments, Outcome


def _whole(value: Any) -> Any:
    """Let 5.0 be 5, as published argument lists write it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


def _pattern(value: str) -> str:
    compiled(value)
    return value


Count = Annotated[int, BeforeValidator(_whole), Field(ge=0)]
Position = Annotated[int, BeforeValidator(_whole), Field(ge=1)]
Percentage = Annotated[float, Field(ge=0, le=100)]
Number = int | Annotated[float, Field(allow_inf_nan=False)]
Words = Annotated[str, AfterValidator(_not_blank)]
Keywords = Annotated[list[Words], Field(min_length=1)]
Pattern = Annotated[str, AfterValidator(_pattern)]
Letter = Annotated[str, Field(min_length=1, max_length=1)]
Relation = Literal["at least", "less than"]


def bounds(args: Arguments) -> None:
    """Require ``min`` or ``max``, and a range that something can lie in."""
    low, high = args["min"], args["max"]
    if low is None and high is None:
        raise ValueError("needs `min`, `max` or both")
    if low is not None and high is not None and low > high:
        raise ValueError(f"`min` is {low} and `max` is {high}: nothing lies between them")
    if high is None and low == 0:
        raise ValueError("`min` is 0 and there is no `max`: nothing could violate it")


def within(number: int, unit: str, low: int | None, high: int | None) -> Outcome:
    """Judge a count of ``unit``, a noun in the singular."""
    if low is not None and low == high:
        wish = f"exactly {low} required"
    else:
        parts = [f"at least {low}" if low else "", f"at most {high}" if high is not None else ""]
        wish = f"{' and '.join(filter(None, parts))} required"
    followed = (low or 0) <= number and (high is None or number <= high)
    return Outcome(followed, f"{several(number, unit)}, {wish}")


def several(number: int, unit: str) -> str:
    """Return a count with its noun, such as ``1 word``, ``3 words``, ``2 matches of …``."""
    noun, of, rest = unit.partition(" of ")
    plural = f"{noun}{'es' if noun.endswith('ch') else 's'}{of}{rest}"
    return f"{number} {unit if number == 1 else plural}"


def shown(text: str, limit: int = 40) -> str:
    """Return a piece of an answer in quotes, on one line and not too long."""
    line = " ".join(text.split())
    return f"“{line if len(line) <= limit else line[: limit - 1] + '…'}”"
