"""JSON in and out: strict, tolerant of what providers send, and never half written."""

import gzip
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adhere import jsonio
from adhere.errors import DataError

# A busy machine is no reason to fail.
PATIENT = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared"))
CASES = SHARED / "cases" / "robustness.jsonl"
BOM = b"\xef\xbb\xbf"
REPLACED = "\ufffd"


def shared_cases(kind: str) -> list[dict[str, Any]]:
    """Return the cases of a kind; none where the file is not there."""
    if not CASES.exists():
        return []
    cases = [json.loads(line) for line in CASES.read_text("utf-8").split("\n") if line]
    return [case for case in cases if case["kind"] == kind]


# Reading


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1, "b": 2, "a": 1}', "key 'a' is given twice: keep one"),
        ('[{"b": {}}, {"b": [0, {"c": 1, "c": 2}]}]', "'c' is given twice in 1.b.1 (positions fr"),
        # What a repeated key hides is not pointed at; the key that hides it is.
        ('{"x": {"a": {"c": 1, "c": 2}, "a": 3}}', "key 'a' is given twice in x ("),
        ('{"\\u0061": "\\ud800", "a": 2}', "key 'a' is given twice"),
        ("\ufeff" + '{"a": "😀", "a": 2}', "key 'a' is given twice"),
    ],
)
def test_a_key_given_twice_is_refused_where_people_write(
    tmp_path: Path, text: str, told: str
) -> None:
    one, many = tmp_path / "one.json", tmp_path / "many.jsonl"
    one.write_text(text, encoding="utf-8")
    many.write_text('{"a": {"a": 1}}\n' + text.removeprefix("\ufeff") + "\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        jsonio.read_json(one, unique_keys=True)
    assert str(caught.value).startswith(f"{one}: ") and told in str(caught.value)
    with pytest.raises(DataError) as caught:
        jsonio.read_jsonl(many, unique_keys=True)
    assert str(caught.value).startswith(f"{many}: line 2: ") and told in str(caught.value)
    jsonio.read_json(one)
    assert len(jsonio.read_jsonl(many)) == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"[]", []),
        (BOM + b"[]", []),
        ("\ufeff[]", []),
        (b' {"a": 1.5}\r\n', {"a": 1.5}),
        ('"\u2028\x85"', "\u2028\x85"),
        (b'"\\u2028 \\ud83d\\ude00"', "\u2028 😀"),
        # Of a key given twice the last value counts, whichever parser reads it.
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b'{"a": 1, "b": "\\ud800", "a": 2}', {"a": 2, "b": REPLACED}),
        (b"-9223372036854775808", -(2**63)),
        (b"18446744073709551615", 2**64 - 1),
        (b'["\\ud800", 18446744073709551615, 1e3]', [REPLACED, 2**64 - 1, 1000.0]),
        # What 64 bits do not hold is a float, again with either parser.
        (b"[18446744073709551616]", [float(2**64)]),
        (b'["\\ud800", 18446744073709551616]', [REPLACED, float(2**64)]),
    ],
)
def test_json_is_read(text: bytes | str, value: object) -> None:
    assert jsonio.loads(text) == value
    assert type(jsonio.loads(text)) is type(value)


LONE = b'"\\ud800"'


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        BOM,
        BOM + BOM + b"[]",
        b"NaN",
        b'{"score": NaN}',
        b"[Infinity]",
        b"[-Infinity]",
        b"[1e999]",
        b"[nan]",
        b"[01]",
        b"[.5]",
        b"[+1]",
        b"[1,]",
        b"{'a': 1}",
        b"[1] [2]",
        b"// c\n[]",
        b'"tab\there"',
        b'"\x00"',
        b'"\\x41"',
        b'"\\u12"',
        b'["a"',
        b"tru",
        b"\xff",
        b'"\xe4"',
        b"[\x00]\x00",
        '["x"]'.encode("utf-16"),
    ],
)
def test_what_is_not_json_is_refused(text: bytes) -> None:
    """Both by the fast parser and by the one that reads lone surrogates."""
    with pytest.raises(ValueError):
        jsonio.loads(text)
    with pytest.raises(ValueError):
        jsonio.loads(b"[" + LONE + b", " + text + b"]")


