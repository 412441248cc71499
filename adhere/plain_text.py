"""Reduce a judge's text to lower-case plain text in which verdict words can be found.

Markup becomes punctuation or line breaks, so that it separates words as it does on a screen.
Emphasis marks stay: they are punctuation already. Linear time; never raises.
"""

import re
import unicodedata
from functools import lru_cache

ZERO_WIDTH_SPACE = "\u200b"
# The label that verdict-like elements and \boxed{} turn into.
LABEL = "\nverdict:\n"

_LABEL_ELEMENTS = re.compile(
    r"(?:final[_-]?)?(?:verdict|answer|result|conclusion|judge?ment|decision)|final"
)
_INLINE = re.compile(r"a|b|code|del|em|font|ins?|kbd|mark|small|span|strong|su[bp]|s|tt|u|i")
_BLOCK = re.compile(
    r"article|blockquote|body|br|center|details|div|footer|h[1-6r]|header|html|li|main|ol|p|pre"
    r"|section|summary|table|tbody|td|tfoot|th|thead|tr|ul"
)
_ELEMENT = re.compile(
    r"<(?P<slash>/?)(?P<name>[a-z][a-z0-9_:-]{0,30})(?P<attributes>\s[^<>]{0,200})?/?>"
)
_BOXED = re.compile(r"\\(?:boxed|fbox)[ \t]?\{")
_MACRO = re.compile(r"\\[a-z]{1,12}[ \t]?\{")
_FENCE = re.compile(r"^[ \t>]{0,12}(?:`{3,}|~{3,})[ \t]?(?P<info>[a-z0-9_+.-]{0,20})[ \t]*$", re.M)
_UNDERSCORES = re.compile(r"_+")
_EMPHASIS_IN_WORD = re.compile(r"(?<=[a-z])[*`~]{1,3}(?=[a-z])")


def plain_text(text: str, words: frozenset[str], space: str = "") -> str:
    """Return ``text`` folded (NFKC, character by character), lower-cased and without markup.

    ``words`` are kept where they look like markup (``<yes>``); ``space`` replaces zero-width
    spaces, which may stand inside a word or between two; other invisible characters go.
    """
    folded = _fold(text, space).lower()
    folded = _BOXED.sub(LABEL, folded)
    folded = _MACRO.sub("{", folded)
    folded = _ELEMENT.sub(lambda match: _element(match, words), folded)
    folded = _FENCE.sub(lambda match: match["info"] if match["info"] in words else "", folded)
    folded = _UNDERSCORES.sub(_underscores, folded)
    return _EMPHASIS_IN_WORD.sub("", folded)


def _fold(text: str, space: str) -> str:
    # Whole-text NFKC takes quadratic time on long runs of combining marks.
    table = {ord(character): _fold_character(character) for character in set(text)}
    table[ord(ZERO_WIDTH_SPACE)] = space
    return "\n".join(text.translate(table).splitlines())


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    if character.isascii():
        return character if character.isprintable() or character.isspace() else " "
    # Variation selectors and grapheme joiner are invisible, but not of category Cf.
    invisible = unicodedata.category(character) == "Cf" or character in "\u034f\ufe0e\ufe0f"
    return "" if invisible else unicodedata.normalize("NFKC", character)


def _element(match: re.Match[str], words: frozenset[str]) -> str:
    name, attributes = match["name"], match["attributes"] or ""
    if attributes.strip(" \t\n/") and "=" not in attributes:
        return match[0]  # "a <b and c> d" is no element
    if name in words:
        return "" if match["slash"] else f"*{name}*"
    if _INLINE.fullmatch(name):
        return "*"
    if match["slash"] or _BLOCK.fullmatch(name):
        return "\n"
    return LABEL if _LABEL_ELEMENTS.fullmatch(name) else f"\n{name}:\n"


def _underscores(match: re.Match[str]) -> str:
    """Keep underscores inside a name, turn those around words into emphasis."""
    text, start, end = match.string, match.start(), match.end()
    around = text[max(start - 1, 0) : start] + text[end : end + 1]
    return match[0] if len(around) == 2 and around.isascii() and around.isalnum() else "*"
