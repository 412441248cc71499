"""Marks within an answer: Markdown, tables, code, placeholders, postscripts, punctuation."""

from itertools import takewhile
from typing import Literal

import regex

from adhere.rules import measure
from adhere.rules.arguments import Count, Position, Words, bounds, shown, within
from adhere.rules.registry import Outcome, example
from adhere.rules.text import rule

_TITLE = regex.compile(r"<<[^\n<>]*[^\s<>][^\n<>]*>>|《《[^\n《》]*[^\s《》][^\n《》]*》》")
_HIGHLIGHT = regex.compile(r"(?<!\*)(\*{1,2})(?![\s*])[^*\n]*(?<![\s*])\1(?!\*)")
_PLACEHOLDER = regex.compile(r"\[[^\[\]\n]*[^\s\[\]][^\[\]\n]*\](?!\()|【[^【】\n]+】")
_HEADING = regex.compile(r"(#{1,6})[^\S\n]+\S")
_FENCE_INFO = regex.compile(r"\s{0,3}(?:`{3,}|~{3,})\s*([^\s`]*)")
_TABLE_RULE = regex.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")


@rule(
    "title",
    passes=[example("<<On Tea>>\nTea is hot."), example("《《论茶》》\n茶是热的。")],
    fails=[example("On Tea\nTea is hot."), example("<<>> Tea")],
)
def title(text: str) -> Outcome:
    """There is a title in double angular brackets, such as `<<On Tea>>`."""
    found = _TITLE.search(text)
    return Outcome(found is not None, f"found: {shown(found.group())}" if found else "no title")


@rule(
    "highlights",
    valid=bounds,
    passes=[example("A *very* **good** tea.", min=2), example("**重点**：喝茶。", min=1, max=1)],
    fails=[example("A *very* good tea.", min=2), example("* a list item\n* another", min=1)],
)
def highlights(text: str, min: Count | None = None, max: Count | None = None) -> Outcome:
    """The number of passages in Markdown emphasis, `*so*` or `**so**`."""
    return within(sum(1 for _ in _HIGHLIGHT.finditer(text)), "highlight", min, max)


@rule(
    "placeholders",
    valid=bounds,
    passes=[example("Dear [name], see [place].", min=2), example("【姓名】您好", min=1)],
    fails=[example("Dear [name].", min=2), example("See [the page](a.html) and [].", min=1)],
)
def placeholders(text: str, min: Count | None = None, max: Count | None = None) -> Outcome:
    """The number of placeholders in square brackets, such as `[address]`."""
    return within(sum(1 for _ in _PLACEHOLDER.finditer(text)), "placeholder", min, max)


@rule(
    "postscript",
    passes=[
        example("Bye.\n\nP.S. Bring tea.", marker="P.S."),
        example("再见。\n附言：带茶。", marker="附言"),
        example("Bye.\np. s. Bring tea.", marker="P.S."),
    ],
    fails=[
        example("Bye.", marker="P.S."),
        example("Bye.\nP.S.", marker="P.S."),
        example("A P.S. is a note.", marker="P.S."),
    ],
)
def postscript(text: str, marker: Words = "P.S.") -> Outcome:
    """A line begins with the marker of a postscript, and something follows it."""
    wanted = _tight(marker)
    found = [line for line in measure.lines(text) if _tight(line).startswith(wanted)]
    followed = any(regex.search(r"[\p{L}\p{N}]", _tight(line)[len(wanted) :]) for line in found)
    return Outcome(followed, f"found: {shown(found[0])}" if found else "no postscript")


def _tight(text: str) -> str:
    return "".join(measure.fold(text).split()).lstrip("*_#>")


@rule(
    "sections",
    valid=bounds,
    passes=[
        example("Section 1\nTea.\nSection 2\nCoffee.", marker="Section", min=2),
        example("**第一章** 茶\n**第二章** 咖啡", marker="第", min=2),
    ],
    fails=[
        example("Section 1\nTea.", marker="Section", min=2),
        example("This section, unlike section 2, is short.", marker="Section", min=1),
    ],
)
def sections(
    text: str, marker: Words, min: Count | None = None, max: Count | None = None
) -> Outcome:
    """The number of sections: lines that begin with the marker and a number."""
    number = r"\s*(?:\p{Nd}|[IVX]+\b|[一二三四五六七八九十])"
    start = regex.compile(
        r"[\s*#_>【\[]*" + regex.escape(marker.strip()) + number, regex.IGNORECASE
    )
    found = sum(1 for line in measure.lines(text) if start.match(line))
    return within(found, "section", min, max)


