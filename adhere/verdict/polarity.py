"""Whether a sentence says the opposite of the verdict word in it."""

import re
from typing import Final

_GOOD = (
    r"\b(?:satisf(?:y|ies|ied)|follow(?:s|ed)?|compl(?:y|ies|ied|iant)|adheres?|meets?|met|fulfill?s?"
    r"|fulfilled|conforms?)\b|满足|符合|遵守|遵循"
)
_BAD = (
    r"\b(?:violat(?:es?|ed|ions?|ing)|fail(?:s|ed|ing|ures?)?|breach(?:es|ed)?|breaks?|broken)\b"
    r"|\b(?:not allowed|forbidden|prohibited)\b|违反|违背|不符"
)
_JUDGED: Final = re.compile(rf"(?P<good>{_GOOD})|(?P<bad>{_BAD})")
_NEGATION = re.compile(
    r"(?:\b(?:not|no|never|without|nothing|none|neither|nor|cannot|fails? to|failed to)\b|n['’]t\b"
    r"|\bun|[不未无没]有?)[^.:;!?\n。;,，]{0,30}\Z"
)
ASKS_FOR_VERDICT: Final = re.compile(rf"(?:{_GOOD})[^.!?\n。]{{0,80}}\?[^\w\n]*\n?[^\w\n]*\Z")
"""The end of a question whose answer is the verdict: "Does it satisfy the constraint?"."""
# "NO (2/3 constraints met)".
_SHARE = re.compile(r"\([^()]{0,30}\d[ ]?(?:/|of|out of)[ ]?\d[^()]{0,60}\)")
_SENTENCE = re.compile(r"[^.:;!?\n。;]{0,160}")


def contradicts(plain: str, kind: str, end: int) -> bool:
    """Whether the sentence goes on with the opposite: "No, it doesn't violate the constraint".

    ``end`` is where the word of this ``kind`` ends.
    """
    return said_after(plain, end) == {"yes", "no"} - {kind}


def said_after(plain: str, place: int) -> set[str]:
    """Return the kinds that the rest of a sentence says in words of its own ("it is violated")."""
    rest = _SENTENCE.match(plain, place)
    assert rest is not None
    if plain[rest.end() : rest.end() + 1] == ":":
        return set()  # "NO - title satisfied: yes": a label
    sentence = _SHARE.sub("", rest[0])
    said = set()
    for judged in _JUDGED.finditer(sentence):
        good = judged["good"] is not None
        negated = _NEGATION.search(sentence[: judged.start()]) is not None
        said.add("yes" if good != negated else "no")
    return said
