"""The words of a verdict, and when one of them stands for a verdict.

Words are *sure* (yes/no, 是/否/不是) or mean something else within a sentence: true/false, and the
likes of y/n, pass/fail, correct/incorrect, 对/错, 满足/不满足. What a sure word says is never
overruled by one that is not.
"""

import re
from typing import Final

SURE: Final = {
    "yes": ("yes", "是", "是的"),
    "no": ("no", "否", "不是", "不是的"),
}
_TRUTH: Final = {"yes": ("true",), "no": ("false",)}
_SHORT: Final = {
    "yes": (
        "y", "pass", "passed", "correct", "satisfied", "compliant", "followed", "met",
        "对", "对的", "正确", "真", "通过",
    ),
    "no": (
        "n", "fail", "failed", "incorrect", "not satisfied", "violated", "non-compliant",
        "noncompliant", "non compliant", "not compliant", "not followed", "not met",
        "不对", "错", "错误", "不正确", "假", "不通过",
    ),
    "none": ("n/a", "na", "not applicable", "不适用"),
}  # fmt: skip
_CHINESE_YES: Final = ("满足", "符合", "遵循", "遵守")
_CHINESE_OBJECTS: Final = ("", "要求", "条件", "约束", "规则", "标准", "该要求", "该约束")


def _kinds() -> dict[str, str]:
    tables = (SURE, _TRUTH, _SHORT)
    words = {w: kind for table in tables for kind in table for w in table[kind]}
    for verb in _CHINESE_YES:
        for thing in _CHINESE_OBJECTS:
            words |= {verb + thing: "yes", f"不{verb}{thing}": "no", f"未{verb}{thing}": "no"}
    return words


KIND: Final = _kinds()
"""Every word with what it says: yes, no, or none (that there is no verdict)."""
WORDS: Final = frozenset(KIND)
SURE_WORDS: Final = frozenset(word for words in SURE.values() for word in words)
LETTER: Final = r"0-9a-z_\u00c0-\u1fff"


def any_of(words: frozenset[str] | tuple[str, ...]) -> str:
    """Return a pattern for whole words; those of Chinese end only at a non-word character."""
    ordered = sorted(words, key=len, reverse=True)
    latin = "|".join(word for word in ordered if word.isascii())
    chinese = "|".join(word for word in ordered if not word.isascii())
    return rf"(?:(?<![{LETTER}])(?:{latin})(?![{LETTER}])|(?:{chinese})(?!\w))"


TOKEN: Final = re.compile(any_of(SURE["yes"] + SURE["no"] + _TRUTH["yes"] + _TRUTH["no"]))
ALNUM: Final = re.compile(r"[^\W_]+")

_BESIDE_BEFORE = re.compile(r"(?:/[ \t]{0,2}|[0-9a-z][-‐‑'’]|=[ \t]?)\Z")
_BESIDE_AFTER = re.compile(
    r"[ \t]{0,2}(?:/|(?:->|→)[^\w\n]{0,4}(?:yes|no|是|否)\b)|[-‐‑'’][0-9a-z]|[ \t]{0,2}=(?!>)"
)
# 是“…” is "is …", and no verdict.
_COPULA_FOLLOWS = re.compile(r"[“「『‘]")
_CELL_ENDS = re.compile(
    r"\.[ \t*]{0,4}\||[ \t*]{0,4}\|[^\n]{0,200}\|[ \t]{0,4}\n[ \t]{0,4}\|[ \t]{0,4}:?--"
)
_NUMBER_FOLLOWS = re.compile(r"[ \t]{0,3}(?:\.[ \t]{0,3})?#?\d")
_WORD_FOLLOWS = re.compile(r"[ \t]{1,8}[\"'“‘«*`~]{0,4}(?P<next>[0-9a-z\u00c0-\u1fff]{1,30})")
# Words that begin a clause, so that the "no" before them is an answer and no determiner.
_CLAUSE = re.compile(
    r"a|according|although|an|and|are|as|based|because|both|but|cannot|did|does|due|each|every"
    r"|given|he|hence|here|however|i|is|it|its|my|our|overall|she|should|since|so|the|there"
    r"|therefore|these|they|this|those|though|thus|unfortunately|was|we|were|while|would|you|your"
    r"|explanation|instead|justification|over|rather|reason|reasoning"
)
# A negation, doubt or condition in the same clause before a word, and one right after it.
_DENIED = re.compile(
    r"(?:\b(?:not|never|cannot|neither|nor|hardly|without|impossible|unlikely|tempted|unless"
    r"|(?<!\bi )would|could|might|if|should)\b|n['’]t\b|(?<!\bi)['’]d\b|\bno way\b"
    r"|\b(?:earn|get|deserve|merit|warrant|justify|receive|require|need|be|for)s? an?\b"
    r"|不是|并非|不可|不能|不会|不应|不该|不认为|无法|没有)"
    r"(?:(?!\b(?:so|hence|therefore|thus)\b| [-–] )[^.;:!?\n。;,—–→(]){0,40}\Z"
    r"|\b(?:otherwise|else)\b,?[^\w\n]{0,4}(?:(?:output|answer|say|reply|respond|return|write)s?[^\w\n]{0,4})?\Z|否则\W{0,4}\Z"
)
_CONDITION = re.compile(
    r"(?:(?<!check )(?<!checked )(?<!checking )(?<!see )(?<!determine )(?<!verify )(?<!as )"
    r"\b(?:if|unless)\b[^.;:!?\n。;\"]{0,70}|(?:如果|只有|假如|要是)[^.;!?\n。;]{0,40})\Z"
)
_DENIED_AFTER = re.compile(
    r"[\"'”’*`]{0,3}[ \t]{1,3}(?:is not|isn['’]t|is never|would|could|cannot|can['’]t|only if|if"
    r"|unless|needs|requires|when|means?|stands for)\b"
)
_INVERTED = re.compile(
    r"(?<!\bno )(?<!without )(?<!没有)(?<!无)"
    r"(?:\bviolat(?:es?|ed|ions?)|\bfail(?:s|ed|ures?)?|\berrors?|\bissues?|\bproblems?"
    r"|\bmistakes?|\bmiss(?:es|ing)?\b|\blacks?|\bbr(?:eaks?|oken)|\bnot \w+|\bnon-?\w+"
    r"|\btoo \w+|\bforbidden|\bprohibited|\bunmet|\bexceed\w*"
    r"|违反|违背|不符|错误|违规|问题|缺少|缺失)"
    r"[^\n.!;,:?。；，]{0,40}[:?][ \t\"'*`“]{0,6}\Z"
)
# A statement about the response: "The response fails the constraint: NO".
_STATES = re.compile(r"(?:it|this|the|that|its|one|there)\b[^?]*\Z")


