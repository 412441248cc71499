"""The gate's statistics and decisions, without a workflow."""

import datetime
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from adhere.config import Gate
from adhere.data import as_dataset
from adhere.errors import ConfigError, DataError
from adhere.gate import baseline
from adhere.gate.decide import Outcome, judge, overall
from adhere.gate.keys import constraint_keys, item_keys
from adhere.gate.record import Constraint, Item, Made, Record, Subject
from adhere.gate.report import document, markdown
from adhere.gate.review import overdue
from adhere.gate.statistics import Share, difference, rate

Row = dict[str, Any]
MADE = Made("d" * 64, "j" * 64, 1, "adhere", "p" * 64)


def record(
    verdicts: list[list[str]], made: Made = MADE, *, soft: int = -1, name: str = "agent"
) -> Record:
    """Return a record of items whose constraints have these verdicts, one letter a run."""
    items = []
    for number, letters in enumerate(verdicts):
        constraints = tuple(
            Constraint(
                f"rule{place}:{place}",
                f"rule{place}",
                runs,
                {"category": "hard" if place == 0 else "format", "scenario": f"s{number % 2}"},
                place == soft,
                place == 1,
                "because" if "0" in runs else "",
            )
            for place, runs in enumerate(letters)
        )
        hard = [runs for place, runs in enumerate(letters) if place != soft]
        passes = tuple("0" not in run for run in zip(*hard, strict=True))
        items.append(Item(f"i{number}", f"input{number}", passes, constraints))
    flat = "".join(runs for letters in verdicts for runs in letters)
    return Record(
        subject=Subject("team", name, "plain", "strict"),
        made=made,
        runs=tuple(range(1, len(verdicts[0][0]) + 1)),
        items=tuple(items),
        expected=len(flat) - flat.count("-"),
        scored=flat.count("0") + flat.count("1"),
        not_asked=0,
        retryable=0,
    )


def entry_of(stored: Record, folder: Path) -> baseline.Entry:
    """Return a record as the baseline that was stored and read again."""
    baseline.store(str(folder), [stored])
    read = baseline.read(folder / "team.json")
    assert read is not None
    return read.entries[0]


# Statistics


@pytest.mark.parametrize(("hits", "items"), [(0, 10), (7, 10), (10, 10), (49, 50)])
def test_a_rate_of_single_outcomes_is_near_the_exact_binomial(hits: int, items: int) -> None:
    found = rate([Share(n < hits, 1) for n in range(items)], 0.95)
    exact = stats.binomtest(hits, items).proportion_ci(0.95, "exact")
    assert found is not None and found.value == hits / items
    # Slightly wider, by what Student's t adds for so few items; never narrower.
    assert found.low <= exact.low + 1e-9 and found.high >= exact.high - 1e-9
    wider = 0.1 if items < 20 else 0.01
    assert found.low == pytest.approx(exact.low, abs=wider)
    assert found.high == pytest.approx(exact.high, abs=wider)


def test_few_items_count_as_korn_and_graubard_say() -> None:
    found = rate([Share(n < 7, 1) for n in range(10)], 0.95)
    # Written out: variance 10/9 · 0.21/10, so 9 effective items, times (z/t)² for 9 degrees.
    effective = 9 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 9)) ** 2
    assert found is not None
    low = stats.beta.ppf(0.025, 0.7 * effective, 0.3 * effective + 1)
    high = stats.beta.ppf(0.975, 0.7 * effective + 1, 0.3 * effective)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_runs_of_one_item_are_no_more_items() -> None:
    alike = rate([Share(3 * (n < 7), 3) for n in range(10)], 0.95)
    single = rate([Share(n < 7, 1) for n in range(10)], 0.95)
    assert alike is not None and single is not None
    assert alike.low == pytest.approx(single.low) and alike.high == pytest.approx(single.high)


