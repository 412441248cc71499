"""What is said later against a verdict: doubts, retractions, and words of the other kind."""

import re
from typing import Final

from adhere.verdict.polarity import said_after
from adhere.verdict.questions import answers
from adhere.verdict.text import Text

COMPLETE: Final = re.compile(r"[\"'”*`)\]}]{0,4}[.!。\n]|[\"'”]")
"""What ends a sentence after its word."""

# After these a contrary word takes back what was said.
_TAKEN_BACK = re.compile(
    r"\b(?:actually|however|but|wait|correction|edit|instead|rather|reconsider\w*|although|sorry"
    r"|apologies|oops|i mean|i meant|chang(?:e|es|ed|ing)|switch\w*|revis\w*|amend\w*|updated?"
    r"|retract\w*|make that|should be|after re\w+|so (?:it['’]s|it is|the answer is))\b"
    r"|但|然而|不过|实际上|更正|抱歉|改为|应为"
)
CORRECTED: Final = re.compile(
    r"\b(?:corrected|changed|revised|updated) to[^\w\n]{0,4}(?P<word>yes|no)\b"
)
_NEXT_SENTENCE = re.compile(r"[^\w\n]*(?:[.!。\n][^\w]*)")
_SENTENCE = re.compile(r"[^.!?\n。]{0,200}")
_THE_CONSTRAINT = re.compile(
    r"\b(?:the|this|that) (?:constraint|requirement|instruction|rule|condition)s?\b|约束|要求"
)
_THEREFORE = re.compile(r"[^\w\n]*(?:therefore|thus|hence|so|actually|however|wait|upon \w+ \w+)\b")
DOUBTS: Final = re.compile(
    r"\bnot (?:entirely |quite )?sure\b|\bplease (?:provide|share|send|paste|give)\b|请提供"
    r"|\bhappy to help\b|\btake (?:that|it|this) back\b|\bi retract\b|\bon second thought\b"
    r"|\bi (?:was|am) (?:wrong|mistaken)\b|\bi made a mistake\b"
    r"|\b(?:cannot|can['’]t|unable to) (?:evaluate|assess|judge|determine|verify)\b"
)


def doubted(text: Text, end: int, kind: str) -> bool:
    """Whether what comes after a statement doubts it: "I'm not sure", "Therefore it fails"."""
    plain, last = text.plain, text.last_sentence()
    concluded = last > end and _THEREFORE.match(plain, last)
    if concluded and said_after(plain, concluded.end()) == {"yes", "no"} - {kind}:
        return True
    following = _NEXT_SENTENCE.match(plain, end)
    starts = {following.end() if following else end, max(last, end)}
    if any(speaks_against(plain, start, kind) for start in starts):
        return True
    return DOUBTS.search(plain, end) is not None


def speaks_against(plain: str, start: int, kind: str) -> bool:
    """Whether the sentence that begins at a place says of the constraint itself the opposite."""
    sentence = _SENTENCE.match(plain, start)
    assert sentence is not None
    about = _THE_CONSTRAINT.search(sentence[0]) and not _TAKEN_BACK.search(sentence[0])
    return bool(about) and said_after(plain, start) == {"yes", "no"} - {kind}


def takes_back(plain: str, token: re.Match[str]) -> bool:
    """Whether a word that is said later contradicts: after "but", or as a sentence of its own.

    Not as the answer to a question.
    """
    before = plain[max(token.start() - 80, 0) : token.start()]
    sentence = re.split(r"[.!。\n]", before)[-1]
    if "?" in sentence or (not sentence.strip() and answers(plain, token.start())):
        return False
    following = plain[token.end() : token.end() + 20]
    ends = COMPLETE.match(following) is not None or not following.strip(" )]\"'*_`）")
    return ends and (_TAKEN_BACK.search(sentence) is not None or not sentence.strip(" *_\"'"))
