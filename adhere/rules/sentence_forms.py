"""Rules about sentences and paragraphs one by one, and from one to the next."""

import unicodedata
from itertools import pairwise

import regex

from adhere.rules import measure
from adhere.rules.arguments import Count, Position, Words, several, shown
from adhere.rules.keywords import occurrences
from adhere.rules.measure import fold, words
from adhere.rules.registry import Arguments, Outcome, example
from adhere.rules.sentences import sentences
from adhere.rules.text import rule

_EMOJI = regex.compile(r"\p{Emoji_Presentation}|\p{Emoji}\ufe0f|\p{Extended_Pictographic}")


def _first(text: str) -> str:
    return fold(words(text)[0])


def _last(text: str) -> str:
    return fold(words(text)[-1])


@rule(
    "sentence_kinds",
    valid=lambda args: _some_kind(args),
    passes=[
        example("It rains. It pours. Why?", statements=2, questions=1),
        example("下雨了。为什么？真好！", statements=1, questions=1, exclamations=1),
    ],
    fails=[
        example("It rains. Why?", statements=2, questions=1),
        example("It rains. Why? No!", statements=2, questions=1, exclamations=2),
    ],
)
def sentence_kinds(
    text: str, statements: Count = 0, questions: Count = 0, exclamations: Count | None = None
) -> Outcome:
    """Statements, questions and exclamations are in this proportion, such as 2 to 1;
    exclamations count only where they are given."""
    ends = [sentence.rstrip("\"'”’」』）)")[-1:] for sentence in sentences(text)]
    found = [sum(end in marks for end in ends) for marks in (".。．…", "?？", "!！")]
    wanted = [statements, questions] + ([] if exclamations is None else [exclamations])
    pairs = list(zip(found, wanted, strict=False))
    followed = sum(n for n, _ in pairs) > 0 and all(
        n * other == m * one for (n, one), (m, other) in pairwise(pairs)
    )
    kinds = zip(found, ("statement", "question", "exclamation"), strict=True)
    return Outcome(followed, ", ".join(several(n, kind) for n, kind in kinds))


def _some_kind(args: Arguments) -> None:
    if not (args["statements"] or args["questions"]):
        raise ValueError("needs `statements` or `questions`, above 0")


@rule(
    "sentence_increment",
    passes=[example("Rain fell. The rain fell hard.", by=2), example("下雨。下大雨。", by=1)],
    fails=[example("Rain fell. Rain fell.", by=1), example("One. One two. One two.", by=1)],
)
def sentence_increment(text: str, by: Position) -> Outcome:
    """Every sentence has exactly so many words more than the one before it."""
    lengths = [len(words(sentence)) for sentence in sentences(text)]
    followed = bool(lengths) and all(b - a == by for a, b in pairwise(lengths))
    return Outcome(followed, f"words a sentence: {', '.join(map(str, lengths[:12]))}")


@rule(
    "alliteration_increment",
    passes=[example("Big dogs ran. Big bad dogs ran. Big bad bold dogs."), example("Hi there.")],
    fails=[example("Big bad dogs ran. Tall men sat."), example("Big bad dogs. Tall tame men.")],
)
def alliteration_increment(text: str) -> Outcome:
    """Every sentence has a longer run of words with the same first letter than the one before."""
    runs = [_longest_run([fold(w)[0] for w in words(s)]) for s in sentences(text)]
    followed = bool(runs) and all(b > a for a, b in pairwise(runs))
    return Outcome(followed, f"longest runs: {', '.join(map(str, runs[:12]))}")


def _longest_run(letters: list[str]) -> int:
    longest = run = 1 if letters else 0
    for one, next_ in pairwise(letters):
        run = run + 1 if one == next_ else 1
        longest = max(longest, run)
    return longest


@rule(
    "keyword_in_sentence",
    passes=[
        example("One. Two birds.", keyword="birds", sentence=2),
        example("下雨了。我带伞。", keyword="伞", sentence=2),
    ],
    fails=[
        example("One. Two birds.", keyword="birds", sentence=1),
        example("Two birds.", keyword="birds", sentence=3),
    ],
)
def keyword_in_sentence(text: str, keyword: Words, sentence: Position) -> Outcome:
    """A keyword occurs in the given sentence."""
    parts = sentences(text)
    if len(parts) < sentence:
        return Outcome(False, f"only {several(len(parts), 'sentence')}")
    found = parts[sentence - 1]
    return Outcome(occurrences(found, keyword) > 0, f"sentence {sentence} is {shown(found)}")


