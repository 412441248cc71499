"""Rules about layout: lines, indentation, separators, bullets, templates."""

from itertools import pairwise

import regex

from adhere.rules import measure
from adhere.rules.arguments import Keywords, Position, Words, several, shown
from adhere.rules.registry import Outcome, example
from adhere.rules.sentences import sentences
from adhere.rules.text import rule

_ITALICS = regex.compile(r"<(i|em)>\s*[^<\s][^<]*</\1>")


@rule(
    "one_word_per_line",
    passes=[example("tea\n\nis\nhot."), example("well-known\nfact")],
    fails=[example("tea is\nhot"), example("one\ntwo three")],
)
def one_word_per_line(text: str) -> Outcome:
    """Every line has one word, words separated by spaces."""
    wrong = [line for line in measure.lines(text) if len(line.split()) != 1]
    return Outcome(not wrong, f"not one word: {shown(wrong[0])}" if wrong else "one a line")


@rule(
    "growing_indent",
    passes=[example("a\n b\n   c"), example("a\n\n b")],
    fails=[example("a\nb"), example("a\n b\n b")],
)
def growing_indent(text: str) -> Outcome:
    """Every line is indented by more spaces than the one before it; blank lines are left aside."""
    indents = [len(line) - len(line.lstrip(" ")) for line in measure.lines(text)]
    followed = all(b > a for a, b in pairwise(indents))
    return Outcome(followed, f"indents: {', '.join(map(str, indents[:12]))}")


@rule(
    "separated_items",
    passes=[example("tea ~ milk ~ water", separator="~"), example("茶///奶///水", separator="///")],
    fails=[example("tea ~ milk", separator="~"), example("- tea\n- milk", separator="~")],
)
def separated_items(text: str, separator: Words, min: Position = 2) -> Outcome:
    """The separator occurs at least so often."""
    found = text.count(separator)
    return Outcome(found >= min, f"{several(found, 'separator')}, at least {min} required")


@rule(
    "italic_thesis",
    passes=[example("<i>Tea is good.</i> It warms."), example("<em>茶好。</em>\n喝茶。")],
    fails=[example("*Tea is good.* It warms."), example("<i>Tea is good.</i>")],
)
def italic_thesis(text: str) -> Outcome:
    """A thesis in HTML italics (`<i>` or `<em>`) stands before other text."""
    found = _ITALICS.search(text)
    followed = found is not None and bool(text[found.end() :].strip())
    return Outcome(followed, f"found: {shown(found.group())}" if found else "no HTML italics")


@rule(
    "sub_bullets",
    passes=[example("* a\n  - b\n* c\n  - d"), example("* 甲\n- 乙")],
    fails=[example("* a\n  - b\n* c"), example("- a\n- b")],
)
def sub_bullets(text: str) -> Outcome:
    """There are bullets with `*`, and each has at least one sub-bullet with `-` below it."""
    marks = [
        m.strip() for line in measure.prose_lines(text) if (m := measure.marker(line, "bulleted"))
    ]
    bare = sum(1 for one, below in pairwise([*marks, "*"]) if one == "*" and below == "*")
    bullets = marks.count("*")
    return Outcome(
        bullets > 0 and not bare, f"{several(bullets, 'bullet')}, {bare} without sub-bullet"
    )


@rule(
    "sentences_then_bullets",
    passes=[example("One is. Two is.\n* a\n* b"), example("一。二。三。\n* 甲\n* 乙")],
    fails=[
        example("One is.\n* a\n* b"),
        example("One. Two.\n* a"),
        example("One. Two.\n* a\n* b\nEnd."),
    ],
)
def sentences_then_bullets(text: str) -> Outcome:
    """At least two sentences that end with a full stop, then at least two bullets with `*`, then
    nothing."""
    rows = measure.lines(text)
    stars = [row.lstrip().startswith("*") for row in rows]
    first = stars.index(True) if True in stars else len(rows)
    before = sentences("\n".join(rows[:first]))
    ended = sum(sentence.endswith((".", "。")) for sentence in before)
    followed = ended >= 2 and sum(stars) >= 2 and all(stars[first:])
    return Outcome(followed, f"{several(ended, 'sentence')}, then {several(sum(stars), 'bullet')}")


@rule(
    "no_whitespace",
    passes=[example("tea-is-hot"), example("茶很热。")],
    fails=[example("tea is hot"), example("茶　热"), example("tea\n")],
)
def no_whitespace(text: str) -> Outcome:
    """There is no white space at all."""
    found = sum(character.isspace() for character in text)
    return Outcome(not found, f"{several(found, 'space')} or line breaks" if found else "none")


@rule(
    "template",
    passes=[
        example("Answer: tea\nReason: hot", labels=["Answer:", "Reason:"]),
        example("答：茶。因：热。", labels=["答：", "因："]),
    ],
    fails=[
        example("Answer: tea", labels=["Answer:", "Reason:"]),
        example("Reason: hot\nAnswer: tea", labels=["Answer:", "Reason:"]),
    ],
)
def template(text: str, labels: Keywords) -> Outcome:
    """The labels of a template occur, in this order."""
    position = 0
    for label in labels:
        position = text.find(label, position)
        if position < 0:
            return Outcome(False, f"missing, or out of order: {shown(label)}")
        position += len(label)
    return Outcome(True, "all occur in order")
