"""Kinds of English words: conjunctions, pronouns, words of grammar, words in a title.

The lists are closed classes of English grammar, so that no statistical tagger decides.
"""

from typing import Annotated, Literal

from pydantic import Field

from adhere.rules.arguments import Count, Percentage, bounds, shown, within
from adhere.rules.measure import plain_words, words
from adhere.rules.registry import Outcome, example
from adhere.rules.text import rule


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CONJUNCTIONS = _listed(
    """
    and but for nor or so yet
    """
)
_PRONOUNS = _listed(
    """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves
    """
)
# Words of grammar: articles, pronouns, prepositions, conjunctions, auxiliaries, particles.
_STOP_WORDS = (
    _PRONOUNS
    | _CONJUNCTIONS
    | _listed(
        """
    a an the this that these those who whom whose which what when where why how am is are was
    were be been being have has had having do does did doing will would shall should can could
    may might must if because as until while of at by with about against between into through
    during before after above below to from up down in out on off over under again further then
    once here there all any both each few more most other some such no not only own same than
    too very just now don't isn't aren't wasn't weren't hasn't haven't hadn't doesn't didn't
    won't wouldn't shouldn't couldn't can't it's i'm you're he's she's we're they're i've you've
    we've they've i'll you'll he'll she'll we'll they'll that's
    """
    )
)
# What a title may write small.
_SMALL = _listed(
    """
    a an the and but for nor or so yet as at by if in of off on per to up via vs with from into
    onto over than that
    """
)


@rule(
    "word_kind_count",
    valid=bounds,
    passes=[
        example("Tea and coffee or milk, and water", kind="conjunction", min=2),
        example("I saw them.", kind="pronoun", min=2),
    ],
    fails=[
        example("Tea and coffee and milk", kind="conjunction", min=2),
        example("I saw them, she said.", kind="pronoun", max=2),
    ],
)
def word_kind_count(
    text: str,
    kind: Literal["conjunction", "pronoun"],
    min: Count | None = None,
    max: Count | None = None,
) -> Outcome:
    """The number of different coordinating conjunctions, or of pronouns (English)."""
    if kind == "conjunction":
        return within(len(set(plain_words(text)) & _CONJUNCTIONS), "conjunction", min, max)
    return within(sum(word in _PRONOUNS for word in plain_words(text)), "pronoun", min, max)


@rule(
    "stop_words",
    passes=[
        example("Green tea cures colds.", max_percentage=0),
        example("The tea is hot.", max_percentage=50),
    ],
    fails=[
        example("The tea is hot.", max_percentage=49),
        example("It is the one.", max_percentage=50),
    ],
)
def stop_words(text: str, max_percentage: Annotated[Percentage, Field(lt=100)]) -> Outcome:
    """English words of grammar are no more than this percentage of all words."""
    found = plain_words(text)
    share = 100 * sum(word in _STOP_WORDS for word in found) / len(found) if found else 100
    return Outcome(share <= max_percentage, f"{share:.1f} % are words of grammar")


@rule(
    "title_case",
    passes=[example("The Tale of the Green Tea"), example("Green Tea for 2")],
    fails=[example("The tale of the Green Tea"), example("green Tea")],
)
def title_case(text: str) -> Outcome:
    """Every major word begins with a capital letter; small words of grammar may."""
    found = words(text)
    wrong = [w for n, w in enumerate(found) if w[0].islower() and (n == 0 or w not in _SMALL)]
    return Outcome(
        not wrong, f"{shown(wrong[0])} begins with a small letter" if wrong else "as required"
    )
