"""The archive of failures, and spreadsheets' tables."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adhere import files, jsonio
from adhere.csv_table import read_csv, write_csv
from adhere.errors import DataError
from adhere.gate import archive
from adhere.instruction_set import read_set, to_rows
from adhere.plan import Cell, Evaluation
from adhere.scoring import score_file

Row = dict[str, Any]
MESSAGES = [
    {"role": "system", "content": "Be brief about {input}."},
    {"role": "user", "content": "How much?\n\nIn EUR."},
]
RULE = {
    "id": "short",
    "rule": "words",
    "category": "format",
    "failure_mode": "format",
    "evaluation": [{"type": "rule", "exec": {"rule": "words", "args": {"max": 1}}}],
}
ASK = {
    "desc": "It is polite.",
    "category": "content",
    "evaluation": [{"type": "llm", "exec": "Requirement: It is polite.\n{response}"}],
}
CODE = {"evaluation": [{"type": "code", "exec": "def check_following(r):\n    return 1 / 0"}]}


def judged(constraint: Row, score: bool | None, **more: Any) -> Row:
    """Return a constraint as judge writes it."""
    fresh = {"score": score, "llm_output": None, "null_reason": None, "steps": []}
    return constraint | fresh | more


def scored(root: Path, rows: list[Row], run: int = 1) -> Evaluation:
    """Write one scored file."""
    evaluation = Evaluation(Cell("agent", "plain", run, "team"), "strict")
    path = files.results(root, evaluation)
    jsonio.write_json(path, rows)
    score_file(path, "adhere", path.with_name("accuracy.json"), None)
    return evaluation


def row(*constraints: Row, content: str = "Twelve euros.", **more: Any) -> Row:
    """Return an item as judge writes it."""
    output = {"content": content, "error": None}
    return {"id": "a", "input": MESSAGES, "constraints": list(constraints), "output": output} | more


def failing(content: str = "Twelve euros.") -> Row:
    """Return an item that fails a rule and a question, and whose checker is broken."""
    said = [{"type": "rule", "result": False, "found": "2 words, at most 1 required"}]
    return row(
        judged(RULE, False, steps=said),
        judged(ASK, False, llm_output="It is rude.\nNO"),
        judged(CODE, None, null_reason="checker_error", steps=[{"type": "code"}]),
        judged(RULE | {"id": "fine"}, True),
        content=content,
    )


def entries(path: Path) -> list[archive.Entry]:
    """Return an archive's lines."""
    return list(archive.load(path).values())


def test_failures_are_kept_once_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "archive" / "failures.jsonl"
    evaluation = scored(tmp_path, [failing()])
    added = archive.add(path, tmp_path, [evaluation], "2026-11-01")
    assert (added.new, added.seen_again, added.lost) == (3, 0, 0)
    short, polite, broken = entries(path)
    assert (short["cause"], short["kind"], short["count"]) == ("unlabelled", "format", 1)
    assert short["found"] == "2 words, at most 1 required" and short["models"] == ["agent"]
    assert (polite["kind"], polite["found"]) == ("other", "It is rude. NO")
    assert (broken["cause"], broken["kind"]) == ("faulty_check", "checker_error")
    assert archive.add(path, tmp_path, [evaluation], "2026-11-02").seen_again == 0
    assert entries(path)[0]["last_seen"] == "2026-11-01"
    again = scored(tmp_path, [failing("Twelve Euro.")], run=2)
    added = archive.add(path, tmp_path, [evaluation, again], "2026-11-03")
    assert (added.new, added.seen_again) == (0, 3)
    short = entries(path)[0]
    assert (short["count"], short["first_seen"], short["last_seen"], short["answer"]) == (
        2,
        "2026-11-01",
        "2026-11-03",
        "Twelve Euro.",
    )


def test_what_people_wrote_survives(tmp_path: Path) -> None:
    path = tmp_path / "failures.jsonl"
    archive.add(path, tmp_path, [scored(tmp_path, [failing()])], "2026-11-01")
    edited = entries(path)
    edited[0] |= {"cause": "ambiguous_instruction", "note": "EUR or euros?", "ticket": "T-1"}
    path.write_bytes(b"".join(jsonio.dumps(entry) + b"\n" for entry in reversed(edited)))
    archive.add(path, tmp_path, [scored(tmp_path, [failing("Other.")], run=2)], "2026-11-02")
    kept = entries(path)
    assert [entry["key"] for entry in kept] == [entry["key"] for entry in reversed(edited)]
    assert (kept[2]["cause"], kept[2]["note"], kept[2]["ticket"]) == (
        "ambiguous_instruction",
        "EUR or euros?",
        "T-1",
    )
    assert kept[2]["count"] == 2


