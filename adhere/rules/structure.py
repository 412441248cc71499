"""How a whole answer is put together: beginning, end, parts, allowed answers."""

from typing import Literal

import regex

from adhere.rules import measure
from adhere.rules.arguments import Keywords, Position, Words, shown
from adhere.rules.counts import split_paragraphs
from adhere.rules.registry import Arguments, Outcome, example
from adhere.rules.text import rule

_QUOTES = {'"': '"', "“": "”", "「": "」", "『": "』", "«": "»", "„": "“", "＂": "＂"}
_EDGE = regex.compile(r"^[\p{P}\p{S}\s]+|[\p{P}\p{S}\s]+$")


@rule(
    "starts_with",
    passes=[
        example("Result: 391", prefix="Result: "),
        example("  答案：是", prefix="答案："),
        example("hello", prefix="HELLO", ignore_case=True),
    ],
    fails=[example("The Result: 391", prefix="Result: "), example("result: 3", prefix="Result: ")],
)
def starts_with(text: str, prefix: Words, ignore_case: bool = False) -> Outcome:
    """The answer begins with this text, space before it left aside."""
    start, wanted = text.lstrip(), prefix.lstrip()
    followed = _same_case(start, ignore_case).startswith(_same_case(wanted, ignore_case))
    return Outcome(followed, f"begins with {shown(start[: len(wanted) + 10])}")


@rule(
    "ends_with",
    passes=[
        example("All done. Over.\n", suffix="Over."),
        example("以上。", suffix="以上。"),
        example("OVER", suffix="over", ignore_case=True),
    ],
    fails=[example("Over. And out.", suffix="Over."), example("over.", suffix="Over.")],
)
def ends_with(text: str, suffix: Words, ignore_case: bool = False) -> Outcome:
    """The answer ends with this text, space after it left aside."""
    end, wanted = text.rstrip(), suffix.rstrip()
    followed = _same_case(end, ignore_case).endswith(_same_case(wanted, ignore_case))
    return Outcome(followed, f"ends with {shown(end[-len(wanted) - 10 :])}")


def _same_case(text: str, ignore_case: bool) -> str:
    return text.casefold() if ignore_case else text


@rule(
    "equals_one_of",
    passes=[
        example("Yes.", options=["yes", "no"]),
        example("不确定", options=["是", "否", "不确定"]),
    ],
    fails=[
        example("Yes, it is.", options=["yes", "no"]),
        example("Yes.", options=["yes", "no"], exact=True),
    ],
)
def equals_one_of(text: str, options: Keywords, exact: bool = False) -> Outcome:
    """The answer is one of the options and nothing else; case and punctuation around it do not
    matter unless it must be exact."""
    if exact:
        return Outcome(text.strip() in options, f"the answer is {shown(text)}")
    followed = _bare(text) in {_bare(option) for option in options}
    return Outcome(followed, f"the answer is {shown(text)}")


def _bare(text: str) -> str:
    # An option of nothing but signs stays as it is.
    return _EDGE.sub("", measure.fold(text)) or text.strip()


@rule(
    "contains_one_of_sentences",
    passes=[
        example("My answer is yes.", options=["My answer is yes.", "My answer is no."]),
        example("Well: 我的答案是：是。", options=["我的答案是：是。"]),
    ],
    fails=[
        example("Yes.", options=["My answer is yes.", "My answer is no."]),
        example("my answer is yes.", options=["My answer is yes."]),
    ],
)
def contains_one_of_sentences(text: str, options: Keywords) -> Outcome:
    """One of the given sentences occurs, exactly as it is written."""
    present = [option for option in options if option in text]
    return Outcome(bool(present), f"found: {shown(present[0])}" if present else "none occurs")


@rule(
    "wrapped_in_quotes",
    passes=[example('"All of it."'), example("「全部です。」"), example("“好的。”")],
    fails=[example('He said "no".'), example('"'), example("“好的。")],
)
def wrapped_in_quotes(text: str) -> Outcome:
    """The whole answer stands in quotation marks."""
    inner = text.strip()
    followed = len(inner) > 1 and _QUOTES.get(inner[0]) == inner[-1]
    return Outcome(followed, f"begins with {shown(inner[:1])}, ends with {shown(inner[-1:])}")