def test_one_miss_refutes_always() -> None:
    found = rate([Share(n > 0, 1) for n in range(1000)], 0.95)
    assert found is not None and found.high < 1
    never = rate([Share(1, 1)] * 1000, 0.95)
    assert never is not None and (never.value, never.high) == (1, 1) and never.low > 0.99


def test_difference_of_pairs_against_agresti_and_min() -> None:
    worse, better, same = 9, 2, 29
    shares = [Share(-1, 1)] * worse + [Share(1, 1)] * better + [Share(0, 1)] * same
    found = difference(shares, 1.0, 0.95)
    assert found is not None
    # Their formula, written from the counts: N + 2 pairs, half a pair more in each cell.
    pairs = worse + better + same
    middle = (better - worse) / (pairs + 2)
    variance = (worse + better + 1 - (better - worse) ** 2 / (pairs + 2)) / (pairs + 2) ** 2
    deviation = math.sqrt(variance * (pairs + 2) / (pairs + 1))
    half = stats.t.ppf(0.975, pairs - 1) * deviation
    assert found.value == pytest.approx(-7 / 40)
    assert found.low == pytest.approx(middle - half)
    assert found.high == pytest.approx(middle + half)


def test_difference_of_many_items_is_the_paired_t_interval() -> None:
    source = random.Random(3)
    changes = [source.gauss(-0.1, 0.3) for _ in range(4000)]
    found = difference([Share(change, 1) for change in changes], 1.0, 0.95)
    t = stats.ttest_1samp(changes, 0).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((t.low, t.high), abs=5e-4)


def test_nothing_changed_does_not_show_that_nothing_can() -> None:
    widths = []
    for items in (1, 2, 5, 20, 100, 1000):
        found = difference([Share(0, 1)] * items, 1.0, 0.95)
        assert found is not None and found.value == 0
        assert found.low == pytest.approx(-found.high)
        widths.append(found.high)
    assert widths == sorted(widths, reverse=True) and widths[0] == 1 and widths[-1] < 0.01


def test_nothing_counted_is_no_estimate() -> None:
    assert rate([], 0.95) is None and rate([Share(0, 0)], 0.95) is None
    assert difference([Share(0, 0)], 1.0, 0.95) is None


SHARES = st.lists(
    st.integers(0, 4).flatmap(
        lambda whole: st.builds(Share, st.integers(0, whole), st.just(whole))
    ),
    max_size=40,
)
CHANGES = st.lists(
    st.integers(1, 5).flatmap(
        lambda whole: st.builds(Share, st.floats(-whole, whole, allow_nan=False), st.just(whole))
    ),
    min_size=1,
    max_size=40,
)


@given(SHARES, st.sampled_from([0.8, 0.95, 0.99]))
def test_a_rates_interval_holds_it(shares: list[Share], confidence: float) -> None:
    found = rate(shares, confidence)
    if found is not None:
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert 0 <= found.smallest <= 1
        wider = rate(shares, 0.995)
        assert wider is not None and wider.low <= found.low and wider.high >= found.high


@given(CHANGES)
def test_a_difference_is_symmetric(shares: list[Share]) -> None:
    found = difference(shares, 1.0, 0.95)
    mirrored = difference([Share(-share.part, share.whole) for share in shares], 1.0, 0.95)
    assert found is not None and mirrored is not None
    assert found.low <= found.value <= found.high
    assert (mirrored.low, mirrored.value, mirrored.high) == pytest.approx(
        (-found.high, -found.value, -found.low)
    )


def test_the_interval_covers_what_it_should() -> None:
    """Over many sets with a true drop of 10 points, few intervals miss it."""
    source = random.Random(7)
    missed = 0
    for _ in range(400):
        shares = []
        for _ in range(30):
            p = source.betavariate(8, 2)
            before = sum(source.random() < p for _ in range(4)) / 4
            now = sum(source.random() < p - 0.1 for _ in range(4)) / 4
            shares.append(Share(now - before, 1))
        found = difference(shares, 1.0, 0.95)
        assert found is not None
        missed += not found.low <= -0.1 <= found.high
    assert missed / 400 < 0.08


