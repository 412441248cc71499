"""Datasets: every form a file may have, every problem named by item, constraint and key."""

import copy
import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adhere.data import (
    Constraint,
    Row,
    Step,
    asks_judge,
    check,
    constraints,
    label,
    load,
    load_cached,
    load_rows,
    occurrences,
)
from adhere.dataset_notes import notes
from adhere.errors import DataError
from adhere.jsonio import canonical
from adhere.scoring.parse import parse_results

# A busy machine is no reason to fail.
PATIENT = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared"))
AGENTIF = SHARED / "data" / "agentif" / "eval.json.gz"
BOM = b"\xef\xbb\xbf"


def row(text: str = "Write a poem.", **more: object) -> Row:
    steps = [
        {"type": "llm", "exec": "Is it a poem? {response}", "required_keys": ["response"]},
        {"type": "code", "exec": "def check_following(response):\n    return True"},
    ]
    return {
        "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}],
        "constraints": [{"id": 1, "desc": "d", "evaluation": steps}],
        **more,
    }


ROWS = [row("First\r\nline"), row("\u2028 separator \x85 next"), row("诗歌 😀", id=7)]


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def as_json(rows: object) -> bytes:
    return json.dumps(rows, ensure_ascii=False).encode()


def as_lines(rows: list[Row]) -> bytes:
    return b"".join(as_json(r) + b"\n" for r in rows)


# Forms of a file


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.json", as_json(ROWS)),
        ("d.json", json.dumps(ROWS, indent=4).encode()),
        ("d.json", BOM + as_json(ROWS)),
        ("d.json", as_json(ROWS).replace(b", ", b",\r\n")),
        ("d.json", gzip.compress(as_json(ROWS))),
        ("d.json.gz", gzip.compress(BOM + as_json(ROWS))),
        ("d.json.gz", as_json(ROWS)),
        ("d.jsonl", as_lines(ROWS)),
        ("d.jsonl", as_lines(ROWS).rstrip(b"\n")),
        ("d.jsonl", BOM + as_lines(ROWS).replace(b"\n", b"\r\n")),
        ("d.jsonl", b"\n  \n" + as_lines(ROWS).replace(b"\n", b"\n\n")),
        ("d.jsonl", gzip.compress(as_lines(ROWS))),
        ("d.jsonl.gz", gzip.compress(as_lines(ROWS))),
    ],
)
def test_every_form_gives_the_same_rows_and_checksum(
    tmp_path: Path, name: str, content: bytes
) -> None:
    """A line separator or CRLF inside a text is text: neither splits a line nor is normalised."""
    dataset = load("own", written(tmp_path / name, content))
    assert list(dataset.rows) == ROWS
    assert dataset.total == 3
    plain = load("other", written(tmp_path / "plain.json", as_json(ROWS)))
    assert dataset.sha256 == plain.sha256
    assert dataset.inputs_sha256 == plain.inputs_sha256


def test_the_checksum_ignores_the_order_of_keys_only(tmp_path: Path) -> None:
    def checksum(rows: list[Row]) -> str:
        return load("d", written(tmp_path / "d.json", as_json(rows))).sha256

    first = checksum(ROWS)
    turned = [{key: r[key] for key in reversed(r)} for r in ROWS]
    assert list(turned[0]) != list(ROWS[0])
    assert checksum(turned) == first
    assert checksum(ROWS[::-1]) != first
    assert checksum(ROWS[:2]) != first
    for path, value in (
        ("0.input.0.content", "Be  brief."),
        ("1.constraints.0.evaluation.1.exec", "x"),
        ("2.id", "7"),
    ):
        rows = copy.deepcopy(ROWS)
        set_at(rows, path, value)
        assert checksum(rows) != first


