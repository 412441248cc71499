"""Read a judge's text: thinking left out, JSON by its keys, the rest by the rules."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from adhere.plain_text import ZERO_WIDTH_SPACE
from adhere.thinking import final_answer
from adhere.verdict.clearing import plain, unquoted
from adhere.verdict.doubts import COMPLETE, speaks_against
from adhere.verdict.labels import NOUNS
from adhere.verdict.quoting import OF_ANOTHER, introduced, without_shown
from adhere.verdict.rules import NOTHING, UNDECIDED, Found, decide, decide_plainly
from adhere.verdict.structured import agreed, find_objects, verdict_of
from adhere.verdict.words import KIND, TOKEN, WORDS, any_of, denied, is_denied, stands_alone

# What may open a text that was cut off: a word, a label with one, or a key with one; not a block
# of code or quotation, nor an item of a list.
_BLOCK_OPENS = re.compile(r"\s*(?:```|~~~|>)")
_KEY_OPENS = re.compile(
    r"\W{0,40}\{\s{0,20}[\"'](?:final[ _-]?)?(?:verdict|decision|judge?ment|结论|判断)[\"']\s*:\s*"
    rf"[\"']?(?P<word>{any_of(WORDS)})"
)
_LABEL_OPENS = re.compile(
    rf"[^\w\n]{{0,40}}(?:(?:the|my|final|overall)[ \t]{{1,4}}){{0,3}}(?:{NOUNS})[^\w\n]{{0,20}}"
    rf"(?:\b(?:is|was)\b|为|是)?[^\w\n]{{0,20}}(?P<word>{any_of(WORDS)})"
)
# A sentence after the opening that takes it back, or says whose it was.
_TURNS = re.compile(
    r"\W{0,8}(?:wait|hmm|hm|actually|hold on|however|but"
    r"|that(?:['’]s| is) (?:what )?the response)\b"
)


class Reading(NamedTuple):
    """A verdict, None where there is none, and the rule that read it, "" where none did."""

    verdict: bool | None
    rule: str


def read(text: str, *, cut: bool = False) -> Reading:
    """Read a judge's text; ``cut`` says that its end is missing."""
    answer = final_answer(text, prompt="").text
    if cut:
        found = NOTHING if _BLOCK_OPENS.match(answer) else _free(answer, _opening)
    else:
        objects = find_objects(answer)
        found = _structured(answer, objects) if objects else _free(unquoted(answer), decide)
    return Reading({"yes": True, "no": False}.get(found.kind), found.rule)


def _structured(text: str, objects: list[tuple[Any, int, int]]) -> Found:
    """Read JSON and what is around it: an answer under test is often JSON, too.

    What is said after the last object counts for more than it. What is said plainly before it may
    not contradict it.
    """
    spans = [(start, end) for _, start, end in objects]
    before = unquoted(_without(text[: spans[-1][1]], spans))
    after = unquoted(text[spans[-1][1] :])
    # After "The response is" only a key that names a verdict can be the judge's.
    shown = OF_ANOTHER.search(before.lower()) is not None
    own = [value for value, start, _ in objects if not introduced(text[:start].lower())]
    kinds = [verdict_of(value, _kind_of, only_decisions=shown) for value in own]
    named = agreed([kind for kind in kinds if kind])
    if not any(map(str.isalnum, before + after)):
        return Found(named or UNDECIDED, "key")
    said = _free(after, decide_plainly)
    if said.kind:
        return said
    if not named:
        return _free(before + "\n" + after, decide)
    others = {_free(before, decide_plainly).kind, _free(after, decide).kind} - {"", named}
    against = any(
        speaks_against(part.lower(), 0, named) for part in (before.strip(), after.strip())
    )
    return Found(UNDECIDED if others or against else named, "key")


def _kind_of(text: str) -> str:
    return _free(text, decide).kind


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """Return a text without some stretches of it."""
    kept, position = list[str](), 0
    for start, end in spans:
        kept.append(text[position:start])
        position = end
    return "\n".join([*kept, text[position:]])


def _free(text: str, decide: Callable[[str], Found]) -> Found:
    # A zero-width space may stand inside a word or between two; joined words come first.
    for space in ("", " ") if ZERO_WIDTH_SPACE in text else ("",):
        found = decide(without_shown(plain(text, space)))
        if found.kind:
            return found
    return NOTHING


def _opening(plain: str) -> Found:
    """Read a text whose end is missing: only what opens it, and is complete, is known to stay."""
    token = TOKEN.match(plain, len(plain) - len(plain.lstrip(" \t\n*_#")))
    if token and stands_alone(plain, token) and COMPLETE.match(plain, token.end()):
        doubted = is_denied(plain, token) or _TURNS.match(plain, token.end())
        return NOTHING if doubted else Found(KIND[token[0]], "opening")
    label = _LABEL_OPENS.match(plain) or _KEY_OPENS.match(plain)
    if label is None or not COMPLETE.match(plain, label.end("word")):
        return NOTHING
    word = label["word"]
    if _TURNS.match(plain, label.end("word")):
        return NOTHING
    return NOTHING if denied(plain, word, label.end("word")) else Found(KIND[word], "opening")