@pytest.mark.parametrize("start", [b"[", b'{"a":'])
@pytest.mark.parametrize("first", [b"1", LONE])
def test_nesting_without_end_is_refused(start: bytes, first: bytes) -> None:
    text = b"[" + first + b"," + start * 200_000
    with pytest.raises((ValueError, RecursionError)):
        jsonio.loads(text)


def test_thousands_of_digits_are_refused() -> None:
    for text in (b"1" * 5000, b"[" + LONE + b"," + b"1" * 5000 + b"]"):
        with pytest.raises(ValueError):
            jsonio.loads(text)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain", "plain"),
        ("é\x00", "é\x00"),
        ("bad \ud835 char", f"bad {REPLACED} char"),
        ("\udc00", REPLACED),
        ("\ud800", REPLACED),
        ("\udc00\ud800x", f"{REPLACED}{REPLACED}x"),
        ("\ud83d\ude00", "😀"),
    ],
)
def test_lone_surrogates_are_replaced_one_by_one(text: str, cleaned: str) -> None:
    assert jsonio.clean_text(text) == cleaned
    assert jsonio.clean({text: [text, 1, None]}) == {cleaned: [cleaned, 1, None]}
    assert jsonio.loads(json.dumps({text: [text]})) == {cleaned: [cleaned]}
    assert jsonio.loads(json.dumps([text], ensure_ascii=False)) == [cleaned]


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)


def values(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | text,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
        max_leaves=12,
    )


@PATIENT
@given(values(st.text(max_size=20)))
def test_what_is_written_is_read_back(value: object) -> None:
    assert jsonio.loads(jsonio.dumps(value)) == value
    assert jsonio.loads(jsonio.dumps(value, indent=True)) == value
    assert jsonio.loads(jsonio.canonical(value)) == value


@PATIENT
@given(values(ANY_TEXT))
def test_whatever_is_read_can_be_written(value: object) -> None:
    """Any text a provider may send, escaped or not, ends as JSON that every reader takes."""
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        read = jsonio.loads(text)
        assert json.loads(jsonio.dumps(read)) == read
    assert jsonio.loads(json.dumps(value)) == jsonio.clean(value)


@PATIENT
@given(st.binary(max_size=60))
def test_no_bytes_crash_the_reader(data: bytes) -> None:
    try:
        read = jsonio.loads(data)
    except (ValueError, RecursionError):
        return
    jsonio.dumps(read)


# Files


@pytest.mark.skipif(not CASES.exists(), reason="not on this machine: robustness.jsonl")
def test_the_shared_cases_of_json_texts(tmp_path: Path) -> None:
    handled = 0
    path = tmp_path / "case.json"
    for case in shared_cases("json_text"):
        path.write_text(case["input"], encoding="utf-8")
        if case["expected"] == "same as without BOM":
            assert jsonio.read_json(path) == json.loads(case["input"].removeprefix("\ufeff"))
            handled += 1
        if case["expected"] == "rejected, naming file and line":
            with pytest.raises(DataError, match=r"case\.json: not valid JSON: .*line 1"):
                jsonio.read_json(path)
            handled += 1
    assert handled == len(shared_cases("json_text")) > 0


@pytest.mark.skipif(not CASES.exists(), reason="not on this machine: robustness.jsonl")
def test_the_shared_cases_of_reply_texts(tmp_path: Path) -> None:
    assert shared_cases("reply_text")
    for case in shared_cases("reply_text"):
        received = jsonio.loads(json.dumps({"content": case["input"]}))
        jsonio.write_json(tmp_path / "reply.json", received)
        assert jsonio.read_json(tmp_path / "reply.json") == received
        assert received["content"].replace(REPLACED, "") == "".join(
            c for c in case["input"] if not "\ud800" <= c <= "\udfff"
        )


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{"a": 1}\n{"a": NaN}\n', 2),
        (b"\n\n[1,]", 3),
        (BOM + b'"\\ud800"\n"\\ud800', 2),
        (b'"\xe2\x80\xa8"\r\n{', 2),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, content: bytes, line: int) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"x\.jsonl: line {line}: not valid JSON"):
        jsonio.read_jsonl(path)


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    values = ["a\u2028b\u2029c\x85d\x0be\x0cf", "g\r\nh", "i\rj"]
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join(jsonio.dumps(v) + b"\n" for v in values) + b'{"a":\r1}\r\n')
    assert jsonio.read_jsonl(path) == [*values, {"a": 1}]
    assert len(list(jsonio.lines(path.read_bytes()))) == 4
    assert list(jsonio.lines(b"\n \n\r\na\r\n")) == [b"a\r"]


