"""The rules that find a verdict in a judge's text; the package says them in words."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from adhere.plain_text import ZERO_WIDTH_SPACE
from adhere.thinking import final_answer
from adhere.verdict.clearing import MASK, plain, unquoted
from adhere.verdict.labels import NOUNS, labelled
from adhere.verdict.structured import find_objects, verdict_of
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

# What a rule answers where nothing further may decide; "" passes to the next rule.
UNDECIDED: Final = "none"

_LIST_MARK = re.compile(rf"[^\w{MASK}]*(?:\d{{1,3}}[.)、][^\w{MASK}]*)?")
_ALONE = re.compile(
    rf"(?P<word>{any_of(WORDS)})[*`\"'”]{{0,4}}[ \t]?(?:[.!;。\n]|[-–—]{{1,2}}[ \t])"
)
_QUOTE_ENDS = re.compile(r"[\"'”’]")
_WORD_FOLLOWS = re.compile(r"[ \t]{1,8}[0-9a-z\u00c0-\u1fff]")
_COMPLETE = re.compile(r"[\"'”*`)\]}]{0,4}[.!。\n]|[\"'”]")
# What may lead the last word: "So YES", "Actually, NO".
_LAST_WORD = re.compile(
    r"(?:(?<![\w\W])|(?<=\n)|[.!?。;\n…:])[^\w\n]*(?:(?:so|therefore|thus|hence|actually|correction|edit|finally"
    r"|overall|wait|but|however|no wait|因此|所以)[,: ]{1,3}){0,3}[^\w\n]*"
    rf"(?P<word>{any_of(WORDS)})[^\w?]*\Z"
)
_LAST_CHARS: Final = 80
# After these a contrary word takes back what was said.
_TAKEN_BACK = re.compile(
    r"\b(?:actually|however|but|wait|correction|edit|instead|rather|reconsider\w*|although)\b"
    r"|但|然而|不过|实际上|更正"
)
_OPENING_KEY = re.compile(
    r"\W*\{\s*[\"'](?:final[ _-]?)?(?:verdict|decision|judge?ment|结论|判断)[\"']\s*:\s*"
    rf"[\"']?(?P<word>{any_of(WORDS)})"
)
# What opens a text that was cut off: its label, or nothing.
_OPENING = re.compile(
    rf"[^\w\n]*(?:(?:the|my|final|overall)[ \t]+){{0,3}}(?:{NOUNS})[^\w\n]*"
    rf"(?:\b(?:is|was)\b|为|是)?[^\w\n]*(?P<word>{any_of(WORDS)})"
)


def read(text: str, *, cut: bool = False) -> bool | None:
    """Return the verdict of a judge's text; ``cut`` says that its end is missing."""
    answer = final_answer(text, prompt="").text
    if cut:
        kind = _free(answer, _opening)
    else:
        found = find_objects(answer)
        kind = _structured(answer, found) if found else _free(unquoted(answer), _decide)
    return {"yes": True, "no": False}.get(kind)


def _structured(text: str, found: list[tuple[Any, int, int]]) -> str:
    """Read JSON and what is around it: an answer under test is often JSON, too.

    What is said after the last object counts for more than it. What is said plainly before it may
    not contradict it.
    """
    kinds = [verdict_of(value, partial(_free, decide=_decide)) for value, _, _ in found]
    named = [kind for kind in kinds if kind]
    spans = [(start, end) for _, start, end in found]
    before = unquoted(_without(text[: spans[-1][1]], spans))
    after = unquoted(text[spans[-1][1] :])
    if not any(map(str.isalnum, before + after)):
        return named[-1] if named else UNDECIDED
    said = _free(after, _plainly)
    if said:
        return said
    if not named:
        return _free(before + "\n" + after, _decide)
    said = _free(before, _plainly)
    return UNDECIDED if said and said != named[-1] else named[-1]


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """Return a text without some stretches of it."""
    kept, position = list[str](), 0
    for start, end in spans:
        kept.append(text[position:start])
        position = end
    return "\n".join([*kept, text[position:]])


def _free(text: str, decide: Callable[[str], str]) -> str:
    # A zero-width space may stand inside a word or between two; joined words come first.
    for space in ("", " ") if ZERO_WIDTH_SPACE in text else ("",):
        if kind := decide(plain(text, space)):
            return kind
    return ""


