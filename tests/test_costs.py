"""Tokens, money, the ledger and the budget."""

import asyncio
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mock_endpoint import MockConfig, MockEndpoint, Reply, Rule
from workflow_project import judge_config, model_config

from adhere.client import ChatClient, Endpoint, Failure
from adhere.config import Budget, GlobalConfig, JudgeConfig, ModelConfig, Prices
from adhere.config.load import Project, parse
from adhere.costs.answers import Answers
from adhere.costs.budget import Allowance, MeteredClient, check_budget, spent_so_far
from adhere.costs.expected import Span, mean_of, message_tokens, tokens_in
from adhere.costs.forecast import Forecast, total_cost
from adhere.costs.ledger import Amount, Ledger
from adhere.costs.money import NO_PRICES, cost, exactly, price_list, rounded
from adhere.costs.questions import Questions, questions_about
from adhere.costs.spent import spent_below, tally
from adhere.costs.tokens import Tokens, tokens_of
from adhere.data import Dataset
from adhere.errors import BudgetError, ConfigError
from adhere.journal import read
from adhere.jsonio import dumps
from adhere.judging import Judge
from adhere.plan import Cell, Evaluation
from adhere.prediction import Mode, Places, Task, collect, make_task, run_tasks
from adhere.progress import Progress
from adhere.reporting.expenses import Expense, Expenses, expenses, render_expenses

PAID = {"input": 2.5, "cached_input": 0.25, "output": 10}
ROOT = Path(__file__).resolve().parents[1]
counts = st.integers(min_value=0, max_value=10**13)
per_million = st.decimals(min_value=0, max_value=1_000_000_000, places=6)


def prices(**fields: Any) -> Prices:
    return parse(Prices, fields, "prices")


# Tokens


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Tokens(calls=1, unmetered=1)),
        ({}, Tokens(calls=1, unmetered=1)),
        ({"prompt_tokens": "7"}, Tokens(calls=1, unmetered=1)),
        ({"prompt_tokens": True, "completion_tokens": -1}, Tokens(calls=1, unmetered=1)),
        ({"prompt_tokens": 2**64 - 1}, Tokens(calls=1, unmetered=1)),
        ({"prompt_tokens": 2**32 - 1, "completion_tokens": 7}, Tokens(1, 0, 0, 0, 7, 0)),
        ({"prompt_tokens": 7, "completion_tokens": 3}, Tokens(1, 0, 7, 0, 3, 0)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 9,
                "total_tokens": 19,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 8},
            },
            Tokens(1, 0, 10, 4, 9, 8),
        ),
        # Reasoning that is counted in the total only is output that is paid for.
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 9,
                "total_tokens": 39,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            Tokens(1, 0, 10, 0, 29, 20),
        ),
        # No part is larger than its whole.
        (
            {
                "prompt_tokens": 1,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": 5},
                "completion_tokens_details": None,
            },
            Tokens(1, 0, 1, 1, 1, 0),
        ),
    ],
)
def test_usage_is_read_in_one_way(usage: dict[str, Any] | None, expected: Tokens) -> None:
    assert tokens_of(usage) == expected


# Money


@given(counts, counts, counts, per_million, per_million, per_million)
def test_cost_is_exact(
    fresh: int, cached: int, completion: int, new: Decimal, old: Decimal, out: Decimal
) -> None:
    tokens = Tokens(prompt=fresh + cached, cached=cached, completion=completion)
    paid = cost(tokens, prices(input=new, cached_input=old, output=out))
    exact = fresh * Fraction(new) + cached * Fraction(old) + completion * Fraction(out)
    assert Fraction(paid) == exact / 1_000_000


@given(st.decimals(min_value=0, max_value=10**12, places=12))
def test_amounts_are_written_without_dust(amount: Decimal) -> None:
    text = exactly(amount)
    assert Decimal(text) == amount
    assert "E" not in text
    assert text == "0" or not text.startswith(".")
    assert "." not in text or not text.endswith(("0", "."))
    shown = rounded(amount)
    value = Decimal(shown.replace(",", ""))
    assert "E" not in shown
    step = Decimal("0.01") if amount >= 1 else amount / 10 if amount else Decimal(0)
    assert abs(value - amount) <= step / 2


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0", "0.00"),
        ("0.1", "0.10"),
        ("0.30000000", "0.30"),
        ("0.012345", "0.012"),
        ("0.000000994", "0.00000099"),
        ("0.999", "1.00"),
        ("12.345", "12.35"),
        ("1234567.8", "1,234,567.80"),
    ],
)
def test_amounts_are_rounded_for_people(amount: str, shown: str) -> None:
    assert rounded(Decimal(amount)) == shown


