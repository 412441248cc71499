"""Environment variables, with those of the project's ``.env`` behind them.

``.env`` is read into this process only and never exported, so that keys do not travel to model
servers and checkers.
"""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from dotenv import dotenv_values

from adhere.errors import ConfigError, reason

# What a header can carry and JSON writes as it is; others come from pasting.
_KEY = re.compile(r"[!#-\[\]-~]+")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@lru_cache(maxsize=8)
def _dotenv(path: Path) -> Mapping[str, str]:
    try:
        values = dotenv_values(path, interpolate=False, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {reason(error)}") from None
    return {key: value for key, value in values.items() if value is not None}


def lookup(name: str, root: Path) -> str | None:
    """Return a variable's value, the environment before ``root/.env``; None when unset or blank."""
    found = os.environ.get(name, "").strip()
    return found or (_dotenv((root / ".env").absolute()).get(name) or "").strip() or None


def expand(text: str, root: Path, where: str) -> str:
    """Replace each ``${NAME}``. Raises ConfigError naming ``where`` when a variable is not set."""

    def value(match: re.Match[str]) -> str:
        found = lookup(match[1], root)
        if found is None:
            raise ConfigError(
                f"{where}: uses ${{{match[1]}}}, which is not set: export {match[1]} or put it "
                "in .env"
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
            f"{where}: names {name} as the variable with the key, which is not set: export "
            f"{name}, put it in .env, or write `api_key_env: null` if the endpoint needs none"
        )
    if not _KEY.fullmatch(value):
        raise ConfigError(
            f"{where}: the key in {name} holds a blank, a line break, a quotation mark, a "
            "backslash or a letter that is not ASCII: correct the variable"
        )
    return value
