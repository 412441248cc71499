"""Count what a text is made of: characters, words, lines, paragraphs, list items.

Conventions, which the gold cases in ``tests/rules/`` fix:

- A character is what a reader sees as one (a grapheme cluster). Spaces and line breaks count
  unless they are left out.
- A word is a run of letters and digits, held together by what stands inside words: ``don't``,
  ``well-known``, ``3.14``, ``1,000``, ``example.com``, ``snake_case``; a URL is one word. In
  Chinese and Japanese, which write no spaces, every character (Han, kana) is one word, as word
  processors count; Korean is counted by its spaces. Punctuation and emoji are no words. Thai, Lao,
  Khmer and Burmese, which write no spaces either, are counted by runs, which is too few.
- A paragraph is what blank lines separate; dividers (``---``, ``***``) and nothing else are none.
- A list item is a line that begins with a bullet or a number. Lines in fenced code are no list.

Linear time in the length of the text.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal

import regex

ListKind = Literal["any", "bulleted", "numbered"]

_WIDE = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc\uff70"
_LETTER = rf"[\p{{L}}\p{{N}}\p{{M}}_--[{_WIDE}]]"
_WORD = regex.compile(
    rf"https?://[!-~]*[0-9A-Za-z/]|[{_WIDE}][\p{{M}}\uff9e\uff9f]*"
    rf"|{_LETTER}++(?:(?:['’.·-]|(?<=\p{{Nd}})[,:](?=\p{{Nd}})){_LETTER}++)*+",
    regex.V1,
)
_WIDE_CHARACTER = regex.compile(f"[{_WIDE}]")
_GRAPHEME = regex.compile(r"\X")
_BLANK_LINE = regex.compile(r"\n(?:[^\S\n]*\n)+")
_DIVIDER = regex.compile(
    r"\s*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,}|[—─]{2,})\s*"
)
_FENCE = regex.compile(r"[^\S\n]{0,3}(`{3,}|~{3,})")
_BULLET = regex.compile(
    r"\s*+(?:>\s*+)*+(?:[-*+–—][^\S\n]++|-(?=\p{L})|\*(?=[^\s*][^*]*$)"
    r"|[•·●○◦▪■□◆◇▶►‣・※★☆✓✔✅➤]\s*+)(?=\S)"
)
_HAN_NUMBER = "[一二三四五六七八九十百〇零]{1,4}"
_NUMBERED = regex.compile(
    r"\s*+(?:>\s*+)*+(?:\*\*)?(?:"
    r"\p{Nd}{1,3}(?:[.．](?!\p{Nd})|[)）、])"
    rf"|[(（](?:\p{{Nd}}{{1,3}}|{_HAN_NUMBER}|[a-zA-Z])[)）]|{_HAN_NUMBER}[、．.]"
    rf"|第{_HAN_NUMBER}[，、：:,]"
    r"|[\u2460-\u249b\u24eb-\u24ff\u2776-\u2793\u3220-\u3229\u3280-\u3289\u32b1-\u32bf]"
    r"|[a-zA-Z][.)][^\S\n])\s*+(?=\S)"
)


def fold(text: str) -> str:
    """Return ``text`` without case and width (NFKC, character by character), for comparisons."""
    # Whole-text NFKC takes quadratic time on long runs of combining marks.
    table = {ord(c): unicodedata.normalize("NFKC", c) for c in set(text) if not c.isascii()}
    return text.translate(table).casefold()


def characters(text: str, *, spaces: bool = True, punctuation: bool = True) -> list[str]:
    """Return what a reader sees as the characters of ``text``."""
    clusters: list[str] = _GRAPHEME.findall(text.strip())
    return [
        cluster
        for cluster in clusters
        if (spaces or not cluster.isspace())
        and (punctuation or unicodedata.category(cluster[0])[0] != "P")
    ]


def words(text: str) -> list[str]:
    """Return the words of ``text``."""
    return [match.group() for match in _WORD.finditer(text)]


def plain_words(text: str) -> list[str]:
    """Return the words without case and width, apostrophes straight."""
    return [fold(word).replace("’", "'") for word in words(text)]


def is_wide(word: str) -> bool:
    """Say whether a word is a single Chinese or Japanese character."""
    return _WIDE_CHARACTER.match(word) is not None


def lines(text: str) -> list[str]:
    """Return the lines that are not blank."""
    return [line for line in text.splitlines() if line.strip()]


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs: what blank lines separate, dividers left out."""
    return [
        part.strip()
        for part in _BLANK_LINE.split(text.replace("\u3000", " "))
        if part.strip() and not is_divider(part)
    ]


def is_divider(line: str) -> bool:
    """Say whether a line is a horizontal rule and nothing else."""
    return _DIVIDER.fullmatch(line) is not None


def fenced(text: str) -> Iterator[tuple[str, bool]]:
    """Yield every line, and whether it belongs to fenced code (the fences themselves do)."""
    fence = ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if fence:
            closes = match and match[1].startswith(fence) and not line.strip().strip(fence[0])
            yield line, True
            fence = "" if closes else fence
        else:
            fence = match[1] if match else ""
            yield line, bool(match)


def prose_lines(text: str) -> list[str]:
    """Return the lines outside fenced code."""
    return [line for line, in_code in fenced(text) if not in_code]


def marker(line: str, kind: ListKind = "any") -> str:
    """Return the bullet or number a line begins with, with the space around it, or ``""``."""
    if is_divider(line):
        return ""
    bullet = _BULLET.match(line) if kind != "numbered" else None
    match = bullet or (_NUMBERED.match(line) if kind != "bulleted" else None)
    return match.group() if match else ""


def list_items(text: str, kind: ListKind = "any") -> Sequence[str]:
    """Return the items of all lists, nested ones included, without their markers."""
    marked = ((line, marker(line, kind)) for line in prose_lines(text))
    return [line[len(mark) :].strip() for line, mark in marked if mark]
