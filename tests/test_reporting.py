"""The summary: what is averaged, what stands apart, what is said about the rest."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from adhere.errors import DataError
from adhere.reporting import aggregate
from adhere.reporting.collect import collect, names_of_path
from adhere.reporting.table import render
from adhere.scoring import score_file

ROOT = Path(__file__).resolve().parents[1]

Json = dict[str, Any]


class Tree:
    """A results folder that is filled run by run."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(self, followed: int, of: int, **about: Any) -> Path:
        """Score one run in which ``followed`` of ``of`` constraints were; returns its folder.

        ``about`` may name model, mode, run, judge, dataset, policy, rows, and any key of
        judge_run.json; ``named`` False leaves the latter out.
        """
        defaults = {"model": "m", "mode": "thinking", "run": 1, "judge": "j", "dataset": "eval"}
        names = {key: about.pop(key, value) for key, value in defaults.items()}
        run_folder = f"run{names['run']}_{names['judge']}"
        parent = self.root / "scores" / f"{names['model']}__{names['mode']}" / run_folder
        folder: Path = parent / names["dataset"]
        folder.mkdir(parents=True)
        rows = about.pop("rows", None) or [item(position < followed) for position in range(of)]
        policy = about.pop("policy", "adhere")
        if about.pop("named", True):
            write(folder / "judge_run.json", judge_run(names, len(rows)) | about)
        write(folder / "results.json", rows)
        outputs = [folder / name for name in ("accuracy.json", "verdicts.parquet", "items.csv")]
        score_file(folder / "results.json", policy, *outputs)
        return folder

    def summary(self, expected_runs: int | None = None) -> tuple[str, Json]:
        """Aggregate and return summary.md and summary.json."""
        expected = None if expected_runs is None else lambda _model: expected_runs
        aggregate(self.root, expected_runs=expected)
        markdown = (self.root / "summary.md").read_text("utf-8")
        document: Json = json.loads((self.root / "summary.json").read_text("utf-8"))
        return markdown, document


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "results")


def write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), "utf-8")


def judge_run(names: Json, items: int) -> Json:
    return {
        "judge": {"name": names["judge"], "hash": "1" * 64},
        "protocol": 1,
        "dataset": {"name": names["dataset"], "sha256": "a" * 64, "limit": None, "items": items},
        "prediction": {
            "model": names["model"],
            "mode": names["mode"],
            "run": names["run"],
            "hash": "e" * 64,
        },
        "warnings": [],
        "demo": False,
    }


def item(score: bool | None, reason: str | None = None, **output: Any) -> Json:
    constraint = {
        "dimension": "unconditional",
        "type": ["semantic"],
        "evaluation": [{"type": "llm"}],
        "score": score,
        "null_reason": reason,
    }
    return {
        "output": {"content": "An answer.", "model_name": "m"} | output,
        "constraints": [constraint],
    }


def lost(kind: str, *, retryable: bool) -> Json:
    error = {"kind": kind, "message": "it failed", "retryable": retryable}
    reason = "prediction_pending" if retryable else "no_response"
    return item(None, reason, content=None, error=error)


