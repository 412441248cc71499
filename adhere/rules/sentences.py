"""Split a text into sentences, with the segmenter of Wikimedia (sentencex).

Conventions, which the gold cases in ``tests/rules/`` fix:

- A sentence ends at ``.``, ``!``, ``?``, ``。``, ``！``, ``？`` and their like, with the quotes and
  brackets that close after them; not at the dot of an abbreviation, an initial, a decimal or a
  domain, nor inside quotation marks or brackets. A Chinese or Japanese ellipsis ends none:
  ``我想……算了。`` is one sentence. ``；`` and ``;`` end none.
- A quotation that a speaker follows stays with the speaker: ``“走吧。”他说。``,
  ``「行く。」と言った。`` and ``"Is it?" she asked.`` are one sentence each.
- A heading, a list item, a row of a table and a line of verse end with their line. A line that
  begins with a lower-case letter continues the one before it.
- Fenced code, dividers and what has neither letter nor digit hold no sentence.
"""

from functools import lru_cache

import regex
import sentencex

from adhere.rules.measure import is_divider, marker, prose_lines

_HEADING = regex.compile(r"\s{0,3}#{1,6}\s+|\s*>\s*")
_MARKUP = regex.compile(r"\*{1,3}|__|`")
_TABLE_LINE = regex.compile(r"\s*\|[\s|:-]*\|\s*")
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_HAN = regex.compile(r"[\p{Han}。！？]")
# Whole sentences in brackets, with more after them.
_ASIDE = regex.compile(r"[（(][^（）()]*[。．.！!？?…][）)](?=\s*+[^\s。，,.；;])")
_CONTENT = regex.compile(r"[\p{L}\p{N}]")
_CLOSED_QUOTE = regex.compile(r"[。．.！!？?…][”’」』\"'》]\s*$")
_CLOSES_FIRST = regex.compile(r"[”’」』）)\]】》]")
# How a sentence goes on after a quotation: と言った in Japanese, a short subject with a verb of
# speech in Chinese.
_GOES_ON = regex.compile(
    r"(?:と|って|という|との|、|，|,)|[^，。！？,.!?：:“「]{0,8}[说說问問道喊叫答嚷](?:道|着|著)?[，。！？：:,]"
)


@lru_cache(maxsize=64)
def sentences(text: str, language: str | None = None) -> tuple[str, ...]:
    """Return the sentences, without list markers and emphasis.

    ``language`` is a code of ISO 639-1, for the abbreviations; by default Japanese where there
    is kana, Chinese where there are other Chinese characters, English otherwise.
    """
    found: list[str] = []
    for line in _logical_lines(text):
        code = language or ("ja" if _KANA.search(line) else "zh" if _HAN.search(line) else "en")
        found.extend(
            _merged([part for piece in sentencex.segment(code, line) for part in _parts(piece)])
        )
    return tuple(found)


def _logical_lines(text: str) -> list[str]:
    """Return the lines as sentences see them: markup gone, wrapped lines joined."""
    found: list[str] = []
    continues = False
    for line in prose_lines(text):
        mark = marker(line)
        heading = _HEADING.match(line)
        plain = _MARKUP.sub("", line[len(heading.group() if heading else mark) :]).strip()
        if not plain or is_divider(line) or _TABLE_LINE.fullmatch(line):
            continues = False
            continue
        if continues and not mark and not heading and plain[0].islower():
            found[-1] += f" {plain}"
        else:
            found.append(plain)
        continues = not heading
    return found


def _parts(piece: str) -> list[str]:
    """Take sentences in brackets apart from the sentence that follows them."""
    aside = _ASIDE.match(piece.strip())
    return [aside.group(), piece.strip()[aside.end() :]] if aside else [piece]


def _merged(pieces: list[str]) -> list[str]:
    """Put together what the segmenter cut too often."""
    found: list[str] = []
    for piece in pieces:
        start = piece.lstrip()
        if found and (
            not _CONTENT.search(piece)
            or _CLOSES_FIRST.match(start)
            or (_CLOSED_QUOTE.search(found[-1]) and _GOES_ON.match(start))
        ):
            found[-1] += piece
        else:
            found.append(piece)
    return [sentence.strip() for sentence in found if _CONTENT.search(sentence)]
