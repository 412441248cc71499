"""Results that exist already: AgentIF's tree, and one in this workflow's own layout."""

import csv
import gzip
import json
import os
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

import pytest
from workflow_project import KEY_VARIABLE, ROOT, WorkflowProject, make_project

from adhere.adopt import Outcome, Terms, adopt, split_names
from adhere.errors import DataError
from adhere.existing import existing_predictions, existing_results, misplaced_results
from adhere.jsonio import read_json, write_json
from adhere.plan import Cell, Evaluation

SHARED = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared"))
AGENTIF = SHARED / "data" / "agentif"
MODELS = ("Qwen3-32B", "claude-3-5-sonnet-20241022", "Mistral-7B-Instruct-v0.3")
needs_agentif = pytest.mark.skipif(not AGENTIF.exists(), reason=f"{AGENTIF} is not here")

Rows = list[dict[str, Any]]


def judged(model: str, *scores: bool | None) -> Rows:
    """One row of a results file as AgentIF's scripts write it, with a verdict a constraint."""
    constraints = [
        {
            "id": n,
            "desc": "Be kind.",
            "dimension": "unconditional",
            "type": "semantic",
            "is_meta": False,
            "evaluation": [{"type": "llm", "exec": "Is it kind? {response}"}],
            "score": score,
            "llm_output": "YES" if score else "NO",
        }
        for n, score in enumerate(scores)
    ]
    output = {"content": "Hello.", "model_name": model, "dump": "Hello."}
    message = {"role": "user", "content": "Say hello."}
    return [{"input": [message], "constraints": constraints, "output": output}]


def put(tree: Path, folder: str, rows: object, *, dataset: str = "eval") -> Path:
    """Write a results file where AgentIF's scripts would."""
    path = tree / "scores" / folder / dataset / "results.json"
    write_json(path, rows)
    return path


def terms(root: Path, judge: str | None = None, **changes: Any) -> Terms:
    """Return what the command hands over when nothing is said."""
    made: dict[str, Any] = {"mode": "published", "run": 1, "dataset": "eval"}
    return Terms(root, **made | changes, judge=judge, judges=frozenset({"gpt-4o", "strict"}))


def states(outcomes: Sequence[Outcome]) -> dict[str, int]:
    return {s: n for s in ("taken", "there", "left") if (n := [o.state for o in outcomes].count(s))}


# Which part is the model


@pytest.mark.parametrize(
    ("folder", "models", "judge", "expected"),
    [
        # As AgentIF publishes them.
        ("Qwen3-32B_gpt4o", set(), None, ("Qwen3-32B", "gpt4o")),
        ("Conifer_dpo_gpt4o", {"Conifer_dpo"}, None, ("Conifer_dpo", "gpt4o")),
        ("glm-4.6_gpt-4o-2024-11-20", set(), None, ("glm-4.6", "gpt-4o-2024-11-20")),
        # The models that answered, then the judges that are known, then what is said.
        ("a_b_strict", set(), None, ("a_b", "strict")),
        ("a_b_c", {"a"}, None, ("a", "b_c")),
        ("a_b_c", {"a_b"}, None, ("a_b", "c")),
        ("a_b_strict", {"a", "a_b"}, None, ("a_b", "strict")),
        ("a_b_c", set(), "b_c", ("a", "b_c")),
        ("a_b_c", {"a_b"}, "b_c", ("a", "b_c")),
        ("org/a_b_gpt-4o", set(), None, ("org/a_b", "gpt-4o")),
        ("org/a_lab/judge_1", {"org/a"}, None, ("org/a", "lab/judge_1")),
    ],
)
def test_model_and_judge_are_told_apart(
    tmp_path: Path, folder: str, models: set[str], judge: str | None, expected: tuple[str, str]
) -> None:
    assert split_names(folder, models, terms(tmp_path, judge)) == expected


