"""Labelled verdicts in a plain text: "Verdict: …", "The answer is …", "结论：…"."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from adhere.code_regions import Regions
from adhere.verdict.words import SURE_WORDS, TOKEN, WORDS, any_of, denied, ends_alone, is_inverted

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
    rf"(?:{_FILLER}(?:(?P<mark>[:=>→?])|{_COPULA})|[^\w\n]{{0,6}}(?P<dash>[-–—|]{{1,3}})){_VALUE}"
)
_AFTER_PREDICATE = re.compile(rf"{_FILLER}(?P<mark>[:=]){_VALUE}")
_BOUNDARIES = "\n.!?;。;"
# Whose answer or verdict it is: what the label says is then not the judge's.
_OF_ANOTHER = re.compile(
    r"\b(?:response|reply|output|model|assistant|agent|text|user|says?|states?|writes?|claims?"
    r"|ends?|expected|required|reference|previous|example)\b|回复|模型|输出|用户|参考|预期|示例"
)
_THEREFORE = re.compile(
    r"(?:\b(?:so|therefore|thus|hence|overall|finally|ultimately)\b|因此|所以|综上)[, ]{0,3}"
    r"(?:(?:the|my|final|overall)[ \t]{1,3}){0,3}\W{0,6}\Z"
)
# What may stand between a label and its mark without making it about one thing only.
_PLAIN_FILLER = re.compile(
    r"(?:[^\w]|\d|\b(?:for|of|to|on|the|this|that|is|was|item|constraint|question|rule|here|final"
    r"|overall|my|and|number|no|therefore|thus|so|must|be)\b|结果|结论|答案|该|此|最终|要求|约束|的|是|为|应)*"
)
_MOST_BEFORE = 40
_QUOTED = re.compile(
    r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|「[^」\n]{1,300}」|『[^』\n]{1,300}』|`[^`\n]{1,300}`"
    r"|(?<![0-9a-z])['‘][^'’\n]{1,300}['’](?![0-9a-z])"
)


class Labelled(NamedTuple):
    """One labelled word: where it ends, whether the label begins its sentence or is a JSON key,
    whether a mark such as a colon (rather than "is") joins them, and whether the label speaks of
    one thing only (a predicate, a question, a key within a sentence)."""

    word: str
    end: int
    leads: bool
    marked: bool
    partial: bool

    @property
    def sure(self) -> bool:
        """Whether its word means a verdict wherever it stands."""
        return self.word in SURE_WORDS


def labelled(plain: str) -> Iterator[Labelled]:
    """Yield every labelled word that may be a verdict, in order."""
    quotations: Regions | None = None
    for label in _LABEL.finditer(plain):
        pattern = _AFTER_PREDICATE if label["noun"] is None and label["whether"] is None else None
        value = (pattern or _AFTER_NOUN).match(plain, label.end())
        if value is None or not ends_alone(plain, value["word"], value.end()):
            continue
        between = plain[label.end() : value.start("word")]
        if is_inverted(between) or denied(plain, value["word"], value.end()):
            continue
        if quotations is None:
            quotations = Regions(_quotations(plain))
        inside = quotations.containing(label.start() - 1)
        if inside is not None and inside == quotations.containing(value.end()):
            continue
        marked = value["mark"] is not None or (pattern is None and value["dash"] is not None)
        asks = label["whether"] is not None or "是否" in between or "?" in between
        asks = asks or _PLAIN_FILLER.fullmatch(between) is None
        partial = asks or label["noun"] is None or _within(plain, label)
        leads = not asks and _leads(plain, label)
        yield Labelled(value["word"], value.end(), leads, marked, partial)


def _quotations(plain: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of what is quoted within a line; a quoted line alone is no quotation."""
    position = 0
    while quoted := _QUOTED.search(plain, position):
        start = plain.rfind("\n", 0, quoted.start()) + 1
        end = plain.find("\n", quoted.end()) % (len(plain) + 1)
        around = plain[start : quoted.start()] + plain[quoted.end() : end]
        if any(map(str.isalnum, around)):
            yield quoted.span()
            position = quoted.end()
        else:
            # Marks around a whole line are emphasis; there may be quotations inside.
            position = quoted.start() + 1


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
    before = plain[max(start - _MOST_BEFORE, 0) : start]
    if _THEREFORE.search(before):
        return True
    cut = max(map(before.rfind, _BOUNDARIES))
    if cut < 0 and start > _MOST_BEFORE:
        return False
    sentence = before[cut + 1 :]
    # "NO, its title is satisfied: yes": what begins with a verdict goes on about one thing.
    return _OF_ANOTHER.search(sentence) is None and TOKEN.search(sentence) is None