@rule(
    "repeats_first",
    passes=[
        example("What is tea? Tea is a drink.", prompt="What is tea?"),
        example("什么是茶？茶是饮料。", prompt="什么是茶？"),
    ],
    fails=[
        example("Tea is a drink.", prompt="What is tea?"),
        example("You ask: What is tea? A drink.", prompt="What is tea?"),
    ],
)
def repeats_first(text: str, prompt: Words) -> Outcome:
    """The answer begins with the request, word for word, in either case."""
    followed = text.strip().casefold().startswith(prompt.strip().casefold())
    return Outcome(followed, f"begins with {shown(text.strip())}")


def _some_words(args: Arguments) -> None:
    first, last, words = args["first"], args["last"], len(args["prompt"].split())
    if not first <= (last or words) or first > words:
        raise ValueError(f"no word lies between `first` ({first}) and `last` ({last or words})")


@rule(
    "repeats_only",
    valid=_some_words,
    passes=[
        example("Say hello to Ann.", prompt="Say hello to Ann."),
        example("Write hello to Ann.", prompt="Say hello to Ann.", change="first word"),
        example("hello to", prompt="Say hello to Ann.", first=2, last=3),
    ],
    fails=[
        example("Hello, Ann.", prompt="Say hello to Ann."),
        example("Say hello to Ann.", prompt="Say hello to Ann.", change="first word"),
        example("hello to Ann.", prompt="Say hello to Ann.", first=2, last=3),
    ],
)
def repeats_only(
    text: str,
    prompt: Words,
    change: Literal["first word"] | None = None,
    first: Position = 1,
    last: Position | None = None,
) -> Outcome:
    """The answer is the given text and nothing else, in either case: all of it, the words from
    `first` to `last` (from 1, separated by spaces), or with another first word
    (`change: first word`)."""
    wanted = prompt.casefold().split()[first - 1 : last]
    found = text.casefold().split()
    as_wanted = found == wanted
    followed = found[1:] == wanted[1:] and not as_wanted if change else as_wanted
    return Outcome(followed, f"the answer is {shown(text)}")


@rule(
    "separate_answers",
    passes=[
        example("One.\n******\nTwo.", count=2),
        example("一。\n---\n二。\n---\n三。", count=3, separator="---"),
    ],
    fails=[
        example("One.\nTwo.", count=2),
        example("One.\n******\nOne.", count=2),
        example("One.\n******\n******\nTwo.", count=2),
        example("One.******Two.******Three.", count=2),
    ],
)
def separate_answers(text: str, count: Position = 2, separator: Words = "******") -> Outcome:
    """So many answers, all different, with the separator between them."""
    parts = [part.strip() for part in text.split(separator)]
    full = [part for part in parts if part]
    # The separator may also stand before the first and after the last.
    holes = any(not part for part in parts[1:-1])
    followed = len(full) == count == len(set(full)) and not holes
    same = len(full) - len(set(full))
    return Outcome(
        followed, f"{len(full)} answers" + (f", {same} of them repeated" if same else "")
    )


@rule(
    "paragraph_starts_with",
    passes=[
        example("One.\n\nTwo birds.", paragraph=2, word="two", paragraphs=2),
        example("首先，准备。\n\n然后开始。", paragraph=2, word="然后"),
    ],
    fails=[
        example("One.\n\nTwo birds.", paragraph=2, word="birds"),
        example("Two birds.", paragraph=2, word="two"),
        example("One.\n\nTwo.\n\nThree.", paragraph=2, word="two", paragraphs=2),
    ],
)
def paragraph_starts_with(
    text: str, paragraph: Position, word: Words, paragraphs: Position | None = None
) -> Outcome:
    """The given paragraph begins with this word; there are exactly so many `paragraphs`."""
    found = split_paragraphs(text, "blank line")
    if paragraphs is not None and len(found) != paragraphs:
        return Outcome(False, f"{len(found)} paragraphs, exactly {paragraphs} required")
    if len(found) < paragraph:
        return Outcome(False, f"only {len(found)} paragraphs")
    start = measure.words(measure.fold(found[paragraph - 1]))
    wanted = measure.words(measure.fold(word))
    begins = " ".join(start[: len(wanted) or 1])
    return Outcome(
        start[: len(wanted)] == wanted, f"paragraph {paragraph} begins with {shown(begins)}"
    )
