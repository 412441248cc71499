"""Instruction sets that teams write: what they become, and how what is wrong in them is named."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from workflow_project import ROOT

from adhere.config.strict_yaml import read_located
from adhere.data import Row, load, load_rows
from adhere.errors import DataError
from adhere.instruction_set import read_set, reference, schema, to_rows
from adhere.jsonio import canonical, read_json
from adhere.judging.evidence import Evidence
from adhere.rule_steps import REGISTRIES

ITEM: dict[str, Any] = {
    "id": "a",
    "instruction": "Write two sentences.",
    "input": "About tea.",
    "constraints": [{"rule": "sentences", "args": {"max": 2}}],
}
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a set and returns its file."""

    def written(content: Any, name: str = "set.yaml") -> Path:
        path = tmp_path / name
        if not isinstance(content, str):
            dump = json.dumps if path.suffix == ".json" else yaml.safe_dump
            content = dump(content, sort_keys=False)
        path.write_text(content, encoding="utf-8")
        return path

    return written


def rows(path: Path) -> list[Row]:
    return to_rows(read_set(path))


def item(**changes: Any) -> dict[str, Any]:
    made = {**copy.deepcopy(ITEM), **changes}
    return {key: value for key, value in made.items() if value is not ...}


def problem(path: Path) -> str:
    with pytest.raises(DataError) as refused:
        load_rows(path)
    return str(refused.value)


# What a set becomes


def test_an_item_becomes_a_row(write: Write) -> None:
    (row,) = rows(write({"items": [item(scenario="tea")]}))
    assert row == {
        "id": "a",
        "input": [{"role": "user", "content": "Write two sentences.\n\nAbout tea."}],
        "constraints": [
            {
                "evaluation": [{"type": "rule", "exec": {"rule": "sentences", "args": {"max": 2}}}],
                "rule": "sentences",
                "category": "format",
                "severity": "must",
                "level": "answer",
                "failure_mode": "format",
            }
        ],
        "scenario": "tea",
    }


@pytest.mark.parametrize(
    ("name", "shaped"),
    [
        ("set.yaml", lambda items: {"items": items}),
        ("set.yml", lambda items: {"defaults": {"scenario": "s"}, "items": items}),
        ("set.yaml", lambda items: items),
        ("set.json", lambda items: {"items": items}),
        ("set.json", lambda items: items),
        ("set.jsonl", lambda items: "\n".join(json.dumps(each) for each in items)),
        ("set.jsonl", lambda items: '{"defaults": {"scenario": "s"}}\n' + json.dumps(items[0])),
    ],
)
def test_every_form_of_a_file_is_recognised(
    write: Write, name: str, shaped: Callable[[list[Any]], Any]
) -> None:
    content = shaped([item()])
    (row,) = load("d", write(content, name)).rows
    assert row["id"] == "a"
    if "defaults" in str(content):
        assert row["scenario"] == "s"


def test_a_dataset_in_agentifs_form_stays_one(write: Write) -> None:
    plain = [
        {
            "input": [{"role": "user", "content": "x"}],
            "constraints": [{"evaluation": [{"type": "llm", "exec": "Fine?"}]}],
        }
    ]
    assert load_rows(write(plain, "plain.json")) == plain


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (None, [("user", "I {input}\n\nX {instruction}")]),
        ("system", [("system", "I {input}"), ("user", "X {instruction}")]),
        (
            [
                {"role": "developer", "content": "You: {instruction}"},
                {"role": "user", "content": "<{input}>"},
            ],
            [("developer", "You: I {input}"), ("user", "<X {instruction}>")],
        ),
    ],
)
def test_layouts_are_filled_in_one_pass(
    write: Write, layout: Any, expected: list[tuple[str, str]]
) -> None:
    """What is filled in stays data, although it looks like a placeholder."""
    made = item(instruction="I {input}", input="X {instruction}", layout=layout)
    (row,) = rows(write({"items": [made]}))
    assert [(message["role"], message["content"]) for message in row["input"]] == expected


def test_an_object_is_sent_as_json_and_an_empty_message_left_out(write: Write) -> None:
    first = item(id="o", input={"名": [1]}, layout="system")
    second = item(id="n", input=..., layout=[{"role": "user", "content": "{instruction}"},
                                             {"role": "user", "content": "{input}"}])  # fmt: skip
    made = rows(write({"items": [first, second]}))
    assert json.loads(made[0]["input"][1]["content"]) == {"名": [1]}
    assert "名" in made[0]["input"][1]["content"]
    assert len(made[1]["input"]) == 1