def test_a_changed_constraint_leaves_what_models_see(tmp_path: Path) -> None:
    rows = copy.deepcopy(ROWS)
    rows[0]["constraints"][0]["evaluation"][0]["exec"] = "Changed"
    before = load("d", written(tmp_path / "a.json", as_json(ROWS)))
    after = load("d", written(tmp_path / "b.json", as_json(rows)))
    assert before.sha256 != after.sha256
    assert before.inputs_sha256 == after.inputs_sha256


def test_a_limit_keeps_the_files_own_checksum(tmp_path: Path) -> None:
    dataset = load("d", written(tmp_path / "d.json", as_json(ROWS)))
    limited = dataset.first(2)
    assert (list(limited.rows), limited.total) == (ROWS[:2], 3)
    assert limited.sha256 == dataset.sha256
    assert limited.inputs_sha256 != dataset.inputs_sha256
    for limit in (None, 3, 4):
        assert dataset.first(limit) is dataset


def test_a_dataset_is_read_again_when_its_file_changed(tmp_path: Path) -> None:
    path = written(tmp_path / "d.json", as_json(ROWS))
    first = load_cached("d", path)
    assert load_cached("d", path) is first
    written(path, as_json(ROWS[:1]))
    assert load_cached("d", path).total == 1


# What is refused


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("d.json", b"", "d.json: not valid JSON"),
        ("d.jsonl", b"", "d.jsonl: holds no item"),
        ("d.jsonl", b"\n \n", "d.jsonl: holds no item"),
        ("d.json", b"[]", "d.json: holds no item"),
        ("d.json", b"{}", "d.json: must hold a list of items, found dict"),
        ("d.json", b"null", "d.json: must hold a list of items, found NoneType"),
        ("d.json", b'[{"input": NaN}]', "d.json: not valid JSON"),
        ("d.json", as_lines(ROWS), "d.json: not valid JSON"),
        ("d.json", b"[1]", "d.json: item 1: must be an object, found 1"),
        ("d.jsonl", as_json(ROWS[0]) + b"\n[]\n", r"d.jsonl: item 2: must be an object, found \[]"),
        ("d.jsonl", b"{}\n{}\n{]", "d.jsonl: line 3: not valid JSON"),
        ("d.jsonl", b'\n{"a": Infinity}', "d.jsonl: line 2: not valid JSON"),
        ("d.json", b"\xff\xfe[\x00]\x00", "d.json: not valid JSON: the file is in UTF-16 or "),
        (
            "d.json",
            b'[{"x": "caf\xe9"}]',
            "not valid JSON: byte 12 is 0xe9, .* UTF-8: save",
        ),
        ("d.jsonl", b'{}\n{"a": }', r"d.jsonl: line 2: not valid JSON: [^\n]*: column 7 "),
        ("d.json", gzip.compress(as_json(ROWS))[:-9], "d.json: cannot be read"),
        ("d.json", b"\x1f\x8b garbage", "d.json: cannot be read"),
        (
            "d.json",
            b'[{"x": ' + b"[" * 300 + b"]" * 300 + b"}]",
            "d.json: item 1: cannot be kept: Recursion",
        ),
        ("d.json", b"[" * 100_000 + b"]" * 100_000, "d.json: not valid JSON"),
    ],
)
def test_a_file_that_is_no_dataset_is_refused(
    tmp_path: Path, name: str, content: bytes, found: str
) -> None:
    with pytest.raises(DataError, match=found):
        load_rows(written(tmp_path / name, content))


def test_no_damage_of_a_compressed_file_goes_unnoticed(tmp_path: Path) -> None:
    content = gzip.compress(as_json(ROWS), mtime=0)
    for position in range(10, len(content) - 4):
        damaged = bytearray(content)
        damaged[position] ^= 0x55
        with pytest.raises(DataError, match=r"d\.json"):
            load_rows(written(tmp_path / "d.json", bytes(damaged)))


def test_a_dataset_with_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    text = '[{"id": "a", "input": [], "constraints": [], "input": []}]'
    path = written(tmp_path / "d.json", text.encode())
    with pytest.raises(DataError, match="key 'input' is given twice in 0 "):
        load("d", path)
    # What the program wrote is read as it is.
    assert load_rows(path)[0]["id"] == "a"


