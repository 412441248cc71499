"""The names and arguments of IFBench's instructions (Pyatkin et al. 2025) for the rules here.

Left out are those whose text is part of a single prompt (``custom:*``, ``repeat:repeat_simple``,
``format:output_template``, ``count:person_names``: what is general in them are the rules ``csv``,
``dates``, ``numbers_are``, ``sentence_initials``, ``repeats_only``, ``template`` and
``contains_several``), and ``words:start_verb``, which needs a statistical tagger to guess the part
of speech of a single word.
"""

from adhere.rules.arguments import Count, Percentage, Position, Words
from adhere.rules.registry import Arguments
from adhere.rules.text import alias


@alias("count:word_count_range", of="words")
def _(min_words: Count, max_words: Count) -> Arguments:
    return {"min": min_words, "max": max_words}


@alias("count:unique_word_count", of="unique_words")
def _(N: Position) -> Arguments:
    return {"min": N}


@alias("count:conjunctions", of="word_kind_count")
def _(small_n: Position) -> Arguments:
    return {"kind": "conjunction", "min": small_n}


@alias("count:pronouns", of="word_kind_count")
def _(N: Position) -> Arguments:
    return {"kind": "pronoun", "min": N}


@alias("count:numbers", of="number_count")
def _(N: Count) -> Arguments:
    return {"min": N, "max": N}


@alias("count:punctuation", of="punctuation_marks")
def _() -> Arguments:
    return {}


@alias("count:words_japanese", of="every_nth_word_japanese")
def _(N: Position) -> Arguments:
    return {"n": N}


@alias("ratio:stop_words", of="stop_words")
def _(percentage: Percentage) -> Arguments:
    return {"max_percentage": percentage}


@alias("ratio:sentence_type", of="sentence_kinds")
def _() -> Arguments:
    return {"statements": 2, "questions": 1}


@alias("ratio:sentence_balance", of="sentence_kinds")
def _() -> Arguments:
    return {"statements": 1, "questions": 1, "exclamations": 1}


@alias("ratio:sentence_words", of="equally_long_sentences")
def _() -> Arguments:
    return {"count": 3}


@alias("ratio:overlap", of="trigram_overlap")
def _(reference_text: Words, percentage: Percentage) -> Arguments:
    return {"reference": reference_text, "percentage": percentage, "unit": "character"}


@alias("words:alphabet", of="initials_in_alphabet_order")
def _() -> Arguments:
    return {}


@alias("words:vowel", of="vowel_kinds")
def _() -> Arguments:
    return {"max": 3}


@alias("words:consonants", of="consonant_clusters")
def _() -> Arguments:
    return {}


@alias("words:palindrome", of="palindromes")
def _() -> Arguments:
    return {"min": 10, "min_length": 5}


@alias("words:prime_lengths", of="prime_word_lengths")
def _() -> Arguments:
    return {}


@alias("words:repeats", of="word_repeats")
def _(small_n: Position) -> Arguments:
    return {"max": small_n}


@alias("words:odd_even_syllables", of="alternating_syllables")
def _() -> Arguments:
    return {}


@alias("words:last_first", of="last_word_first")
def _() -> Arguments:
    return {}


@alias("words:paragraph_last_first", of="paragraph_last_first")
def _() -> Arguments:
    return {}


@alias("words:no_consecutive", of="no_consecutive_initials")
def _() -> Arguments:
    return {}


@alias("words:words_position", of="word_at")
def _(keyword: Words) -> Arguments:
    return {"word": keyword, "positions": [2, -2]}


@alias("words:keywords_specific_position", of="word_at")
def _(keyword: Words, n: Position, m: Position) -> Arguments:
    return {"word": keyword, "positions": [m], "sentence": n}


@alias("sentence:keyword", of="keyword_in_sentence")
def _(word: Words, N: Position) -> Arguments:
    return {"keyword": word, "sentence": N}


@alias("sentence:increment", of="sentence_increment")
def _(small_n: Position) -> Arguments:
    return {"by": small_n}


@alias("sentence:alliteration_increment", of="alliteration_increment")
def _() -> Arguments:
    return {}


@alias("format:parentheses", of="nested_brackets")
def _() -> Arguments:
    return {"depth": 5}


@alias("format:quotes", of="nested_quotes")
def _() -> Arguments:
    return {"depth": 3}


@alias("format:newline", of="one_word_per_line")
def _() -> Arguments:
    return {}


@alias("format:emoji", of="emoji_at_sentence_ends")
def _() -> Arguments:
    return {}


@alias("format:line_indent", of="growing_indent")
def _() -> Arguments:
    return {}


@alias("format:quote_unquote", of="explained_quotes")
def _() -> Arguments:
    return {}


@alias("format:list", of="separated_items")
def _(sep: Words) -> Arguments:
    return {"separator": sep}


@alias("format:thesis", of="italic_thesis")
def _() -> Arguments:
    return {}


@alias("format:sub-bullets", of="sub_bullets")
def _() -> Arguments:
    return {}


@alias("format:no_bullets_bullets", of="sentences_then_bullets")
def _() -> Arguments:
    return {}


@alias("format:title_case", of="title_case")
def _() -> Arguments:
    return {}


@alias("format:no_whitespace", of="no_whitespace")
def _() -> Arguments:
    return {}


@alias("repeat:repeat_change", of="repeats_only")
def _(prompt_to_repeat: Words) -> Arguments:
    return {"prompt": prompt_to_repeat, "change": "first word"}


@alias("repeat:repeat_span", of="repeats_only")
def _(prompt_to_repeat: Words, n_start: Count, n_end: Count) -> Arguments:
    return {"prompt": prompt_to_repeat, "first": n_start + 1, "last": n_end + 1}


@alias("format:options", of="equals_one_of")
def _(options: Words) -> Arguments:
    separator = next((sign for sign in ("/", " or ", ",") if sign in options), "/")
    found = [option.strip() for option in options.split(separator)]
    # Of a), b), c) the bracket is part of the answer.
    return {"options": found, "exact": all(option.endswith(")") for option in found)}


@alias("count:keywords_multiple", of="keyword_counts")
def _(
    keyword1: Words, keyword2: Words, keyword3: Words, keyword4: Words, keyword5: Words
) -> Arguments:
    keywords = (keyword1, keyword2, keyword3, keyword4, keyword5)
    return {"counts": dict(zip(keywords, (1, 2, 3, 5, 7), strict=True))}
