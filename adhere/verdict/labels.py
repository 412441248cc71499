"""Labelled verdicts in a plain text: "Verdict: …", "The answer is …", "结论：…"."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from adhere.verdict.quoting import OF_ANOTHER, Quotations
from adhere.verdict.words import (
    SURE_WORDS,
    TOKEN,
    WORDS,
    any_of,
    conditional,
    denied,
    ends_alone,
    is_inverted,
)

_DECISION = (
    r"verdict|conclusion|judge?ment|decision|determination|ruling"
    r"|结论|判断|判定|判决|裁决|裁定|评判|评定|最终"
)
_FINDING = (
    r"answer|result|assessment|evaluation|outcome|答案|结果|评估|评价|评测|回答|答(?=[ \t]?:)"
)


def _nouns(names: str) -> str:
    latin = "|".join(name for name in names.split("|") if name.isascii() and name[0] != "答")
    chinese = "|".join(name for name in names.split("|") if not name.isascii())
    return rf"(?<![0-9a-z])(?:{latin})(?![0-9a-z])|{chinese}"


DECISION: Final = re.compile(_nouns(_DECISION) + r"|(?<![0-9a-z])(?:overall|final)(?![0-9a-z])")
FINDING: Final = re.compile(_nouns(_FINDING))
_PREDICATES = (
    r"(?<![0-9a-z])(?<!not[ _-])(?<!non[ _-])(?:satisf(?:ied|ies|y)|compl(?:iant|iance|ies|y)"
    r"|follow(?:s|ed)?|meets?|met|fulfill?(?:s|ed)?|adheres?|pass(?:es|ed)?|overall|final)"
    r"(?![0-9a-z])"
)
PREDICATE: Final = re.compile(_PREDICATES)
NOUNS: Final = f"{_nouns(_DECISION)}|{_nouns(_FINDING)}"
_LABEL = re.compile(rf"(?P<noun>{NOUNS})|(?P<whether>是否)|{_PREDICATES}")
_FILLER = r"[^\n.:;!?=,。]{0,40}?"
# "would be" begins a condition, and "不是" denies.
_COPULA = r"\b(?:is|was)\b|(?<!would )(?<!could )(?<!might )\bbe\b|(?<!不)是(?!否)|为"
_VALUE = rf"\W{{0,20}}(?P<word>{any_of(WORDS)})"
_AFTER_NOUN = re.compile(
    rf"(?:{_FILLER}(?:(?P<mark>[:=>→?】])|{_COPULA})|[^\w\n]{{0,6}}(?P<dash>[-–—|]{{1,3}})){_VALUE}"
)
_AFTER_PREDICATE = re.compile(rf"{_FILLER}(?P<mark>[:=]){_VALUE}")
_BOUNDARIES = "\n.!?;。;"
_THEREFORE = re.compile(
    r"(?:\b(?:so|therefore|thus|hence|overall|finally|ultimately)\b|因此|所以|综上)[, ]{0,3}"
    r"(?:(?:the|my|final|overall)[ \t]{1,3}){0,3}\W{0,6}\Z"
)
# "Since not all of them are met, the answer is NO".
_SINCE = re.compile(
    r"(?:\A|[\n.!?。])\W{0,4}(?:since|because|as|given)\b[^\n.!?。:;]{1,110},\W{0,4}"
    r"(?:(?:the|my|final|overall)[ \t]{1,3}){0,3}\W{0,6}\Z"
)
# What may stand between a label and its mark without making it about one thing only.
_PLAIN_FILLER = re.compile(
    r"(?:[^\w]|\d|\b(?:for|on|regarding|about) (?:this|the|the whole) (?:response|reply)\b"
    r"|\b(?:regarding|about|for|of|to|on|the|this|that|is|was|item|constraint|question|rule|here|final"
    r"|overall|my|and|number|no|therefore|thus|so|must|be)\b|结果|结论|答案|该|此|最终|要求|约束|的|是|为|应)*"
)
_MOST_BEFORE = 40
# What may stand between the beginning of a sentence and its label.
_PLAIN_LEAD = re.compile(
    r"(?:[^\w]|\d|\b(?:the|my|final|overall|so|therefore|thus|hence|and|here|is|then|in|conclusion"
    r"|summary|as|a|revised|updated|corrected|new|on|second|thought|reflection|step|constraint|item"
    r"|rule|for|this|answer|verdict|result|judge?ment|satisfied|it|compliance|no|wait|actually)\b"
    r"|[\u4e00-\u9fff])*"
)
# In a sentence with these a label is the last word on the whole, whatever others said before.
_FINAL = re.compile(
    r"\b(?:final|overall|so|therefore|thus|hence|conclusion|summary|revised|updated|corrected|new"
    r"|correction|reflection|second thought|wait|actually)\b|最终|综上|总体|因此|所以"
)


class Labelled(NamedTuple):
    """One labelled word: where it ends, whether the label begins its sentence or is a JSON key,
    whether a mark such as a colon (rather than "is") joins them, whether the label speaks of one
    thing only (a predicate, a question, a key within a sentence) or of the whole, and whether the
    answer or verdict is another's."""

    word: str
    end: int
    leads: bool
    marked: bool
    partial: bool
    final: bool
    foreign: bool

    @property
    def sure(self) -> bool:
        """Whether its word means a verdict wherever it stands."""
        return self.word in SURE_WORDS