def test_a_file_that_is_not_there_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.json: no such file"):
        load("d", tmp_path / "absent.json")
    with pytest.raises(DataError, match=r"absent\.json: dataset 'd' .*data/README\.md"):
        load_cached("d", tmp_path / "absent.json")
    with pytest.raises(DataError, match="cannot be read"):
        load("d", tmp_path)


def set_at(value: Row | list[Row], path: str, new: object) -> None:
    """Set what a dotted path names; a number is a position."""
    *parents, last = path.split(".")
    inner: Any = value
    for key in parents:
        inner = inner[int(key)] if key.isdecimal() else inner[key]
    inner[int(last) if last.isdecimal() else last] = new


CONSTRAINTS = "constraints: must be a list with at least one constraint"
EVALUATION = "constraint 1: evaluation: must be a list with at least one step"
STEP = "constraint 1: evaluation step 2: "
TYPES = "allowed: llm, llm_conditional_check, code, rule"


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("input", "text", "input: must be a list with at least one message"),
        ("input", [], "input: must be a list with at least one message"),
        ("input.1", "text", "input: message 2: must be an object with role and content"),
        ("input.1.role", None, "input: message 2: role and content must both be text"),
        ("input.0.content", None, "input: message 1: role and content must both be text"),
        ("input.0.content", [{"text": "x"}], "input: message 1: role and content must both be"),
        ("constraints", None, CONSTRAINTS),
        ("constraints", [], CONSTRAINTS),
        ("constraints", {}, CONSTRAINTS),
        ("constraints.0", "Rhyme!", "constraint 1: must be an object, found 'Rhyme!'"),
        ("constraints.0.evaluation", None, EVALUATION),
        ("constraints.0.evaluation", [], EVALUATION),
        ("constraints.0.evaluation", {"type": "llm"}, EVALUATION),
        ("constraints.0.evaluation.1", 3, f"{STEP}type: found 3; {TYPES}"),
        (
            "constraints.0.evaluation.1",
            {"type": "rule", "exec": {"rule": "sentence", "args": {"max": 2}}},
            f"{STEP}exec: unknown rule `sentence` (did you mean `sentences`?); docs/rules.md lists "
            "all of them",
        ),
        (
            "constraints.0.evaluation.1",
            {"type": "rule", "exec": {"rule": "sentences", "args": {"least": 2}}},
            f"{STEP}exec: rule `sentences`: least: unknown key; allowed: language, max, min",
        ),
        ("constraints.0.evaluation.1.type", "shell", f"{STEP}type: found 'shell'; {TYPES}"),
        ("constraints.0.evaluation.1.type", None, f"{STEP}type: found None; {TYPES}"),
        ("constraints.0.evaluation.1.type", ["llm"], f"{STEP}type: found ['llm']; {TYPES}"),
        ("constraints.0.evaluation.1.exec", None, f"{STEP}exec: must be a text that is not empty"),
        ("constraints.0.evaluation.1.exec", " \n", f"{STEP}exec: must be a text that is not empty"),
        (
            "constraints.0.evaluation.1.required_keys",
            ["response", "tools"],
            f"{STEP}required_keys: found ['response', 'tools']; supported: ['response']",
        ),
        (
            "constraints.0.evaluation.1.required_keys",
            [None],
            f"{STEP}required_keys: found [None]; supported: ['response']",
        ),
    ],
)
def test_each_problem_is_named(tmp_path: Path, path: str, value: object, problem: str) -> None:
    assert check(row()) == []
    broken = row()
    set_at(broken, path, value)
    (found,) = check(broken)
    assert found.startswith(problem)
    with pytest.raises(DataError) as error:
        load("d", written(tmp_path / "d.json", as_json([row(), broken])))
    assert str(error.value) == f"{tmp_path / 'd.json'}: item 2: {found}"