# Decisions


def test_the_same_again_passes_and_a_worse_agent_fails(tmp_path: Path) -> None:
    good = record([["111", "111"]] * 40)
    entry = entry_of(good, tmp_path)
    gate = Gate(no_worse={"constraint_rate": 0.05, "all_pass_rate": 0.1})
    assert judge(good, entry, gate, 3).outcome is Outcome.PASS
    few = judge(good, entry, gate, 4)
    assert few.outcome is Outcome.UNCLEAR and "3 of 4 runs" in few.checks[0].why
    bad = record([["111", "000"]] * 20 + [["111", "111"]] * 20)
    judged = judge(bad, entry, gate, 3)
    assert judged.outcome is Outcome.FAIL
    assert {check.outcome for check in judged.checks} == {Outcome.FAIL}
    text = markdown([judged], [])
    assert text.startswith("# Gate: fail")
    assert "| i0 " in text and "3 of 3" in text and "0 of 3" in text and "because" in text
    content = document([judged], ["overdue"])
    assert content["exit_code"] == 1 and content["overdue_reviews"] == ["overdue"]
    assert len(content["subjects"][0]["got_worse"]) == 20


def test_few_items_are_not_enough_evidence(tmp_path: Path) -> None:
    entry = entry_of(record([["1"]] * 4), tmp_path)
    judged = judge(record([["1"]] * 3 + [["0"]]), entry, Gate(no_worse={"all_pass_rate": 0.0}), 1)
    (check,) = judged.checks
    assert check.outcome is Outcome.UNCLEAR
    assert "4 items show a drop only from" in check.why


def test_nothing_changed_on_few_items_is_not_enough_evidence_either(tmp_path: Path) -> None:
    entry = entry_of(record([["1"]] * 200), tmp_path)
    gate = Gate(no_worse={"all_pass_rate": 0.1})
    assert judge(record([["1"]] * 8), entry, gate, 1).outcome is Outcome.UNCLEAR
    assert judge(record([["1"]] * 200), entry, gate, 1).outcome is Outcome.PASS


def test_worse_but_within_what_is_allowed_passes(tmp_path: Path) -> None:
    entry = entry_of(record([["1"] * 4] * 200), tmp_path)
    now = record([["1", "1", "1", "0"]] * 20 + [["1"] * 4] * 180)
    (check,) = judge(now, entry, Gate(no_worse={"constraint_rate": 0.05}), 1).checks
    assert check.estimate is not None and check.estimate.high < 0
    assert check.outcome is Outcome.PASS


@given(st.integers(20, 60), st.floats(0.4, 1.0), st.integers(0, 999))
def test_a_clearly_worse_agent_never_passes(items: int, drop: float, seed: int) -> None:
    source = random.Random(seed)
    lost = math.ceil(drop * items)
    letters = [["000", "111"]] * lost + [["111", "111"]] * (items - lost)
    source.shuffle(letters)
    before = record([["111", "111"]] * items)
    entry = baseline._entry(before)
    gate = Gate(no_worse={"constraint_rate": 0.1, "all_pass_rate": 0.1, "item_mean": 0.1})
    assert judge(record(letters), entry, gate, 3).outcome is Outcome.FAIL
    # And the other way round, what became better passes.
    assert judge(before, baseline._entry(record(letters)), gate, 3).outcome is Outcome.PASS


def test_noise_alone_is_seldom_red() -> None:
    """Two samples of the same agent: red in about as few cases as the confidence says."""
    source = random.Random(11)
    red = 0
    for _ in range(200):
        chances = [source.betavariate(6, 2) for _ in range(25)]

        def sample(chances: list[float] = chances) -> Record:
            runs = [
                ["".join("01"[source.random() < p] for _ in range(3)) for _ in range(3)]
                for p in chances
            ]
            return record(runs)

        entry = baseline._entry(sample())
        judged = judge(sample(), entry, Gate(no_worse={"constraint_rate": 0.0}), 3)
        red += judged.outcome is Outcome.FAIL
    assert red / 200 < 0.05


