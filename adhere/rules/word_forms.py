"""Rules about single words: how each one is formed, and which kinds occur."""

from collections import Counter
from itertools import pairwise
from typing import Annotated

import regex
import syllapy
from pydantic import AfterValidator, Field

from adhere.rules.arguments import (
    Count,
    Keywords,
    Position,
    Words,
    bounds,
    shown,
    within,
)
from adhere.rules.keywords import occurrences
from adhere.rules.measure import fold, is_wide, plain_words, words
from adhere.rules.registry import Arguments, Outcome, example
from adhere.rules.sentences import sentences
from adhere.rules.text import rule


def _not_zero(value: int) -> int:
    if value == 0:
        raise ValueError("counts from 1, or from -1 at the end")
    return value


Place = Annotated[int, AfterValidator(_not_zero)]
_CLUSTER = regex.compile(r"[bcdfghjklmnpqrstvwxyz]{2}")


def _all(found: list[str], what: str) -> Outcome:
    """Judge by the words that break a rule."""
    return Outcome(not found, f"{shown(found[0])} {what}" if found else "every word as required")


@rule(
    "initials_in_alphabet_order",
    passes=[example("A bird came down."), example("Yellow zebras are big.")],
    fails=[example("A bird sang."), example("3 birds came.")],
)
def initials_in_alphabet_order(text: str) -> Outcome:
    """Every word begins with the letter of the alphabet (a to z, then a again) after that of the
    word before it."""
    found = plain_words(text)
    letters = [ord(word[0]) - ord("a") for word in found]
    if not letters or not 0 <= letters[0] < 26:
        return Outcome(False, "the first word begins with no letter from a to z")
    wrong = [n for n, (one, next_) in enumerate(pairwise(letters)) if next_ != (one + 1) % 26]
    return _all([found[n + 1] for n in wrong], "is out of order")


@rule(
    "vowel_kinds",
    passes=[example("A red hen ran."), example("Bob got cold tea.", max=3)],
    fails=[example("Bob got cold tea, quick."), example("A red hen ran.\nIt ate.", max=2)],
)
def vowel_kinds(text: str, max: Annotated[int, Field(ge=0, le=4)] = 3) -> Outcome:
    """No more than so many different vowels (a, e, i, o, u) occur."""
    found = sorted(set(fold(text)) & set("aeiou"))
    return Outcome(len(found) <= max, f"vowels found: {', '.join(found) or 'none'}")


@rule(
    "consonant_clusters",
    passes=[example("Strong winds blast."), example("Three black trucks")],
    fails=[example("Strong wind era"), example("A storm")],
)
def consonant_clusters(text: str) -> Outcome:
    """Every word has two or more consonants in a row."""
    return _all([word for word in plain_words(text) if not _CLUSTER.search(word)], "has none")


@rule(
    "palindromes",
    valid=bounds,
    passes=[
        example("A kayak on radar.", min=2, min_length=5),
        example("上海海上 level", max=1, min_length=5),
    ],
    fails=[example("A kayak.", min=2, min_length=5), example("Mom, Dad", max=1, min_length=3)],
)
def palindromes(
    text: str, min: Count | None = None, max: Count | None = None, min_length: Position = 2
) -> Outcome:
    """The number of words that read the same backwards, of at least `min_length` letters."""
    found = [word for word in plain_words(text) if len(word) >= min_length and word == word[::-1]]
    return within(len(found), "palindrome", min, max)


@rule(
    "prime_word_lengths",
    passes=[example("We saw seven."), example("Go, run, hurry!")],
    fails=[example("We saw four."), example("A cat")],
)
def prime_word_lengths(text: str) -> Outcome:
    """Every word has a prime number of letters."""
    wrong = [word for word in words(text) if not _is_prime(len(word))]
    return _all(wrong, "has no prime length")


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % d for d in range(2, int(number**0.5) + 1))