@pytest.mark.parametrize("value", [1.5, True, [1], {}])
def test_an_id_that_no_result_could_have_is_refused_before_anything_runs(value: object) -> None:
    for path, place in (("id", "id: "), ("constraints.0.id", "constraint 1: id: ")):
        broken = row()
        set_at(broken, path, value)
        (found,) = check(broken)
        assert found.startswith(f"{place}found {value!r}: must be a text, a whole number")


FORMS = st.dictionaries(
    st.sampled_from(
        ["id", "type", "dimension", "is_meta", "is meta", "is_meat", "category", "severity"]
    ),
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=3),
        st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=2), st.just({}),
    ),
)  # fmt: skip


@given(FORMS, st.one_of(st.none(), st.text(max_size=3), st.integers(), st.floats()))
def test_what_a_dataset_may_say_of_a_constraint_can_be_scored(
    labels: Row, scenario: object
) -> None:
    """A wrong label is found here, not after everything is paid for."""
    given_row = row() | {"scenario": scenario}
    given_row["constraints"][0] |= labels
    for raw in given_row["constraints"]:
        raw |= {"score": True, "null_reason": None, "steps": []}
    if not check(given_row):
        parse_results([given_row | {"output": {"content": "x"}}], "results.json")


@pytest.mark.parametrize("keys", [None, [], ["response"]])
def test_a_step_may_require_the_response_or_nothing(keys: object) -> None:
    asking = row()
    set_at(asking, "constraints.0.evaluation.1.required_keys", keys)
    assert check(asking) == []


@pytest.mark.parametrize("key", ["input", "constraints"])
def test_a_missing_key_is_named(key: str) -> None:
    broken = row()
    del broken[key]
    (found,) = check(broken)
    assert found.startswith(f"{key}: must be a list")


def test_all_problems_are_named_at_once_and_the_message_stays_short(tmp_path: Path) -> None:
    broken = row("x" * 10_000, id="q1")
    broken["input"][0]["role"] = 7
    broken["constraints"].append({"evaluation": ["y" * 10_000]})
    with pytest.raises(DataError) as error:
        load("d", written(tmp_path / "d.json", as_json([broken] * 15)))
    lines = str(error.value).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "… and 10 problems more"
    assert "item 1 (id q1): input: message 1" in lines[0]
    assert "item 1 (id q1): constraint 2: evaluation step 1: type: found 'yyy" in lines[1]
    assert max(map(len, lines)) < 400


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"dimension": 3}, "dimension: found 3: must be a text or null"),
        ({"type": ["semantic", None]}, "type: found ['semantic', None]: must be a text, a list"),
        ({"type": {"semantic": 1}}, "type: found {'semantic': 1}: must be a text, a list of"),
    ],
)
def test_labels_that_scoring_would_refuse_are_refused_before(labels: Row, expected: str) -> None:
    broken = row()
    broken["constraints"][0] |= labels
    (found,) = check(broken)
    assert found.startswith(f"constraint 1: {expected}")


def test_unusual_labels_are_named_once_and_counted(tmp_path: Path) -> None:
    usual: Row = {"dimension": "conditional", "type": ["resource", "semantic"]}
    odd: Row = {"dimension": "contitional", "type": ["resource", "size"]}
    rows = [row(id=name) for name in "abc"]
    for made, labels in zip(rows, (usual, odd, odd), strict=True):
        made["constraints"][0] |= labels
    loaded = load("d", written(tmp_path / "d.json", as_json(rows)))
    assert [note for note in notes(loaded.rows) if "AgentIF's" in note] == [
        "item 2 (id b) constraint 1 and 1 more: dimension 'contitional' is none of AgentIF's "
        "(unconditional, conditional, example_driven): counted like any other, and a group of its "
        "own in reports",
        "item 2 (id b) constraint 1 and 1 more: type 'size' is none of AgentIF's (formatting, "
        "semantic, resource): counted like any other, and a group of its own in reports",
    ]


