"""What Snakemake cannot know about results that are there, told to it by an input that is newer.

Its own records may be gone or belong to another folder, and it leaves a deleted file alone while
what was made of it is there.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile

# Whether Snakemake remembers how it made a file: then it sees and shows changes itself.
OnRecord = Callable[[str], bool]


def nothing_on_record(_path: str) -> bool:
    """Take Snakemake for having no records, as where it does not run."""
    return False


class Changes:
    """Changes that are found here because Snakemake does not see them."""

    def __init__(self, on_record: OnRecord) -> None:
        self._on_record = on_record
        self._open = ExitStack()  # as long as the call itself

    def unseen(self, file: Path) -> bool:
        """Whether Snakemake would not see a change of what a file was made with."""
        return file.exists() and not self._on_record(str(file))

    def evidence(self, changed: bool) -> list[str]:
        """Return a file that is newer than any output, which as an input outdates the output."""
        return [self._newer] if changed else []

    @cached_property
    def _newer(self) -> str:
        return self._open.enter_context(NamedTemporaryFile(prefix="adhere-found-a-change-")).name
