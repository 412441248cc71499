"""Read an instruction set from YAML, JSON or JSONL; what is wrong is named by line and key."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from yaml import YAMLError

from adhere import jsonio
from adhere.config.fields import Strict
from adhere.config.problems import describe, nearest
from adhere.config.strict_yaml import Located, read_located
from adhere.errors import ConfigError, DataError
from adhere.instruction_set.form import Defaults, InstructionSet, Item

T = TypeVar("T", bound=Strict)
_MOST_PROBLEMS = 20
_KEYS = tuple(InstructionSet.model_fields)
_YAML = (".yaml", ".yml")
# Bytes of a JSON file; a megabyte takes seconds.
_LONGEST_LOCATED = 2_000_000


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the file: its content, and the place that a path of keys inside it leads to."""

    content: Any
    place: Callable[[tuple[str, ...]], str]


@dataclass(frozen=True, slots=True)
class Placed:
    """An item, with what names a place inside it in messages."""

    item: Item
    place: Callable[[tuple[str, ...]], str]

    def problem(self, at: tuple[str, ...], text: str) -> DataError:
        """Return an error about what a path inside the item leads to."""
        return DataError(f"{self.place(at)}: item {self.item.id!s:.60}: {text}")


@dataclass(frozen=True, slots=True)
class ReadSet:
    """A set as read."""

    path: Path
    defaults: Defaults
    items: list[Placed]


def read_set(path: Path) -> ReadSet:
    """Read and validate a set.

    Raises DataError naming line, item and key of everything that is wrong (the first twenty).
    """
    problems: list[str] = []
    read = ReadSet(path, Defaults(), [])
    for number, part in enumerate(_parts(path)):
        if isinstance(part.content, dict) and set(part.content) == {"defaults"}:
            if number:
                problems.append(
                    f"{part.place(('defaults',))}: defaults: they hold for all items, and so stand "
                    "before the first: put them there"
                )
                continue
            defaults = _parse(Defaults, part, ("defaults",), problems)
            read = ReadSet(path, defaults or read.defaults, read.items)
        elif item := _parse(Item, part, (), problems):
            read.items.append(Placed(item, part.place))
    problems += _repeated(read.items)
    if not read.items and not problems:
        problems.append(f"{path}: holds no item: nothing can be evaluated")
    refuse(problems)
    return read


def refuse(problems: list[str]) -> None:
    """Raise DataError with the first twenty problems, where there are any."""
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        rest = [f"… and {more} problems more"] if more > 0 else []
        raise DataError("\n".join(problems[:_MOST_PROBLEMS] + rest))


def _repeated(items: list[Placed]) -> Iterator[str]:
    first: dict[str, str] = {}
    for placed in items:
        place = placed.place(("id",))
        if placed.item.id in first:
            yield (
                f"{place}: id: found {placed.item.id!r}, which is also that of "
                f"{first[placed.item.id]}: give each item an id of its own"
            )
        first.setdefault(placed.item.id, place)


class _Lines:
    """Where the parts of a document stand. A JSON file is looked through only once a part is
    asked for, since that takes much longer than to read it."""

    def __init__(self, path: Path, located: Located | None) -> None:
        self._path = path
        self._known = located

    def place(self, prefix: tuple[str, ...], at: tuple[str, ...]) -> str:
        """Name the place that the keys ``at`` inside the part ``prefix`` lead to."""
        if self._located is not None:
            return f"{self._path}: line {self._located.line((*prefix, *at))}"
        return f"{self._path}: item {int(prefix[-1]) + 1}" if prefix else str(self._path)

    @cached_property
    def _located(self) -> Located | None:
        """The lines; None where they would tell nothing, or cannot be had."""
        if self._known is not None:
            return self._known
        raw = jsonio.read_bytes(self._path).strip()
        if b"\n" not in raw or len(raw) > _LONGEST_LOCATED:
            return None
        try:
            return Located(raw.decode("utf-8-sig"))
        except (YAMLError, UnicodeDecodeError, RecursionError):
            return None  # such as for tabs, which YAML does not indent with


def _parts(path: Path) -> Iterator[_Part]:
    """Yield ``{"defaults": …}``, if there is one, and the items."""
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        for number, content in jsonio.numbered_lines(path, unique_keys=True):
            yield _Part(content, partial(_in_line, path, number))
        return
    located = None
    if path.suffix in _YAML:
        try:
            located = read_located(path, str(path))
        except ConfigError as error:
            raise DataError(str(error)) from None
    content = located.content if located else jsonio.read_json(path, unique_keys=True)
    lines = _Lines(path, located)
    if isinstance(content, list):
        for index, each in enumerate(content):
            yield _Part(each, partial(lines.place, (str(index),)))
        return
    head = _check_head(path, content, lines)
    if head.get("defaults") is not None:
        defaults = {"defaults": head["defaults"]}
        yield _Part(defaults, partial(lines.place, ()))
    for index, each in enumerate(head["items"]):
        yield _Part(each, partial(lines.place, ("items", str(index))))


def _in_line(path: Path, number: int, _at: tuple[str, ...]) -> str:
    return f"{path}: line {number}"


def _check_head(path: Path, content: Any, lines: _Lines) -> dict[str, Any]:
    """Return what a document holds that is no list."""
    if not isinstance(content, dict) or not isinstance(content.get("items"), list):
        raise DataError(
            f"{path}: must hold `items:` with a list of instructions (and `defaults:` where they "
            "share something), or be such a list"
        )
    for key in content:
        if key not in _KEYS:
            place = lines.place((), (str(key),))
            raise DataError(
                f"{place}: {key}: unknown key{nearest(str(key), _KEYS)}; allowed: "
                f"{', '.join(_KEYS)}"
            )
    return content


def _parse(kind: type[T], part: _Part, inside: tuple[str, ...], problems: list[str]) -> T | None:
    """Validate what lies ``inside`` a part; what is wrong with it goes to ``problems``."""
    content = part.content
    for key in inside:
        content = content[key]
    if not isinstance(content, Mapping):
        problems.append(f"{part.place(inside)}: found {content!r:.60}: must be `key: value` pairs")
        return None
    name = content.get("id")
    shown = f": item {name!s:.60}" if name is not None else ""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        places = describe(error, kind, content, lambda at: part.place((*inside, *at)) + shown)
        problems.extend(places.splitlines())
        return None