def table_rows(markdown: str) -> list[list[str]]:
    """Return the cells of all table lines of a summary, headers and rules left out."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [line for line in cells if line[0] != "model" and not line[0].startswith("---")]


# --- averages -----------------------------------------------------------------------------------


def test_mean_and_sample_std_over_runs(tree: Tree) -> None:
    for run, followed in enumerate((5, 6, 8), start=1):
        tree.add(followed, 10, run=run)
    markdown, document = tree.summary(expected_runs=3)
    [group] = document["groups"]
    [line] = group["rows"]
    assert line["CSR"] == {
        "mean": pytest.approx(19 / 30),
        "std": pytest.approx(statistics.stdev([0.5, 0.6, 0.8])),
        "runs": 3,
    }
    assert [(run["run"], run["CSR"]) for run in line["runs"]] == [(1, 0.5), (2, 0.6), (3, 0.8)]
    first, *runs = table_rows(markdown)
    assert first[:5] == ["m", "thinking", "3", "63.3 ± 15.3", "63.3 ± 15.3"]
    assert first[-1] == "100.0"
    assert runs == [
        ["m", "thinking", str(run), value, value, "100.0"]
        for run, value in enumerate(("50.0", "60.0", "80.0"), start=1)
    ]


def test_one_run_has_no_spread_and_an_empty_group_is_null(tree: Tree) -> None:
    tree.add(1, 2)
    markdown, document = tree.summary(expected_runs=3)
    line = document["groups"][0]["rows"][0]
    assert line["CSR"] == {"mean": 0.5, "std": None, "runs": 1}
    assert line["by_type"]["tool"] == {"mean": None, "std": None, "runs": 0}
    assert line["meta"]["mean"] is None
    assert table_rows(markdown) == [
        ["m", "thinking", "1 of 3", *["50.0"] * 3, *["–"] * 3, "50.0", "–", "–", "100.0"],
    ]


def test_runs_without_a_value_do_not_count_as_zero(tree: Tree) -> None:
    tree.add(1, 2, run=1)
    tree.add(0, 0, run=2, rows=[item(None, "not_applicable")])
    _, document = tree.summary()
    line = document["groups"][0]["rows"][0]
    assert line["CSR"] == {"mean": 0.5, "std": None, "runs": 1}
    assert [run["CSR"] for run in line["runs"]] == [0.5, None]


def test_best_first_and_nothing_last(tree: Tree) -> None:
    tree.add(1, 4, model="low")
    tree.add(3, 4, model="high")
    tree.add(0, 0, model="none", rows=[item(None, "judge_failed")])
    tree.add(2, 4, model="middle")
    markdown, _ = tree.summary()
    assert [line[0] for line in table_rows(markdown)] == ["high", "middle", "low", "none"]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4))
def test_averages_stay_in_range(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[int, int]]
) -> None:
    tree = Tree(tmp_path_factory.mktemp("tree"))
    for number, (followed, more) in enumerate(runs, start=1):
        rows = None if followed + more else [item(None, "not_applicable")]
        tree.add(followed, followed + more, run=number, rows=rows)
    _, document = tree.summary()
    csr = document["groups"][0]["rows"][0]["CSR"]
    values = [followed / (followed + more) for followed, more in runs if followed + more]
    assert csr["runs"] == len(values)
    assert (csr["mean"] is None) == (not values)
    assert (csr["std"] is None) == (len(values) < 2)
    if values:
        assert min(values) - 1e-12 <= csr["mean"] <= max(values) + 1e-12


def test_coverage_is_rounded_down(tree: Tree) -> None:
    rows = [item(True) for _ in range(9999)]
    tree.add(0, 0, rows=[*rows, item(None, "judge_failed"), item(None, "not_applicable")])
    markdown, document = tree.summary()
    coverage = document["groups"][0]["rows"][0]["coverage"]
    assert coverage["fraction"] == 0.9999
    assert table_rows(markdown)[0][-1] == "99.9"


# --- comparability ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (
            {"dataset": {"name": "eval", "sha256": "b" * 64}},
            "dataset checksum is aaaaaaaaaaaa here, bbbbbbbbbbbb there",
        ),
        (
            {"judge": {"name": "j", "hash": "2" * 64}},
            "judge config is 111111111111 here, 222222222222 there",
        ),
        ({"protocol": 2}, "protocol is 1 here, 2 there"),
        ({"protocol": None}, "protocol is 1 here, unknown there"),
    ],
)
def test_unlike_rows_stand_apart_with_the_reason(tree: Tree, other: Json, why: str) -> None:
    tree.add(1, 2, run=1)
    folder = tree.add(2, 2, run=2)
    write(folder / "judge_run.json", json.loads((folder / "judge_run.json").read_text()) | other)
    score_file(folder / "results.json", "adhere", folder / "accuracy.json", None)
    markdown, document = tree.summary(expected_runs=2)
    assert sorted(group["rows"][0]["CSR"]["mean"] for group in document["groups"]) == [0.5, 1.0]
    assert [line[2] for line in table_rows(markdown)] == ["1 of 2", "1 of 2"]
    assert why in markdown


def test_policies_judges_and_limits_stand_apart(tree: Tree) -> None:
    tree.add(1, 2)
    tree.add(1, 2, judge="j_2")
    tree.add(1, 2, model="other", policy="nemo-0.7")
    # The folder's own mark is enough where no judge_run.json is left.
    tree.add(1, 2, dataset="eval.first20", named=False)
    markdown, document = tree.summary()
    titles = [line for line in markdown.splitlines() if line.startswith("## eval")]
    assert titles == [
        "## eval · judge j · policy adhere",
        "## eval · judge j_2 · policy adhere",
        "## eval · judge j · policy nemo-0.7",
        "## eval (first 20 items) · judge j · policy adhere",
    ]
    assert document["groups"][3]["limit"] == 20
    assert "Apart from" not in markdown


def test_runs_sampled_differently_are_not_averaged(tree: Tree) -> None:
    prediction = {"model": "m", "mode": "thinking", "hash": "f" * 64}
    tree.add(1, 2, run=1)
    tree.add(2, 2, run=2)
    tree.add(0, 2, run=3, prediction=prediction | {"run": 3})
    markdown, document = tree.summary(expected_runs=3)
    lines = document["groups"][0]["rows"]
    assert [(line["CSR"]["mean"], len(line["runs"])) for line in lines] == [(0.75, 2), (0.0, 1)]
    assert [line[2] for line in table_rows(markdown)[:2]] == ["2 of 3", "1 of 3"]
    assert "m thinking: run 3 has prediction settings ffffffffffff" in markdown


def test_unknown_provenance_is_said(tree: Tree) -> None:
    tree.add(1, 2, named=False)
    tree.add(1, 3, model="m2", named=False)
    markdown, _ = tree.summary()
    assert "Not recorded: dataset checksum, judge config, protocol." in markdown
    assert "between 2 and 3 items" in markdown


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        ("a__b__thinking/run12_gpt_4__o/eval", ("a__b", "thinking", 12, "gpt_4__o", "eval")),
        ("a___b/run1__j/e", ("a_", "b", 1, "_j", "e")),
        ("通义 千问__non-thinking/run1_j/评测", ("通义 千问", "non-thinking", 1, "j", "评测")),
    ],
)
def test_names_of_path(folders: str, names: tuple[object, ...]) -> None:
    found = names_of_path(Path("results/scores") / folders / "accuracy.json")
    assert (found.model, found.mode, found.run, found.judge, found.dataset) == names


@pytest.mark.parametrize(
    "folders", ["model/run1_j/e", "m__/run1_j/e", "__t/run1_j/e", "m__t/1_j/e"]
)
def test_other_folders_are_refused(folders: str) -> None:
    with pytest.raises(DataError, match="expected"):
        names_of_path(Path("scores") / folders / "accuracy.json")


def test_names_in_the_file_win_over_the_path(tree: Tree) -> None:
    prediction = {"model": "org/model", "mode": "thinking", "run": 2, "hash": "e" * 64}
    tree.add(1, 2, model="org_model", run=2, prediction=prediction)
    tree.add(1, 2, model="org_other", run=2, named=False)
    _, document = tree.summary()
    models = {row["model"] for group in document["groups"] for row in group["rows"]}
    assert models == {"org/model", "org_other"}
    verdicts = pq.read_table(tree.root / "verdicts.parquet").to_pylist()
    assert {(line["model"], line["run"], line["judge"]) for line in verdicts} == {
        ("org/model", 2, "j"),
        ("org_other", 2, "j"),
    }


def test_models_that_differ_in_one_character_stay_apart(tree: Tree) -> None:
    for model in ("a-b", "a_b", "a.b", "a b", "A-b", "a__b"):
        tree.add(1, 2, model=model)
    _, document = tree.summary()
    assert len(document["groups"][0]["rows"]) == 6


def test_a_file_name_that_is_not_text_blocks_nothing(tree: Tree) -> None:
    folder = tree.add(1, 2, named=False)
    folder.parents[1].rename(tree.root / "scores" / os.fsdecode(b"x\xff__thinking"))
    markdown, _ = tree.summary()
    assert table_rows(markdown)[0][0] == "x�"


# --- what is said -------------------------------------------------------------------------------


def test_nothing_finished_says_what_to_do(tree: Tree) -> None:
    markdown, document = tree.summary(expected_runs=3)
    assert "Nothing is scored yet" in markdown
    assert "Run `snakemake`" in markdown
    assert document["groups"] == []
    assert pq.read_table(tree.root / "verdicts.parquet").num_rows == 0


def test_a_demonstration_is_called_one_at_the_top(tree: Tree) -> None:
    tree.add(1, 2, model="real")
    assert "mean nothing" not in tree.summary()[0]
    tree.add(1, 2, model="toy", judge="toy", demo=True)
    markdown, document = tree.summary()
    title, warning = [line for line in markdown.splitlines() if line][:2]
    assert title.startswith("# ")
    assert "These scores mean nothing" in warning
    assert [line for line in markdown.splitlines() if line.endswith("demonstration")] == [
        "## eval · judge toy · policy adhere · demonstration"
    ]
    assert document["demo"] is True


def test_failures_are_named_with_advice(tree: Tree) -> None:
    rows = [
        item(True),
        item(True, finish_reason="length"),
        item(None, "judge_unreadable"),
        lost("context_overflow", retryable=False),
        lost("rate_limited", retryable=True),
    ]
    tree.add(0, 0, rows=rows)
    markdown, document = tree.summary()
    failures = markdown[markdown.index("### Failures") :].splitlines()[2:6]
    assert failures == [
        "- m thinking: 2 of 5 constraints unscored (judge_unreadable 1, prediction_pending 1)",
        "- m thinking: 1 response empty or failed (all their constraints count as violated), "
        "1 response pending: context_overflow 1, rate_limited 1",
        "- m thinking: 1 answer cut at the token limit, judged as they are",
        "- m thinking: 1 verdict may still change: run `snakemake retry`",
    ]
    assert document["groups"][0]["rows"][0]["retryable"] == 1


def test_without_failures_nothing_is_said_about_them(tree: Tree) -> None:
    tree.add(1, 2)
    markdown, _ = tree.summary()
    assert "Failures" not in markdown
    assert "Warnings" not in markdown


def test_warnings_stand_once(tree: Tree) -> None:
    for run in (1, 2):
        tree.add(1, 2, run=run, warnings=["m thinking: runs are identical", "isolation is weak"])
    tree.add(1, 2, model="n", warnings=["isolation is weak"])
    markdown, document = tree.summary()
    assert document["warnings"] == ["m thinking: runs are identical", "isolation is weak (m, n)"]
    assert markdown.count("runs are identical") == 1


def test_the_isolation_of_checkers_is_named(tree: Tree) -> None:
    tree.add(1, 2, isolation={"level": "strong", "allows": []})
    tree.add(1, 2, run=2, isolation={"level": "weak", "allows": ["use the network"]})
    tree.add(1, 2, dataset="other")
    markdown, document = tree.summary()
    assert "· isolation of checkers strong and weak\n" in markdown
    assert "· isolation of checkers unknown\n" in markdown
    assert [group["isolation"] for group in document["groups"]] == [["strong", "weak"], ["unknown"]]


@pytest.mark.parametrize("content", ["", "[]", '{"accuracy": 0.5}', '{"CSR": NaN}', "\udcff"])
def test_a_file_of_another_form_blocks_nothing(tree: Tree, content: str) -> None:
    tree.add(1, 2)
    folder = tree.add(1, 2, model="foreign")
    (folder / "accuracy.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    markdown, document = tree.summary()
    assert [line[0] for line in table_rows(markdown)] == ["m"]
    [problem] = document["problems"]
    assert "foreign__thinking/run1_j/eval/accuracy.json" in problem
    assert "left out" in markdown


def test_the_same_run_twice_counts_once(tree: Tree) -> None:
    tree.add(1, 2, run=1)
    prediction = {"model": "m", "mode": "thinking", "run": 1, "hash": "e" * 64}
    tree.add(2, 2, run=2, prediction=prediction)
    markdown, document = tree.summary()
    assert document["groups"][0]["rows"][0]["CSR"]["mean"] == 0.5
    assert "is the same run as" in markdown


# --- verdicts -----------------------------------------------------------------------------------


def test_all_verdicts_are_kept(tree: Tree) -> None:
    tree.add(1, 2, run=1)
    tree.add(2, 3, run=2, named=False)
    tree.summary()
    table = pq.read_table(tree.root / "verdicts.parquet").to_pylist()
    assert [(line["run"], line["verdict"]) for line in table] == [
        (1, "followed"),
        (1, "violated"),
        (2, "followed"),
        (2, "followed"),
        (2, "violated"),
    ]
    assert {(line["model"], line["mode"], line["dataset"]) for line in table} == {
        ("m", "thinking", "eval")
    }


@pytest.mark.parametrize("broken", [None, b"", b"not parquet at all"])
def test_missing_verdicts_are_named(tree: Tree, broken: bytes | None) -> None:
    tree.add(1, 2, run=1)
    folder = tree.add(2, 2, run=2)
    if broken is None:
        (folder / "verdicts.parquet").unlink()
    else:
        (folder / "verdicts.parquet").write_bytes(broken)
    markdown, document = tree.summary()
    assert len(document["groups"][0]["rows"][0]["runs"]) == 2
    assert "verdicts left out: scores/m__thinking/run2_j/eval/verdicts.parquet" in markdown
    assert pq.read_table(tree.root / "verdicts.parquet").num_rows == 2


def test_again_gives_the_same_bytes_and_leaves_nothing_behind(tree: Tree) -> None:
    tree.add(1, 2, run=1)
    tree.add(2, 2, run=2)
    names = ("summary.md", "summary.json", "verdicts.parquet", "items.csv")
    tree.summary()
    before = [(tree.root / name).read_bytes() for name in names]
    tree.summary()
    assert [(tree.root / name).read_bytes() for name in names] == before
    assert {path.name for path in tree.root.iterdir()} == {"scores", *names}


# --- form ---------------------------------------------------------------------------------------


def test_columns_are_aligned_in_a_terminal(tree: Tree) -> None:
    tree.add(1, 2, model="通义千问", run=1)
    tree.add(2, 2, model="通义千问", run=2)
    tree.add(1, 2, model="a-much-longer-name", run=1)
    markdown, _ = tree.summary()
    for part in markdown.split("\n\n"):
        widths = {cell_len(line) for line in part.splitlines() if line.startswith("|")}
        assert len(widths) <= 1


def test_a_cell_cannot_break_its_table() -> None:
    text = render(["a", "b"], [["x|y", "1\n2\u20283"]], left=1)
    assert text.splitlines() == [
        "| a    |     b |",
        "| ---- | ----: |",
        "| x\\|y | 1 2 3 |",
    ]


def test_collect_is_in_a_fixed_order(tree: Tree) -> None:
    for run in (2, 1):
        for model in ("b", "a"):
            tree.add(1, 2, model=model, run=run)
    found = [(run.names.model, run.names.run) for run in collect(tree.root).runs]
    assert found == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


# --- scripts ------------------------------------------------------------------------------------


def test_by_hand(tree: Tree) -> None:
    tree.add(1, 2)
    script = str(ROOT / "scripts" / "aggregate.py")
    arguments = ["--results-root", str(tree.root), "--repeats", "3"]
    done = subprocess.run(
        [sys.executable, script, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 of 3" in (tree.root / "summary.md").read_text("utf-8")


def sampled(run: int, answers: str, *, temperature: bool = True) -> Json:
    return {
        "model": "m",
        "mode": "thinking",
        "run": run,
        "hash": "h",
        "sampled": temperature,
        "outputs_sha256": answers,
    }


def test_identical_sampled_runs_are_warned_about(tree: Tree) -> None:
    for run, answers in ((1, "a"), (2, "b"), (3, "a")):
        tree.add(1, 2, run=run, prediction=sampled(run, answers))
    markdown, document = tree.summary()
    (warning,) = document["warnings"]
    assert "m thinking on eval: runs 1, 3 gave identical answers" in warning
    assert "runs 1, 3" in " ".join(markdown.split())


def test_identical_runs_at_temperature_zero_are_no_surprise(tree: Tree) -> None:
    for run in (1, 2):
        tree.add(1, 2, run=run, prediction=sampled(run, "a", temperature=False))
    assert tree.summary()[1]["warnings"] == []