def test_a_price_is_taken_as_it_is_written() -> None:
    stated = prices(input=0.1, output=0.2)
    assert (stated.input, stated.output) == (Decimal("0.1"), Decimal("0.2"))
    assert exactly(cost(Tokens(prompt=3, completion=3), stated)) == "0.0000009"
    # Without a price of its own what is cached costs as much as the rest.
    assert cost(Tokens(prompt=10, cached=10), stated) == cost(Tokens(prompt=10), stated)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"input": 1}, "output: required, and missing"),
        ({"input": "1", "output": 1}, "input: found '1': must be a number"),
        ({"input": True, "output": 1}, "input: found true: must be a number"),
        ({"input": -1, "output": 1}, "input: found -1: must be at least 0"),
        ({"input": 1e-7, "output": 1}, "must be a number with at most six decimals"),
        ({"input": float("nan"), "output": 1}, "must be finite"),
        ({"input": 1, "output": 1, "currency": "usd"}, "must be three capital letters"),
        ({"input": 1, "output": 1, "cached": 1}, "unknown key"),
    ],
)
def test_wrong_prices_are_named(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        prices(**fields)


def test_a_budget_limits_something() -> None:
    with pytest.raises(ConfigError, match="limits nothing: give `money`, `tokens` or both"):
        parse(Budget, {}, "budget")
    assert parse(Budget, {"money": 50}, "budget").money == 50


def test_prices_identify_nothing() -> None:
    free = parse(JudgeConfig, judge_config("http://localhost/v1"), "judge")
    paid = parse(JudgeConfig, judge_config("http://localhost/v1") | {"prices": PAID}, "judge")
    assert Judge("strict", free).hash == Judge("strict", paid).hash
    assert Judge("strict", free).asked == Judge("strict", paid).asked


# What was spent


def reply(prompt: int, completion: int, **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return {"content": "Yes", "usage": usage, "latency_s": 0.1, **more}


def journal(*entries: dict[str, Any]) -> bytes:
    return b"".join(dumps({"fp": "x", **entry}) + b"\n" for entry in entries)


def test_every_reply_of_a_journal_is_counted() -> None:
    failed = {"usage": None, "latency_s": None, "error": {"kind": "timeout", "retryable": True}}
    raw = journal(
        {"output": reply(10, 1)},
        {"output": failed},
        {"reply": {"error": {"kind": "content_filter", "retryable": False}}},
        # An answer that is empty was paid for, and one without figures is one all the same.
        {"output": reply(10, 2, content="", error={"kind": "empty_answer"})},
        {"reply": reply(0, 0) | {"usage": None}},
        {"reply": reply(5, 1)},
    )
    torn = dumps({"fp": "y", "reply": reply(100, 100)})[:-3]
    assert tally(raw + torn) == Tokens(calls=4, unmetered=1, prompt=25, completion=4)
    assert tally(b"") == Tokens()


def project(tmp_path: Path, budget: dict[str, Any] | None = None, **models: Any) -> Project:
    """Return a project with an API model, a judge at an endpoint and a local judge."""
    content = {"datasets": {"tiny": "t.json"}, "default_datasets": ["tiny"], "default_judge": "j"}
    served = {"model_path": "m.gguf", "max_model_len": 100}
    judges = {
        "j": judge_config("http://localhost/v1") | {"prices": PAID},
        "own": {"model": "m", "local": served},
    }
    return Project(
        tmp_path,
        parse(GlobalConfig, content | ({"budget": budget} if budget else {}), "global"),
        {
            "alpha": parse(
                ModelConfig, model_config("http://localhost/v1", "a") | {"prices": PAID}, "alpha"
            ),
            "own": parse(ModelConfig, {**served, "modes": {"plain": {}}}, "own"),
            **models,
        },
        {name: parse(JudgeConfig, judge, name) for name, judge in judges.items()},
    )


def write_journals(root: Path) -> None:
    for name, key in (
        ("prediction/alpha__plain/run1/tiny", "output"),
        ("prediction/own__plain/run1/tiny", "output"),
        ("prediction/gone__plain/run2/tiny", "output"),
        ("scores/alpha__plain/run1_j/tiny", "reply"),
        ("scores/own__plain/run1_own/tiny", "reply"),
    ):
        path = root / f"{name}.partial.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(journal({key: reply(1_000_000, 0)}))


def test_what_was_spent_is_read_from_the_journals(tmp_path: Path) -> None:
    write_journals(tmp_path / "results")
    spent = {entry.payee: entry.tokens for entry in spent_below(tmp_path / "results").spent}
    cell, own = Cell("alpha", "plain", 1, "tiny"), Cell("own", "plain", 1, "tiny")
    gone = Cell("gone", "plain", 2, "tiny")
    assert set(spent) == {cell, own, gone, Evaluation(cell, "j"), Evaluation(own, "own")}
    configured = project(tmp_path, {"money": 50})
    assert configured.config.budget is not None
    # Local models take nothing of a budget; what has no prices any more is named.
    assert spent_so_far(configured, configured.config.budget) == (
        Amount(3_000_000, Decimal(5)),
        {"gone"},
    )
    assert price_list(configured).of(Evaluation(cell, "j")) == prices(**PAID)
    assert price_list(configured).of(gone) is None


# The ledger


def test_the_ledger_keeps_exact_sums(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "results" / ".spent")
    ledger.start(Amount(5, Decimal("0.000000000001")))
    ledger.add(Amount(7, Decimal("12345678.9")))
    assert ledger.read() == Amount(12, Decimal("12345678.900000000001"))
    ledger.start(Amount())
    assert ledger.read() == Amount()


def test_processes_add_to_one_ledger_without_losing_anything(tmp_path: Path) -> None:
    path = tmp_path / ".spent"
    Ledger(path).start(Amount(1))
    code = (
        "import sys; from decimal import Decimal; from pathlib import Path\n"
        "from adhere.costs.ledger import Amount, Ledger\n"
        "for _ in range(500): Ledger(Path(sys.argv[1])).add(Amount(2, Decimal('0.1')))\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    processes = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    assert Ledger(path).read() == Amount(3001, Decimal(150))


@pytest.mark.parametrize("content", [b"", b"12", b"\xff\xfe", b"1 2 3\n"])
def test_a_ledger_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / ".spent"
    path.write_bytes(content)
    with pytest.raises(BudgetError, match="start the workflow again"):
        Ledger(path).read()


# The budget


def allowance(tmp_path: Path, stated: Prices | None = None, **limits: Any) -> Allowance:
    ledger = Ledger(tmp_path / ".spent")
    if not (tmp_path / ".spent").exists():
        ledger.start(Amount())
    return Allowance(parse(Budget, limits, "budget"), stated, ledger, "configs/alpha.yaml")


def test_an_allowance_ends_with_the_budget(tmp_path: Path) -> None:
    first = allowance(tmp_path, prices(**PAID), money=0.01)
    second = allowance(tmp_path, prices(**PAID), money=0.01)
    assert first.refusal() is None
    first.take({"prompt_tokens": 0, "completion_tokens": 999})
    assert second.refusal() is None
    second.take({"prompt_tokens": 0, "completion_tokens": 1})
    told = "budget: 0.010 of 0.010 USD spent: raise `budget` in configs/global.yaml to go on"
    assert first.refusal() == second.refusal() == told
    assert allowance(tmp_path, prices(**PAID), money=0.011).refusal() is None
    assert "1,000 of 500 tokens" in str(allowance(tmp_path, tokens=500).refusal())


def test_an_endpoint_without_figures_cannot_keep_a_budget(tmp_path: Path) -> None:
    blind = allowance(tmp_path, tokens=1000)
    blind.take(None)
    assert "sends no token figures" in str(blind.refusal())
    seeing = allowance(tmp_path, tokens=1000)
    seeing.take({"prompt_tokens": 1, "completion_tokens": 1})
    seeing.take(None)
    assert seeing.refusal() is None


@pytest.mark.parametrize(
    ("budget", "changed", "told"),
    [
        ({"money": 1}, {}, None),
        ({"tokens": 1}, {"prices": None}, None),
        ({"money": 1}, {"prices": None}, "configs/alpha.yaml: has no `prices`"),
        (
            {"money": 1},
            {"prices": PAID | {"currency": "EUR"}},
            "configs/alpha.yaml: prices.currency: found EUR: must be USD",
        ),
    ],
)
def test_a_budget_of_money_needs_prices(
    tmp_path: Path, budget: dict[str, Any], changed: dict[str, Any], told: str | None
) -> None:
    content = model_config("http://localhost/v1", "a") | {"prices": PAID} | changed
    configured = project(tmp_path, budget, alpha=parse(ModelConfig, content, "alpha"))
    if told is None:
        check_budget(configured, ["alpha", "own"], ["j", "own"])
    else:
        with pytest.raises(ConfigError, match=told):
            check_budget(configured, ["alpha", "own"], ["j", "own"])
        check_budget(configured, ["own"], ["j", "own"])


async def asked(client: ChatClient, number: int) -> list[Any]:
    """Ask ``number`` questions at once."""

    def payload(text: str) -> dict[str, Any]:
        return {"model": "m", "messages": [{"role": "user", "content": text}]}

    return await asyncio.gather(*(client.complete(payload(f"Q{n}")) for n in range(number)))


def test_clients_that_share_a_budget_overshoot_by_what_is_in_flight(tmp_path: Path) -> None:
    async def body() -> None:
        usage = {"prompt_tokens": 6, "completion_tokens": 4}
        rules = [Rule(reply=Reply(content="Yes", usage=usage))]
        async with MockEndpoint(MockConfig(rules=rules)) as mock:
            endpoint = Endpoint(mock.base_url, "configs/alpha.yaml", concurrency=4)
            clients = [MeteredClient(endpoint, allowance(tmp_path, tokens=305)) for _ in range(3)]

            async def work(client: MeteredClient) -> list[Any]:
                outcomes = []
                async with client:
                    for _ in range(20):
                        outcomes += await asked(client, 4)
                return outcomes

            outcomes = [o for some in await asyncio.gather(*map(work, clients)) for o in some]
            answered = mock.stats().answered
        # Thirty-one replies reach it; each of three clients has at most four on their way then.
        assert 31 <= answered < 31 + 3 * 4
        refused = [o for o in outcomes if isinstance(o, Failure)]
        assert len(refused) == 240 - answered
        assert {(o.kind, o.retryable) for o in refused} == {("budget", True)}
        assert Ledger(tmp_path / ".spent").read().tokens == 10 * answered
        assert all(client.counts.failures.keys() == {"budget"} for client in clients)

    asyncio.run(body())


def task(tmp_path: Path, items: int) -> Task:
    mode = Mode("alpha", "plain", False, "a", {}, None, "max_tokens", {"model": "alpha"})
    rows = tuple(
        {"input": [{"role": "user", "content": f"Q{n}"}], "constraints": []} for n in range(items)
    )
    places = Places(tmp_path / "p.json", tmp_path / "p.partial.jsonl", None)
    dataset = Dataset("tiny", tmp_path / "tiny.json", rows, "0" * 64, items)
    return make_task(Cell("alpha", "plain", 1, "tiny"), mode, dataset, places)


def test_predictions_beyond_the_budget_are_pending_and_asked_later(tmp_path: Path) -> None:
    async def body() -> None:
        usage = {"prompt_tokens": 6, "completion_tokens": 4}
        work = task(tmp_path, 20)
        async with MockEndpoint(
            MockConfig(rules=[Rule(reply=Reply(content="Yes", usage=usage))])
        ) as mock:
            endpoint = Endpoint(mock.base_url, "configs/alpha.yaml", concurrency=1)

            async def run(limit: int) -> None:
                client = MeteredClient(endpoint, allowance(tmp_path, tokens=limit))
                async with client:
                    with Progress("predict", "items") as progress:
                        await run_tasks([work], [client], progress)

            await run(75)
            report = collect(work, {})
            assert report["pending"] == 12
            assert report["errors"] == {"budget": 12}
            await run(1000)
            assert collect(work, {})["pending"] == 0
            assert mock.stats().answered == 20
        raw = (tmp_path / "p.partial.jsonl").read_bytes()
        assert tally(raw) == Tokens(calls=20, prompt=120, completion=80)

    asyncio.run(body())


def test_a_stage_that_could_ask_nothing_says_how_to_go_on(tmp_path: Path) -> None:
    async def body() -> None:
        work = task(tmp_path, 3)
        async with MockEndpoint(MockConfig()) as mock:
            spent = allowance(tmp_path, tokens=10)
            spent.take({"prompt_tokens": 10, "completion_tokens": 0})
            client = MeteredClient(Endpoint(mock.base_url, "configs/alpha.yaml"), spent)
            async with client:
                with pytest.raises(
                    BudgetError, match=r"configs/alpha\.yaml: not asked: budget: 10 of"
                ):
                    await run_tasks([work], [client], Progress("predict", "items"))
            assert mock.stats().requests == 0
        assert len(read(tmp_path / "p.partial.jsonl")) == 3

    asyncio.run(body())


# What is to be expected


def test_texts_are_counted_by_their_script() -> None:
    english, chinese = tokens_in("word " * 100), tokens_in("中文" * 100)
    assert (english.low, english.high) == (100, 200)
    assert chinese.low == 100
    assert chinese.high == pytest.approx(200 / 0.9)
    assert message_tokens(["a" * 5, ""]) == Span(1, 2 + 24)


@given(st.text())
def test_no_text_is_fewer_tokens_than_none(text: str) -> None:
    span = tokens_in(text)
    assert 0 <= span.low <= span.high <= 2 * len(text)


def test_a_mean_is_trusted_the_more_the_more_replies_it_rests_on() -> None:
    assert mean_of([], 1000) is None
    alone = mean_of([10.0], 10**9)
    assert alone is not None
    assert (alone.low, alone.high) == pytest.approx((0, 30))
    few, many = mean_of([5.0, 15.0] * 2, 1000), mean_of([5.0, 15.0] * 500, 1000)
    assert few is not None
    assert many == Span(9, 11)
    assert few.low < 9 < 11 < few.high


def test_the_mean_of_a_few_further_replies_is_less_certain() -> None:
    for further, margin in ((1, 10), (4, 5), (100, 1.05)):
        span = mean_of([5.0, 15.0] * 500, further)
        assert span is not None
        assert (span.low, span.high) == pytest.approx((10 - margin, 10 + margin), rel=0.01)


def questions(
    tmp_path: Path, chains: list[list[dict[str, str]]], known: dict[int, Any], **judge: Any
) -> Questions:
    """Return what is missing about one item with these chains, its answer known or not."""
    rows: list[dict[str, Any]] = [
        {
            "input": [{"role": "user", "content": "Q"}],
            "constraints": [{"evaluation": chain} for chain in chains],
        }
    ]
    content = judge_config("http://localhost/v1") | judge
    configured = project(tmp_path)
    cell = replace(task(tmp_path, 1), dataset=Dataset("tiny", tmp_path, tuple(rows), "0", 1))
    asked = Judge("j", parse(JudgeConfig, content, "judge"))
    return questions_about(configured, asked, [Answers(cell, known)])


LLM = {"type": "llm", "exec": "Is it so? YES or NO. {response}"}
CONDITION = {"type": "llm_conditional_check", "exec": "Does it apply? {response}"}
CODE = {"type": "code", "exec": "def check_following(response):\n    return True\n"}


@pytest.mark.parametrize("known", [{}, {0: {"content": "An answer.", "error": None}}])
@pytest.mark.parametrize(
    ("chain", "calls", "with_votes"),
    [
        ([CODE], (0, 0), (0, 0)),
        ([LLM], (1, 1), (3, 3)),
        ([CONDITION, LLM], (1, 2), (3, 6)),
        ([CONDITION, LLM, CODE], (1, 2), (3, 4)),
        ([LLM, LLM], (2, 2), (4, 4)),
        ([CONDITION, CODE], (1, 1), (3, 3)),
    ],
)
def test_a_chain_asks_as_often_as_its_conditions_let_it(
    tmp_path: Path,
    known: dict[int, Any],
    chain: list[dict[str, str]],
    calls: tuple[int, int],
    with_votes: tuple[int, int],
) -> None:
    found = questions(tmp_path, [chain], known)
    assert found.calls == Span(*calls)
    assert found.prompt.low >= found.calls.low
    assert questions(tmp_path, [chain], known, votes=3).calls == Span(*with_votes)


def test_an_empty_answer_leaves_nothing_to_ask(tmp_path: Path) -> None:
    empty = {"content": "", "error": {"kind": "empty_answer", "retryable": False}}
    assert questions(tmp_path, [[LLM]], {0: empty}).calls == Span(0, 0)


# The summary


def expense(model: str, judge: str | None, tokens: Tokens, paid: Prices | None) -> Expense:
    return Expense(model, "plain", 1, judge, "tiny", tokens, paid)


def test_the_summary_has_a_line_for_each_model_and_judge() -> None:
    euros = prices(input=1, output=1, currency="EUR")
    known = [
        expense("beta", None, Tokens(2, 0, 1000, 10, 500, 50), prices(**PAID)),
        expense("alpha", None, Tokens(1, 1, 0, 0, 0, 0), None),
        expense("beta", None, Tokens(1, 0, 1000, 0, 0, 0), prices(**PAID)),
        expense("alpha", "strict", Tokens(7, 0, 20_000, 0, 0, 0), euros),
        expense("beta", "strict", Tokens(3, 0, 10_000, 0, 0, 0), euros),
    ]
    table = render_expenses(Expenses(tuple(known)))
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.split("\n")[2:6]]
    assert cells == [
        ["predict", "alpha", "1", "0", "0", "0", "0", "–"],
        ["predict", "beta", "3", "2,000", "10", "500", "50", "0.0100 USD"],
        ["judge", "strict", "10", "30,000", "0", "0", "0", "0.030 EUR"],
        ["total", "", "14", "32,000", "10", "500", "50", "0.030 EUR + 0.0100 USD"],
    ]
    assert table.endswith("1 reply came without figures and is not in the tokens.\n")


def test_a_journal_that_cannot_be_read_is_named_and_stops_only_the_budget(tmp_path: Path) -> None:
    root = tmp_path / "results"
    write_journals(root)
    broken = root / "scores/alpha__plain/run1_j/tiny.partial.jsonl"
    broken.unlink()
    broken.mkdir()
    found = expenses(root, NO_PRICES)
    assert len(found.known) == 4
    section = render_expenses(found)
    assert section.count("| predict") == 3
    said = f"- Not counted: {broken}: cannot be read: Is a directory: tokens in it are not known; "
    assert said in section
    assert render_expenses(Expenses()) == ""
    configured = project(tmp_path, {"money": 50})
    assert configured.config.budget is not None
    with pytest.raises(BudgetError, match=r"what is spent cannot be counted: .*tiny"):
        spent_so_far(configured, configured.config.budget)


def test_the_document_keeps_every_digit() -> None:
    written = expense("alpha", "j", Tokens(1, 0, 3, 0, 1, 0), prices(input=0.1, output=0.2))
    assert written.document() == {
        "stage": "judge",
        "model": "alpha",
        "mode": "plain",
        "run": 1,
        "judge": "j",
        "dataset": "tiny",
        "calls": 1,
        "unmetered": 0,
        "prompt": 3,
        "cached": 0,
        "completion": 1,
        "reasoning": 0,
        "batch_prompt": 0,
        "batch_cached": 0,
        "batch_completion": 0,
        "cost": "0.0000005",
        "currency": "USD",
    }
    assert expense("alpha", None, Tokens(calls=1), None).document()["cost"] is None


def test_an_estimate_adds_up_each_currency() -> None:
    def forecast(paid: Prices | None, *, local: bool = False) -> Forecast:
        million = Span(1_000_000, 2_000_000)
        return Forecast("predict", "a", Span(1, 1), million, million, "", paid, local)

    euros = prices(input=1, output=1, currency="EUR")
    lines = [forecast(prices(**PAID)), forecast(euros), forecast(euros), forecast(None)]
    # The least takes all prompts for cached, the most none.
    assert total_cost(lines) == {
        "USD": (Decimal("10.25"), Decimal(25)),
        "EUR": (Decimal(4), Decimal(8)),
    }
    assert forecast(None).cost is None