def test_absolute_thresholds() -> None:
    half = record([["1", "1"]] * 10 + [["1", "0"]] * 10)

    def outcome(metric: str, least: float) -> Outcome:
        gate = Gate(at_least={metric: least}, no_worse={})
        return judge(half, None, gate, 1).outcome

    assert outcome("constraint_rate", 0.75) is Outcome.PASS
    assert outcome("category.hard", 1.0) is Outcome.PASS
    assert outcome("category.format", 0.9) is Outcome.FAIL
    assert outcome("category.format", 0.55) is Outcome.UNCLEAR
    assert outcome("all_pass_rate", 0.5) is Outcome.PASS
    assert outcome("scenario.s1", 0.75) is Outcome.PASS
    assert outcome("constraint_rate", 1.0) is Outcome.FAIL
    with pytest.raises(ConfigError, match=r"category 'hart' \(it has: format, hard\)"):
        outcome("category.hart", 1.0)


def test_soft_misses_fail_no_item(tmp_path: Path) -> None:
    entry = entry_of(record([["1", "1"]] * 30, soft=1), tmp_path)
    now = record([["1", "0"]] * 30, soft=1)
    gate = Gate(at_least={"all_pass_rate": 1.0}, no_worse={"all_pass_rate": 0.1})
    assert judge(now, entry, gate, 1).outcome is Outcome.PASS


def test_without_baseline_or_verdicts_nothing_passes(tmp_path: Path) -> None:
    good = record([["1"]] * 30)
    judged = judge(good, None, Gate(), 1)
    assert judged.outcome is Outcome.UNCLEAR
    assert all("snakemake baseline" in check.why for check in judged.checks)
    entry = entry_of(good, tmp_path)
    holes = record([["1"]] * 27 + [["?"]] * 3)
    judged = judge(holes, entry, Gate(at_least={"constraint_rate": 0.5}), 1)
    assert judged.outcome is Outcome.UNCLEAR
    assert "only 90.0 % of what was asked has a verdict" in judged.checks[0].why
    assert "3 of 30 constraints that apply have no verdict" in judged.notes
    # What fails does so whatever is missing.
    lost = record([["0"]] * 27 + [["?"]] * 3)
    assert judge(lost, entry, Gate(), 1).outcome is Outcome.FAIL


def test_what_differs_from_the_baseline_is_said(tmp_path: Path) -> None:
    entry = entry_of(record([["1", "1", "1"]] * 10), tmp_path)
    now = record([["1", "0"]] * 12, Made("other", "k" * 64, 2, "nemo-0.7", "q" * 64), name="next")
    judged = judge(now, entry, Gate(no_worse={"constraint_rate": 0.5}), 3)
    assert judged.outcome is Outcome.UNCLEAR, "two runs are missing"
    notes = "\n".join(judged.notes)
    assert "new items: 2, constraints gone: 10" in notes
    assert "on 10 constraints of 10 items" in notes
    assert "10 constraints in which a judge has a part are not compared" in notes
    assert "protocol was 1 and is 2" in notes and "policy was adhere and is nemo-0.7" in notes
    assert "the baseline is of agent plain, judge strict, and this is next plain" in notes
    assert "1 of 3 runs are scored" in notes


def test_overall_is_the_worst() -> None:
    assert overall([]) is Outcome.PASS
    assert overall([Outcome.PASS, Outcome.UNCLEAR]) is Outcome.UNCLEAR
    assert overall([Outcome.UNCLEAR, Outcome.FAIL, Outcome.PASS]) is Outcome.FAIL


@pytest.mark.parametrize("metric", ["CSR", "category", "category.", "speed.fast"])
def test_unknown_rates_are_refused(metric: str) -> None:
    with pytest.raises(ValueError, match="is no rate"):
        Gate(at_least={metric: 1.0})


# Baselines


