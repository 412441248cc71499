"""A judge's text with the verdict words that it says."""

import re
from typing import Final

from adhere.verdict.clearing import MASK
from adhere.verdict.labels import labelled
from adhere.verdict.polarity import ASKS_FOR_VERDICT
from adhere.verdict.quoting import OF_ANOTHER, Quotations
from adhere.verdict.words import (
    ALNUM,
    KIND,
    SURE_WORDS,
    TOKEN,
    is_denied,
    may_be_meant,
    stands_alone,
)

LIST_MARK: Final = re.compile(rf"[^\w{MASK}]*(?:\d{{1,3}}[.)、][^\w{MASK}]*)?")
_ASKED = re.compile(
    r"[^\w\n]*(?:is|are|does|do|did|has|have|was|were|can)\b(?![^?]*\bany\b)[^?]{0,40}"
    r"\b(?:response|reply|answer|text|assistant|ai|model|agent|output|it|constraint)\b"
)
_QUESTION = re.compile(r"[^\w\n]*[^.!?\n]{0,160}\?[^\w\n]*\n?[^\w\n]*")
# "The response only says yes".
_SAYS = re.compile(
    r"\b(?:says|said|writes|wrote|replies|replied|outputs|contains|includes|holds)"
    r"[^\w\n.:;!?]{1,3}(?:(?:only|simply|just|merely) )?\Z"
)
# "No emojis are used": a determiner, and no answer.
_DETERMINES = re.compile(r"[ \t]{1,4}[a-z]+[ \t]")


class Text:
    """A plain text, and the words in it that say a verdict: not those it quotes or denies.

    ``begins`` is where the first word of an answer would be: after a list mark, or after the
    question that asks for the verdict; ``restated`` says that another may be meant. ``tokens`` are
    words that stand alone and are meant, and ``sure`` those of them that are sure; ``mentioned``
    also has what the response is said to say.
    ``kinds`` and ``denied`` are the kinds of sure words that are meant, and that are denied.
    ``doubtful`` says that a word may have been meant though it was not read ("NO. 3 of 5 items
    hold", "not a yes").
    """

    def __init__(self, plain: str) -> None:
        """Find the words of a plain text."""
        self.plain = plain
        self.begins, self.restated = _begins(plain)
        self.quotations = Quotations(plain)
        alone, others = list[re.Match[str]](), list[re.Match[str]]()
        for token in TOKEN.finditer(plain):
            (alone if stands_alone(plain, token) else others).append(token)
        refused = {token.start() for token in alone if is_denied(plain, token)}
        meant = [token for token in alone if token.start() not in refused]
        self.mentioned = [t for t in meant if self.quotations.around(t.start()) is None]
        self.tokens = [token for token in meant if not self.is_quoted(token)]
        self.sure = [token for token in self.tokens if token[0] in SURE_WORDS]
        self.kinds = {KIND[token[0]] for token in self.sure}
        self.denied = {KIND[t[0]] for t in alone if t.start() in refused and t[0] in SURE_WORDS}
        self.labels = list(labelled(plain, self.quotations))
        self._unclear = {KIND[token[0]] for token in others if may_be_meant(plain, token)}
        first = TOKEN.match(plain, self.begins)
        self._opening = next(
            (t[0] for t in self.sure[:1] if first and t.span() == first.span()), ""
        )
        lost = first is not None and not stands_alone(plain, first)
        lost = lost and _DETERMINES.match(plain, first.end() if first else 0) is None
        self.doubtful = lost or (not self.sure and any(t[0] in SURE_WORDS for t in alone))

    def is_quoted(self, token: re.Match[str]) -> bool:
        """Whether a word is part of a quotation, or is talked about."""
        plain, span = self.plain, self.quotations.around(token.start())
        if span is None:
            return _SAYS.search(plain, max(token.start() - 30, 0), token.start()) is not None
        start, end = span
        if ALNUM.findall(plain[start:end]) != ALNUM.findall(token[0]):
            return True
        before = plain[max(plain.rfind("\n", 0, start) + 1, start - 80) : start]
        around = before + plain[start : end + 40].partition("\n")[0]
        return OF_ANOTHER.search(around) is not None

    def last_sentence(self) -> int:
        """Return where the last sentence begins."""
        text = self.plain.rstrip("\n \t.!?。;*_\"'`”’)")
        return max(map(text.rfind, ".!?。\n")) + 1

    def stated(self, before: int, *, marked: bool = False) -> set[str]:
        """Return the kinds that sure words say by themselves before a place.

        At the very beginning or with a label: one that leads its sentence or, if asked for, any
        with a mark.
        """
        labels = [label for label in self.labels if label.sure and label.end <= before]
        counted = [each for each in labels if each.leads or (marked and each.marked)]
        kinds = {KIND[label.word] for label in counted if not label.foreign}
        return kinds | ({KIND[self._opening]} if self._opening else set())

    def opposed(self, word: str) -> bool:
        """Whether a word that is not sure stands against sure ones, or where all is doubtful."""
        others = {"yes", "no"} - {KIND[word]}
        if word in SURE_WORDS or len(others) > 1:
            return False
        against = self._unclear | self.stated(len(self.plain))
        return self.doubtful or bool(against & others) or self.kinds == others


def _begins(plain: str) -> tuple[int, bool]:
    """Return where an answer begins, and whether after a question that is not plainly the judge's.

    Judges often begin with what they were asked; of several questions none need be it.
    """
    question = _QUESTION.match(plain)
    if question and ASKS_FOR_VERDICT.search(question[0]):
        return question.end(), False
    if question and _ASKED.match(question[0]) and "?" not in plain[question.end() :]:
        return question.end(), True
    mark = LIST_MARK.match(plain)
    return (mark.end() if mark else 0), False