def test_defaults_hold_where_an_item_says_nothing(write: Write) -> None:
    tool = {"type": "function", "function": {"name": "look"}}
    defaults = {
        "scenario": "s",
        "layout": "system",
        "tools": [tool],
        "tool_responses": [{"tool": "look", "response": {"a": None}}],
        "max_turns": 3,
        "provenance": {"source": "all"},
    }
    own = {"type": "function", "function": {"name": "own"}}
    items = [
        item(),
        item(id="b", scenario="t", tools=[own]),
        item(id="c", tools=[], layout="user"),
    ]
    first, second, third = rows(write({"defaults": defaults, "items": items}))
    assert (first["scenario"], first["max_turns"], len(first["input"])) == ("s", 3, 2)
    assert first["tool_responses"] == [{"tool": "look", "when": {}, "response": {"a": None}}]
    assert first["constraints"][0]["provenance"] == {"source": "all"}
    # Common responses of tools that an item does not offer mean nothing there.
    assert (second["scenario"], second["tools"], second["tool_responses"]) == ("t", [own], [])
    assert not {"tools", "tool_responses", "max_turns"} & set(third)
    assert len(third["input"]) == 1


def test_compact_forms(write: Write) -> None:
    compact = {"json": True, "required_fields": ["product"], "price_type": "number"}
    verification = {"format": "list", "rules": [{"type": "contains_any", "keywords": ["tea"]}]}
    items = [
        item(constraints=compact),
        item(id="b", constraints=..., verification=verification),
        item(id="c", constraints=compact, verification=verification),
    ]
    made = rows(write({"items": items}))
    names = [[raw["rule"] for raw in row["constraints"]] for row in made]
    assert names == [
        ["json", "required_fields", "field_type"],
        ["list_items", "contains_any"],
        ["json", "required_fields", "field_type", "list_items", "contains_any"],
    ]


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ({"rule": "max_steps", "args": {"max": 2}}, ("process", "step", "process", None)),
        ({"rule": "contains", "args": {"keyword": "x"}}, ("content", "answer", "omission", None)),
        ({"rule": "no_unknown_tool"}, ("process", "step", "hallucination", None)),
        ({"ask": "Polite."}, ("content", "answer", "other", None)),
        ({"ask": "Careful.", "category": "process"},
         ("process", "answer", "process", "trajectory")),
        ({"ask": "Careful.", "level": "step"}, ("content", "step", "other", "trajectory")),
        ({"ask": "Done.", "category": "process", "about": "answer"},
         ("process", "answer", "process", "answer")),
        ({"rule": "json", "category": "hard", "failure_mode": "other"},
         ("hard", "answer", "other", None)),
    ],
)  # fmt: skip
def test_what_a_constraint_does_not_say(
    write: Write, constraint: dict[str, Any], expected: tuple[str | None, ...]
) -> None:
    (row,) = rows(write({"items": [item(constraints=[constraint])]}))
    raw = row["constraints"][0]
    found = tuple(raw.get(key) for key in ("category", "level", "failure_mode", "about"))
    assert found == expected


def test_loose_goes_with_its_rule(write: Write) -> None:
    loose = {"rule": "json", "loose": True}
    (row,) = rows(write({"items": [item(constraints=[loose])]}))
    assert row["constraints"][0]["evaluation"][0]["exec"]["loose"] is True


# Questions and their template


def test_a_question_is_put_by_the_template(write: Write) -> None:
    asked = item(instruction="Say {response} or {requirement}.", constraints=[{"ask": "Be kind."}])
    (row,) = rows(write({"items": [asked]}))
    (step,) = row["constraints"][0]["evaluation"]
    assert step["type"] == "llm"
    assert step["exec"].count("{response}") == 1
    assert "Say { response } or {requirement}." in step["exec"]
    assert "[Requirement]\nBe kind." in step["exec"]
    assert row["constraints"][0]["desc"] == "Be kind."