def test_baselines_keep_other_entries_and_are_the_same_again(tmp_path: Path) -> None:
    baseline.store(str(tmp_path), [record([["1"]], name="b"), record([["0"]], name="a")])
    first = (tmp_path / "team.json").read_bytes()
    baseline.store(str(tmp_path), [record([["0"]], name="a")])
    assert (tmp_path / "team.json").read_bytes() == first
    read = baseline.read(tmp_path / "team.json")
    assert read is not None and [entry.model for entry in read.entries] == ["a", "b"]
    assert baseline.entry_for(read, Subject("team", "a", "plain", "strict"), None) is not None
    assert baseline.entry_for(read, Subject("team", "c", "plain", "strict"), None) is None
    chosen = baseline.entry_for(read, Subject("team", "c", "plain", "other"), "b__plain")
    assert chosen is not None and chosen.model == "b"
    with pytest.raises(DataError, match="it holds: a__plain, b__plain"):
        baseline.entry_for(read, Subject("team", "c", "plain", "strict"), "z")


def test_what_is_unfinished_is_no_baseline(tmp_path: Path) -> None:
    good = record([["1"]])
    open_ = Record(**{name: getattr(good, name) for name in Record.__slots__} | {"retryable": 2})
    with pytest.raises(DataError, match="snakemake retry"):
        baseline.store(str(tmp_path), [open_])
    limited = Subject("team.first5", "agent", "plain", "strict")
    part = Record(**{name: getattr(good, name) for name in Record.__slots__} | {"subject": limited})
    with pytest.raises(DataError, match="without limit="):
        baseline.store(str(tmp_path), [part])
    with pytest.raises(DataError, match="nothing is scored"):
        baseline.store(str(tmp_path), [record([["?"]])])
    assert not (tmp_path / "team.json").exists()


def test_a_broken_baseline_is_named(tmp_path: Path) -> None:
    path = tmp_path / "team.json"
    path.write_text('{"format": 2, "dataset": "team", "entries": []}')
    with pytest.raises(DataError, match=r"team\.json: format: found 2"):
        baseline.read(path)


# Keys


def test_items_are_known_by_id_and_constraints_by_what_they_ask_for() -> None:
    rows: list[Row] = [{"id": "a"}, {"id": "b"}, {"id": "b"}, {}, {"id": 7}]
    assert item_keys(rows) == ["a", "#2", "#3", "#4", "7"]

    def rule(**args: int) -> Row:
        step = {"rule": "words", "args": args}
        return {"rule": "words", "evaluation": [{"type": "rule", "exec": step}]}

    def ask(prompt: str, desc: str) -> Row:
        return {"desc": desc, "evaluation": [{"type": "llm", "exec": prompt}]}

    keys = constraint_keys([rule(max=5), rule(max=6), rule(max=5), ask("x", "Be kind.")])
    assert len(set(keys)) == 4 and keys[2] == f"{keys[0]}#2"
    assert keys[0].startswith("words:") and keys[3].startswith("llm:")
    # The prompt quotes the instruction, which may be reworded.
    assert constraint_keys([ask("y", "Be kind.")]) == [keys[3]]
    assert constraint_keys([rule(max=5) | {"id": "renamed", "severity": "should"}]) == keys[:1]


def test_overdue_reviews_are_listed() -> None:
    step = {"type": "code", "exec": "def check_following(response): return True"}
    constraints: list[Row] = [
        {"id": "old", "evaluation": [step], "provenance": {"review_by": "2026-01-31"}},
        {"id": "new", "evaluation": [step], "provenance": {"review_by": "2027-01-31"}},
        {"id": "none", "evaluation": [step]},
    ]
    row = {"id": "a", "input": [{"role": "user", "content": "x"}], "constraints": constraints}
    dataset = as_dataset("team", Path("team.json"), [row], "team.json")
    assert overdue(dataset, datetime.date(2026, 2, 1)) == [
        "team: a: old: review was due on 2026-01-31"
    ]
    assert overdue(dataset, datetime.date(2026, 1, 31)) == []