@pytest.mark.parametrize(
    ("folder", "models", "judge", "found"),
    [
        ("a_b_c", set(), None, r"which part is the judge is not clear \(b_c, c\): say --judge"),
        ("a_b_c", {"a", "a_b"}, None, "is not clear"),
        ("a_b_c", set(), "d", "a_b_c: does not end in _d, the --judge given"),
        ("abc", set(), None, "expected a folder named <model>_<judge>"),
        ("_b", set(), None, "expected a folder named <model>_<judge>"),
    ],
)
def test_what_is_not_clear_is_asked(
    tmp_path: Path, folder: str, models: set[str], judge: str | None, found: str
) -> None:
    with pytest.raises(DataError, match=found):
        split_names(folder, models, terms(tmp_path, judge))


# A tree


def test_a_tree_is_copied_and_nothing_is_moved(tmp_path: Path) -> None:
    tree, root = tmp_path / "agentif", tmp_path / "results"
    sources = [
        put(tree / "results", "a_b_gpt4o", judged("a_b", True, False)),
        put(tree / "results", "org/m 1_lab/j", judged("org/m 1", True)),
    ]
    packed = put(tree / "results", "zipped_strict", judged("zipped", None))
    packed.with_name("results.json.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    outcomes = adopt(tree, terms(root, judge=None))
    assert states(outcomes) == {"taken": 3}
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before
    folders = ("a_b__published/run1_gpt4o", "org--m 1__published/run1_lab--j")
    for source, folder in zip(sources, folders, strict=True):
        target = root / "scores" / folder / "eval" / "results.json"
        assert target.read_bytes() == source.read_bytes()
        assert target.stat().st_ino != source.stat().st_ino, "an edit of one must not edit both"
    target = root / "scores/zipped__published/run1_strict/eval/results.json"
    assert read_json(target) == judged("zipped", None)
    assert {e.cell.model for e in existing_results(root)} == {"a_b", "org--m 1", "zipped"}
    assert misplaced_results(root) == []
    again = adopt(tree, terms(root))
    assert states(again) == {"there": 3}
    assert states(adopt(tree, terms(root, run=2))) == {"taken": 3}
    assert states(adopt(tree / "results" / "scores", terms(root, run=3))) == {"taken": 3}


def test_what_is_left_says_why(tmp_path: Path) -> None:
    tree, root = tmp_path / "tree", tmp_path / "results"
    put(tree, "good_strict", judged("good", True))
    put(tree, "a_b_c", judged("else", True))
    put(tree, "broken_strict", judged("broken", True)).write_text("[{", encoding="utf-8")
    put(tree, "wrong_strict", [{**judged("wrong", True)[0], "constraints": 3}])
    put(tree, "odd_strict", judged("odd", True), dataset="mine")
    put(tree, "org--x_strict", judged("org--x", True))
    put(tree, "org/x_strict", judged("org/x", True))
    put(tree, "._strict", judged(".", True))
    write_json(tree / "scores/sums_strict/eval/accuracy.json", {})
    write_json(tree / "prediction/good/eval.json", judged("good"))
    write_json(tree / "scores/flat_strict/results.json", judged("flat", True))
    (tree / "packed_strict.zip").write_bytes(b"PK")
    put(root, "good__published/run1_strict", judged("good", False))
    outcomes = adopt(tree, terms(root))
    left = {str(o.source.relative_to(tree)): o.text for o in outcomes if o.state == "left"}
    expected = {
        "scores/good_strict/eval/results.json": "is there and differs: remove it, or choose",
        "scores/a_b_c/eval/results.json": "which part is the judge is not clear (b_c, c)",
        "scores/broken_strict/eval/results.json": "not valid JSON",
        "scores/wrong_strict/eval/results.json": "item 1: constraints: found 3",
        "scores/odd_strict/mine/results.json": "take it over with --dataset mine",
        "scores/org--x_strict/eval/results.json": "would lie where ",
        "scores/._strict/eval/results.json": "rename it",
        "scores/sums_strict/eval/accuracy.json": "its results.json is needed",
        "scores/flat_strict/results.json": "expected scores/<model>_<judge>/<dataset>/",
        "prediction/good/eval.json": "scripts/judge.py --input",
        "packed_strict.zip": "unpack it first",
    }
    assert left.keys() == expected.keys()
    for source, text in expected.items():
        assert text in left[source]
    assert states(outcomes)["taken"] == 1
    assert read_json(root / "scores/good__published/run1_strict/eval/results.json") == judged(
        "good", False
    )
    outcomes = adopt(tree, terms(root, dataset="mine"))
    assert states(outcomes)["taken"] == 1
    assert (root / "scores/odd__published/run1_strict/mine/results.json").exists()


def test_a_tree_of_this_workflow_keeps_its_names(tmp_path: Path) -> None:
    tree, root = tmp_path / "old results", tmp_path / "results"
    for folder, dataset in (("a__b__plain/run3_j_k", "tiny"), ("a__plain/run1_j", "tiny.first2")):
        source = put(tree, folder, judged("a", True), dataset=dataset)
        write_json(source.with_name("judge_run.json"), {"judge": {"name": "j"}})
    assert states(adopt(tree, terms(root))) == {"taken": 2}
    for path in ("a__b__plain/run3_j_k/tiny", "a__plain/run1_j/tiny.first2"):
        assert read_json(root / "scores" / path / "judge_run.json") == {"judge": {"name": "j"}}
        assert read_json(root / "scores" / path / "results.json") == judged("a", True)


@pytest.mark.parametrize("name", ["", "scores"])
def test_a_folder_that_is_no_tree(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"has no folder scores/ in it: name the folder"):
        adopt(tmp_path / name, terms(tmp_path))


def test_existing_files_are_known_by_their_names(tmp_path: Path) -> None:
    good = put(tmp_path, "a__b__plain/run10_j_k", [], dataset="x y")
    for folder, dataset in (
        ("a_plain/run1_j", "x"),
        ("a__pl__/run1_j", "x"),
        ("a__plain/run01_j", "x"),
        ("a__plain/run0_j", "x"),
        ("a__plain/run1_", "x"),
        ("a__plain/run1_j{x}", "x"),
        ("a__plain/run1_j", "x{y}"),
    ):
        put(tmp_path, folder, [], dataset=dataset)
    assert list(existing_results(tmp_path)) == [Evaluation(Cell("a__b", "plain", 10, "x y"), "j_k")]
    assert len(misplaced_results(tmp_path)) == 7
    assert good not in misplaced_results(tmp_path)
    for name in ("run1/x.json", "run1/run_config.json", "run01/y.json", "run2/a{b}.json"):
        write_json(tmp_path / "prediction/a__plain" / name, [])
    assert list(existing_predictions(tmp_path)) == [Cell("a", "plain", 1, "x")]


# As commands


@pytest.fixture
def project(tmp_path: Path) -> WorkflowProject:
    return make_project(tmp_path / "project", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1")


@pytest.mark.workflow
def test_adopted_results_become_rows(project: WorkflowProject, tmp_path: Path) -> None:
    tree = tmp_path / "agentif"
    put(tree, "m_1_strict", judged("m_1", True, True, False, None))
    put(tree, "a_b_c", judged("x", True))
    done = project.script("adopt", "--from", str(tree))
    assert done.returncode == 0, done.stderr
    assert "1 taken, 0 there already, 1 left; `snakemake scores`" in done.stdout
    assert "left: " in done.stdout and "say --judge NAME" in done.stdout
    # What lies where no rule looks for it is named, and disturbs nothing.
    put(project.root / "results", "a_b_c", judged("x", True))
    called = project.snakemake("scores", env={KEY_VARIABLE: None})
    assert called.code == 0, called.text
    assert called.jobs == {"score": 1, "aggregate": 1, "scores": 1}
    assert "left out: results/scores/a_b_c/eval/results.json" in called.text
    (group,) = project.json("results/summary.json")["groups"]
    (row,) = group["rows"]
    assert (row["model"], row["mode"], group["judge"]["name"]) == ("m_1", "published", "strict")
    assert (group["dataset"], row["CSR"]["mean"]) == ({"name": "eval", "sha256": None}, 2 / 3)
    done = project.script("adopt", "--from", str(tree), "--judge", "x")
    assert done.returncode == 1 and "nothing was taken over" in done.stderr
    done = project.script("adopt", "--from", str(tree), "--mode", "a__b")
    assert done.returncode == 1 and "--mode: mode name 'a__b'" in done.stderr


# The published files


def printed(model: str) -> dict[str, Decimal]:
    """Return a model's row of the paper's table: percentages to one decimal."""
    with (AGENTIF / "table2.csv").open(encoding="utf-8", newline="") as stream:
        (line,) = [line for line in csv.DictReader(stream) if line["model"] == model]
    names = ("vanilla", "condition", "example", "formatting", "semantic", "tool", "ISR", "CSR")
    return {name: Decimal(line[name]) for name in names}


def reported(row: dict[str, Any]) -> dict[str, Decimal]:
    """Return the same eight figures of a row of summary.json."""
    spreads = row["by_dimension"] | row["by_type"] | {"ISR": row["ISR"], "CSR": row["CSR"]}
    tenth = Decimal("0.1")
    return {
        name: Decimal(100 * spread["mean"]).quantize(tenth, ROUND_HALF_EVEN)
        for name, spread in spreads.items()
    }


@needs_agentif
@pytest.mark.workflow
def test_the_papers_table_through_the_workflow(project: WorkflowProject) -> None:
    """Published files in this workflow's layout: no model file, no dataset, no judge_run.json."""
    for model in MODELS:
        content = gzip.decompress((AGENTIF / "published" / f"{model}.results.json.gz").read_bytes())
        folder = project.root / f"results/scores/{model}__published/run1_gpt4o/eval"
        folder.mkdir(parents=True)
        (folder / "results.json").write_bytes(content)
    called = project.snakemake(
        "scores", "--config", "policy=upstream-2025", env={KEY_VARIABLE: None}
    )
    assert called.code == 0, called.text
    assert called.jobs == {"score": 3, "aggregate": 1, "scores": 1}
    summary = project.json("results/summary.json")
    assert summary["problems"] == []
    (group,) = summary["groups"]
    assert group["policy"] == "upstream-2025"
    rows = {row["model"]: reported(row) for row in group["rows"]}
    assert rows == {model: printed(model) for model in MODELS}
    text = (project.root / "results/summary.md").read_text("utf-8")
    for model in MODELS:
        (line,) = [line for line in text.splitlines() if model in line and "|" in line]
        assert all(str(value) in line for value in (rows[model]["CSR"], rows[model]["ISR"]))


@needs_agentif
def test_the_published_tree_is_taken_over_byte_for_byte(tmp_path: Path) -> None:
    tree, root = tmp_path / "docs", tmp_path / "results"
    for model in MODELS:
        packed = AGENTIF / "published" / f"{model}.results.json.gz"
        folder = tree / "results" / "scores" / f"{model}_gpt4o" / "eval"
        folder.mkdir(parents=True)
        (folder / "results.json.gz").symlink_to(packed)
    outcomes = adopt(tree, terms(root))
    assert states(outcomes) == {"taken": 3}
    for model in MODELS:
        target = root / "scores" / f"{model}__published" / "run1_gpt4o/eval/results.json"
        packed = AGENTIF / "published" / f"{model}.results.json.gz"
        assert target.read_bytes() == gzip.decompress(packed.read_bytes())
        assert len(json.loads(target.read_bytes())) in (706, 707)
