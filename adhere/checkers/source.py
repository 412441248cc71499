"""The one repair made to a checker's source before it runs."""

import re

_DEFINED = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+check_following\b", re.MULTILINE)
_HEADER = re.compile(r"^(?=check_following[ \t]*\([^()\n]*\)[ \t]*(?:->[^:\n]*)?:)", re.MULTILINE)


def repair(source: str) -> tuple[str, bool]:
    """Supply a missing ``def`` before ``check_following(…):`` and say whether it was missing.

    Sixty of AgentIF's checkers have a line that starts with ``check_following(response):``. A call
    followed by a colon is no Python, so nothing that ran before can run differently; a source that
    defines the function is left alone. Lines keep their numbers.
    """
    if _DEFINED.search(source):
        return source, False
    fixed, count = _HEADER.subn("def ", source, count=1)
    return fixed, count > 0
