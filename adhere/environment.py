"""Environment variables, with those of the project's ``.env`` behind them.

``.env`` is read into this process only and never exported, so that keys do not travel to model
servers and checkers.
"""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from dotenv.parser import parse_stream

from adhere.errors import ConfigError, reason

# What a header can carry and JSON writes as it is; others come from pasting.
_KEY = re.compile(r"[!#-\[\]-~]+")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class _DotEnv(NamedTuple):
    """A ``.env``: its variables, and the numbers of lines that set none."""

    values: Mapping[str, str]
    odd_lines: tuple[int, ...]


@lru_cache(maxsize=8)
def _dotenv(path: Path) -> _DotEnv:
    try:
        text = path.read_text(encoding="utf-8-sig") if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {reason(error)}") from None
    bindings = list(parse_stream(StringIO(text)))
    values = {each.key: each.value for each in bindings if each.key and each.value is not None}
    odd = [each.original for each in bindings if each.error or (each.key and each.value is None)]
    # A line's text begins with the blank lines above it.
    blank = [len(line.string) - len(line.string.lstrip("\n")) for line in odd]
    lines = tuple(line.line + above for line, above in zip(odd, blank, strict=True))
    return _DotEnv(values, lines)


def lookup(name: str, root: Path) -> str | None:
    """Return a variable's value, the environment before ``root/.env``; None when unset or blank."""
    found = os.environ.get(name, "").strip()
    return found or _dotenv(_path(root)).values.get(name, "").strip() or None


def _path(root: Path) -> Path:
    return (root / ".env").absolute()


def _how_to_set(name: str, root: Path) -> str:
    """Say how to set a variable, and where ``.env`` has lines that may have been meant to.

    A line is named by its number alone: what is in it may be a key.
    """
    odd = _dotenv(_path(root)).odd_lines
    lines = f" (there, no NAME=value: line {', '.join(map(str, odd))})" if odd else ""
    return f"export {name}, or put it in .env{lines}"


def expand(text: str, root: Path, where: str) -> str:
    """Replace each ``${NAME}``. Raises ConfigError naming ``where`` when a variable is not set."""

    def value(match: re.Match[str]) -> str:
        found = lookup(match[1], root)
        if found is None:
            raise ConfigError(
                f"{where}: uses ${{{match[1]}}}, which is not set: {_how_to_set(match[1], root)}"
            )
        return found

    return _REFERENCE.sub(value, text)


def secret(name: str | None, root: Path, where: str) -> str | None:
    """Return the key that ``name`` holds; None when no key is named.

    Raises ConfigError, which names the variable and never its content, when it is not set or
    holds what no header can.
    """
    if name is None:
        return None
    value = lookup(name, root)
    if value is None:
        raise ConfigError(
            f"{where}: names {name} as the variable with the key, which is not set: "
            f"{_how_to_set(name, root)}; or write `api_key_env: null` if the endpoint needs none"
        )
    if not _KEY.fullmatch(value):
        raise ConfigError(
            f"{where}: the key in {name} holds a blank, a line break, a quotation mark, a "
            "backslash or a letter that is not ASCII: correct the variable"
        )
    return value
