"""What all parts of configuration files share: their base, and the kinds of values of their fields.

A whole number in YAML may stand for a number, and a list for a tuple; nothing else is converted.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class Strict(BaseModel):
    """Base of all config parts: unknown keys are errors, values are never coerced from text."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def is_number(value: object) -> bool:
    """Whether a value of YAML is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_tuple(value: Any) -> Any:
    """Return a list of YAML as a tuple, anything else as it is."""
    return tuple(value) if isinstance(value, list) else value


def as_texts(value: Any) -> Any:
    """Return a list as a tuple in which numbers are texts, anything else as it is."""
    if isinstance(value, list | tuple):
        return tuple(str(item) if is_number(item) else item for item in value)
    return value


def _as_float(value: Any) -> Any:
    return float(value) if is_number(value) else value


Finite = Annotated[float, BeforeValidator(_as_float), Field(allow_inf_nan=False)]
Share = Annotated[Finite, Field(ge=0, le=1)]
# The upper limit is far beyond any use; it keeps numbers within what JSON writers hold.
PositiveInt = Annotated[int, Field(ge=1, le=1_000_000_000)]
Text = Annotated[str, Field(min_length=1)]
