"""The names and arguments of IFEval's 25 instructions (Zhou et al. 2023) for the rules here.

Counting follows this package's conventions, not IFEval's tokenizer: ``docs/rules.md`` says where
the two part.
"""

from adhere.rules.arguments import Keywords, Letter, Position, Relation, Words
from adhere.rules.registry import Arguments
from adhere.rules.text import alias


def _range(number: int, relation: Relation) -> dict[str, int]:
    return {"min": number} if relation == "at least" else {"max": number - 1}


@alias("keywords:existence", of="contains_all")
def _(keywords: Keywords) -> Arguments:
    return {"keywords": keywords}


@alias("keywords:frequency", of="keyword_count")
def _(keyword: Words, frequency: Position, relation: Relation = "at least") -> Arguments:
    return {"keyword": keyword, **_range(frequency, relation)}


@alias("keywords:forbidden_words", of="not_contains")
def _(forbidden_words: Keywords) -> Arguments:
    return {"keywords": forbidden_words, "whole_words": True}


@alias("keywords:letter_frequency", of="letter_count")
def _(letter: Letter, let_frequency: Position, let_relation: Relation = "at least") -> Arguments:
    return {"letter": letter, **_range(let_frequency, let_relation)}


@alias("language:response_language", of="language")
def _(language: Words) -> Arguments:
    return {"language": language}


@alias("length_constraints:number_sentences", of="sentences")
def _(num_sentences: Position, relation: Relation = "at least") -> Arguments:
    return _range(num_sentences, relation)


@alias("length_constraints:number_paragraphs", of="paragraphs")
def _(num_paragraphs: Position) -> Arguments:
    return {"min": num_paragraphs, "max": num_paragraphs, "separator": "***"}


@alias("length_constraints:number_words", of="words")
def _(num_words: Position, relation: Relation = "at least") -> Arguments:
    return _range(num_words, relation)


@alias("length_constraints:nth_paragraph_first_word", of="paragraph_starts_with")
def _(num_paragraphs: Position, nth_paragraph: Position, first_word: Words) -> Arguments:
    return {"paragraph": nth_paragraph, "word": first_word, "paragraphs": num_paragraphs}


@alias("detectable_content:number_placeholders", of="placeholders")
def _(num_placeholders: Position) -> Arguments:
    return {"min": num_placeholders}


@alias("detectable_content:postscript", of="postscript")
def _(postscript_marker: Words) -> Arguments:
    return {"marker": postscript_marker}


@alias("detectable_format:number_bullet_lists", of="list_items")
def _(num_bullets: Position) -> Arguments:
    return {"min": num_bullets, "max": num_bullets, "kind": "bulleted"}


@alias("detectable_format:constrained_response", of="contains_one_of_sentences")
def _() -> Arguments:
    return {"options": [f"My answer is {word}." for word in ("yes", "no", "maybe")]}


@alias("detectable_format:number_highlighted_sections", of="highlights")
def _(num_highlights: Position) -> Arguments:
    return {"min": num_highlights}


@alias("detectable_format:multiple_sections", of="sections")
def _(section_spliter: Words, num_sections: Position) -> Arguments:
    return {"marker": section_spliter, "min": num_sections}


@alias("detectable_format:json_format", of="json")
def _() -> Arguments:
    return {}


@alias("detectable_format:title", of="title")
def _() -> Arguments:
    return {}


@alias("combination:two_responses", of="separate_answers")
def _() -> Arguments:
    return {"count": 2}


@alias("combination:repeat_prompt", of="repeats_first")
def _(prompt_to_repeat: Words) -> Arguments:
    return {"prompt": prompt_to_repeat}


@alias("startend:end_checker", of="ends_with")
def _(end_phrase: Words) -> Arguments:
    return {"suffix": end_phrase, "ignore_case": True}


@alias("startend:quotation", of="wrapped_in_quotes")
def _() -> Arguments:
    return {}


@alias("change_case:capital_word_frequency", of="capital_words")
def _(capital_frequency: Position, capital_relation: Relation = "at least") -> Arguments:
    return _range(capital_frequency, capital_relation)


@alias("change_case:english_capital", of="all_capitals")
def _() -> Arguments:
    return {}


@alias("change_case:english_lowercase", of="all_lowercase")
def _() -> Arguments:
    return {}


@alias("punctuation:no_comma", of="no_comma")
def _() -> Arguments:
    return {}