def test_a_template_beside_the_set_or_named_in_it(write: Write, tmp_path: Path) -> None:
    (tmp_path / "judge_template.md").write_text("Beside: {requirement} | {response}")
    (tmp_path / "own.md").write_text("Named: {requirement} {input} | {response}")
    asked = item(input=..., constraints=[{"ask": "Be kind."}])
    (row,) = rows(write({"items": [asked]}))
    assert row["constraints"][0]["evaluation"][0]["exec"] == "Beside: Be kind. | {response}"
    (row,) = rows(write({"defaults": {"judge_template": "own.md"}, "items": [asked]}))
    assert row["constraints"][0]["evaluation"][0]["exec"] == "Named: Be kind. (none) | {response}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{requirement}", "must hold {response} once, found it 0 times"),
        ("{response}", "must hold {requirement} once, found it 0 times"),
        ("{requirement} {response} {response}", "found it 2 times"),
    ],
)
def test_a_template_needs_its_placeholders(
    write: Write, tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "judge_template.md").write_text(text)
    assert words in problem(write({"items": [item()]}))


def test_a_template_that_is_missing_is_named(write: Write) -> None:
    found = problem(write({"defaults": {"judge_template": "no.md"}, "items": [item()]}))
    assert "defaults.judge_template" in found
    assert "no.md cannot be read" in found


# What is wrong is named by line, item and key

WRONG: list[tuple[str, str]] = [
    (
        "  - id: a\n    instruction: x\n    constraint: []",
        "line 4: item a: constraint: unknown key",
    ),
    ("  - id: a\n    instruction: x", "line 2: item a: has no `constraints` and no `verification`"),
    ("  - id: a\n    constraints: {json: true}", "instruction: required, and missing"),
    (
        "  - id: a\n    instruction: x\n    constraints:\n      - rule: jsn",
        "line 5: item a: constraints.0: unknown rule `jsn` (did you mean `json`?)",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints:\n      - rule: json\n      - rule: words\n"
        "        args: {maximum: 2}",
        "line 7: item a: constraints.1: rule `words`: maximum: unknown key (did",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints:\n      - args:\n          keywords:\n"
        "            - one\n            - 2\n        rule: contains_any",
        "line 8: item a: constraints.0: rule `contains_any`: keywords.1: found 2: must be text",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints:\n      - severity: must\n"
        "        rule: contains_any",
        "line 6: item a: constraints.0: rule `contains_any`: keywords: required, and missing",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints:\n      - severity: must\n"
        "        evaluation: [{type: magic}]",
        "line 6: item a: constraints.0: evaluation step 1: type: found 'magic'",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints:\n      - rule: json\n"
        "        about: trajectory",
        "line 5: item a: constraints.0: has `about` and no `ask`",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints: {max_sentence: 2}",
        "line 4: item a: constraints.max_sentence: unknown constraint (did you mean "
        "`max_sentences`?)",
    ),
    (
        "  - id: a\n    instruction: x\n    verification: {rules: [{type: contains_any}]}",
        "line 4: item a: verification.rules.0: rule `contains_any`: keywords: required",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints:\n      - rule: json\n"
        "        category: hard\n        severity: should",
        "line 5: item a: constraints.0: is `category: hard` with `severity: should`",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints:\n      - rule: json\n        ask: Fine.",
        "constraints.0: needs one of `rule`, `ask` and `evaluation`, found `rule` and `ask`",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints:\n      - text: nothing",
        "found none of them",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints:\n      - ask: Fine.\n"
        "        args: {max: 1}",
        "has `args` or `loose` and no `rule` that takes them",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints:\n      - rule: json\n"
        "        severity: shoud",
        "line 6: item a: constraints.0.severity: found 'shoud': must be `must` or `should` (did "
        "you mean `should`?)",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints:\n      - rule: max_steps\n"
        "        args: {max: 3}\n        loose: true",
        "line 7: item a: constraints.0: loose: rule `max_steps` is over trajectories, which "
        "have no loose form",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints: {json: true}\n"
        "    provenance: {review_by: soon}",
        "line 5: item a: provenance.review_by: found 'soon': must be a date such as 2026-11-30",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints: {json: true}\n"
        "    provenance: {review_by: 2026-02-30}",
        "must be a date such as",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints: {json: true}\n    layout: system",
        "input: missing, and the layout leaves no user message without it",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints: {json: true}\n"
        "    layout: [{role: user, content: '{input}'}]",
        "no message holds {instruction}",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints: {json: true}\n"
        "    tools: [{type: function, function: {name: look}}]\n"
        "    tool_responses: [{tool: lok, response: hm}]",
        "line 5: item a: tool_responses: response 1: found tool 'lok'; the item's: look",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints: {json: true}\n"
        "  - id: a\n    instruction: y\n    constraints: {json: true}",
        "line 5: id: found 'a', which is also that of",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints: {json: true}\n    input: 2026",
        "line 5: item a: input: found 2026: must be text or `key: value` lines or a list",
    ),
    (
        "  - id: a\n    instruction: x\n    constraints: {json: true}\n    layout: {user: null}",
        "line 5: item a: layout: found `key: value` lines: must be `user` or `system` or a list",
    ),
    (
        f"  - id: {'a' * 201}\n    instruction: x\n    constraints: {{json: true}}",
        "must not have more characters than 200",
    ),
    ("  - just text", "line 2: found 'just text': must be `key: value` pairs"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_what_is_wrong_is_named_by_line_and_key(write: Write, text: str, words: str) -> None:
    path = write(f"items:\n{text}\n")
    found = problem(path)
    assert words in found
    assert found.startswith(f"{path}: ")


def test_all_problems_are_named_up_to_twenty(write: Write) -> None:
    bad = [item(id=f"i{n}", constraints=[{"rule": "jsn"}]) for n in range(25)]
    lines = problem(write({"items": bad})).split("\n")
    assert len(lines) == 21
    assert lines[-1] == "… and 5 problems more"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "must hold `items:`"),
        ("items: []", "holds no item: nothing can be evaluated"),
        ("item: []", "must hold `items:`"),
        ("items: []\ndefault: {}", "line 2: default: unknown key (did you mean `defaults`?)"),
        ("items:\n  - id: a\n   b", "not valid YAML: line 3"),
        ("defaults:\n  layout: usr\nitems: [x]", "line 2: defaults.layout: found 'usr'"),
        ("[]", "holds no item"),
    ],
)
def test_wrong_documents(write: Write, content: str, words: str) -> None:
    path = write(content)
    if words == "line 2: defaults.layout: found 'usr'":
        found = problem(path)
        assert "line 2: " in found
        assert "layout: found 'usr'" in found
        return
    assert words in problem(path)


