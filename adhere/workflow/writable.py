"""What is about to be written can be: seen before the first job, which removes what was there."""

import os
from collections.abc import Iterable
from pathlib import Path

from adhere.errors import DataError


def check_writable(paths: Iterable[str]) -> None:
    """Raise DataError where the folder of any of some files cannot be written in or made."""
    for folder in sorted({_existing(Path(path).parent) for path in paths}):
        if not folder.is_dir():
            raise DataError(f"{folder}: is a file, and results or logs go below it: remove it")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise DataError(
                f"{folder}: cannot be written in: correct its rights (chmod u+rwx), or give "
                "results another folder with --config results_root=…"
            )


def _existing(folder: Path) -> Path:
    """Return a folder or, as long as it is not there, the one that it would be made in."""
    while not os.path.lexists(folder):
        folder = folder.parent
    return folder
