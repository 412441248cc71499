"""What is mended in a checker's source before it runs."""

import re

_DEFINED = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+check_following\b", re.MULTILINE)
_HEADER = re.compile(r"^(?=check_following[ \t]*\([^()\n]*\)[ \t]*(?:->[^:\n]*)?:)", re.MULTILINE)
_BYTE_ORDER_MARK = "\ufeff"


def repair(source: str) -> tuple[str, bool]:
    """Supply a missing ``def`` before ``check_following(…):`` and say whether it was missing.

    Sixty of AgentIF's checkers have a line that starts with ``check_following(response):``. A call
    followed by a colon is no Python, so nothing that ran before can run differently; a source that
    defines the function is left alone. Lines keep their numbers. A byte order mark is dropped, as
    Python does with that of a file.
    """
    source = source.removeprefix(_BYTE_ORDER_MARK)
    if _DEFINED.search(source):
        return source, False
    fixed, count = _HEADER.subn("def ", source, count=1)
    return fixed, count > 0


def defining_line(source: str) -> int | None:
    """Return the number of the line (from 1) that defines check_following, repaired or not."""
    found = _DEFINED.search(repair(source)[0])
    return found.string.count("\n", 0, found.start()) + 1 if found else None
