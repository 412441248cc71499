"""What Snakemake cannot know about results that are there, told to it by an input that is newer.

Its own records may be gone or belong to another folder, and it leaves a deleted file alone while
what was made of it is there.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

# Whether Snakemake remembers how it made a file: then it sees and shows changes itself.
OnRecord = Callable[[str], bool]


def nothing_on_record(_path: str) -> bool:
    """Take Snakemake for having no records, as where it does not run."""
    return False


class Changes:
    """Changes that are found here because Snakemake does not see them."""

    def __init__(self, on_record: OnRecord) -> None:
        self._on_record = on_record

    def unseen(self, file: Path) -> bool:
        """Whether Snakemake would not see a change of what a file was made with."""
        return file.exists() and not self._on_record(str(file))

    def evidence(self, **found: bool) -> list[str]:
        """Return a file for each thing ``found``; newer than any output, it outdates them as input.

        Its name is what was found, since Snakemake shows it as the job's reason.
        """
        files = [Path(self._folder.name) / what for what, true in found.items() if true]
        for file in files:
            file.touch()
        return list(map(str, files))

    @cached_property
    def _folder(self) -> TemporaryDirectory[str]:
        """A folder that goes with the call."""
        return TemporaryDirectory(prefix="adhere-")
