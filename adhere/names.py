"""Names that become parts of paths, and the paths themselves.

A model's name may hold anything a file name may, ``__`` included; a mode's name may not hold
``__`` nor begin or end with ``_``, so that ``{model}__{mode}`` splits in one way only.
"""

import re
import unicodedata

from adhere.errors import ConfigError

# The comma separates names on the command line.
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f/\\{}*?\[\]<>|\"$`:,]")
_LIMITED = re.compile(r"\.first\d+$")
_RUN_CONFIG = "run_config"
# A folder is named after a model, two lines and a mode, and has 255 bytes for it.
_MAX_BYTES = 120
MODE_PATTERN = r"[^\W_]+(?:(?:_|[.+-]+)[^\W_]+)*"


def check_name(name: str, where: str) -> None:
    """Refuse a model, judge or dataset name that cannot be part of a path and of a pattern."""
    problem = _encoding_problem(name)
    if problem is None:
        if not name or name != name.strip() or name.startswith(".") or name.endswith("."):
            problem = "must not be empty, begin or end with a blank or a dot"
        elif found := _FORBIDDEN.search(name):
            problem = f"must not contain {found[0]!r}"
        elif _LIMITED.search(name):
            problem = "must not end in .first<number>, which marks limited runs"
    if problem:
        raise ConfigError(f"{where}: name {name!r} {problem}: rename it")


def check_dataset_name(name: str, where: str) -> None:
    """Refuse a dataset name that cannot be one, or that another file has in the same folder."""
    check_name(name, where)
    if name == _RUN_CONFIG:
        raise ConfigError(f"{where}: name {name!r} is taken by {name}.json: rename it")


def check_mode_name(name: str, where: str) -> None:
    """Refuse a mode name that would make ``{model}__{mode}`` ambiguous."""
    problem = _encoding_problem(name)
    if problem is None and not re.fullmatch(MODE_PATTERN, name):
        problem = "may hold letters and digits only, with single `_` or `.`, `+`, `-` between them"
    if problem:
        raise ConfigError(f"{where}: mode name {name!r} {problem}: rename it")


def _encoding_problem(name: str) -> str | None:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "must be valid UTF-8"
    if unicodedata.normalize("NFC", name) != name:
        return "must be in Unicode's composed form (NFC)"
    return f"must be at most {_MAX_BYTES} bytes long, is {size}" if size > _MAX_BYTES else None


def limited(dataset: str, limit: int | None) -> str:
    """Return the name under which a dataset's first ``limit`` items are kept."""
    return dataset if limit is None else f"{dataset}.first{limit}"


def unlimited(dataset: str) -> tuple[str, int | None]:
    """Split what ``limited`` joined: the dataset's own name and the limit, if any."""
    match = _LIMITED.search(dataset)
    if match is None:
        return dataset, None
    return dataset[: match.start()], int(match[0].removeprefix(".first"))