def test_jsonl_is_named_by_line_and_may_begin_with_defaults(write: Write) -> None:
    lines = [{"defaults": {"scenario": "s"}}, item(), item(id="b", instruction="")]
    text = "\n\n".join(json.dumps(line) for line in lines)
    found = problem(write(text, "set.jsonl"))
    assert "line 5: item b: instruction: found '': must not be empty" in found
    (row,) = rows(write("\n".join(json.dumps(line) for line in lines[:2]), "set.jsonl"))
    assert row["scenario"] == "s"


def test_defaults_come_first(write: Write) -> None:
    lines = [{"defaults": {"scenario": "s"}}, item(), {"defaults": {"scenario": "t"}}]
    found = problem(write("\n".join(json.dumps(line) for line in lines), "set.jsonl"))
    assert "set.jsonl: line 3: defaults: they hold for all items" in found
    found = problem(write(lines[1:], "set.yaml"))
    assert "defaults: they hold for all items" in found


def test_a_json_document_names_the_line(write: Write) -> None:
    content = {"items": [item(), item(id="b", level="stp")]}
    found = problem(write(json.dumps(content, indent=1), "set.json"))
    number = json.dumps(content, indent=1).split("\n").index('   "level": "stp"') + 1
    assert f"set.json: line {number}: item b: level: unknown key" in found
    # Where lines tell nothing, or YAML cannot find them, the item is named.
    for text in (json.dumps(content), json.dumps(content, indent="\t")):
        found = problem(write(text, "set.json"))
        assert "set.json: item 2: item b: level: unknown key" in found


def test_a_key_given_twice_is_refused_in_every_form(write: Write) -> None:
    text = json.dumps(item())[:-1] + ', "id": "b"}'
    assert "line 1: key 'id' is given twice: keep" in problem(write(text, "set.jsonl"))
    document = '{"items": [' + text + "]}"
    assert "key 'id' is given twice in items.0 " in problem(write(document, "set.json"))
    assert "key 'id' is given twice" in problem(write(document, "set.yaml"))


