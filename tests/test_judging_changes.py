"""What is asked again after a change of the dataset or the judge, and what is not."""

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
from judging_bench import FALSE, MAYBE, NO, TRUE, YES, item, judging, llm, verdicts
from looping import looped
from mock_endpoint import Reply, Rule

from adhere.data import Row

CHANGED = "def check_following(response):\n    return len(response) > 3\n"


def changed(rows: list[Row], edit: Callable[[list[Row]], object]) -> list[Row]:
    """Return a copy of rows with an edit made to it."""
    copied = copy.deepcopy(rows)
    edit(copied)
    return copied


def set_prompt(rows: list[Row]) -> None:
    rows[0]["constraints"][1]["evaluation"][0]["exec"] = "Is it really polite? {response}"


def set_first_of_two(rows: list[Row]) -> None:
    rows[1]["constraints"][0]["evaluation"][0]["exec"] = "Take out the name: {response}"


def set_checker(rows: list[Row]) -> None:
    rows[1]["constraints"][1]["evaluation"][0]["exec"] = CHANGED


def set_answer(rows: list[Row]) -> None:
    rows[1]["output"]["content"] = "Another answer."


def set_metadata(rows: list[Row]) -> None:
    rows[0]["id"] = "new"
    rows[0]["constraints"][0] |= {"id": 7, "type": ["semantic"], "score": True, "null_reason": "x"}


EXAMPLE = [
    item("first", llm("Is it short?"), llm("Is it polite?"), llm("Is it short?")),
    item(
        "second",
        [("llm", "Take out the title: {response}"), ("llm", "Is it a title? {response}")],
        [("code", TRUE)],
        [("llm_conditional_check", "Is it a list? {response}"), ("code", TRUE)],
    ),
    item("second", llm("Is it short?")),
    item("second", llm("Is it short?")),
]
EXAMPLE_REQUESTS = 3 + 3 + 2
NEW_CONSTRAINT = {"evaluation": [{"type": "llm", "exec": "Is it new? {response}"}]}
SAME_CONSTRAINT = {"evaluation": [{"type": "llm", "exec": "Is it short? {response}"}]}


@pytest.mark.parametrize(
    ("edit", "requests"),
    [
        pytest.param(list, 0, id="nothing"),
        pytest.param(set_metadata, 0, id="ids, types and old verdicts"),
        pytest.param(set_prompt, 1, id="a prompt"),
        pytest.param(set_first_of_two, 1, id="the first prompt of two, with the same reply"),
        pytest.param(set_checker, 0, id="a checker"),
        # Three questions, but what is taken out of the answer, and asked about, is still the same.
        pytest.param(set_answer, 2, id="an item's answer"),
        pytest.param(
            lambda rows: rows[0]["constraints"].insert(0, NEW_CONSTRAINT), 1, id="a constraint more"
        ),
        pytest.param(
            lambda rows: rows[0]["constraints"].insert(0, SAME_CONSTRAINT),
            1,
            id="a constraint that asks what others ask",
        ),
        pytest.param(lambda rows: rows[0]["constraints"].pop(0), 0, id="a constraint less"),
        pytest.param(lambda rows: rows[0]["constraints"].reverse(), 0, id="constraints reordered"),
        pytest.param(lambda rows: rows.insert(0, item("new", llm("Fine?"))), 1, id="an item more"),
        pytest.param(
            lambda rows: rows.append(item("second", llm("Is it short?"))),
            1,
            id="an equal item more",
        ),
        pytest.param(lambda rows: rows.pop(0), 0, id="an item less"),
        pytest.param(lambda rows: rows[0]["output"].update(content=""), 0, id="an answer lost"),
    ],
)
@looped
async def test_a_changed_dataset_asks_only_what_changed(
    tmp_path: Path, edit: Callable[[list[Row]], object], requests: int
) -> None:
    async with judging(tmp_path, YES, checkers=1) as bench:
        assert await bench.requests(EXAMPLE) == EXAMPLE_REQUESTS
        rows = changed(EXAMPLE, edit)
        assert await bench.requests(rows) == requests
        assert await bench.requests(rows) == 0
        assert await bench.requests(EXAMPLE) == 0, "what was answered before stays usable"


@pytest.mark.parametrize(
    ("fields", "requests"),
    [
        ({"parser": "upstream-2025"}, 0),
        ({"asks": 5}, 0),
        ({"votes": 3}, 2 * (EXAMPLE_REQUESTS - 1)),
        ({"concurrency": 2, "enabled": False, "demo": True}, 0),
        ({"temperature": 0.5}, EXAMPLE_REQUESTS),
        ({"reasoning_effort": "low"}, EXAMPLE_REQUESTS),
        ({"max_completion_tokens": 100}, EXAMPLE_REQUESTS),
        ({"extra_body": {"top_k": 1}}, EXAMPLE_REQUESTS),
        ({"model": "other"}, EXAMPLE_REQUESTS),
        ({"base_url": "http://elsewhere/v1"}, EXAMPLE_REQUESTS),
    ],
    ids=str,
)
@looped
async def test_a_changed_judge_asks_only_what_it_must(
    tmp_path: Path, fields: dict[str, object], requests: int
) -> None:
    """How replies are read asks nothing anew; what shapes them asks everything (one is a text)."""
    async with judging(tmp_path, YES, checkers=1) as bench:
        await bench.judge(EXAMPLE)
        assert await bench.requests(EXAMPLE, **fields) == requests
        assert await bench.requests(EXAMPLE) == 0


@looped
async def test_another_parser_reads_the_replies_there_are(tmp_path: Path) -> None:
    async with judging(tmp_path, Reply(content="I see YESTERDAY, hence neither.")) as bench:
        rows = [item("q", llm("Fine?"))]
        run, _ = await bench.judge(rows, asks=1)
        assert verdicts(run) == [[(None, "judge_unreadable")]]
        again, asker = await bench.judge(rows, asks=1, parser="upstream-2025")
        assert verdicts(again) == [[(True, None)]]
        assert (asker.reused, bench.mock.stats().requests) == (1, 1)


@looped
async def test_equal_questions_keep_their_own_replies(tmp_path: Path) -> None:
    """Two equal items, and two equal prompts in one item: four questions, one reply each."""
    async with judging(tmp_path, YES, NO, NO, YES, checkers=1) as bench:
        bench.concurrency = 1
        twin = item("q", llm("Fine?"), llm("Fine?"))
        rows = [twin, copy.deepcopy(twin)]
        run, _ = await bench.judge(rows)
        own = [[(True, None), (False, None)], [(False, None), (True, None)]]
        assert verdicts(run) == own
        bench.mock.configure(rules=[Rule(reply=MAYBE)])
        again, asker = await bench.judge(rows)
        assert verdicts(again) == own
        assert asker.reused == 4
        new = {"evaluation": [{"type": "code", "exec": FALSE}]}
        with_others = changed(rows, lambda r: r[0]["constraints"].insert(1, new))
        with_others.insert(0, item("before", [("code", TRUE)]))
        shifted, _ = await bench.judge(with_others)
        assert verdicts(shifted) == [
            [(True, None)],
            [(True, None), (False, None), (False, None)],
            own[1],
        ]
        assert bench.mock.stats().requests == 4