def test_an_item_is_named_by_position_and_id() -> None:
    assert label(0, {}) == "item 1"
    assert label(4, {"id": 0}) == "item 5 (id 0)"
    assert label(4, {"query_id": "a"}) == "item 5 (id a)"
    assert label(4, {"id": None}) == "item 5"
    assert len(label(4, {"id": ["long"] * 1000})) < 100


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["input", "constraints", "role", "content", "evaluation", "type", "exec", "required_keys", "id"]
)
JUNK = st.recursive(
    JSON | st.sampled_from(["llm", "code", "response", ["response"], []]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)


@PATIENT
@given(st.dictionaries(KEYS, JUNK, max_size=4))
def test_junk_is_described_and_never_crashes(junk: Row) -> None:
    problems = check(junk)
    assert all(isinstance(problem, str) and problem for problem in problems)
    if not problems:
        assert all(c.steps for c in constraints(junk))


@PATIENT
@given(st.data())
def test_a_row_with_any_part_replaced_is_read_or_described(data: st.DataObject) -> None:
    """A row that is not complained about can be used."""
    changed = row()
    places = ["input", "input.0", "input.0.content", "constraints", "constraints.0"]
    places += ["constraints.0.evaluation", "constraints.0.evaluation.1", "constraints.0.id"]
    set_at(changed, data.draw(st.sampled_from(places)), data.draw(JUNK))
    if not check(changed):
        (first, *_) = constraints(changed)
        assert all(isinstance(step.text, str) and step.text.strip() for step in first.steps)
        assert all(isinstance(message["content"], str) for message in changed["input"])


# Reading a checked row


def test_constraints_keep_their_order_and_their_steps() -> None:
    read = constraints(row())
    checker = "def check_following(response):\n    return True"
    steps = (Step("llm", "Is it a poem? {response}"), Step("code", checker))
    assert read == [Constraint(0, steps)]


def test_a_judge_is_needed_where_any_step_asks_one() -> None:
    code_only = row()
    del code_only["constraints"][0]["evaluation"][0]
    condition = copy.deepcopy(code_only)
    condition["constraints"][0]["evaluation"][0]["type"] = "llm_conditional_check"
    assert not asks_judge([code_only])
    assert asks_judge([code_only, condition])
    assert asks_judge([code_only, row()])


@PATIENT
@given(st.lists(st.sampled_from("abc")))
def test_equal_values_are_numbered_in_their_order(values: list[str]) -> None:
    numbered = list(zip(values, occurrences(values), strict=True))
    assert len(set(numbered)) == len(values)
    assert numbered == [(v, values[:n].count(v)) for n, v in enumerate(values)]


# The benchmark's own file

needs_agentif = pytest.mark.skipif(
    not AGENTIF.exists(), reason="not on this machine: AgentIF's eval.json.gz (ADHERE_SHARED)"
)


@needs_agentif
def test_the_benchmark_is_read_whole() -> None:
    dataset = load("eval", AGENTIF)
    assert dataset.total == len(dataset.rows) == 707
    chains = [c for r in dataset.rows for c in constraints(r)]
    assert len(chains) == 8449
    assert Counter("→".join(step.type for step in c.steps) for c in chains) == {
        "llm": 4172,
        "code": 2094,
        "llm_conditional_check→llm": 840,
        "llm→code": 734,
        "llm_conditional_check→code": 554,
        "llm→llm": 33,
        "llm_conditional_check": 12,
        "llm_conditional_check→llm→code": 10,
    }


@needs_agentif
def test_duplicate_items_stay_apart() -> None:
    """15 rows repeat the messages and constraints of another row, under another id."""
    rows = load("eval", AGENTIF).rows
    contents = [canonical([r["input"], r["constraints"]]).decode() for r in rows]
    numbers = occurrences(contents)
    assert sum(number > 0 for number in numbers) == 15
    assert len(set(zip(contents, numbers, strict=True))) == 707