@rule(
    "last_word_first",
    passes=[example("I like tea. Tea is hot. Hot is good."), example("天上有云。云很白。")],
    fails=[example("I like tea. It is hot."), example("Tea. Tea is hot. It is.")],
)
def last_word_first(text: str) -> Outcome:
    """The last word of every sentence is the first of the next."""
    wrong = [b for a, b in pairwise(sentences(text)) if _last(a) != _first(b)]
    return Outcome(
        not wrong, f"not so: {shown(wrong[0])}" if wrong else "every sentence as required"
    )


@rule(
    "paragraph_last_first",
    passes=[example("Tea is hot tea.\nMen see men."), example("茶好喝茶")],
    fails=[example("Tea is hot.\nMen see men."), example("Tea is tea.\nMen sleep.")],
)
def paragraph_last_first(text: str) -> Outcome:
    """Every paragraph, one a line, ends with the word it began with."""
    full = [line for line in measure.lines(text) if words(line)]
    wrong = [line for line in full if _first(line) != _last(line)]
    followed = bool(full) and not wrong
    return Outcome(
        followed, f"not so: {shown(wrong[0])}" if wrong else "every paragraph as required"
    )


def _without_end(sentence: str) -> str:
    """Return a sentence without the punctuation and space at its end."""
    end = len(sentence)
    while end and (
        sentence[end - 1].isspace() or unicodedata.category(sentence[end - 1])[0] == "P"
    ):
        end -= 1
    return sentence[:end]


@rule(
    "emoji_at_sentence_ends",
    passes=[example("Good tea! 🍵 I like it 😀."), example("好茶🍵。谢谢！😀")],
    fails=[example("Good tea! 🍵 I like it."), example("🍵 Good tea.")],
)
def emoji_at_sentence_ends(text: str) -> Outcome:
    """Every sentence ends with an emoji, before or after its stop."""
    parts = sentences(text)
    wrong = [
        part
        for n, part in enumerate(parts)
        if not _EMOJI.search(_without_end(part)[-4:])
        and not (n + 1 < len(parts) and _EMOJI.match(parts[n + 1]))
    ]
    return Outcome(
        bool(parts) and not wrong, f"no emoji: {shown(wrong[0])}" if wrong else "all have one"
    )


@rule(
    "equally_long_sentences",
    passes=[example("Ann sat. Bob ran.", count=2), example("我来了。他走吗？", count=2)],
    fails=[
        example("Ann sat. Bob slept.", count=2),
        example("Ann sat. Bob sat.", count=2),
        example("Ann sat. Bob ran.", count=3),
    ],
)
def equally_long_sentences(text: str, count: Position) -> Outcome:
    """So many sentences, of the same number of characters, without a word in common."""
    parts = sentences(text)
    lengths = [len(measure.characters(part)) for part in parts]
    used = [word for part in parts for word in {fold(word) for word in words(part)}]
    followed = len(parts) == count and len(set(lengths)) == 1 and len(used) == len(set(used))
    shared = f", {len(used) - len(set(used))} words in common" if len(used) > len(set(used)) else ""
    return Outcome(followed, f"characters a sentence: {', '.join(map(str, lengths[:12]))}{shared}")


@rule(
    "sentence_initials",
    passes=[example("A cat. Big dogs.", letters="ab"), example("Cold. Dry.", letters="cd")],
    fails=[example("Big dogs. A cat.", letters="ab"), example("A cat.", letters="ab")],
)
def sentence_initials(text: str, letters: Words = "abcdefghijklmnopqrstuvwxyz") -> Outcome:
    """The first letters of the sentences spell this, a to z by default."""
    found = "".join(fold(words(part)[0])[0] for part in sentences(text))
    return Outcome(found == fold(letters), f"they spell {shown(found)}")
