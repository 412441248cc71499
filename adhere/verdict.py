"""Read YES or NO out of a judge's text.

The parser ``adhere`` removes thinking and markup and then takes the first of these that decides:

1. the last line that is nothing but a verdict;
2. the last labelled verdict ("Verdict: …", "The answer is …", ``"verdict": …``, "结论：…");
3. the first token of the text, standing alone;
4. the only kind of verdict word that occurs.

Otherwise there is no verdict. yes/no, true/false, 是/否/不是 count everywhere; words that mean
something else within a sentence (y/n, pass/fail, 对/错, 满足/不满足 and the like) only in 1 and 2,
where "not applicable" counts too and means that there is none. A word does not stand alone

- beside a slash or inside a longer word or name (YES/NO, no-one, NOTE, 是否);
- in a list of the options ("YES or NO", 是/否), which is taken out beforehand;
- as "No." before a number, or as the determiner or adjective of the next word ("no emojis",
  "true story"): such a sentence may well mean the opposite;
- as a boolean under a JSON key that does not name a verdict ({"has_errors": true}) or in an
  assignment (debug=true).
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

from adhere.errors import ConfigError
from adhere.plain_text import ZERO_WIDTH_SPACE, plain_text
from adhere.thinking import final_answer

_KINDS = {
    "yes": ("yes", "true", "是", "是的"),
    "no": ("no", "false", "否", "不是", "不是的"),
}
_SHORT_KINDS = {
    "yes": ("y", "pass", "passed", "correct", "对", "对的", "正确", "真", "通过"),
    "no": ("n", "fail", "failed", "incorrect", "不对", "错", "错误", "不正确", "假", "不通过"),
    "none": ("n/a", "na", "not applicable", "不适用"),
}
_CHINESE_YES = ("满足", "符合", "遵循", "遵守")
_CHINESE_OBJECTS = ("", "要求", "条件", "约束", "规则", "标准", "该要求", "该约束")


def _kinds() -> dict[str, str]:
    words = {w: kind for table in (_KINDS, _SHORT_KINDS) for kind in table for w in table[kind]}
    for verb in _CHINESE_YES:
        for thing in _CHINESE_OBJECTS:
            words |= {verb + thing: "yes", f"不{verb}{thing}": "no", f"未{verb}{thing}": "no"}
    return words


# Judges that keep to their protocol say the same few words thousands of times.
_REMEMBERED_CHARS = 64

_KIND = _kinds()
_WORDS = frozenset(_KIND)
_MASK = "\x00"  # plain_text leaves no control character, so this one is free
_LETTER = r"0-9a-z_\u00c0-\u1fff"


def _any_of(words: frozenset[str] | tuple[str, ...]) -> str:
    """Return a pattern for whole words; those of Chinese end only at a non-word character."""
    ordered = sorted(words, key=len, reverse=True)
    latin = "|".join(word for word in ordered if word.isascii())
    chinese = "|".join(word for word in ordered if not word.isascii())
    return rf"(?:(?<![{_LETTER}])(?:{latin})(?![{_LETTER}])|(?:{chinese})(?!\w))"


_TOKEN = re.compile(_any_of(_KINDS["yes"] + _KINDS["no"]))
_ALNUM = re.compile(r"[^\W_]+")
_LIST_MARK = re.compile(rf"[^\w{_MASK}]*(?:\d{{1,3}}[.)、][^\w{_MASK}]*)?")

_OPTION = "|".join(sorted(_WORDS, key=len, reverse=True))
_AROUND = r"[\s\"'“”‘’*`]{0,4}"
_BETWEEN = rf"{_AROUND}(?:[/\\|、&]|\b(?:or|and|vs|versus)\b|或者|或|还是|和|与){_AROUND}"
_ONE_OPTION = re.compile(rf"(?<![{_LETTER}])(?:{_OPTION})(?![{_LETTER}])")
_OPTIONS = re.compile(
    rf"(?<![{_LETTER}])(?:{_OPTION})(?:{_BETWEEN}(?:{_OPTION})){{1,6}}(?![{_LETTER}])"
    r"|(?:yes[ \t]{1,3}no|no[ \t]{1,3}yes)(?=\W{0,5}(?:\n|\Z))"
)
_JSON_BOOLEAN = re.compile(
    r"[\"'](?P<key>[\w .-]{1,60})[\"']\s{0,5}:\s{0,5}[\"']?(?:true|false)[\"']?"
    r"(?=\s{0,5}[,}\]]|\W{0,5}(?:\n|\Z))"
)

_NOUNS = (
    r"(?<![0-9a-z])(?:verdict|answer|result|conclusion|judge?ment|decision|determination"
    r"|assessment|evaluation|ruling|outcome)(?![0-9a-z])"
    r"|结论|答案|判断|判定|判决|裁决|裁定|结果|评判|评定|评估|评价|评测|回答|最终"
    r"|答(?=[ \t]?:)|是否"
)
_PREDICATES = (
    r"(?<![0-9a-z])(?<!not[ _-])(?<!non[ _-])(?:satisf(?:ied|ies|y)|compl(?:iant|iance|ies|y)"
    r"|follow(?:s|ed)?|meets?|met|fulfill?(?:s|ed)?|adheres?|pass(?:es|ed)?|overall|final)"
    r"(?![0-9a-z])"
)
_LABEL = re.compile(rf"(?P<noun>{_NOUNS})|{_PREDICATES}")
_FILLER = r"[^\n.:;!?=,。]{0,40}?"
_COPULA = r"\b(?:is|was|be)\b|(?<!不)是(?!否)|为"
_VALUE = rf"\W{{0,20}}(?P<word>{_any_of(_WORDS)})"
_AFTER_NOUN = re.compile(rf"(?:{_FILLER}(?:[:=>→?]|{_COPULA})|[^\w\n]{{0,6}}[-–—|]{{1,3}}){_VALUE}")
_AFTER_PREDICATE = re.compile(rf"{_FILLER}[:=]{_VALUE}")

_BESIDE_BEFORE = re.compile(r"(?:/[ \t]{0,2}|[0-9a-z][-‐‑'’]|=[ \t]?)\Z")
_BESIDE_AFTER = re.compile(r"[ \t]{0,2}/|[-‐‑'’][0-9a-z]|[ \t]{0,2}=(?!>)")
_NUMBER_FOLLOWS = re.compile(r"[ \t]{0,3}(?:\.[ \t]{0,3})?#?\d")
_WORD_FOLLOWS = re.compile(r"[ \t]{1,8}[\"'“‘«*`~]{0,4}(?P<next>[0-9a-z\u00c0-\u1fff]{1,30})")
_QUOTE_ENDS = re.compile(r"[\"'”’]")
# Words that begin a clause, so that the "no" before them is an answer and no determiner.
_CLAUSE = re.compile(
    r"a|according|although|an|and|are|as|based|because|both|but|cannot|did|does|due|each|every"
    r"|given|he|hence|here|however|i|is|it|its|my|our|overall|she|should|since|so|the|there"
    r"|therefore|these|they|this|those|though|thus|unfortunately|was|we|were|while|would|you|your"
)


def parse(text: str, parser: str = "adhere") -> bool | None:
    """Return the verdict of a judge's text: True for YES, False for NO, None where there is none.

    ``parser`` is a key of PARSERS. Raises ConfigError for another name; never for any text.
    """
    try:
        function = PARSERS[parser]
    except KeyError:
        allowed = ", ".join(PARSERS)
        raise ConfigError(f"parser: {parser!r} is not known; allowed: {allowed}") from None
    return _remembered(function, text) if len(text) <= _REMEMBERED_CHARS else function(text)


@lru_cache(maxsize=4096)
def _remembered(function: Callable[[str], bool | None], text: str) -> bool | None:
    return function(text)


def _adhere(text: str) -> bool | None:
    answer = final_answer(text, prompt="")
    kind = ""
    # A zero-width space may stand inside a word or between two; joined words come first.
    for space in ("", " ") if ZERO_WIDTH_SPACE in answer.text else ("",):
        plain = _OPTIONS.sub(_mask_options, plain_text(answer.text, _WORDS, space))
        plain = _JSON_BOOLEAN.sub(_mask_boolean, plain)
        rules = (_last_line, _last_label, _first_token, _only_kind)
        kind = kind or next((found for rule in rules if (found := rule(plain))), "")
    return {"yes": True, "no": False}.get(kind)


def _mask_options(match: re.Match[str]) -> str:
    kinds = {_KIND[word] for word in _ONE_OPTION.findall(match[0])}
    return _MASK if len(kinds) > 1 else match[0]


def _mask_boolean(match: re.Match[str]) -> str:
    return match[0] if _LABEL.search(match["key"]) else _MASK


def _last_line(plain: str) -> str:
    for line in reversed(plain.split("\n")):
        mark = _LIST_MARK.match(line)
        words = _ALNUM.findall(line, mark.end() if mark else 0)
        key = " ".join(words) if len(words) < 3 else ""
        kind = _KIND.get("n/a" if key == "n a" else key)
        if kind:
            return kind
    return ""


def _last_label(plain: str) -> str:
    kind = ""
    for label in _LABEL.finditer(plain):
        value = (_AFTER_NOUN if label["noun"] else _AFTER_PREDICATE).match(plain, label.end())
        if value and _ends_alone(plain, value["word"], value.end()):
            kind = _KIND[value["word"]]
    return kind


def _first_token(plain: str) -> str:
    start = _LIST_MARK.match(plain)
    token = _TOKEN.match(plain, start.end() if start else 0)
    if token is None or not _stands_alone(plain, token):
        return ""
    quoted = _QUOTE_ENDS.match(plain, token.end())
    # '"Yes" is its first word': the word is talked about.
    return "" if quoted and _WORD_FOLLOWS.match(plain, quoted.end()) else _KIND[token[0]]


def _only_kind(plain: str) -> str:
    kinds = {_KIND[t[0]] for t in _TOKEN.finditer(plain) if _stands_alone(plain, t)}
    return kinds.pop() if len(kinds) == 1 else ""


def _stands_alone(plain: str, token: re.Match[str]) -> bool:
    before = plain[max(token.start() - 3, 0) : token.start()]
    # Chinese has no blanks: there a word stands alone only between other characters.
    inside = not token[0].isascii() and _ALNUM.search(before[-1:]) is not None
    beside = inside or _BESIDE_BEFORE.search(before)
    return not beside and _ends_alone(plain, token[0], token.end())


def _ends_alone(plain: str, word: str, end: int) -> bool:
    if _BESIDE_AFTER.match(plain, end) or (word == "no" and _NUMBER_FOLLOWS.match(plain, end)):
        return False
    following = None if word == "yes" else _WORD_FOLLOWS.match(plain, end)
    return following is None or _CLAUSE.fullmatch(following["next"]) is not None


def _upstream_2025(text: str) -> bool | None:
    """AgentIF's first scripts: "YES" anywhere in the text, otherwise "NO" anywhere."""
    return True if "YES" in text else False if "NO" in text else None


_WHOLE_WORD = re.compile(r"\b(?:YES|NO)\b")


def _nemo_0_7(text: str) -> bool | None:
    """NeMo Gym 0.7.0's AgentIF verifier: the only word of the last line, otherwise of the text."""
    text = _without_think_pairs(text)
    lines = [line for line in text.splitlines() if line.strip()]
    for scope in (*lines[-1:], text):
        words = set(_WHOLE_WORD.findall(scope))
        if len(words) == 1:
            return words == {"YES"}
    return None


def _without_think_pairs(text: str) -> str:
    """Drop each <think>…</think>; where there is no pair, all up to the first </think>."""
    kept, position = list[str](), 0
    while (start := text.find("<think>", position)) >= 0:
        end = text.find("</think>", start)
        if end < 0:
            break
        kept.append(text[position:start])
        position = end + len("</think>")
    if position:
        return "".join(kept) + text[position:]
    before, closer, after = text.partition("</think>")
    return after if closer else before


PARSERS: Mapping[str, Callable[[str], bool | None]] = MappingProxyType(
    {"adhere": _adhere, "upstream-2025": _upstream_2025, "nemo-0.7": _nemo_0_7}
)
