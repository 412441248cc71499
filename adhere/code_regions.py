"""Where Markdown code lies in a text: spans within a line and closed fences. Linear time."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator

_FENCE = re.compile(r"^[ \t>]{0,12}(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)
_TICKS = re.compile(r"`+|\n")


class Regions:
    """Stretches of a text that do not overlap; looks one up by position."""

    def __init__(self, bounds: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(bounds)
        self._starts = [start for start, _ in ordered]
        self._ends = [end for _, end in ordered]

    def containing(self, position: int) -> int | None:
        """Return the index of the region that holds ``position``, or None."""
        index = bisect_right(self._starts, position) - 1
        return index if index >= 0 and position < self._ends[index] else None


def code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of code spans: a run of backticks up to the next equal one of its line."""
    line: list[re.Match[str]] = []
    for match in _TICKS.finditer(text):
        if match[0] != "\n":
            line.append(match)
            continue
        yield from _line_spans(line)
        line = []
    yield from _line_spans(line)


def _line_spans(runs: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    following: defaultdict[int, list[int]] = defaultdict(list)
    for index in reversed(range(len(runs))):
        following[len(runs[index][0])].append(index)
    index = 0
    while index < len(runs):
        same = following[len(runs[index][0])]
        while same and same[-1] <= index:
            same.pop()
        if same:
            yield runs[index].start(), runs[same[-1]].end()
            index = same[-1]
        index += 1


def code_fences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of closed code fences; one that is never closed is not code."""
    opening: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        mark, info = match["mark"], match["info"].strip()
        if opening is None:
            opening = None if "`" in info else match
        elif mark.startswith(opening["mark"]) and not info:
            yield opening.start(), match.end()
            opening = None