# Recorded trajectories

RUN = "Thought: I look.\nAction: look\nObservation: there\nFinal Answer: There.\n"


def test_a_trajectory_is_a_file_beside_the_set_or_the_content(write: Write, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/a.txt").write_text(RUN)
    steps = {"steps": [{"thought": "I know."}], "final_answer": "There."}
    items = [
        item(trajectory="runs/a.txt"),
        item(id="b", trajectory=RUN),
        item(id="c", trajectory=steps),
    ]
    made = load("d", write({"items": items})).rows
    assert [row["trajectory"] for row in made] == [RUN, RUN, steps]


def test_trajectories_that_cannot_be_read_are_named(write: Write, tmp_path: Path) -> None:
    found = problem(write({"items": [item(trajectory="runs/no.txt")]}))
    assert "item a: trajectory:" in found
    assert "runs/no.txt" in found
    (tmp_path / "two.jsonl").write_text('{"steps": [{}]}\n{"steps": [{}]}\n')
    found = problem(write({"items": [item(trajectory="two.jsonl")]}))
    assert "two.jsonl: holds 2 trajectories: one is needed" in found
    (tmp_path / "odd.json").write_text('{"schema_version": "ATIF-v9.1", "steps": []}')
    found = problem(write({"items": [item(trajectory="odd.json")]}))
    assert "odd.json" in found
    assert "v9.1" in found
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8" in problem(write({"items": [item(trajectory="bytes.txt")]}))
    assert "trajectory: " in problem(write({"items": [item(trajectory={"a": 1})]}))


# Whatever is in the file, what is wrong is a DataError

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from(sorted(ITEM)), inner, max_size=3)
    ),
    max_leaves=6,
)
SHOWN: Any = read_located(ROOT / "data" / "teams" / "set.yaml", "set").content


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    return [path, *(place for key in keys for place in _places(value[key], (*path, key)))]


def _loads_or_says_why(path: Path) -> None:
    try:
        load("d", path)
    except DataError as error:
        assert str(path) in str(error)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_change_of_a_set_crashes_the_reader(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(SHOWN["items"]) - 1))
    content = copy.deepcopy({"defaults": SHOWN["defaults"], "items": [SHOWN["items"][index]]})
    place = data.draw(st.sampled_from(_places(content)[1:]))
    holder: Any = content
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = data.draw(ANYTHING)
    path = tmp_path_factory.getbasetemp() / "changed.json"
    path.write_text(json.dumps(content), encoding="utf-8", errors="replace")
    _loads_or_says_why(path)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(["x.yaml", "x.json", "x.jsonl"]),
    st.sampled_from([b"", b"items:\n  - ", b"- id: ", b'{"items": [', b'[{"instruction": ']),
    st.binary(max_size=60),
)
def test_no_bytes_crash_the_reader(
    tmp_path_factory: pytest.TempPathFactory, name: str, beginning: bytes, rest: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(beginning + rest)
    _loads_or_says_why(path)


# The JSON Schema and the field reference

VALIDATOR = jsonschema.Draft202012Validator(
    read_json(ROOT / "data" / "instruction-set.schema.json")
)


def test_the_schema_is_valid_and_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    jsonschema.Draft202012Validator.check_schema(schema.schema())
    assert schema.main(["--check"]) == 0


def test_the_schema_notices_drift_and_repairs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / schema.PATH.parent).mkdir()
    assert schema.main(["--check"]) == 1
    assert "run python -m adhere.instruction_set.schema" in capsys.readouterr().err
    assert schema.main([]) == 0
    assert schema.main(["--check"]) == 0
    assert (tmp_path / schema.PATH).read_bytes() == (ROOT / schema.PATH).read_bytes()


def test_the_shipped_set_names_the_schema_and_keeps_to_it() -> None:
    path = ROOT / "data" / "teams" / "set.yaml"
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    named = first.removeprefix("# yaml-language-server: $schema=")
    assert (path.parent / named).resolve() == (ROOT / schema.PATH).resolve()
    VALIDATOR.validate(SHOWN)
    VALIDATOR.validate(SHOWN["items"])
    for line in [{"defaults": SHOWN["defaults"]}, *SHOWN["items"]]:
        VALIDATOR.validate(line)


