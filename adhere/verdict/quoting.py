"""What a judge's text only shows or talks about: the answer under test, and words in it."""

import re
from collections.abc import Iterator
from typing import Final

from adhere.code_regions import Regions

# Whose words, answer or verdict it is when it is not the judge's.
OF_ANOTHER: Final = re.compile(
    r"\b(?:responses?|reply|replies|outputs?|model|assistant|agent|chatbot|bot|student|text|user"
    r"|says?|said|states?|writes?|wrote|claims?|contains?|ends?|includes?|holds?|reads?|words?|lines?"
    r"|sentences?|expected|required|reference|correct|previous|initial|original|candidate|example"
    r"|their|his|her|its)\b|回复|模型|输出|用户|参考|预期|示例|结尾|开头|写了|写道|原文|包含"
)
_QUOTED = re.compile(
    r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|「[^」\n]{1,300}」|『[^』\n]{1,300}』|`[^`\n]{1,300}`"
    r"|(?<![0-9a-z])['‘][^'’\n]{1,300}['’](?![0-9a-z])"
)


class Quotations:
    """What stands between quotation marks beside other text of its line."""

    def __init__(self, plain: str) -> None:
        """Find the quotations of a plain text."""
        self._spans = list(_quotations(plain))
        self._regions = Regions(self._spans)

    def around(self, place: int) -> tuple[int, int] | None:
        """Return the bounds of the quotation that holds a place, with its marks."""
        index = self._regions.containing(place)
        return None if index is None else self._spans[index]


def _quotations(plain: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in plain.split("\n"):
        letters = -1
        position = 0
        while quoted := _QUOTED.search(line, position):
            if letters < 0:
                letters = sum(map(str.isalnum, line))
            if letters > sum(map(str.isalnum, quoted[0])):
                yield start + quoted.start(), start + quoted.end()
                position = quoted.end()
            else:
                # Marks around a whole line are emphasis; there may be quotations inside.
                position = quoted.start() + 1
        start += len(line) + 1


# "The response ends with:", in the line of what it shows.
SHOWS: Final = re.compile(
    r"\b(?:says|said|reads|ends? (?:with|in)|begins? with|starts? with"
    r"|(?:word|line|sentence)\b[^.:\n]{0,30}\bis)[^\w\n]*:[^\w\n]*\Z"
)
# What ends a line that shows something: "The last line of the response is".
_SHOWING = re.compile(
    r"(?:\b(?:is|are|was|reads?|says?|said|with|only|lines?|wrote|writes?|states?|contains?|includes?"
    r"|outputs?|tells? the judge|response|reply)|写道|是|为|如下)\W*\Z"
)
# What is said of the response, or as the judge's own, shows nothing.
_OWN = re.compile(
    r"\b(?:my|here|evaluat\w*|assess\w*|analy\w*|judg\w*|verdict|decision|check\w*|conclusion"
    r"|constraints?|criteri\w*|requirements?|instructions?|conditions?|rules?)\b|我|判断|结论|约束|要求"
)


def introduced(before: str) -> bool:
    """Whether what follows a text is shown, as after "The response ends with:"."""
    last = before.rstrip().rpartition("\n")[2].rstrip("*_\"'` ")[-200:]
    clause = re.split(r"[.;:,。]", last.rstrip(": "))[-1]
    if not re.search(r"\w\W+\w|[\u4e00-\u9fff]{3}", last):
        return False  # "Output:" alone is a form that judges use
    if OF_ANOTHER.search(clause) is None or _OWN.search(clause):
        return False
    return last.endswith(":") or _SHOWING.search(clause) is not None


def without_shown(plain: str) -> str:
    """Leave out the lines that a line before them shows, up to the next blank line."""
    kept = list[str]()
    shown = waiting = False
    for line in plain.split("\n"):
        if not line.strip():
            shown = False
        elif shown or waiting:
            shown, waiting = True, False
            line = ""
        else:
            waiting = introduced(line)
        kept.append(line)
    return "\n".join(kept)
