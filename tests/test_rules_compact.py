"""The compact forms become calls of rules; what they do not know is refused."""

from typing import Any

import pytest

from adhere.errors import DataError
from adhere.rules import check
from adhere.rules.compact import compact_rules, verification_rules
from adhere.rules.registry import RuleCall


def test_the_form_that_people_use() -> None:
    constraints = {
        "json": True,
        "required_fields": ["product", "price"],
        "price_type": "number",
        "max_sentences": 2,
        "keywords": ["tea", "milk"],
        "prefix": "Result: ",
        "calc": 391,
    }
    assert compact_rules(constraints) == [
        RuleCall("json"),
        RuleCall("required_fields", {"fields": ["product", "price"]}),
        RuleCall("field_type", {"field": "price", "type": "number"}),
        RuleCall("sentences", {"max": 2}),
        RuleCall("contains_all", {"keywords": ["tea", "milk"]}),
        RuleCall("starts_with", {"prefix": "Result: "}),
        RuleCall("calc", {"value": 391}),
    ]


def test_more_of_it() -> None:
    assert compact_rules({"json": False}) == []
    assert compact_rules({"max_words": 9, "keywords": "tea", "min_words": 3}) == [
        RuleCall("words", {"max": 9, "min": 3}),
        RuleCall("contains_all", {"keywords": ["tea"]}),
    ]
    assert compact_rules({"min_bullets": 2, "order.price_type": "integer"}) == [
        RuleCall("list_items", {"kind": "bulleted", "min": 2}),
        RuleCall("field_type", {"field": "order.price", "type": "integer"}),
    ]
    schema = {"type": "array"}
    assert compact_rules({"json_schema": schema, "table": {"columns": 2}, "protocol": True}) == [
        RuleCall("json_schema", {"schema": schema}),
        RuleCall("table", {"columns": 2}),
        RuleCall("protocol"),
    ]


def test_verification() -> None:
    calls = verification_rules(
        {
            "format": "json",
            "rules": [
                {"type": "contains_any", "keywords": ["cannot", "不能"]},
                {"type": "not_contains", "keywords": ["sure"]},
                {"type": "max_sentences", "value": 2},
                {"type": "regex", "pattern": "a+"},
                {"type": "calc", "value": 3},
                {"type": "no_comma"},
            ],
        }
    )
    assert calls == [
        RuleCall("json"),
        RuleCall("contains_any", {"keywords": ["cannot", "不能"]}),
        RuleCall("not_contains", {"keywords": ["sure"]}),
        RuleCall("sentences", {"max": 2}),
        RuleCall("matches", {"pattern": "a+"}),
        RuleCall("calc", {"value": 3}),
        RuleCall("no_comma"),
    ]
    assert all(isinstance(check(call.name, call.args, "x").followed, bool) for call in calls)
    assert verification_rules({"format": "text"}) == []


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ({"jsn": True}, "jsn: unknown constraint (did you mean `json`?)"),
        ({"max_sentence": 2}, "(did you mean `max_sentences`?)"),
        ({"json": "yes"}, "json: found 'yes': must be true or false"),
        ({"max_sentences": "2"}, "max_sentences: rule `sentences`: max: found '2'"),
        ({"max_sentences": False}, "max: found false: must be a whole number"),
        ({"min_words": 5, "max_words": 3}, "nothing lies between them"),
        ({"price_type": "float"}, "price_type: rule `field_type`: type: found 'float'"),
        ({"keywords": []}, "must not be empty"),
        ({"calc": "391"}, "calc: rule `calc`: value: found '391'"),
        ({"_type": "number"}, "_type: unknown constraint"),
        ({"words": 3}, "words: found 3: must be the rule's arguments"),
    ],
)
def test_wrong_constraints_are_refused(constraints: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as refused:
        compact_rules(constraints)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("verification", "said"),
    [
        ({"rule": []}, "rule: unknown key (did you mean `rules`?)"),
        ({"format": "jsn"}, "format: found 'jsn' (did you mean `json`?); allowed: text, json"),
        ({"format": 3}, "format: found 3; allowed"),
        ({"rules": {"type": "json"}}, "rules: must be a list"),
        ({"rules": ["json"]}, "rules.0: must be `key: value` lines with a `type`"),
        ({"rules": [{"type": "contains_some"}]}, "rules.0: unknown rule `contains_some`"),
        ({"rules": [{"type": "contains_any", "keyword": ["a"]}]}, "rules.0: rule `contains_any`"),
        ({"rules": [{"type": "max_sentence", "value": 2}]}, "rules.0: max_sentence: unknown"),
    ],
)
def test_a_wrong_verification_is_refused(verification: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as refused:
        verification_rules(verification)
    assert said in str(refused.value)
