"""YAML as the configuration files use it: text, numbers, booleans, lists and mappings.

What differs from PyYAML's safe loader: a key that is given twice is an error, a value that does
not fit its tag is one too, dates stay text, and no further tags are known. Merge keys (``<<``)
work. Messages name line and column and never quote the file, which may hold what is secret.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from adhere.errors import ConfigError

_TAG = "tag:yaml.org,2002:"
# Far beyond any file that people write.
_MOST_VALUES = 1_000_000
_KNOWN = ("null", "bool", "int", "float", "str", "seq", "map")


class _Loader(yaml.SafeLoader):
    """The safe loader with the differences above."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == f"{_TAG}merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | None):
                raise ConstructorError(None, None, "a key must be text", key_node.start_mark)
            if key in seen:
                raise ConstructorError(
                    None, None, f"key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _checked(kind: str) -> Callable[[_Loader, Any], Any]:
    """Return the constructor of a scalar, with its failures as errors of the file."""
    construct = yaml.SafeLoader.yaml_constructors[f"{_TAG}{kind}"]

    def constructor(loader: _Loader, node: Any) -> Any:
        try:
            return construct(loader, node)
        except (ValueError, LookupError, OverflowError):
            raise ConstructorError(
                None, None, f"not a valid {kind}: put text in quotes", node.start_mark
            ) from None

    return constructor


_Loader.yaml_constructors = {
    None: yaml.SafeLoader.yaml_constructors[None],
    **{f"{_TAG}{kind}": yaml.SafeLoader.yaml_constructors[f"{_TAG}{kind}"] for kind in _KNOWN},
    **{f"{_TAG}{kind}": _checked(kind) for kind in ("bool", "int", "float")},
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in pairs if tag != f"{_TAG}timestamp"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class Located:
    """What a YAML (or JSON) text holds, and in which line each part of it stands."""

    def __init__(self, text: str) -> None:
        """Parse a text. Raises yaml.YAMLError and RecursionError."""
        # A subclass of SafeLoader: no Python objects are built.
        loader = _Loader(text)
        try:
            self._node = loader.get_single_node()
            if self._node is not None:
                _check_aliases(self._node, (), [0])
            self.content = None if self._node is None else loader.construct_document(self._node)
        finally:
            loader.dispose()

    def line(self, path: Sequence[str]) -> int:
        """Return the line, from 1, of the part that a path of keys and positions leads to.

        Where the path leads nowhere, that of the part that should hold it.
        """
        node, mark = self._node, None
        for part in path:
            found = None
            if isinstance(node, yaml.MappingNode):
                found = next((pair for pair in node.value if pair[0].value == part), None)
            elif isinstance(node, yaml.SequenceNode) and part.isdecimal():
                found = next(((each, each) for each in node.value[int(part) :]), None)
            if found is None:
                break
            mark, node = found[0].start_mark, found[1]
        mark = mark or (node.start_mark if node is not None else None)
        return mark.line + 1 if mark is not None else 1


def _check_aliases(node: yaml.Node, around: tuple[int, ...], count: list[int]) -> None:
    """Refuse what contains itself, and what aliases blow up; ``count`` is of the values so far.

    Raises ConstructorError naming the place.
    """
    count[0] += 1
    if count[0] > _MOST_VALUES:
        problem = f"aliases (*name) make more than {_MOST_VALUES:,} values of this file"
        raise ConstructorError(None, None, problem, node.start_mark)
    if id(node) in around:
        raise ConstructorError(
            None, None, "a value contains itself (&name, *name)", node.start_mark
        )
    inside = (*around, id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            _check_aliases(key, inside, count)
            _check_aliases(value, inside, count)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _check_aliases(value, inside, count)


def read_yaml(path: Path, shown: str) -> dict[str, Any]:
    """Return the mapping in a YAML file; an empty file is an empty mapping.

    ``shown`` names the file in messages. Raises ConfigError.
    """
    content = read_located(path, shown).content
    if content is None:
        return {}
    if not isinstance(content, dict):
        found = "a list" if isinstance(content, list) else "a single value"
        raise ConfigError(f"{shown}: found {found}: must hold `key: value` lines")
    return content


def read_located(path: Path, shown: str) -> Located:
    """Return what a YAML file holds, with its lines; ``shown`` names it. Raises ConfigError."""
    try:
        return Located(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{shown}: no such file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{shown}: not UTF-8: byte {error.start + 1} cannot be read: save the file as UTF-8"
        ) from None
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{shown}: not valid YAML: {_problem(error)}") from None
    except RecursionError:
        raise ConfigError(f"{shown}: nested too deeply") from None


def _problem(error: yaml.YAMLError) -> str:
    """Say what is wrong and where, without the lines of the file."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = error.problem or "cannot be parsed"
        if problem.startswith("but ") and error.context:
            problem = f"{error.context}, {problem}"
        tabs = ": indent with blanks, not with tabs" if "\\t" in problem else ""
        return f"{place}{problem}{tabs}"
    position = getattr(error, "position", None)
    reason = getattr(error, "reason", "cannot be parsed")
    return f"{reason} (character {position + 1})" if isinstance(position, int) else str(reason)
