"""People's labels against judges: the sample, the sheets, the statistics."""

import json
import math
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from adhere import files, jsonio
from adhere.config import Spotcheck
from adhere.csv_table import read_csv, write_csv
from adhere.errors import DataError
from adhere.gate.correct import Posterior, corrected, judge_reports
from adhere.gate.labels import Label, between_labellers, consensus, kappa, read_labels
from adhere.gate.record import Subject
from adhere.gate.sample import Population, Stratum, Unit, draw, population
from adhere.gate.sheet import write_sheets
from adhere.gate.spotcheck_report import document, findings, markdown
from adhere.plan import Cell, Evaluation
from adhere.scoring import score_file

SUBJECT = Subject("team", "agent", "plain", "strict")


def unit(number: int, followed: bool, kind: str = "content", **more: Any) -> Unit:
    """Return one verdict."""
    fields: dict[str, Any] = {
        "key": f"k{number}",
        "rank": f"{random.Random(number).random():.9f}",
        "stratum": Stratum("strict", kind, followed),
        "subject": SUBJECT,
        "run": 1,
        "item": f"i{number}",
        "constraint": "polite",
        "asked": "[user]\nSay it.",
        "requirement": "It is polite.",
        "answer": "Here you are.",
        "said": "YES",
    }
    return Unit(**(fields | more))


def of_units(*units: Unit, followed: int = 0, scored: int = 0) -> Population:
    """Return a population of one subject."""
    return Population(units, {SUBJECT: followed}, {SUBJECT: scored})


# Sample


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from(["a", "b", "c"])), min_size=1, max_size=200),
    st.sampled_from([0.1, 0.25, 1.0]),
    st.integers(1, 8),
)
def test_every_stratum_is_drawn_from(
    verdicts: list[tuple[bool, str]], share: float, at_least: int
) -> None:
    units = [unit(number, *verdict) for number, verdict in enumerate(verdicts)]
    drawn = draw(units, Spotcheck(share=share, at_least=at_least))
    sizes = Counter(each.stratum for each in units)
    taken = Counter(each.stratum for each in drawn)
    for stratum, size in sizes.items():
        assert taken[stratum] == min(size, max(math.ceil(share * size), at_least))
    assert len(drawn) >= share * len(units)
    assert [each.key for each in drawn] == sorted(each.key for each in drawn)
    # Further verdicts leave in place what they do not displace: the order of the draw is fixed.
    assert draw(list(reversed(units)), Spotcheck(share=share, at_least=at_least)) == drawn


def test_the_draw_is_by_chance_and_not_by_name() -> None:
    units = [unit(n, True, rank=f"{(n * 7) % 10}") for n in range(10)]
    drawn = draw(units, Spotcheck(share=0.3, at_least=1))
    assert {each.rank for each in drawn} == {"0", "1", "2"}


def judged_row(item: str, said: str, answer: str = "Here you are.") -> dict[str, Any]:
    """Return a row with a question, and a rule that no judge was asked about."""
    asked = {"type": "llm", "exec": "Is it polite?"}
    rule = {"type": "rule", "exec": {"rule": "words", "args": {"max": 9}}}
    base: dict[str, Any] = {"null_reason": None, "steps": [], "llm_output": None}
    return {
        "id": item,
        "input": [{"role": "user", "content": f"Say {item}."}],
        "output": {"content": answer, "error": None},
        "constraints": [
            base
            | {"desc": "It is polite.", "category": "content", "evaluation": [asked]}
            | {"score": said == "YES", "llm_output": said},
            base | {"rule": "words", "evaluation": [rule], "score": True},
        ],
    }


def test_the_population_is_what_judges_said(tmp_path: Path) -> None:
    evaluations = []
    for run in (1, 2):
        evaluation = Evaluation(Cell("agent", "plain", run, "team"), "strict")
        path = files.results(tmp_path, evaluation)
        rows = [judged_row("a", "YES"), judged_row("b", "NO", f"Answer {run}.")]
        jsonio.write_json(path, [*rows, judged_row("c", "NO", "")])
        score_file(path, "adhere", path.with_name("accuracy.json"), None)
        evaluations.append(evaluation)
    found = population(tmp_path, evaluations, seed=1)
    # Per run: a and b are judged; c has no answer, and all its constraints count as violated.
    assert [(each.item, each.run, each.stratum.followed) for each in found.units] == [
        ("a", 1, True),
        ("b", 1, False),
        ("a", 2, True),
        ("b", 2, False),
    ]
    assert (found.followed[SUBJECT], found.scored[SUBJECT]) == (4, 8)
    first, other, again, last = found.units
    # The same answer to the same question is labelled once, whatever run or judge it is of.
    assert first.key == again.key and first.rank != again.rank
    assert len({other.key, last.key, first.key}) == 3
    assert population(tmp_path, evaluations, seed=2).units[0].rank != first.rank
    (report,) = findings(found, [Label(first.key, "ann", True, "")], 1).judges
    assert (report.verdicts, report.labelled) == (4, 2)