@pytest.mark.parametrize("name", [name for registry in REGISTRIES for name in registry.rules])
def test_the_schema_knows_every_rule(name: str) -> None:
    registry = next(registry for registry in REGISTRIES if name in registry)
    rule = registry.rules[name]
    for example in [*rule.passes, *rule.fails]:
        VALIDATOR.validate(item(constraints=[{"rule": name, "args": dict(example.args)}]))
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(item(constraints=[{"rule": name, "args": {"no_such_argument": 1}}]))


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {},
        {"items": []},
        {"items": [item()], "default": {}},
        {"defaults": {"layout": "usr"}},
        item(id=..., scenario="x"),
        item(instruction=""),
        item(constraints=...),
        item(constraint=[]),
        item(constraints={"max_sentence": 2}),
        item(constraints={}),
        item(constraints=[{"rule": "jsn"}]),
        item(constraints=[{"rule": "words", "args": {"max": "two"}}]),
        item(constraints=[{"rule": "contains"}]),
        item(constraints=[{"rule": "json", "ask": "Fine."}]),
        item(constraints=[{"text": "nothing"}]),
        item(constraints=[{"ask": "Fine.", "args": {"max": 1}}]),
        item(constraints=[{"rule": "json", "category": "hard", "severity": "should"}]),
        item(constraints=[{"rule": "json", "level": "stp"}]),
        item(verification={"rule": []}),
        item(verification={"format": "jsn"}),
        item(tool_responses=[{"tool": "look"}]),
        item(max_turns=0),
    ],
)
def test_the_schema_refuses_what_is_wrong(write: Write, wrong: Any) -> None:
    assert not VALIDATOR.is_valid(wrong)
    one_item = isinstance(wrong, dict) and "instruction" in wrong
    problem(write({"items": [wrong]} if one_item else wrong))


def test_the_field_reference_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert reference.main(["--check"]) == 0


def test_the_example_of_the_page_loads(write: Write) -> None:
    page = (ROOT / reference.PAGE).read_text(encoding="utf-8")
    example = page.split("```yaml\n", 1)[1].split("```", 1)[0]
    assert [row["id"] for row in load("d", write(example)).rows] == ["product", "complaint"]
    VALIDATOR.validate(read_located(write(example), "set").content)


# What a fresh pair of eyes found


def test_a_compact_form_that_asks_for_nothing_is_refused_with_its_line(write: Write) -> None:
    told = problem(write({"items": [item(constraints={"json": False})]}))
    assert "line 5: item a: constraints: ask for nothing" in told


def test_a_set_that_contains_itself_is_refused_with_its_line(write: Write) -> None:
    text = "items:\n- &x\n  id: a\n  instruction: i\n  input: *x\n  constraints: {json: true}\n"
    assert "not valid YAML: line 2, column 3: a value contains itself" in problem(write(text))


def test_aliases_that_blow_up_are_refused(write: Write) -> None:
    levels = "".join(
        f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]\n" if n else "x0: &x0 [0]\n"
        for n in range(8)
    )
    assert "aliases (*name) make more than 1,000,000 values" in problem(
        write(levels + "items: *x7\n")
    )


def test_a_trajectory_that_does_not_say_its_tools_has_those_of_its_item() -> None:
    output = {
        "content": "done",
        "trajectory": {"steps": [{"action": {"tool": "hack", "args": {}}}]},
    }
    rule = canonical({"rule": "no_unknown_tool", "args": {}}).decode()
    tools = [{"type": "function", "function": {"name": "lookup"}}]
    assert Evidence(output).apply(rule, "done").verdict is None
    assert Evidence(output, tools).apply(rule, "done").verdict is False
    assert (
        Evidence(output, [{"type": "function", "function": {"name": "hack"}}])
        .apply(rule, "done")
        .verdict
    )


def test_every_line_about_a_rule_names_its_place(write: Write) -> None:
    rule = {"rule": "contains_all", "args": {"keywords": [True, 3]}}
    told = problem(write({"items": [item(constraints=[rule])]}))
    assert "keywords.0" in told and "keywords.1" in told
    for number, line in zip((9, 10), told.splitlines(), strict=True):
        assert f"set.yaml: line {number}: item a: constraints.0: rule `contains_all`: " in line