def labelled(plain: str, quotations: Quotations) -> Iterator[Labelled]:
    """Yield every labelled word that may be a verdict, in order."""
    for label in _LABEL.finditer(plain):
        pattern = _AFTER_PREDICATE if label["noun"] is None and label["whether"] is None else None
        value = (pattern or _AFTER_NOUN).match(plain, label.end())
        if value is None or not ends_alone(plain, value["word"], value.end()):
            continue
        between = plain[label.end() : value.start("word")]
        if is_inverted(between) or denied(plain, value["word"], value.end()):
            continue
        if _is_denied_above(plain, label.start()):
            continue
        quoted = quotations.around(label.start() - 1)
        if quoted is not None and quoted == quotations.around(value.end() - 1):
            continue
        marked = value["mark"] is not None or (pattern is None and value["dash"] is not None)
        asks = label["whether"] is not None or "是否" in between or "?" in between
        asks = asks or _PLAIN_FILLER.fullmatch(between) is None or _answers(plain, label)
        partial = asks or label["noun"] is None or _within(plain, label)
        leads = not asks and _leads(plain, label)
        begins = _sentence(plain, label.start())
        begins = begins if begins >= 0 else label.start() - _MOST_BEFORE
        final = _FINAL.search(plain, begins, value.end()) is not None
        foreign = label["noun"] is not None and OF_ANOTHER.search(plain, begins, label.start())
        yield Labelled(value["word"], value.end(), leads, marked, partial, final, bool(foreign))


def _is_denied_above(plain: str, start: int) -> bool:
    """Whether a condition or a negation leads to a label, which may begin a line of its own."""
    if conditional(plain, start):
        return True
    before = plain[max(start - 80, 0) : start]
    above = before.rstrip("\n")
    return above != before and denied(above, "", len(above))


def _answers(plain: str, label: re.Match[str]) -> bool:
    """Whether a finding follows a question on its line: it need not be the verdict."""
    if DECISION.fullmatch(label[0]):
        return False
    begins = _sentence(plain, label.start())
    return begins > 0 and plain[max(begins - 5, 0) : begins].rstrip(" ").endswith("?")


def _sentence(plain: str, place: int) -> int:
    """Return where the sentence of a place begins, or -1 where that is further away."""
    before = plain[max(place - _MOST_BEFORE, 0) : place]
    cut = max(map(before.rfind, _BOUNDARIES))
    return place - len(before) + cut + 1 if cut >= 0 or place <= _MOST_BEFORE else -1


def _within(plain: str, label: re.Match[str]) -> bool:
    """Whether a label is a key in braces that stand within a sentence."""
    line = plain[max(plain.rfind("\n", 0, label.start()), label.start() - 300, 0) : label.start()]
    before, brace, _ = line.partition("{")
    return bool(brace) and any(map(str.isalnum, before))


def _leads(plain: str, label: re.Match[str]) -> bool:
    """Whether a label begins its sentence, or is a key of JSON that begins a line."""
    start, end = label.span()
    if _within(plain, label):
        return False
    if plain[start - 1 : start] in ('"', "'") and plain[end : end + 3].lstrip("\\\"' ")[:1] == ":":
        return True
    if _THEREFORE.search(plain[max(start - _MOST_BEFORE, 0) : start]):
        return True
    if _SINCE.search(plain[max(start - 140, 0) : start]):
        return True
    begins = _sentence(plain, start)
    if begins < 0:
        return False
    sentence = plain[begins:start]
    # "NO, its title is satisfied: yes": what begins with a verdict goes on about one thing.
    if OF_ANOTHER.search(sentence) or TOKEN.search(sentence):
        return False
    return _PLAIN_LEAD.fullmatch(sentence) is not None