# Sheets


def test_the_sheets_show_no_verdict_and_run_nothing(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><!-- & \u2028 =1+1"
    write_sheets(tmp_path, [unit(1, True, answer=evil, said="SECRET-VERDICT"), unit(2, False)])
    page = (tmp_path / "sheet.html").read_text("utf-8")
    assert page.count("</script>") == 2 and "alert(1)<" not in page
    assert "SECRET-VERDICT" not in page
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", page)
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    items = json.loads(found[1])["items"]
    assert [item["key"] for item in items] == ["k1", "k2"] and items[0]["answer"] == evil
    rows = read_csv(tmp_path / "sheet.csv")
    assert [row["key"] for row in rows] == ["k1", "k2"]
    assert all(row["label"] == "" for row in rows)
    assert "SECRET-VERDICT" not in (tmp_path / "sheet.csv").read_text("utf-8")


def test_labels_in_the_sheet_are_not_written_over(tmp_path: Path) -> None:
    write_sheets(tmp_path, [unit(1, True)])
    write_sheets(tmp_path, [unit(2, True)])
    rows = read_csv(tmp_path / "sheet.csv")
    write_csv(tmp_path / "sheet.csv", list(rows[0]), [list((rows[0] | {"label": "v"}).values())])
    before = (tmp_path / "sheet.csv").read_bytes()
    with pytest.raises(DataError, match=r"holds labels \(1\): move it to"):
        write_sheets(tmp_path, [unit(3, True)])
    assert (tmp_path / "sheet.csv").read_bytes() == before


# Labels


def test_labels_of_several_people(tmp_path: Path) -> None:
    write_csv(
        tmp_path / "ann.csv",
        ["key", "label", "note"],
        [["k1", "Followed", ""], ["k2", "no", "rude"], ["k3", "", ""], ["k4", "unsure", ""]],
    )
    write_csv(
        tmp_path / "sheet2.csv",
        ["key", "label", "labeller"],
        [["k1", "v", "bob"], ["k2", "V", "bob"], ["k4", "yes", "bob"], ["k1", "1", "eve"]],
    )
    labels = read_labels(tmp_path)
    assert {label.labeller for label in labels} == {"ann", "bob", "eve"}
    assert consensus(labels) == {"k1": True, "k2": False, "k4": True}
    assert consensus([*labels[:1], Label("k1", "bob", False, "")]) == {"k1": None}
    pairs = {(pair.one, pair.other): (pair.both, pair.agreed) for pair in between_labellers(labels)}
    assert pairs == {("ann", "bob"): (2, 1), ("ann", "eve"): (1, 1), ("bob", "eve"): (1, 0)}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["k1", "maybe"]], r"ann\.csv: row 2: label: found 'maybe'; allowed: followed, violated"),
        ([["", "v"]], "row 2: needs the columns key and label"),
        ([["k1", "v"], ["k1", "f"]], "ann labelled k1 twice"),
    ],
)
def test_labels_that_cannot_be_meant(tmp_path: Path, rows: list[list[str]], message: str) -> None:
    write_csv(tmp_path / "ann.csv", ["key", "label"], rows)
    with pytest.raises(DataError, match=message):
        read_labels(tmp_path)


def test_kappa_against_its_definition() -> None:
    # Cohen (1960): 20 both yes, 15 both no, 5 and 10 apart: p0 0.7, pe 0.5.
    table = {(True, True): 20.0, (True, False): 5.0, (False, True): 10.0, (False, False): 15.0}
    assert kappa(table) == pytest.approx(0.4)
    assert kappa({(True, True): 7.0}) is None and kappa({}) is None
    assert kappa({(True, True): 3.0, (False, False): 9.0}) == 1


# Correction


def labelled(units: list[Unit], wrong: set[str], keys: set[str]) -> dict[str, bool | None]:
    """Return labels of some verdicts, in which the judge is wrong about some."""
    return {
        each.key: each.stratum.followed ^ (each.key in wrong) for each in units if each.key in keys
    }


