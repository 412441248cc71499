"""A place in a JSON document, so that each problem names file, place and what is allowed there."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from adhere import jsonio
from adhere.errors import DataError

_NAMES = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "nothing"}


@dataclass(frozen=True, slots=True)
class Node:
    """A value with the name of its source and its path there."""

    value: JsonValue
    source: str
    path: str = ""

    def problem(self, allowed: str) -> DataError:
        """Return the error that says what was found here and what is allowed."""
        where = f"{self.source}: {self.path}" if self.path else self.source
        return DataError(f"{where}: {_described(self.value)}; allowed: {allowed}")

    @property
    def present(self) -> bool:
        """Whether there is anything here: an absent key and null are the same."""
        return self.value is not None

    def get(self, *keys: str) -> "Node":
        """Return the first of the keys that is present, the first one where none is."""
        content = self.mapping()
        key = next((key for key in keys if content.get(key) is not None), keys[0])
        return Node(content.get(key), self.source, f"{self.path}.{key}" if self.path else key)

    def mapping(self) -> dict[str, JsonValue]:
        """Return the object here. Raises DataError where there is none."""
        if not isinstance(self.value, dict):
            raise self.problem("an object")
        return self.value

    def kept(self, *keys: str) -> dict[str, JsonValue]:
        """Return those of the object's keys that are present, for a trajectory's metadata."""
        return {key: self.get(key).value for key in keys if self.get(key).present}

    def elements(self) -> Iterator["Node"]:
        """Yield the elements of the list here; none where there is nothing."""
        if self.value is None:
            return
        if not isinstance(self.value, list):
            raise self.problem("a list")
        for position, element in enumerate(self.value):
            yield Node(element, self.source, f"{self.path}[{position}]")

    def text(self) -> str:
        """Return the text here, "" where there is nothing."""
        if self.value is None:
            return ""
        if not isinstance(self.value, str):
            raise self.problem("text")
        return self.value

    def name(self, what: str) -> str:
        """Return a text that must not be blank."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.problem(what)
        return self.value

    def identifier(self) -> str | None:
        """Return a text or number as text, None where there is nothing."""
        if self.value is None:
            return None
        if isinstance(self.value, bool) or not isinstance(self.value, str | int | float):
            raise self.problem("text or a number")
        return str(self.value)

    def is_object(self) -> bool:
        """Whether an object stands here."""
        return isinstance(self.value, dict)

    def anything(self) -> str:
        """Return a text as it is and any other value as JSON, "" where there is nothing."""
        if self.value is None:
            return ""
        return self.value if isinstance(self.value, str) else jsonio.dumps(self.value).decode()


def _described(value: JsonValue) -> str:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        shown = jsonio.dumps(value).decode()
        return shown if len(shown) <= 60 else shown[:59] + "…"
    return _NAMES.get(type(value), "a number")
