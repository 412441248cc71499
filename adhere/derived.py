"""Files that are made of others and of journals, read again.

One that is damaged costs nothing: deleted, it is made again. So every message about one says that.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic_core import ErrorDetails

from adhere import jsonio
from adhere.config.problems import wish
from adhere.errors import DataError

REMEDY = (
    "Where the workflow wrote it, delete it and give the same command again: it is made again "
    "from what was kept, and nothing is asked twice"
)
# What pydantic's kinds of errors ask for, in the words of JSON.
_ALLOWED = {
    "model_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "string_type": "a text",
    "missing": "a value: the key is missing",
}

Count = Annotated[int, Field(ge=0)]
T = TypeVar("T")


class Record(BaseModel):
    """Base of records read from JSON: types are strict, keys not named here are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Provenance(Record):
    """A record in which null and a missing key both mean unknown."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: object) -> object:
        if isinstance(value, dict):
            return {key: element for key, element in value.items() if element is not None}
        return value


def readable(path: Path, kind: type[T]) -> T | None:
    """Return what ``read_record`` does, None where there is nothing or it is damaged.

    Raises OSError where it cannot be known whether there is anything.
    """
    try:
        return read_record(path, kind) if path.exists() else None
    except DataError:
        return None


def read_record(path: Path, kind: type[T], remedy: str = REMEDY) -> T:
    """Read one JSON file into a record. Raises DataError naming file, key and what was found."""
    with remedied(path, remedy):
        content = jsonio.read_json(path)
        try:
            return TypeAdapter(kind).validate_python(content, strict=True)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            raise DataError(f"{path}: {_described(problem)}") from None


@contextmanager
def remedied(path: Path, remedy: str = REMEDY) -> Iterator[None]:
    """Have an error about a file's content end with what to do; one that is not there has none."""
    try:
        yield
    except DataError as error:
        if not os.path.lexists(path):
            raise
        raise DataError(f"{error}. {remedy}") from error.__cause__


def _described(problem: ErrorDetails) -> str:
    key = ".".join(str(part) for part in problem["loc"]) or "top"
    if problem["type"] == "value_error":
        return f"{key}: {problem['msg'].removeprefix('Value error, ')}"
    allowed = _ALLOWED.get(problem["type"]) or wish(problem)
    return f"{key}: found {_shown(problem['input'])}; allowed: {allowed}"


def _shown(value: Any) -> str:
    """Show a value as JSON, its beginning where it is long."""
    return f"{jsonio.dumps(value).decode():.60}"
