"""Parts of pages that are generated from code: written by a command, and checked by ``--check``."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from adhere.errors import ConfigError


@dataclass(frozen=True, slots=True)
class GeneratedPart:
    """A part of a page between two marks.

    what: its name in the marks. source: what it is generated from, in words. module: whose
    ``main`` writes it. content: returns it, without its marks.
    """

    page: Path
    what: str
    source: str
    module: str
    content: Callable[[], str]

    @property
    def begin(self) -> str:
        """The line before it."""
        return f"<!-- {self.what}: written by `python -m {self.module}`, do not edit -->"

    @property
    def end(self) -> str:
        """The line after it."""
        return f"<!-- end of the {self.what} -->"

    def renewed(self, page: str) -> str:
        """Return the page with this part renewed. Raises ConfigError without its marks."""
        before, begin, rest = page.partition(self.begin)
        _, end, after = rest.partition(self.end)
        if not begin or not end:
            raise ConfigError(
                f"{self.page}: the lines that mark the {self.what} are gone:\n{self.begin}\n"
                f"{self.end}"
            )
        return f"{before}{self.begin}\n\n{self.content()}\n\n{self.end}{after}"

    def main(self, arguments: list[str] | None = None) -> int:
        """Rewrite the page, or check it; return the exit code."""
        parser = argparse.ArgumentParser(
            prog=f"python -m {self.module}", description=f"Write the {self.what} of {self.page}."
        )
        parser.add_argument(
            "--check", action="store_true", help="only say whether it is up to date"
        )
        check: bool = parser.parse_args(arguments).check
        try:
            page = self.page.read_text(encoding="utf-8")
            renewed = self.renewed(page)
        except (OSError, ConfigError) as error:
            sys.stderr.write(f"error: {error}\n")
            return 1
        if renewed == page:
            return 0
        if check:
            sys.stderr.write(
                f"error: {self.page} does not match the {self.source}: run python -m "
                f"{self.module}\n"
            )
            return 1
        self.page.write_text(renewed, encoding="utf-8")
        return 0
