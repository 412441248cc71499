"""What is made of a judge's text before its words are looked at."""

import re
from typing import Final

from adhere.code_regions import code_fences
from adhere.plain_text import plain_text
from adhere.verdict.labels import FINDING, NOUNS, PREDICATE
from adhere.verdict.quoting import OF_ANOTHER
from adhere.verdict.words import ALNUM, KIND, LETTER, SURE_WORDS, WORDS, any_of

MASK: Final = "\x00"
"""Stands where a word was that is no verdict; plain_text leaves no control character."""

_OPTION = "|".join(sorted(WORDS, key=len, reverse=True))
_AROUND = r"[\s\"'“”‘’*`]{0,4}"
_BETWEEN = rf"{_AROUND}(?:[/\\|、&]|\b(?:or|and|vs|versus)\b|或者|或|还是|和|与){_AROUND}"
_ONE_OPTION = re.compile(rf"(?<![{LETTER}])(?:{_OPTION})(?![{LETTER}])")
_OPTIONS = re.compile(
    rf"(?<![{LETTER}])(?:{_OPTION})(?:{_BETWEEN}(?:{_OPTION})){{1,6}}(?![{LETTER}])"
    r"|\b(?:yes|no)(?:[ \t,]{1,3}(?:yes|no)){1,8}(?=\W{0,5}(?:\n|\Z))"
)
_JSON_BOOLEAN = re.compile(
    r"[\"'](?P<key>[\w .-]{1,60})[\"']\s{0,5}:\s{0,5}[\"']?(?:true|false)[\"']?"
    r"(?=\s{0,5}[,}\]]|\W{0,5}(?:\n|\Z))"
)
_STRUCK = re.compile(r"~~[^~\n]{1,300}~~")
_EMPTY_BOX = r"(?:\[[ \t]?\]|\([ \t]?\)|[☐□◻⬜])"
_TICKED_BOX = r"(?:\[[x✓√✔]\]|\([x✓√✔]\)|[☑☒✅])"
_BOXES = re.compile(rf"^[^\n]*(?:{_EMPTY_BOX}|{_TICKED_BOX})[^\n]*$", re.MULTILINE)
_UNTICKED = re.compile(rf"{_EMPTY_BOX}[^\w\n\[(☐☑]{{0,6}}{any_of(WORDS)}")
_UNTICKED_AFTER = re.compile(rf"{any_of(WORDS)}[^\w\n\[(☐☑]{{0,6}}{_EMPTY_BOX}")
_WORD_FIRST = re.compile(
    rf"[^\w\n\[(☐☑]*{any_of(WORDS)}[^\w\n]{{0,6}}?(?:{_EMPTY_BOX}|{_TICKED_BOX})"
)
_TICKED = re.compile(_TICKED_BOX)
_BLOCK_QUOTE = re.compile(r"(?:^[ \t]{0,3}>[^\n]*(?:\n|\Z))+", re.MULTILINE)
# "Final answer:" before a block of code says that the block is the verdict.
_ANNOUNCED = re.compile(
    rf"(?:\A|[\n.!?。])\W*(?:(?:the|my|final|overall|so|therefore)\s+){{0,3}}(?:{NOUNS})\W*\Z"
)
_ESCAPED_BREAK = re.compile(r"\\[nrt](?![a-z])")


def plain(text: str, space: str) -> str:
    """Return plain text without what is struck out, not ticked, or a list of the options.

    ``space`` replaces zero-width spaces.
    """
    text = _ESCAPED_BREAK.sub("\n", text)
    cleared = _BOXES.sub(_ticked, _STRUCK.sub("", plain_text(text, WORDS, space)))
    return _JSON_BOOLEAN.sub(_mask_boolean, _OPTIONS.sub(_mask_options, cleared))


def _ticked(line: re.Match[str]) -> str:
    """Return a line with boxes without what is not ticked; the box stands on one side of all."""
    after = _WORD_FIRST.match(line[0])
    return _TICKED.sub(" ", (_UNTICKED_AFTER if after else _UNTICKED).sub(MASK, line[0]))


def _mask_options(match: re.Match[str]) -> str:
    kinds = {KIND[word] for word in _ONE_OPTION.findall(match[0])}
    return MASK if len(kinds) > 1 else match[0]


def _mask_boolean(match: re.Match[str]) -> str:
    key = match["key"]
    names = re.search(NOUNS, key) or FINDING.search(key) or PREDICATE.search(key)
    return match[0] if names else MASK


def unquoted(text: str) -> str:
    """Leave out blocks of code and of quotation beside other text: a judge quotes the answer there.

    One that a label announces stays, one that is a verdict itself, and all where nothing else is.
    """
    blocks = [*code_fences(text), *(match.span() for match in _BLOCK_QUOTE.finditer(text))]
    outside, position = list[str](), 0
    for start, end in sorted(blocks):
        if start < position or _ANNOUNCED.search(text[max(start - 60, 0) : start].lower()):
            continue
        if _is_verdict(text, start, end):
            continue
        outside.append(text[position:start])
        position = end
    rest = "\n…\n".join([*outside, text[position:]])
    return rest if any(map(str.isalnum, rest)) else text


def _is_verdict(text: str, start: int, end: int) -> bool:
    """Whether a block is a verdict and nothing else, and the line above does not show it.

    One of code only where it ends the text.
    """
    words = ALNUM.findall(text[start:end].lower())
    if len(words) != 1 or words[0] not in SURE_WORDS:
        return False
    if text[start:end].lstrip()[:1] != ">" and any(map(str.isalnum, text[end:])):
        return False
    above = text[max(start - 300, 0) : start].rstrip().rpartition("\n")[2].lower()
    return above.endswith((".", "。")) or OF_ANOTHER.search(above) is None