def _opening(plain: str) -> str:
    """Read a text whose end is missing: only what opens it, and is complete, is known to stay."""
    word = _first_token(plain, complete=True)
    if word:
        return KIND[word]
    label = _OPENING.match(plain) or _OPENING_KEY.match(plain)
    if label is None or not _COMPLETE.match(plain, label.end("word")):
        return ""
    word = label["word"]
    return "" if denied(plain, word, label.end("word")) else KIND[word]


def _plainly(plain: str) -> str:
    """Read what a text says by a line, a label, its last word or its first."""
    return _decide(plain, plainly=True)


def _decide(plain: str, *, plainly: bool = False) -> str:
    alone = [token for token in TOKEN.finditer(plain) if stands_alone(plain, token)]
    tokens = [token for token in alone if not is_denied(plain, token)]
    sure = {KIND[token[0]] for token in tokens if token[0] in SURE_WORDS}
    doubtful = not sure and any(token[0] in SURE_WORDS for token in alone)

    def opposed(word: str) -> bool:
        """Whether sure words all say the opposite of one that is not sure, or are all denied."""
        kind = KIND[word]
        against = doubtful or sure == {"yes", "no"} - {kind}
        return word not in SURE_WORDS and kind != UNDECIDED and against

    last = _last_word(plain)
    if last:
        return UNDECIDED if opposed(last) else KIND[last]
    labels = list(labelled(plain))
    line, end = _last_line(plain)
    for label in reversed(labels):
        if label.leads and label.end > end and not (opposed(label.word) and not label.marked):
            line, end = label.word, label.end
            break
    if line:
        partial_ends = {label.end for label in labels if label.partial}
        contrary = any(
            token.start() > end
            and token[0] in SURE_WORDS
            and KIND[token[0]] != KIND[line]
            and token.end() not in partial_ends
            and _takes_back(plain, token)
            for token in tokens
        )
        return UNDECIDED if contrary or opposed(line) else KIND[line]
    word = _first_token(plain, complete=plainly) or _first_sentence(plain)
    if word and opposed(word):
        return UNDECIDED
    first = KIND[word] if word else ""
    if plainly:
        return first
    aside = [label for label in labels if label.sure and not (label.partial and first)]
    if first:
        taken_back = any(KIND[t[0]] != first and _takes_back(plain, t) for t in tokens)
        if (aside and KIND[aside[-1].word] != first) or taken_back:
            return UNDECIDED
        return first
    if len(sure) > 1:
        return ""
    kinds = sure if sure or doubtful else {KIND[token[0]] for token in tokens}
    return next(iter(kinds)) if len(kinds) == 1 else ""


def _takes_back(plain: str, token: re.Match[str]) -> bool:
    """Whether a word that is said later contradicts: after "but", or as a sentence of its own.

    Not as the answer to a question.
    """
    before = plain[max(token.start() - 80, 0) : token.start()]
    sentence = re.split(r"[.!。\n]", before)[-1]
    if "?" in sentence:
        return False
    ends = _COMPLETE.match(plain, token.end()) is not None or not plain[token.end() :].strip()
    return ends and (_TAKEN_BACK.search(sentence) is not None or not sentence.strip(" *_\"'"))


def _last_word(plain: str) -> str:
    """Return the word of the last sentence where that is nothing but a verdict.

    Not of one that answers a question, which need not be the judge's, nor a label's.
    """
    text = plain.rstrip()
    found = _LAST_WORD.search(text, max(len(text) - _LAST_CHARS, text.rfind("\n") + 1, 0))
    found = found or _LAST_WORD.search(text, max(len(text) - _LAST_CHARS, 0))
    if found is None:
        return ""
    before = text[: found.start() + 1].rstrip()
    labelled_by = found[0].startswith(":") and text.rfind("\n") < found.start()
    if before.endswith("?") or labelled_by or denied(text, found["word"], found.end("word")):
        return ""
    return found["word"]


def _last_line(plain: str) -> tuple[str, int]:
    """Return the word of the last line that is nothing but a verdict, and where the line ends."""
    end = len(plain)
    for line in reversed(plain.split("\n")):
        mark = _LIST_MARK.match(line)
        words = ALNUM.findall(line, mark.end() if mark else 0)
        key = " ".join(words) if len(words) < 3 else ""
        key = "n/a" if key == "n a" else key
        if key in KIND:
            return key, end
        end -= len(line) + 1
    return "", -1


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