@rule(
    "headings",
    valid=bounds,
    passes=[example("# Tea\n## Green", min=2), example("## 绿茶\n好喝。", min=1, level=2)],
    fails=[example("Tea\n#tag", min=1), example("# Tea", min=1, level=2)],
)
def headings(
    text: str, min: Count | None = None, max: Count | None = None, level: Position | None = None
) -> Outcome:
    """The number of Markdown headings, of one level or of all."""
    found = [match for line in measure.prose_lines(text) if (match := _HEADING.match(line))]
    return within(sum(1 for m in found if level in (None, len(m[1]))), "heading", min, max)


@rule(
    "code_block",
    valid=bounds,
    passes=[
        example("```python\nx = 1\n```", language="python"),
        example("Run:\n~~~\nls\n~~~", min=1, max=1),
    ],
    fails=[
        example("```js\nx = 1\n```", language="python"),
        example("Run `ls`.", min=1),
        example("```\nx = 1", min=1),
    ],
)
def code_block(
    text: str, language: Words | None = None, min: Count = 1, max: Count | None = None
) -> Outcome:
    """The number of fenced code blocks that are closed, in one language or in any; at least one
    unless `min` says otherwise."""
    names = _code_languages(text)
    found = [name for name in names if language is None or name == language.casefold()]
    return within(len(found), f"{language} code block" if language else "code block", min, max)


def _code_languages(text: str) -> list[str]:
    """Return the language of every closed block of fenced code, ``""`` where it has none."""
    found: list[str] = []
    opened: str | None = None
    for line, in_code in measure.fenced(text):
        match = _FENCE_INFO.match(line) if in_code else None
        if match and opened is None:
            opened = match[1].casefold()
        elif match and opened is not None and not match[1]:
            found.append(opened)
            opened = None
    return found


@rule(
    "table",
    passes=[
        example("| a | b |\n|---|---|\n| 1 | 2 |", columns=2, min_rows=1),
        example("茶 | 价\n--- | ---\n绿茶 | 3", columns=2),
    ],
    fails=[
        example("a | b\n1 | 2"),
        example("| a | b |\n|---|---|\n| 1 | 2 |", columns=3),
        example("| a |\n|---|\n| 1 |", min_rows=2),
    ],
)
def table(text: str, columns: Position | None = None, min_rows: Count = 1) -> Outcome:
    """There is a Markdown table, with so many columns and at least so many rows below its head."""
    sizes = _tables(measure.prose_lines(text))
    followed = any(columns in (None, wide) and rows >= min_rows for wide, rows in sizes)
    found = ", ".join(f"a table of {wide} columns and {rows} rows" for wide, rows in sizes[:3])
    return Outcome(followed, found or "no table")


def _tables(lines: list[str]) -> list[tuple[int, int]]:
    """Return columns and rows of every table."""
    found: list[tuple[int, int]] = []
    position = 1
    while position < len(lines):
        head, below = lines[position - 1], lines[position]
        if "|" in head and "|" in below and _TABLE_RULE.fullmatch(below):
            body = list(takewhile(lambda line: "|" in line, lines[position + 1 :]))
            found.append((len(head.strip().strip("|").split("|")), len(body)))
            position += len(body)
        position += 1
    return found


@rule(
    "no_comma",
    passes=[example("No comma here."), example("没有逗号。")],
    fails=[
        example("Well, here is one."),
        example("这里，有一个。"),
        example("苹果、梨", kind="any"),
    ],
)
def no_comma(text: str, kind: Literal["comma", "any"] = "comma") -> Outcome:
    """There is no comma, half or full width; with `kind: any` no enumeration comma (、) either."""
    found = [c for c in text if c in (",，" if kind == "comma" else ",，、﹐､")]
    return Outcome(not found, f"{len(found)} commas" if found else "no comma")
