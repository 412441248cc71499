"""The language and the scripts of an answer, and the case of its letters.

The script decides where it can: kana is Japanese, Hangul Korean, Chinese characters alone Chinese.
Other text goes to py3langid, whose model is part of the package: the same text gives the same
language every time. Code, URLs and names in another script do not change the language of a text
they are a smaller part of.
"""

from functools import lru_cache
from typing import Annotated, Literal

import regex
from py3langid.langid import MODEL_FILE, LanguageIdentifier
from pydantic import AfterValidator, Field

from adhere.config.problems import nearest
from adhere.rules.arguments import Count, bounds, shown, within
from adhere.rules.measure import fenced, is_wide, words
from adhere.rules.registry import Outcome, example
from adhere.rules.text import rule

# The languages that are told apart, by their codes of ISO 639-1.
_CODES = """
    af ar be bg bn bs ca cs cy da de el en es et eu fa fi fr ga gl gu he hi hr hu hy id is it ja
    ka kk km kn ko lo lt lv mk ml mn mr ms mt my nb ne nl pa pl pt ro ru sk sl sq sr sv sw ta te
    th tl tr uk ur vi zh
"""
LANGUAGES = tuple(_CODES.split())
_SAME = {"no": "nb", "zh-cn": "zh", "zh-tw": "zh"}
_SCRIPTS = Literal[
    "Han", "Kana", "Hangul", "Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Thai"
]
# So many characters tell a language as well as more do.
_ENOUGH = 4000
_EMPHASIS = regex.compile(r"[*_`#>|]")


@lru_cache(maxsize=1)
def _identifier() -> LanguageIdentifier:
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages([code for code in LANGUAGES if code in identifier.labels])
    return identifier


def _known(code: str) -> str:
    code = _SAME.get(code.lower(), code.lower())
    if code not in LANGUAGES:
        raise ValueError(
            f"not a language that is told apart{nearest(code, LANGUAGES)}; they are "
            + " ".join(LANGUAGES)
        )
    return code


@lru_cache(maxsize=64)
def detect(text: str) -> str | None:
    """Return the language of a text by its code, None where it has no words."""
    lines = [line for line, in_code in fenced(text) if not in_code]
    prose = _EMPHASIS.sub(" ", "\n".join(lines) if any(lines) else text)
    found = [w for w in words(prose) if regex.search(r"\p{L}", w) and not w.startswith("http")]
    wide = [word for word in found if is_wide(word)]
    hangul = sum(1 for word in found if regex.match(r"\p{Hangul}", word))
    if not found:
        return None
    if hangul > len(found) / 2:
        return "ko"
    if len(wide) > len(found) / 2:
        kana = sum(1 for word in wide if not regex.match(r"\p{Han}", word))
        # Chinese text may quote a Japanese word.
        return "ja" if kana > len(wide) / 4 else "zh"
    others = " ".join(word for word in found if not is_wide(word))
    return str(_identifier().classify(others[:_ENOUGH])[0])


@rule(
    "language",
    passes=[
        example("The meeting is at noon and everybody comes.", language="en"),
        example("会议在中午开始，请用 Zoom 参加。", language="zh"),
        example("会議は正午に始まります。", language="ja"),
        example("La réunion commence à midi, tout le monde vient.", language="fr"),
    ],
    fails=[
        example("The meeting is at noon and everybody comes.", language="de"),
        example("会议在中午开始。", language="ja"),
        example("会议在中午开始。", language="en"),
        example("42", language="en"),
    ],
)
def language(text: str, language: Annotated[str, AfterValidator(_known)]) -> Outcome:
    """The answer is written in this language (its code of ISO 639-1)."""
    found = detect(text)
    return Outcome(found == language, f"the language is {found}" if found else "no words")


@rule(
    "script",
    passes=[
        example("Plain text.", without=["Han", "Kana"]),
        example("纯中文，100%。", only=["Han"]),
    ],
    fails=[
        example("Some 中文 here.", without=["Han"]),
        example("用 Python 写。", only=["Han"]),
    ],
    valid=lambda args: _one_of_both(args["only"], args["without"]),
)
def script(
    text: str,
    only: Annotated[list[_SCRIPTS], Field(min_length=1)] | None = None,
    without: Annotated[list[_SCRIPTS], Field(min_length=1)] | None = None,
) -> Outcome:
    """The letters belong to no other scripts than these, or to none of these."""
    scripts = "".join(
        r"\p{Hiragana}\p{Katakana}ー" if name == "Kana" else rf"\p{{{name}}}"
        for name in only or without or ()
    )
    pattern = rf"[\p{{L}}--[{scripts}]]++" if only else f"[{scripts}]++"
    found = regex.search(pattern, text, regex.V1)
    return Outcome(found is None, f"found: {shown(found.group())}" if found else "no other letters")


def _one_of_both(only: object, without: object) -> None:
    if (only is None) == (without is None):
        raise ValueError("needs either `only` or `without`")


@rule(
    "all_capitals",
    passes=[example("ALL OF IT, 100%."), example("全部 OK")],
    fails=[example("All of it."), example("ALL OF it."), example("12 和 34")],
)
def all_capitals(text: str) -> Outcome:
    """All letters that have a case are capital, and there are some."""
    found = regex.search(r"\p{Ll}\w*", text)
    return Outcome(text.isupper(), f"found: {shown(found.group())}" if found else "no small letter")


@rule(
    "all_lowercase",
    passes=[example("all of it, 100%."), example("全部 ok")],
    fails=[example("All of it."), example("all OF it."), example("12 和 34")],
)
def all_lowercase(text: str) -> Outcome:
    """All letters that have a case are small, and there are some."""
    found = regex.search(r"\p{Lu}\w*", text)
    return Outcome(
        text.islower(), f"found: {shown(found.group())}" if found else "no capital letter"
    )


@rule(
    "capital_words",
    valid=bounds,
    passes=[example("NASA and ESA", min=2), example("A NASA plan", max=1, min_length=2)],
    fails=[example("Nasa and ESA", min=2), example("NASA, ESA", max=1)],
)
def capital_words(
    text: str, min: Count | None = None, max: Count | None = None, min_length: Count = 1
) -> Outcome:
    """The number of words in capital letters alone, of at least `min_length` characters."""
    found = [word for word in words(text) if word.isupper() and len(word) >= min_length]
    return within(len(found), "capital word", min, max)