@given(
    st.integers(1, 60), st.integers(1, 60), st.integers(0, 20), st.integers(0, 20), st.integers(0)
)
def test_correction_is_rogan_and_gladens(
    yes: int, no: int, wrong_yes: int, wrong_no: int, seed: int
) -> None:
    units = [unit(n, n < yes) for n in range(yes + no)]
    source = random.Random(seed)
    keys = {f"k{n}" for n in source.sample(range(yes), max(1, yes // 2))}
    keys |= {f"k{n}" for n in source.sample(range(yes, yes + no), max(1, no // 2))}
    wrong = {f"k{n}" for n in range(wrong_yes)} | {f"k{yes + n}" for n in range(wrong_no)}
    truth = labelled(units, wrong, keys)
    found = of_units(*units)
    posterior = Posterior(units, truth, 1, 0.95)
    (result,) = corrected(found, truth, posterior)
    assert result.rate is not None
    assert 0 <= result.rate.low <= result.rate.value <= result.rate.high <= 1
    # Weighted cells of the table of judge and truth, then the textbook formula.
    cells: Counter[tuple[bool, bool]] = Counter()
    for said, size in ((True, yes), (False, no)):
        told = [
            truth[each.key] for each in units if each.stratum.followed is said and each.key in truth
        ]
        for label in told:
            cells[said, bool(label)] += size / len(told)
    true, false = cells[True, True] + cells[False, True], cells[True, False] + cells[False, False]
    if true and false:
        sensitivity, specificity = cells[True, True] / true, cells[False, False] / false
        if abs(sensitivity + specificity - 1) > 1e-9:
            apparent = yes / (yes + no)
            textbook = (apparent + specificity - 1) / (sensitivity + specificity - 1)
            assert result.rate.value == pytest.approx(textbook)


def test_the_corrected_interval_holds_the_truth() -> None:
    """A judge that is wrong in 10 % and 30 %, often enough: the interval misses seldom."""
    missed = 0
    for seed in range(120):
        source = random.Random(seed)
        truths = {f"k{n}": source.random() < 0.7 for n in range(300)}
        said = {
            k: (source.random() > 0.1) if t else source.random() < 0.3 for k, t in truths.items()
        }
        units = [unit(n, said[f"k{n}"], rank=f"{source.random():.9f}") for n in range(300)]
        drawn = draw(units, Spotcheck(share=0.2, at_least=5))
        truth: dict[str, bool | None] = {each.key: truths[each.key] for each in drawn}
        (result,) = corrected(of_units(*units), truth, Posterior(units, truth, 1, 0.95))
        assert result.rate is not None
        actual = sum(truths.values()) / 300
        missed += not result.rate.low <= actual <= result.rate.high
    assert missed / 120 < 0.1


def test_rules_are_taken_as_they_are_and_everything_labelled_is_certain() -> None:
    units = [unit(n, n < 6) for n in range(10)]
    truth = labelled(units, {"k0", "k9"}, {each.key for each in units})
    (result,) = corrected(
        of_units(*units, followed=30, scored=40), truth, Posterior(units, truth, 1, 0.95)
    )
    assert result.rate is not None and result.measured == 36 / 50
    assert (result.rate.low, result.rate.value, result.rate.high) == (36 / 50,) * 3


def test_unlabelled_kinds_are_named_and_not_guessed() -> None:
    units = [unit(n, True) for n in range(10)] + [unit(n, False, "tool") for n in range(10, 12)]
    told = findings(of_units(*units), [Label("k1", "ann", True, ""), Label("x", "a", True, "")], 1)
    (rate,) = told.rates
    assert rate.rate is None and rate.missing == (Stratum("strict", "tool", False),)
    text = markdown(told)
    assert "no label for type tool where judge strict said violated" in text
    assert "labels whose answers are not there any more, left out: 1" in text


def test_errors_by_type_have_exact_intervals() -> None:
    units = [unit(n, n < 20) for n in range(30)]
    truth = labelled(units, {"k0", "k1", "k29"}, {f"k{n}" for n in (*range(12), *range(26, 30))})
    (report,) = judge_reports(of_units(*units), truth, Posterior(units, truth, 1, 0.95))
    violated, error = report.errors
    assert (violated.stratum.followed, violated.labelled, violated.wrong) == (False, 4, 1)
    exact = stats.binomtest(2, 12).proportion_ci(0.95, "exact")
    assert error.rate is not None and (error.size, error.labelled, error.wrong) == (20, 12, 2)
    assert (error.rate.value, error.rate.low, error.rate.high) == (2 / 12, exact.low, exact.high)
    assert (report.labelled, report.agreed) == (16, 13)
    # Weighted by the sizes of the strata, not by how many labels each has.
    weighted = (20 * 10 / 12 + 10 * 3 / 4) / 30
    assert report.agreement is not None and report.agreement.value == pytest.approx(weighted)


def test_the_report_lists_disagreements_and_is_the_same_again() -> None:
    units = [unit(n, n % 2 == 0) for n in range(20)]
    labels = [
        Label(f"k{n}", "ann", n % 2 == 0 or n == 3, "so | so" if n == 3 else "") for n in range(12)
    ]
    labels += [Label("k5", "bob", True, ""), Label("k0", "bob", True, "")]
    told = findings(of_units(*units), labels, 1)
    assert [(each.item, notes) for each, notes in told.disagreements] == [("i3", "ann: so | so")]
    assert told.disputed == ("k5",)
    text = markdown(told)
    assert "| k3 " in text and "so \\| so" in text
    assert "divided, or unsure, about: k5" in text
    assert "Cohen's κ 0.8" in text
    again = findings(of_units(*units), labels, 1)
    assert jsonio.dumps(document(again)) == jsonio.dumps(document(told))
    assert document(told)["disagreements"][0]["judge_said"] == "violated"