def test_a_compressed_file_is_known_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(gzip.compress(b'{"a":') + gzip.compress(b" 1}"))
    assert jsonio.read_json(path) == {"a": 1}


# Writing


def test_files_are_written_as_people_read_them(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folders" / "x.json"
    jsonio.write_json(path, {"b": "é\u2028", "a": [1]})
    assert path.read_text("utf-8") == '{\n  "b": "é\u2028",\n  "a": [\n    1\n  ]\n}\n'
    jsonio.write_json(path, [1, 2], indent=False)
    assert path.read_bytes() == b"[1,2]\n"
    jsonio.write_text(path, "naïve\r\n")
    assert path.read_bytes() == "naïve\r\n".encode()
    assert [p.name for p in path.parent.iterdir()] == ["x.json"]


class Interrupted(BaseException):
    """Stands for a signal that arrives while a file is written."""


@pytest.mark.parametrize("error", [Interrupted(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("step", ["fdopen", "chmod", "replace"])
def test_a_failed_write_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    path = tmp_path / "x.json"
    jsonio.write_json(path, "old")

    def fail(*_arguments: object) -> None:
        raise error

    owner: object = os if step == "fdopen" else Path
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, fail)
        if isinstance(error, OSError):
            with pytest.raises(DataError, match=r"x\.json: cannot be written: No space left"):
                jsonio.write_json(path, "new")
        else:
            with pytest.raises(Interrupted):
                jsonio.write_json(path, "new")
    assert jsonio.read_json(path) == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_what_cannot_be_serialised_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    jsonio.write_json(path, "old")
    for value in ({1: 2}, {"a": object()}, {"a": "\ud800"}):
        with pytest.raises(TypeError):
            jsonio.write_json(path, value)
    assert path.read_bytes() == b'"old"\n'
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "x.json", tmp_path / "folder"):
        with pytest.raises(DataError, match=f"{path}: cannot be written: .*correct the path"):
            jsonio.write_json(path, 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_permissions_follow_the_umask(tmp_path: Path, mask: int, mode: int) -> None:
    path = tmp_path / "x.json"
    with umask(mask):
        for _ in ("new", "replaced"):
            jsonio.write_json(path, 1)
            assert stat.S_IMODE(path.stat().st_mode) == mode
        assert os.umask(mask) == mask, "the umask is what it was"


# Canonical form and fingerprints


def test_the_canonical_form_never_changes() -> None:
    """Journals of earlier versions are found by it."""
    value = {"b": [1, 1.0, True, None, "é\u2028"], "a": {"z": 1, "a": -0.5}}
    text = '{"a":{"a":-0.5,"z":1},"b":[1,1.0,true,null,"é\u2028"]}'.encode()
    assert jsonio.canonical(value) == text
    assert jsonio.fingerprint(value) == hashlib.sha256(text).hexdigest()
    assert jsonio.fingerprint([]) == (
        "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
    )


@PATIENT
@given(values(st.text(max_size=20)), st.randoms())
def test_equal_values_have_equal_fingerprints(value: object, random: Any) -> None:
    assert jsonio.fingerprint(shuffled(value, random.shuffle)) == jsonio.fingerprint(value)


def shuffled(value: object, shuffle: Callable[[list[Any]], None]) -> object:
    """Return an equal value whose objects have their keys in another order."""
    if isinstance(value, list):
        return [shuffled(element, shuffle) for element in value]
    if isinstance(value, dict):
        keys = list(value)
        shuffle(keys)
        return {key: shuffled(value[key], shuffle) for key in keys}
    return value


@pytest.mark.parametrize(
    ("one", "other"), [(1, 1.0), (1, True), (0, None), ("1", 1), ([], {}), ([1, [2]], [[1], 2])]
)
def test_different_values_have_different_fingerprints(one: object, other: object) -> None:
    assert jsonio.fingerprint(one) != jsonio.fingerprint(other)
