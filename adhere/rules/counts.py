"""How much of something: words, sentences, characters, paragraphs, list items."""

from typing import Literal

from adhere.rules import measure
from adhere.rules.arguments import Count, Words, bounds, within
from adhere.rules.measure import ListKind
from adhere.rules.registry import Outcome, example
from adhere.rules.sentences import sentences as split_sentences
from adhere.rules.text import rule


@rule(
    "words",
    valid=bounds,
    passes=[example("One two three.", max=3), example("我喜欢 Python。", min=4, max=4)],
    fails=[example("One two three four.", max=3), example("我喜欢你。", min=5)],
)
def words(text: str, min: Count | None = None, max: Count | None = None) -> Outcome:
    """The number of words; every Chinese or Japanese character is one."""
    return within(len(measure.words(text)), "word", min, max)


@rule(
    "sentences",
    valid=bounds,
    passes=[
        example("Dr. Lee paid $3.50. He left.", min=2, max=2),
        example("今天很冷。你来吗？", max=2),
    ],
    fails=[example("One. Two. Three.", max=2), example("他走了。", min=2)],
)
def sentences(
    text: str, min: Count | None = None, max: Count | None = None, language: Words | None = None
) -> Outcome:
    """The number of sentences; `language` (ISO 639-1) chooses the abbreviations."""
    return within(len(split_sentences(text, language)), "sentence", min, max)


@rule(
    "characters",
    valid=bounds,
    passes=[example("你好，世界", max=5), example("a b", max=2, spaces=False)],
    fails=[example("你好，世界！", max=5), example("a b", max=2)],
)
def characters(
    text: str,
    min: Count | None = None,
    max: Count | None = None,
    spaces: bool = True,
    punctuation: bool = True,
) -> Outcome:
    """The number of characters as a reader sees them, with or without spaces and punctuation."""
    found = measure.characters(text, spaces=spaces, punctuation=punctuation)
    return within(len(found), "character", min, max)


@rule(
    "paragraphs",
    valid=bounds,
    passes=[example("One.\n\nTwo.", min=2, max=2), example("One.\nTwo.", min=2, separator="line")],
    fails=[example("One.\nTwo.", min=2), example("One.\n\nTwo.\n\nThree.", max=2)],
)
def paragraphs(
    text: str,
    min: Count | None = None,
    max: Count | None = None,
    separator: Literal["blank line", "line", "***"] = "blank line",
) -> Outcome:
    """The number of paragraphs, separated by blank lines, line breaks or lines of `***`."""
    return within(len(split_paragraphs(text, separator)), "paragraph", min, max)


def split_paragraphs(text: str, separator: str) -> list[str]:
    """Return the paragraphs of a text; a line break separates nothing but with ``line``."""
    if separator == "blank line":
        return measure.paragraphs(text)
    parts = measure.lines(text) if separator == "line" else text.split(separator)
    return [part.strip() for part in parts if part.strip()]


@rule(
    "list_items",
    valid=bounds,
    passes=[
        example("- one\n- two", min=2),
        example("一、准备\n二、开始", min=2, max=2, kind="numbered"),
    ],
    fails=[example("- one\n- two\n- three", max=2), example("1. one", min=1, kind="bulleted")],
)
def list_items(
    text: str, min: Count | None = None, max: Count | None = None, kind: ListKind = "any"
) -> Outcome:
    """The number of list items, nested ones included: lines with a bullet or a number."""
    unit = "list item" if kind == "any" else f"{kind} item"
    return within(len(measure.list_items(text, kind)), unit, min, max)


@rule(
    "unique_words",
    valid=bounds,
    passes=[example("One two, one three.", min=3), example("The cat and the dog.", max=4)],
    fails=[example("One two, one two.", min=3), example("One two three.", max=2)],
)
def unique_words(text: str, min: Count | None = None, max: Count | None = None) -> Outcome:
    """The number of different words, upper and lower case taken as one."""
    return within(
        len({measure.fold(word) for word in measure.words(text)}), "unique word", min, max
    )