def stands_alone(plain: str, token: re.Match[str]) -> bool:
    """Whether a word of a plain text is said for itself, rather than as part of something else.

    It is not beside a slash or inside a longer word, as "No." before a number, or as the determiner
    or adjective of the next word.
    """
    start = token.start()
    before = plain[max(start - 3, 0) : start]
    # Chinese has no blanks: there a word stands alone only between other characters.
    inside = not token[0].isascii() and ALNUM.search(before[-1:]) is not None
    beside = inside or _BESIDE_BEFORE.search(before) or _is_column(plain, token)
    return not beside and ends_alone(plain, token[0], token.end())


def _is_column(plain: str, token: re.Match[str]) -> bool:
    """Whether a word is the first cell of a table's row, as in "| No. | Criterion |"."""
    if token[0] != "no" or _CELL_ENDS.match(plain, token.end()) is None:
        return False
    line = plain[max(token.start() - 10, 0) : token.start()].rpartition("\n")[2]
    return line.strip(" \t*") == "|"


def is_denied(plain: str, token: re.Match[str]) -> bool:
    """Whether a word does not mean what it says: it follows a negation or a condition ("not a yes",
    "to earn a yes"), answers what asks for the opposite ("violation: yes"), or asks ("Yes?")."""
    return _denied(plain, token[0], token.start(), token.end())


def denied(plain: str, word: str, end: int) -> bool:
    """The same of a word that ends at a place."""
    return _denied(plain, word, end - len(word), end)


def _denied(plain: str, word: str, start: int, end: int) -> bool:
    line = plain[max(start - 60, 0) : start].rpartition("\n")[2]
    if plain[end : end + 4].lstrip("*_\"'`")[:1] == "?":
        return True
    if _DENIED.search(line) or _DENIED_AFTER.match(plain, end) or conditional(plain, start):
        return True
    if not any(map(str.isalnum, line)):
        # The question stands on the line above: "Is it violated?\n**NO**".
        above = plain[max(start - 160, 0) : start].rstrip(" \t\n*_\"'`#>-")
        above = above.rpartition("\n")[2]
        line = above if above.endswith("?") else line
    if _INVERTED.search(line) is None:
        return False
    sentence = re.split(r"[.!;。]", line)[-1].strip()
    return not (word == "no" and _STATES.match(sentence))


def conditional(plain: str, place: int) -> bool:
    """Whether a place stands in the main clause of a condition ("if it had a title, …")."""
    before = plain[max(place - 80, 0) : place].rstrip("\n")
    return _CONDITION.search(before.rpartition("\n")[2]) is not None


def ends_alone(plain: str, word: str, end: int) -> bool:
    """Whether what follows a word leaves it a verdict."""
    if _BESIDE_AFTER.match(plain, end) or (word == "no" and _NUMBER_FOLLOWS.match(plain, end)):
        return False
    if not word.isascii() and _COPULA_FOLLOWS.match(plain, end):
        return False
    following = None if word == "yes" else _WORD_FOLLOWS.match(plain, end)
    return following is None or _CLAUSE.fullmatch(following["next"]) is not None


def may_be_meant(plain: str, token: re.Match[str]) -> bool:
    """Whether a word that does not stand alone may be a verdict all the same.

    As in "NO. 3 of 5 items hold", but not as a determiner ("no emojis") or inside a longer word.
    """
    end = token.end()
    if not token[0].isascii():
        return _WORD_FOLLOWS.match(plain, end) is not None
    return token[0] == "no" and _NUMBER_FOLLOWS.match(plain, end) is not None


def is_inverted(text: str) -> bool:
    """Whether a label asks for the opposite of a verdict (violation, has_errors, 是否违反)."""
    return _INVERTING.search(text) is not None


_INVERTING = re.compile(
    r"violat|fail|error|issue|problem|mistake|missing|broken|wrong|incorrect|concern|forbidden"
    r"|(?<![a-z])(?:not|non|un|in)[ _-]|违反|违背|不符|错误|问题|缺少|缺失|不满足"
)
