"""What is made of a judge's text before its words are looked at."""

import re
from typing import Final

from adhere.code_regions import code_fences
from adhere.plain_text import plain_text
from adhere.verdict.labels import FINDING, NOUNS, PREDICATE
from adhere.verdict.words import KIND, LETTER, WORDS, any_of

MASK: Final = "\x00"
"""Stands where a word was that is no verdict; plain_text leaves no control character."""

_OPTION = "|".join(sorted(WORDS, key=len, reverse=True))
_AROUND = r"[\s\"'“”‘’*`]{0,4}"
_BETWEEN = rf"{_AROUND}(?:[/\\|、&]|\b(?:or|and|vs|versus)\b|或者|或|还是|和|与){_AROUND}"
_ONE_OPTION = re.compile(rf"(?<![{LETTER}])(?:{_OPTION})(?![{LETTER}])")
_OPTIONS = re.compile(
    rf"(?<![{LETTER}])(?:{_OPTION})(?:{_BETWEEN}(?:{_OPTION})){{1,6}}(?![{LETTER}])"
    r"|(?:yes[ \t]{1,3}no|no[ \t]{1,3}yes)(?=\W{0,5}(?:\n|\Z))"
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

    One that a label announces stays, and so does all where nothing else is.
    """
    blocks = [*code_fences(text), *(match.span() for match in _BLOCK_QUOTE.finditer(text))]
    outside, position = list[str](), 0
    for start, end in sorted(blocks):
        if start < position or _ANNOUNCED.search(text[max(start - 60, 0) : start].lower()):
            continue
        outside.append(text[position:start])
        position = end
    rest = "\n".join([*outside, text[position:]])
    return rest if any(map(str.isalnum, rest)) else text
