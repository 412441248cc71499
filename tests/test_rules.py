"""The registry and its rules: every example holds, wrong calls are refused, nothing crashes."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adhere.errors import DataError
from adhere.rules import TEXT, Registry, check
from adhere.rules.reference import PAGE, PART, main
from adhere.rules.registry import Example, Outcome, example, unknown
from adhere.rules.text import views

ROOT = Path(__file__).resolve().parents[1]
NAMES: dict[str, tuple[dict[str, Any], str, str]] = yaml.safe_load(
    (ROOT / "tests" / "rules" / "names.yaml").read_text(encoding="utf-8")
)
MATERIAL = (
    "one Two THREE 我 喜欢 茶。 お茶 、 ， 。 ！ ？ … . , ! ? ; : - * # > | \n \n\n ``` --- *** "
    "[a] (b) {c} <i> </i> <<d>> P.S. Thought: Action: “ ” \" ' 「 」 1. 2) ① 一、 3.5 1,000 -7 "
    "[1,2] null 🍵 \u200d \ud800 \x00"
)
# A piece a text may be made of: letters of many scripts, and what rules look at.
PIECES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(MATERIAL.split(" ")),
)
TEXTS = st.lists(PIECES, max_size=25).map("".join)
EXAMPLES = [
    pytest.param(name, case, followed, id=f"{name}-{'passes' if followed else 'fails'}-{number}")
    for name, rule in TEXT.rules.items()
    for followed, cases in ((True, rule.passes), (False, rule.fails))
    for number, case in enumerate(cases)
]
CALLS = [(name, case.args) for name, rule in TEXT.rules.items() for case in rule.passes]


@pytest.mark.parametrize(("name", "case", "followed"), EXAMPLES)
def test_every_example_holds(name: str, case: Example[str], followed: bool) -> None:
    outcome = check(name, case.args, case.subject)
    assert outcome.followed is followed, outcome.reason
    assert outcome.reason


@pytest.mark.parametrize("name", TEXT.rules)
def test_every_rule_has_enough_examples(name: str) -> None:
    rule = TEXT.rules[name]
    assert len(rule.passes) >= 2
    assert len(rule.fails) >= 2
    assert rule.summary.endswith(".")


@pytest.mark.parametrize("name", TEXT.rules)
def test_the_empty_answer_follows_no_rule(name: str) -> None:
    args = TEXT.rules[name].passes[0].args
    for text in ("", " \n\t"):
        assert check(name, args, text) == Outcome(False, "the answer is empty")
        assert not check(name, args, text, loose=True).followed


@pytest.mark.parametrize("name", TEXT.aliases)
def test_every_other_name_has_a_rule_that_holds_and_fails(name: str) -> None:
    args, follows, violates = NAMES[name]
    assert check(name, args, follows).followed, check(name, args, follows)
    assert not check(name, args, violates).followed


def test_the_names_of_ifeval_are_complete() -> None:
    assert set(NAMES) == set(TEXT.aliases)
    ifeval = [
        name for name in TEXT.aliases if TEXT.aliases[name].convert.__module__[-6:] == "ifeval"
    ]
    assert len(ifeval) == 25


@given(call=st.sampled_from(CALLS), text=TEXTS)
def test_no_text_crashes_a_rule_and_loose_is_never_below_strict(
    call: tuple[str, dict[str, Any]], text: str
) -> None:
    loaded = TEXT.load(*call)
    strict, loose = loaded.strict(text), loaded.loose(text)
    assert loose.followed or not strict.followed
    # The same answer scored twice gives the same verdict.
    assert (strict, loose) == (loaded.strict(text), loaded.loose(text))
    strict.reason.encode("utf-8")


@pytest.mark.parametrize(
    "unit", ["(", "- ", "“", "a,", "a ", "茶", "。", "|-|\n", "[1,", "é-", "*a"]
)
def test_long_monotonous_texts_are_judged(unit: str) -> None:
    for name, args in CALLS:
        assert isinstance(TEXT.load(name, args).strict(unit * 400), Outcome)


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("sentenses", {"max": 2}, "unknown rule `sentenses` (did you mean `sentences`?)"),
        ("sentences", {"mx": 2}, "mx: unknown key (did you mean `max`?)"),
        ("sentences", {"max": "2"}, "max: found '2': must be a whole number"),
        ("sentences", {"max": True}, "max: found true: must be a whole number"),
        ("sentences", {"max": 2.5}, "max: found 2.5: must be a whole number"),
        ("sentences", {}, "needs `min`, `max` or both"),
        ("sentences", {"min": 3, "max": 2}, "nothing lies between them"),
        ("sentences", {"min": 0}, "nothing could violate it"),
        ("sentences", {"max": -1}, "max: found -1: must be at least 0"),
        ("code_block", {"min": 0}, "nothing could violate it"),
        ("contains_all", {"keywords": []}, "keywords: found a list: must not be empty"),
        ("contains_all", {"keywords": [" "]}, "keywords.0: found ' ': must not be blank"),
        ("contains_all", {}, "keywords: required, and missing"),
        ("contains_several", {"keywords": ["a"], "min": 2}, "always or never"),
        ("matches", {"pattern": "("}, "not a regular expression of RE2"),
        ("matches", {"pattern": r"(a)\1"}, "no look-around and no back-references"),
        ("language", {"language": "klingon"}, "not a language that is told apart"),
        ("field_type", {"field": "a", "type": "int"}, "(did you mean `integer`?)"),
        ("protocol", {"labels": ["A", "A"]}, "the labels must be different"),
        ("json_schema", {"schema": {"type": "objekt"}}, "not a JSON Schema: $.type"),
        ("json_schema", {"schema": {"$ref": "https://a.example/b"}}, "nothing is fetched"),
        ("json_schema", {"schema": {"$ref": "#"}}, "refers to itself without end"),
        ("json_schema", {"schema": {"pattern": "(?=a)"}}, "not a regular expression of RE2"),
        ("repeats_only", {"prompt": "a b", "first": 3}, "no word lies between"),
        ("dates", {"earliest": 3, "latest": 2}, "`earliest` is after `latest`"),
        ("trigram_overlap", {"reference": "a", "percentage": 50, "tolerance": 50}, "everything"),
        ("word_at", {"word": "a", "positions": [0]}, "counts from 1"),
        ("stop_words", {"max_percentage": 100}, "must be below 100"),
        ("script", {}, "needs either `only` or `without`"),
        ("sentence_kinds", {}, "needs `statements` or `questions`"),
        ("keywords:existence", {"keyword": ["a"]}, "keyword: unknown key"),
        ("length_constraints:number_words", {"num_words": 3, "relation": "most"}, "`at least`"),
        ("count:word_count_range", {"min_words": 3, "max_words": 2}, "nothing lies between"),
    ],
)
def test_wrong_calls_are_refused_when_they_are_loaded(
    name: str, args: dict[str, Any], said: str
) -> None:
    with pytest.raises(DataError) as refused:
        TEXT.load(name, args)
    assert said in str(refused.value)


def test_loose_takes_away_first_line_last_line_and_asterisks() -> None:
    assert views("a\n*b*\nc") == [
        "a\n*b*\nc",
        "*b*\nc",
        "a\n*b*",
        "*b*",
        "a\nb\nc",
        "b\nc",
        "a\nb",
        "b",
    ]
    assert views("*a*") == ["*a*", "a"]
    assert views("**") == ["**"]
    assert views(" \n ") == []
    answer = "Sure, here it is:\n**Result: 391**\nAnything else?"
    assert not check("starts_with", {"prefix": "Result: "}, answer).followed
    assert check("starts_with", {"prefix": "Result: "}, answer, loose=True).followed
    # What is followed strictly keeps its reason.
    assert check("words", {"max": 9}, "one\ntwo", loose=True).reason[:7] == "2 words"


def test_what_was_found_is_said() -> None:
    text = "One. Two. Three. Four. Five."
    assert check("sentences", {"max": 3}, text).reason == "5 sentences, at most 3 required"
    assert check("words", {"min": 1, "max": 1}, "Tea").reason == "1 word, exactly 1 required"
    assert check("calc", {"value": 391}, "1391, 2").reason == "numbers found: 1391, 2"


def test_rules_over_something_else_register_with_the_same_decorator() -> None:
    steps: Registry[list[str]] = Registry("trajectory")

    @steps.rule(
        "max_steps",
        passes=[example(["search"], n=1), example([], n=0)],
        fails=[example(["search", "search"], n=1)],
    )
    def max_steps(trajectory: list[str], n: int) -> Outcome:
        """No more steps than this."""
        return Outcome(len(trajectory) <= n, f"{len(trajectory)} steps")

    loaded = steps.load("max_steps", {"n": 1})
    assert loaded.strict(["search"]).followed
    assert not loaded.loose(["search", "search"]).followed
    assert "max_steps" in steps
    assert "`max_steps`" in unknown("max_step", TEXT, steps)
    with pytest.raises(DataError, match="must be a whole number"):
        steps.load("max_steps", {"n": "1"})
    with pytest.raises(ValueError, match="two rules are called max_steps"):
        steps.rule("max_steps", passes=[], fails=[])(max_steps)


def test_a_pattern_cannot_hang() -> None:
    # A backtracking engine needs 2 to the power of 5,000 steps for this.
    text = "a" * 5000 + "!"
    assert not check("matches", {"pattern": "^(a+)+$"}, text).followed
    schema = {"type": "object", "patternProperties": {"^(a+)+$": False}, "pattern": "^(a|a)*$"}
    assert check("json_schema", {"schema": schema}, f'{{"{text}": 1}}').followed
    assert not check("json_schema", {"schema": {"pattern": "^(a|a)*$"}}, f'"{text}"').followed


def test_json_that_is_nested_too_deeply_is_no_json() -> None:
    assert not check("json", {}, "[" * 100_000).followed
    schema = {"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}
    outcome = check("json_schema", {"schema": schema}, "[" * 900 + "]" * 900)
    assert outcome == Outcome(False, "nested too deeply to be checked against the schema")


def test_the_page_lists_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["--check"]) == 0
    page = PAGE.read_text(encoding="utf-8")
    assert PART.renewed(page) == page
    assert all(f"`{name}`" in page for name in TEXT)
