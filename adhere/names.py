"""Names that become parts of paths, and the paths themselves.

A model's name may hold anything a file name may, ``__`` included; a mode's name may not hold
``__`` nor begin or end with ``_``, so that ``{model}__{mode}`` splits in one way only.
"""

import re
import unicodedata

from adhere.errors import ConfigError

_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f/\\{}*?\[\]<>|\"$`:]")
_LIMITED = re.compile(r"\.first\d+$")
MODE_PATTERN = r"[^\W_]+(?:(?:_|[.+-]+)[^\W_]+)*"


def check_name(name: str, where: str) -> None:
    """Refuse a model, judge or dataset name that cannot be part of a path and of a pattern."""
    problem = None
    if not name or name != name.strip() or name.startswith(".") or name.endswith("."):
        problem = "must not be empty, begin or end with a blank or a dot"
    elif found := _FORBIDDEN.search(name):
        problem = f"must not contain {found[0]!r}"
    elif _LIMITED.search(name):
        problem = "must not end in .first<number>, which marks limited runs"
    elif unicodedata.normalize("NFC", name) != name:
        problem = "must be in Unicode's composed form (NFC)"
    elif len(name.encode()) > 120:
        problem = f"must be at most 120 bytes long, is {len(name.encode())}"
    if problem:
        raise ConfigError(f"{where}: name {name!r} {problem}: rename it")


def check_mode_name(name: object, where: str) -> None:
    """Refuse a mode name that would make ``{model}__{mode}`` ambiguous."""
    if not isinstance(name, str):
        raise ConfigError(f"{where}: mode name {name!r} is not text: put it in quotes")
    if not re.fullmatch(MODE_PATTERN, name):
        raise ConfigError(
            f"{where}: mode name {name!r}: allowed are letters and digits, with single `_` or "
            "`.`, `+`, `-` between them"
        )


def limited(dataset: str, limit: int | None) -> str:
    """Return the name under which a dataset's first ``limit`` items are kept."""
    return dataset if limit is None else f"{dataset}.first{limit}"


def unlimited(dataset: str) -> tuple[str, int | None]:
    """Split what ``limited`` joined: the dataset's own name and the limit, if any."""
    match = _LIMITED.search(dataset)
    if match is None:
        return dataset, None
    return dataset[: match.start()], int(match[0].removeprefix(".first"))
