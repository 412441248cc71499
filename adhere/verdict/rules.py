"""The rules that find a verdict in a plain text; the package says them in words.

Each returns the kind of the verdict, UNDECIDED where nothing further may decide, or "", which
passes on to the next.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from operator import itemgetter
from typing import Final, NamedTuple

from adhere.verdict.doubts import COMPLETE, CORRECTED, DOUBTS, doubted, takes_back
from adhere.verdict.polarity import contradicts, said_after
from adhere.verdict.questions import (
    ASKS_ASIDE,
    SPACES_AND_MARKS,
    answers,
    answers_aside,
    names_verdict,
)
from adhere.verdict.quoting import SHOWS
from adhere.verdict.text import LIST_MARK, Text
from adhere.verdict.words import (
    ALNUM,
    KIND,
    SURE_WORDS,
    TOKEN,
    WORDS,
    any_of,
    denied,
    is_denied,
    stands_alone,
)

UNDECIDED: Final = "none"
_ALONE = re.compile(
    rf"(?P<word>{any_of(WORDS)})[*`\"'”]{{0,4}}[ \t]?(?:[.!;。\n]|[-–—]{{1,2}}[ \t]"
    r"|,(?![ \t]?(?:but|however|although|though|except|yet|但|不过|然而|可是)))"
)
_QUOTE_ENDS = re.compile(r"[\"'”’]")
_WORD_FOLLOWS = re.compile(r"[ \t]{1,8}[0-9a-z\u00c0-\u1fff]")
# What may lead the last word: "So YES", "Actually, NO".
_LEAD = (
    r"(?:so|therefore|thus|hence|actually|correction|edit|finally|overall|wait|but|however|no wait"
    r"|on second thought|on reflection|scratch that|因此|所以)[-—,: ]{1,3}"
)
_LAST_WORD = re.compile(
    rf"(?P<edge>(?<![\w\W])|(?<=\n)|[.!?。;\n…:])[^\w\n]*(?P<lead>(?:{_LEAD}){{0,3}})[^\w\n]*"
    rf"(?P<word>{any_of(WORDS)})[^\w?]*\Z"
)
_LAST_CHARS: Final = 80
_NUMBERED = re.compile(rf"^\W{{0,4}}\d{{1,2}}[.)][^\w\n]*({any_of(WORDS)})\W*$", re.MULTILINE)
_CONCLUDES = re.compile(
    r"(?:\b(?:so|therefore|thus|hence)\b|因此|所以)[, ]{0,2}"
    r"(?:it(?:['’]s| is) )?(?:an? )?[^\w\n]{0,4}\Z"
)
# "… 应为否。": such a word stands in a sentence, where a Chinese word is not seen to stand alone.
_CHINESE_END = re.compile(r"[为是即][“\"]?(?P<word>是|否)[”\"]?[\W]*\Z")


Rule = Callable[[Text], str]


class Found(NamedTuple):
    """The kind of verdict that a text says, "" for none, and the rule by which it does."""

    kind: str
    rule: str


NOTHING: Final = Found("", "")


def decide(plain: str) -> Found:
    """Return what a plain text says."""
    return _first_of(_RULES, Text(plain))


def decide_plainly(plain: str) -> Found:
    """Return what a text says by its last sentence, a line, a label or its first sentence."""
    return _first_of(_PLAIN_RULES, Text(plain))


def _first_of(rules: Iterable[tuple[str, Rule]], text: Text) -> Found:
    for name, rule in rules:
        if kind := rule(text):
            return Found(kind, name)
    return NOTHING


def _by_last_word(text: Text) -> str:
    """The last sentence, where it is nothing but a verdict.

    Not of one that answers a question or ends a quotation, which need not be the judge's, nor the
    value of a label.
    """
    plain = text.plain.rstrip()
    least = max(len(plain) - _LAST_CHARS, 0)
    found = _LAST_WORD.search(plain, max(least, plain.rfind("\n") + 1))
    found = found or _LAST_WORD.search(plain, least)
    if found is None:
        return ""
    word, edge, start = found["word"], found.start(), found.start("word")
    quotation = text.quotations.around(start)
    if quotation is not None and edge >= quotation[0]:
        return ""
    before = plain[: found.end("edge")].rstrip(SPACES_AND_MARKS)
    own_line = "\n" in plain[edge:start] or not before or plain[edge - 1 : edge] == "\n"
    if before.endswith("?") or denied(plain, word, found.end("word")):
        return ""
    if before.endswith(":") and not (own_line and names_verdict(before)):
        return ""
    if text.opposed(word) or _numbered_lines_differ(plain):
        return UNDECIDED
    if own_line or found["lead"] or word not in SURE_WORDS:
        return KIND[word]
    # In the middle of a line it may end a remark, after a verdict was given.
    contrary = text.stated(edge, marked=True) - {KIND[word]}
    return UNDECIDED if contrary else KIND[word]


def _by_statement(text: Text) -> str:
    """The later of the last line that is nothing but a verdict and the last leading label.

    Labels that say different things decide only by one that speaks of the whole.
    """
    plain = text.plain
    word, end = max(_last_line(plain), _last_paragraph(text), key=itemgetter(1))
    leading = [label for label in text.labels if label.leads and label.end > end]
    first = _first_token(text, complete=True)
    kinds = {KIND[label.word] for label in leading} | ({KIND[first]} if first else set())
    for label in reversed(leading):
        if text.opposed(label.word) and not label.marked:
            continue
        if kinds - {KIND[label.word]} and not label.final:
            return UNDECIDED
        word, end = label.word, label.end
        break
    if not word:
        return ""
    if text.opposed(word) or contradicts(plain, KIND[word], end) or doubted(text, end, KIND[word]):
        return UNDECIDED
    later = [token for token in text.mentioned if token.start() > end and token[0] in SURE_WORDS]
    contrary = _contrary(text, later, KIND[word])
    return UNDECIDED if any(takes_back(plain, token) for token in contrary) else KIND[word]


def _by_opening(text: Text, *, whole: bool = True) -> str:
    """The first word, or first sentence, unless something later says the opposite.

    Without ``whole`` it must be a sentence, and nothing later is asked.
    """
    plain = text.plain
    word = _first_token(text, complete=not whole) or _first_sentence(text)
    if not word:
        return ""
    first = KIND[word]
    corrected = CORRECTED.search(plain)
    if corrected and KIND[corrected["word"]] != first:
        return UNDECIDED
    if text.opposed(word) or DOUBTS.search(plain):
        return UNDECIDED
    if contradicts(plain, first, text.begins + len(word)):
        return UNDECIDED
    if not whole:
        return first
    if doubted(text, text.begins + len(word), first):
        return UNDECIDED
    last = text.last_sentence()
    if text.restated and said_after(plain, last) == {"yes", "no"} - {first}:
        return UNDECIDED
    said = _CHINESE_END.search(plain, max(last, 1))
    if said and KIND[said["word"]] != first:
        return UNDECIDED
    aside = [each for each in text.labels if each.sure and not each.partial and not each.foreign]
    if aside and KIND[aside[-1].word] != first:
        return UNDECIDED
    for token in _contrary(text, text.sure, first):
        if takes_back(plain, token):
            return UNDECIDED
        in_brackets = plain[token.start() - 1] + plain[token.end() : token.end() + 1] == "()"
        if in_brackets or answers_aside(plain, token.start()):
            continue
        if token.start() >= last > 0:
            return UNDECIDED
    return first


def _by_only_kind(text: Text) -> str:
    """The only kind of word there is, where the last sentence says it."""
    if text.doubtful or len(text.kinds) > 1:
        return ""
    last = text.last_sentence()
    said = {KIND[t[0]]: t for t in text.sure or text.tokens if t.start() >= last}
    if len(said) != 1:
        return ""
    ((kind, token),) = said.items()
    before = text.plain[max(token.start() - 200, 0) : token.start()]
    if ASKS_ASIDE.search(before) or SHOWS.search(before):
        return ""
    concludes = _CONCLUDES.search(text.plain, max(token.start() - 40, 0), token.start())
    if text.denied - {kind} and not concludes:
        return ""
    return "" if contradicts(text.plain, kind, token.end()) else kind


def _last_paragraph(text: Text) -> tuple[str, int]:
    """Return the word that opens the last paragraph where its sentence confirms it, and its end."""
    plain = text.plain
    start = plain.rfind("\n\n", 0, len(plain.rstrip()))
    mark = LIST_MARK.match(plain, start + 2) if start >= 0 else None
    token = TOKEN.match(plain, mark.end()) if mark else None
    if token is None or token[0] not in SURE_WORDS or not stands_alone(plain, token):
        return "", -1
    if is_denied(plain, token) or said_after(plain, token.end()) != {KIND[token[0]]}:
        return "", -1
    return token[0], token.end()


def _contrary(text: Text, tokens: list[re.Match[str]], kind: str) -> list[re.Match[str]]:
    """Return the words of the other kind, those left out that speak of one thing only."""
    partial_ends = {label.end for label in text.labels if label.partial}
    return [t for t in tokens if KIND[t[0]] != kind and t.end() not in partial_ends]


def _last_line(plain: str) -> tuple[str, int]:
    """Return the word of the last line that is nothing but a verdict, and where the line ends."""
    end = len(plain)
    for line in reversed(plain.split("\n")):
        mark = LIST_MARK.match(line)
        words = ALNUM.findall(line, mark.end() if mark else 0)
        key = " ".join(words) if len(words) < 3 else ""
        key = "n/a" if key == "n a" else key
        asks = line.rstrip(SPACES_AND_MARKS).endswith("?")
        if key in KIND and not asks and not answers(plain, end - len(line)):
            return ("" if _numbered_lines_differ(plain) else key), end
        end -= len(line) + 1
    return "", -1


def _numbered_lines_differ(plain: str) -> bool:
    """Whether a list has a verdict for each of its items, not all alike."""
    return len({KIND[word] for word in _NUMBERED.findall(plain)}) > 1


def _first_token(text: Text, *, complete: bool = False) -> str:
    """Return the first token of a text; ``complete`` wants the end of a sentence after it."""
    plain = text.plain
    token = TOKEN.match(plain, text.begins)
    if token is None or not stands_alone(plain, token) or is_denied(plain, token):
        return ""
    if text.is_quoted(token) or (complete and not COMPLETE.match(plain, token.end())):
        return ""
    quoted = _QUOTE_ENDS.match(plain, token.end())
    # '"Yes" is its first word': the word is talked about.
    return "" if quoted and _WORD_FOLLOWS.match(plain, quoted.end()) else token[0]


def _first_sentence(text: Text) -> str:
    """Return the word of the first sentence where that is nothing but a verdict."""
    word = _ALONE.match(text.plain, text.begins)
    return word["word"] if word and word["word"] not in SURE_WORDS else ""


_PLAIN_RULES: Final[tuple[tuple[str, Rule], ...]] = (
    ("last sentence", _by_last_word),
    ("line or label", _by_statement),
    ("first sentence", partial(_by_opening, whole=False)),
)
_RULES: Final[tuple[tuple[str, Rule], ...]] = (
    *_PLAIN_RULES[:2],
    ("first word", _by_opening),
    ("only kind of word", _by_only_kind),
)
