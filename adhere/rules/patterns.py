"""Regular expressions that users write, in linear time.

RE2 never backtracks, so no pattern can hang on any text, and no clock decides about a verdict.
What it leaves out (look-around, back-references) is refused when a rule is loaded. Its ``\\w``,
``\\d`` and ``\\b`` are those of ASCII; letters of any script are ``\\p{L}``, Chinese characters
``\\p{Han}``.
"""

from functools import lru_cache
from typing import Any

import re2


@lru_cache(maxsize=512)
def compiled(pattern: str) -> Any:
    """Return the compiled pattern. Raises ValueError with what RE2 does not take."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        detail = error.args[0].decode("utf-8", "replace") if error.args else "not understood"
        raise ValueError(
            f"not a regular expression of RE2 ({detail}); it has no look-around and no "
            "back-references"
        ) from None


def find(pattern: str, text: str) -> str | None:
    """Return the first piece of ``text`` that matches, None without any."""
    match = compiled(pattern).search(text)
    return None if match is None else match.group(0)


def count(pattern: str, text: str) -> int:
    """Return how many non-overlapping pieces of ``text`` match."""
    return sum(1 for _ in compiled(pattern).finditer(text))