def test_lost_answers_are_no_failures_of_a_constraint(tmp_path: Path) -> None:
    lost = row(judged(RULE, None, null_reason="no_response"), content="")
    added = archive.add(tmp_path / "f.jsonl", tmp_path, [scored(tmp_path, [lost])], "2026-11-01")
    assert (added.new, added.lost) == (0, 1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"key": "k", "cause": "modle", "sightings": []}', "line 1: cause: found 'modle'"),
        ('{"cause": "model"}', "line 1: must be an object with a text `key`"),
        ('{"key": "k", "cause": "model"}', "line 1: sightings"),
        ("nonsense", "line 1: not valid JSON"),
        ('{"key": "k", "cause": "model", "sightings": []}\n' * 2, "stands there twice"),
    ],
)
def test_a_broken_archive_is_never_written_over(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "failures.jsonl"
    path.write_text(line)
    with pytest.raises(DataError, match=message):
        archive.add(path, tmp_path, [scored(tmp_path, [failing()])], "2026-11-01")
    assert path.read_text() == line


def test_failures_become_items_that_ask_for_the_same(tmp_path: Path) -> None:
    path = tmp_path / "failures.jsonl"
    archive.add(path, tmp_path, [scored(tmp_path, [failing()])], "2026-11-01")
    content = archive.to_set(entries(path), path)
    jsonio.write_json(tmp_path / "new.json", content)
    (item,) = to_rows(read_set(tmp_path / "new.json"))
    assert item["input"] == MESSAGES
    short, polite, broken = item["constraints"]
    assert short["evaluation"] == RULE["evaluation"] and short["id"] == "short"
    assert polite["desc"] == "It is polite." and polite["evaluation"][0]["type"] == "llm"
    assert broken["evaluation"] == CODE["evaluation"]
    assert short["provenance"] == {
        "source": "team, item a",
        "created": "2026-11-01",
        "added_from": str(path),
    }
    later = [entry | {"first_seen": "2026-12-24"} for entry in entries(path)[1:]]
    (item,) = archive.to_set([later[0], entries(path)[0], later[1]], path)["items"]
    assert item["provenance"]["created"] == "2026-11-01"
    with pytest.raises(DataError, match="holds no such failure"):
        archive.to_set([], path)


# Tables


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "＝1+1",
        " =1",
        "a;=1",
        "a\t=1",
        ";-x",
        "\t=1",
        "\n@",
        "\r\n\u2003=1",
    ],
)
def test_a_cell_is_never_a_formula(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.csv"
    write_csv(path, ["text"], [[text]])
    raw = path.read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    (found,) = read_csv(path)
    for piece in found["text"].replace("\t", ";").split(";"):
        assert not piece.strip(" ") or piece.strip(" ")[0] not in "=+-@＝＋－＠"


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
@example([("", "\n@"), ("\t", ";\n=1"), ("\r=1", "a;\t\n-1")])
def test_tables_come_back_as_texts_without_formulas(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "t.csv"
    write_csv(path, ["one", "two"], rows)
    first = read_csv(path)
    assert len(first) == len([row for row in rows if row != ("", "")]) or len(first) == len(rows)
    # What was made harmless stays as it is when it is written again.
    write_csv(path, ["one", "two"], [[row["one"], row["two"]] for row in first])
    assert read_csv(path) == first


def test_what_spreadsheets_save_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("key;label\r\n1;ja, gut\r\n".encode("utf-8-sig"))
    assert read_csv(path) == [{"key": "1", "label": "ja, gut"}]
    path.write_bytes(b"key,label\n1,a,b\n")
    with pytest.raises(DataError, match=r"t\.csv: line 2: has more cells than headers"):
        read_csv(path)
    path.write_bytes("key,label\n1,ü\n".encode("latin-1"))
    with pytest.raises(DataError, match="is not UTF-8"):
        read_csv(path)


def test_items_one_by_one(tmp_path: Path) -> None:
    rows = [failing(), row(judged(RULE, True)), row(judged(RULE, None, null_reason="no_response"))]
    rows[2]["output"]["content"] = ""
    soft = judged(RULE | {"severity": "should"}, False)
    rows.append(row(judged(RULE, True), soft, scenario="=cmd"))
    path = tmp_path / "results.json"
    jsonio.write_json(path, [each | {"id": n} for n, each in enumerate(rows)])
    score_file(path, "adhere", tmp_path / "a.json", None, tmp_path / "items.csv")
    failed, passed, lost, softly = read_csv(tmp_path / "items.csv")
    assert (failed["all_passed"], failed["unscored"], failed["must_violated"]) == (
        "FALSE",
        "1",
        "2",
    )
    assert failed["failed"] == "short; It is polite."
    assert "short: 2 words, at most 1 required" in failed["reasons"]
    assert failed["failure_modes"] == "format 1"
    assert (passed["all_passed"], passed["rate"], passed["failed"]) == ("TRUE", "1", "")
    assert (lost["all_passed"], lost["response"]) == ("FALSE", "empty_answer")
    assert lost["reasons"] == "no response: empty_answer"
    assert (softly["all_passed"], softly["should_violated"], softly["rate"]) == ("TRUE", "1", "0.5")
    assert softly["scenario"] == "'=cmd"