@rule(
    "word_repeats",
    passes=[example("The cat and the dog", max=2), example("好好学习", max=2)],
    fails=[example("The cat, the dog, the hen", max=2), example("天天", max=1)],
)
def word_repeats(text: str, max: Position) -> Outcome:
    """No word occurs more often than this."""
    common = Counter(plain_words(text)).most_common(1)
    often = common[0][1] if common else 0
    return Outcome(
        often <= max, f"{shown(common[0][0])} occurs {often} times" if common else "no word"
    )


@rule(
    "no_consecutive_initials",
    passes=[example("A cat is here."), example("Green tea helps")],
    fails=[example("A cat came."), example("好好学习")],
)
def no_consecutive_initials(text: str) -> Outcome:
    """No two words in a row begin with the same letter."""
    return _all(
        [b for a, b in pairwise(plain_words(text)) if a[0] == b[0]], "repeats a first letter"
    )


def _syllables(word: str) -> int:
    # Part by part: what the library cannot look up it takes apart recursively.
    return sum(syllapy.count(part) for part in regex.findall(r"[\p{L}']{1,40}", word))


@rule(
    "alternating_syllables",
    passes=[example("A table is over"), example("Water can never")],
    fails=[example("A cat"), example("Water table")],
)
def alternating_syllables(text: str) -> Outcome:
    """English words with odd and with even numbers of syllables alternate."""
    counts = [(word, _syllables(word) % 2) for word in plain_words(text)]
    return _all([b for (_, x), (b, y) in pairwise(counts) if x == y], "does not alternate")


def _among(args: Arguments) -> None:
    bounds(args)
    known = len(set(args["keywords"]))
    if (args["min"] or 0) > known or (not args["min"] and args["max"] >= known):
        raise ValueError(f"of {known} keywords, always or never so many occur")


@rule(
    "contains_several",
    valid=_among,
    passes=[
        example("Ann met Bob.", keywords=["Ann", "Bob", "Cy"], min=2),
        example("苹果", keywords=["苹果", "梨"], max=1),
    ],
    fails=[
        example("Ann met Ann.", keywords=["Ann", "Bob", "Cy"], min=2),
        example("Anne", keywords=["Ann"], min=1),
    ],
)
def contains_several(
    text: str, keywords: Keywords, min: Count | None = None, max: Count | None = None
) -> Outcome:
    """How many different ones of the keywords occur, as whole words."""
    found = [word for word in dict.fromkeys(keywords) if occurrences(text, word, whole_words=True)]
    return within(len(found), "different keyword", min, max)


@rule(
    "every_nth_word_japanese",
    passes=[example("I drink お茶 every day 今日", n=3), example("one two さん", n=3)],
    fails=[example("I drink tea every day", n=3), example("one two three さん", n=3)],
)
def every_nth_word_japanese(text: str, n: Position) -> Outcome:
    """Every n-th word, words separated by spaces, has Japanese characters or is a number."""
    found = [token.strip(".,;:!?\"'()[]*。、！？「」") for token in text.split()][n - 1 :: n]
    wrong = [word for word in found if word and not word.isdigit() and not any(map(is_wide, word))]
    return Outcome(
        bool(found) and not wrong, f"{shown(wrong[0])} is not Japanese" if wrong else "as required"
    )


@rule(
    "word_at",
    passes=[
        example("Go now or never now boys.", word="now", positions=[2, -2]),
        example("One. Two birds.", word="birds", positions=[2], sentence=2),
    ],
    fails=[
        example("Go now or never.", word="now", positions=[2, -2]),
        example("One. Two birds.", word="birds", positions=[2], sentence=3),
    ],
)
def word_at(
    text: str,
    word: Words,
    positions: Annotated[list[Place], Field(min_length=1)],
    sentence: Position | None = None,
) -> Outcome:
    """A word stands at these positions, counted from 1, or from -1 at the end, in the whole answer
    or in one sentence."""
    if sentence is not None:
        parts = sentences(text)
        text = parts[sentence - 1] if sentence <= len(parts) else ""
    found = plain_words(text)
    at = [found[p - (p > 0)] if -len(found) <= p - (p > 0) < len(found) else "" for p in positions]
    return Outcome(set(at) == {fold(word)}, f"found: {', '.join(map(shown, at))}")
