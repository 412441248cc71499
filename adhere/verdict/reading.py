"""The rules that find a verdict in a judge's text; the package says them in words."""

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from adhere.code_regions import code_fences
from adhere.plain_text import ZERO_WIDTH_SPACE, plain_text
from adhere.thinking import final_answer
from adhere.verdict.labels import FINDING, NOUNS, PREDICATE, Labelled, labelled
from adhere.verdict.structured import find_objects, verdict_of
from adhere.verdict.words import (
    ALNUM,
    KIND,
    LETTER,
    SURE_WORDS,
    TOKEN,
    WORDS,
    any_of,
    is_denied,
    stands_alone,
)

# What a rule answers where nothing further may decide; "" passes to the next rule.
UNDECIDED: Final = "none"

_MASK = "\x00"  # plain_text leaves no control character, so this one is free
_LIST_MARK = re.compile(rf"[^\w{_MASK}]*(?:\d{{1,3}}[.)、][^\w{_MASK}]*)?")
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
_UNTICKED = re.compile(rf"(?:\[[ \t]?\]|[☐□◻⬜])[^\w\n]{{0,6}}{any_of(WORDS)}")
_TICKED = re.compile(r"\[[x✓√]\]")
_ALONE = re.compile(
    rf"(?P<word>{any_of(WORDS)})[*`\"'”]{{0,4}}[ \t]?(?:[.!;。\n]|[-–—]{{1,2}}[ \t])"
)
_QUOTE_ENDS = re.compile(r"[\"'”’]")
_WORD_FOLLOWS = re.compile(r"[ \t]{1,8}[0-9a-z\u00c0-\u1fff]")
_BLOCK_QUOTE = re.compile(r"^[ \t]{0,3}>[^\n]*(?:\n|\Z)", re.MULTILINE)
# "Final answer:" before a block of code says that the block is the verdict.
_ANNOUNCED = re.compile(
    rf"(?:\A|[\n.!?。])\W*(?:(?:the|my|final|overall|so|therefore)\s+){{0,3}}(?:{NOUNS})\W*\Z"
)
_COMPLETE = re.compile(r"[\"'”*`)\]}]{0,4}[.!。\n]|[\"'”]")


def read(text: str, *, cut: bool = False) -> bool | None:
    """Return the verdict of a judge's text; ``cut`` says that its end is missing."""
    answer = final_answer(text, prompt="").text
    decide = partial(_decide, cut=cut)
    kind = "" if cut else _structured(answer, decide)
    if not kind:
        kind = _free(_unquoted(answer), decide)
    return {"yes": True, "no": False}.get(kind)


def _structured(text: str, decide: Callable[[str], str]) -> str:
    """Read JSON, which counts for more than what is around it, unless that says the opposite."""
    found = find_objects(text)
    if not found:
        return ""
    kinds = [verdict_of(value, lambda inner: _free(inner, decide)) for value, _, _ in found]
    kinds = [kind for kind in kinds if kind]
    if not kinds:
        return ""
    kind = kinds[-1]
    around = "".join(
        text[end:start]
        for end, start in zip(
            [0, *(end for _, _, end in found)],
            [*(start for _, start, _ in found), len(text)],
            strict=True,
        )
    )
    plain = _plain(around, "")
    word = _first_token(plain, complete=True)
    if word and kind != UNDECIDED and KIND[word] != kind:
        return UNDECIDED
    return kind


def _free(text: str, decide: Callable[[str], str]) -> str:
    # A zero-width space may stand inside a word or between two; joined words come first.
    for space in ("", " ") if ZERO_WIDTH_SPACE in text else ("",):
        if kind := decide(_plain(text, space)):
            return kind
    return ""


def _plain(text: str, space: str) -> str:
    plain = _STRUCK.sub("", plain_text(text, WORDS, space))
    plain = _TICKED.sub(" ", _UNTICKED.sub(_MASK, plain))
    return _JSON_BOOLEAN.sub(_mask_boolean, _OPTIONS.sub(_mask_options, plain))


def _mask_options(match: re.Match[str]) -> str:
    kinds = {KIND[word] for word in _ONE_OPTION.findall(match[0])}
    return _MASK if len(kinds) > 1 else match[0]


def _mask_boolean(match: re.Match[str]) -> str:
    key = match["key"]
    names = re.search(NOUNS, key) or FINDING.search(key) or PREDICATE.search(key)
    return match[0] if names else _MASK


def _unquoted(text: str) -> str:
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


def _decide(plain: str, *, cut: bool) -> str:
    alone = [token for token in TOKEN.finditer(plain) if stands_alone(plain, token)]
    tokens = [token for token in alone if not is_denied(plain, token)]
    sure = {KIND[token[0]] for token in tokens if token[0] in SURE_WORDS}
    doubtful = not sure and any(token[0] in SURE_WORDS for token in alone)

    def opposed(word: str) -> bool:
        """Whether sure words all say the opposite of one that is not sure, or are all denied."""
        kind = KIND[word]
        against = doubtful or sure == {"yes", "no"} - {kind}
        return word not in SURE_WORDS and kind != UNDECIDED and against

    word = _last_line(plain.rpartition("\n")[0] if cut else plain)
    if word:
        return UNDECIDED if opposed(word) else KIND[word]
    labels = list(labelled(plain))
    if cut:
        labels = [label for label in labels if _COMPLETE.match(plain, label.end)]
    for label in reversed(labels):
        if label.leads and not opposed(label.word):
            return KIND[label.word]
        if label.leads and label.marked:
            return UNDECIDED
    word = _first_token(plain, complete=cut) or _first_sentence(plain)
    if word and opposed(word):
        return UNDECIDED
    first = KIND[word] if word else ""
    if cut:
        return first
    aside = [label for label in labels if label.sure and not (label.partial and first)]
    if first and aside and KIND[aside[-1].word] != first:
        return UNDECIDED
    if found := first or _last_of(aside):
        return found
    kinds = sure if sure or doubtful else {KIND[token[0]] for token in tokens}
    return next(iter(kinds)) if len(kinds) == 1 else ""


def _last_of(labels: list[Labelled]) -> str:
    return KIND[labels[-1].word] if labels else ""


def _last_line(plain: str) -> str:
    """Return the word of the last line that is nothing but a verdict."""
    for line in reversed(plain.split("\n")):
        mark = _LIST_MARK.match(line)
        words = ALNUM.findall(line, mark.end() if mark else 0)
        key = " ".join(words) if len(words) < 3 else ""
        key = "n/a" if key == "n a" else key
        if key in KIND:
            return key
    return ""


def _first_token(plain: str, *, complete: bool = False) -> str:
    """Return the first token of a text; ``complete`` wants the end of a sentence after it."""
    start = _LIST_MARK.match(plain)
    token = TOKEN.match(plain, start.end() if start else 0)
    if token is None or not stands_alone(plain, token) or is_denied(plain, token):
        return ""
    if complete and not _COMPLETE.match(plain, token.end()):
        return ""
    quoted = _QUOTE_ENDS.match(plain, token.end())
    # '"Yes" is its first word': the word is talked about.
    return "" if quoted and _WORD_FOLLOWS.match(plain, quoted.end()) else token[0]


def _first_sentence(plain: str) -> str:
    """Return the word of the first sentence where that is nothing but a verdict."""
    start = _LIST_MARK.match(plain)
    word = _ALONE.match(plain, start.end() if start else 0)
    return word["word"] if word and word["word"] not in SURE_WORDS else ""
