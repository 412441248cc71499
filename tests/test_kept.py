"""Answers and replies that were kept and edited since: used, or named and asked again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from judging_bench import YES, item, judging, llm, verdicts
from looping import looped
from mock_endpoint import Reply, Rule
from prediction_bench import Bench, benched, row

from adhere.costs.tokens import tokens_of
from adhere.derived import REMEDY
from adhere.errors import DataError
from adhere.jobs.judge import joined
from adhere.jsonio import dumps, read_jsonl, write_json
from adhere.kept import wrong_output, wrong_reply
from adhere.prediction import answered, read_predictions
from adhere.prediction.answer import is_failed, is_pending, without_thinking
from adhere.scoring.parse import parse_results

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.just([]), st.just(["x"]),
    st.just([1]), st.just({}), st.just({"kind": "timeout"}), st.just({"kind": 5}),
)  # fmt: skip
OUTPUTS = st.dictionaries(
    st.sampled_from(["content", "reasoning", "finish_reason", "usage", "flags", "error"]), VALUES
)


@given(st.one_of(VALUES, OUTPUTS))
@example({"content": None, "flags": None, "error": None})
def test_an_output_is_refused_or_understood_everywhere(output: Any) -> None:
    row = {"input": [], "constraints": [], "output": output}
    if wrong := wrong_output(output):
        assert str(wrong).startswith("output"), "it is named"
        with pytest.raises(DataError, match="item 1: output"):
            parse_results([row], "results.json")
        return
    is_pending(output)
    is_failed(output)
    tokens_of(output.get("usage"))
    without_thinking(row)
    (read,) = parse_results([row], "results.json")
    assert (read.failure is not None) == is_failed(output)


SOUND = {"content": "YES", "reasoning": None, "finish_reason": "stop", "usage": None}
ODD_REPLIES: list[Any] = [
    None, "YES", ["YES"], {}, {"content": 5}, {"content": ["YES"]}, {**SOUND, "usage": [1]},
    {**SOUND, "finish_reason": 3}, {**SOUND, "reasoning": {}}, {"error": None}, {"error": "bad"},
    {"error": {}}, {"error": {"kind": None}}, {"error": {"kind": "x", "retryable": "yes"}},
]  # fmt: skip


@pytest.mark.parametrize("reply", ODD_REPLIES, ids=repr)
def test_an_odd_line_of_a_judges_journal_is_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, reply: Any
) -> None:
    assert wrong_reply(reply)

    @looped
    async def main() -> None:
        async with judging(tmp_path, YES) as bench:
            rows = [item("a", llm("One?"), llm("Two?"))]
            await bench.judge(rows)
            edit(bench.path, 1, lambda line: {**line, "reply": reply})
            assert await bench.requests(rows) == 1
            run, _ = await bench.judge(rows)
            assert verdicts(run) == [[(True, None), (True, None)]]

    main()
    assert f"{tmp_path / 'judge.partial.jsonl'}: 1 of its lines are passed over" in caplog.text
    assert "line 2: reply" in caplog.text


@pytest.mark.parametrize(
    "reply",
    [
        {"content": "NO"},
        {**SOUND, "content": None},
        {"error": {"kind": "timeout", "message": "late", "retryable": False}},
        {"error": {"kind": "x"}},
    ],
    ids=repr,
)
def test_what_a_judges_journal_may_hold_is_used(tmp_path: Path, reply: Any) -> None:
    @looped
    async def main() -> None:
        async with judging(tmp_path, YES) as bench:
            rows = [item("a", llm("One?"))]
            await bench.judge(rows, asks=1)
            edit(bench.path, 0, lambda line: {**line, "reply": reply})
            assert await bench.requests(rows, asks=1) == 0

    main()


ODD_OUTPUTS: list[Any] = [
    None, "text", [], {"content": 5}, {"content": "x", "usage": [1]}, {"content": "x", "flags": 1},
    {"content": "", "error": "broken"}, {"content": "", "error": {"retryable": True}},
]  # fmt: skip


@pytest.mark.parametrize("output", ODD_OUTPUTS, ids=repr)
def test_an_odd_line_of_a_journal_of_predictions_is_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, output: Any
) -> None:
    @benched
    async def main(bench: Bench) -> None:
        bench.mock.configure(rules=[Rule(reply=Reply(content="fine"))])
        rows = [row("one"), row("two"), row("three")]
        await bench.predict(rows)
        task = bench.task(rows)
        edit(task.places.journal, 1, lambda line: {**line, "output": output})
        assert len(answered(task)) == 2
        bench.mock.reset()
        written = await bench.predict(rows)
        assert bench.mock.stats().requests == 1
        assert [line["output"]["content"] for line in written] == ["fine"] * 3

    main(tmp_path)
    assert "1 of its lines are passed over" in caplog.text
    assert "line 2: output" in caplog.text


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"input": []}], "item 1: has no `output`: this is no prediction file"),
        ([{"output": {}}, {"id": "z", "output": "text"}], r"item 2 \(id z\): output: found 'text'"),
        ([{"output": [1]}], r"item 1: output: found \[1\]; allowed: an object with 'content'"),
        ([{"output": {"content": 5}}], "output.content: found 5; allowed: a text or null. Correct"),
    ],
)
def test_an_edited_prediction_file(tmp_path: Path, rows: list[Any], message: str) -> None:
    path = tmp_path / "p.json"
    write_json(path, rows)
    with pytest.raises(DataError, match=f"^{path}: .*{message}"):
        read_predictions(path)


@pytest.mark.parametrize("content", ["", "[{]", "null", "a folder"])
def test_a_damaged_prediction_file_says_that_it_costs_nothing(tmp_path: Path, content: str) -> None:
    path = tmp_path / "p.json"
    if content == "a folder":
        path.mkdir()
    else:
        path.write_text(content)
    with pytest.raises(DataError, match=f"^{path}: .*{REMEDY}$") as raised:
        read_predictions(path)
    assert "Errno" not in str(raised.value)


def test_a_prediction_file_that_lost_rows_says_so_too(tmp_path: Path) -> None:
    path, row = tmp_path / "p.json", {"input": [], "output": {}}
    with pytest.raises(DataError, match=f"^{path}: .* has 1 items, the dataset 2: .*{REMEDY}$"):
        joined(path, [row], [row, row])


def edit(path: Path, place: int, change: Callable[[Any], Any]) -> None:
    """Change one line of a journal."""
    lines = read_jsonl(path)
    lines[place] = change(lines[place])
    path.write_bytes(b"".join(dumps(line) + b"\n" for line in lines))
