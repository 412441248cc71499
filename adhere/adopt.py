"""Take over results that exist already: AgentIF's own tree, or one of this workflow.

Files are copied, never moved, and nothing that is there is overwritten. What AgentIF's scripts
leave (one folder a model and judge, rows in the order in which they came back) becomes run
folders; rows and verdicts stay as they are.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adhere import files
from adhere.data import Row
from adhere.errors import ConfigError, DataError
from adhere.jsonio import read_bytes, write_bytes
from adhere.names import MODE_PATTERN, check_dataset_name, check_name
from adhere.plan import Cell, Evaluation
from adhere.scoring.results import read_results

_RESULTS = ("results.json", "results.json.gz")
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f\\{}*?\[\]<>|\"$`:,]")


@dataclass(frozen=True, slots=True)
class Terms:
    """Where results go and under which names.

    ``judge`` names the judge where folders do not tell it apart from the model; ``judges`` are
    the names by which judges are known here.
    """

    results_root: Path
    mode: str
    run: int
    dataset: str
    judge: str | None
    judges: frozenset[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file: ``text`` says where it is now, or why it was left."""

    source: Path
    state: Literal["taken", "there", "left"]
    text: str


def adopt(tree: Path, terms: Terms) -> list[Outcome]:
    """Copy every usable results file below ``tree``; return what became of each file.

    Raises DataError where the tree is no results tree.
    """
    root = _root_of(tree)
    taken: dict[Path, Path] = {}
    outcomes = []
    for source in sorted(p for p in (root / "scores").rglob("results.json*") if p.is_file()):
        if source.name not in _RESULTS:
            continue
        try:
            outcome = _take(source, root, terms, taken)
        except (DataError, ConfigError) as error:
            outcome = Outcome(source, "left", str(error).removeprefix(f"{source}: "))
        outcomes.append(outcome)
    return [*outcomes, *_others(root)]


def _root_of(tree: Path) -> Path:
    """Return the folder that holds ``scores``."""
    for root in (tree, tree / "results", tree.parent if tree.name == "scores" else tree):
        if (root / "scores").is_dir():
            return root
    raise DataError(
        f"--from {tree}: has no folder scores/ in it: name the folder that AgentIF's run.sh calls "
        "results/, with scores/<model>_<judge>/<dataset>/results.json below it"
    )


def _take(source: Path, root: Path, terms: Terms, taken: dict[Path, Path]) -> Outcome:
    parts = source.relative_to(root / "scores").parts[:-1]
    rows = read_results(source).rows
    evaluation = _ours(parts)
    ours = evaluation is not None
    if evaluation is None:
        evaluation = _theirs(parts, rows, terms, _predicted(root))
    target = files.results(terms.results_root, evaluation)
    content = read_bytes(source)
    if target in taken:
        raise DataError(f"would lie where {taken[target]} was put: name them apart")
    if target.exists():
        if read_bytes(target) == content:
            return Outcome(source, "there", str(target))
        raise DataError(f"{target} is there and differs: remove it, or choose another --mode")
    record = files.judge_run(source)
    if ours and record.exists():
        write_bytes(files.judge_run(target), read_bytes(record))
    write_bytes(target, content)
    taken[target] = source
    return Outcome(source, "taken", f"{target} ({len(rows)} items)")


def _ours(parts: tuple[str, ...]) -> Evaluation | None:
    """Read the folders of this workflow: {model}__{mode}/run{run}_{judge}/{dataset}."""
    if len(parts) != 3:
        return None
    model, _, mode = parts[0].rpartition("__")
    run = re.fullmatch(r"run([1-9]\d*)_(.+)", parts[1])
    if not model or run is None or not re.fullmatch(MODE_PATTERN, mode):
        return None
    return Evaluation(Cell(model, mode, int(run[1]), parts[2]), run[2])


def _theirs(
    parts: tuple[str, ...], rows: list[Row], terms: Terms, predicted: frozenset[str]
) -> Evaluation:
    """Read the folders of AgentIF's scripts: {model}_{judge}/{dataset}; names may hold slashes."""
    if len(parts) < 2:
        raise DataError("expected scores/<model>_<judge>/<dataset>/results.json")
    dataset = parts[-1]
    if dataset != terms.dataset:
        raise DataError(f"belongs to dataset {dataset!r}: take it over with --dataset {dataset}")
    named = {row["output"].get("model_name") for row in rows}
    models = predicted | {name for name in named if isinstance(name, str)}
    model, judge = split_names("/".join(parts[:-1]), models, terms)
    cell = Cell(_usable(model, "model"), terms.mode, terms.run, dataset)
    check_dataset_name(dataset, "dataset")
    return Evaluation(cell, _usable(judge, "judge"))


def split_names(folder: str, models: frozenset[str] | set[str], terms: Terms) -> tuple[str, str]:
    """Divide ``{model}_{judge}``, where both may hold ``_``.

    What tells them apart, the first that leaves one way: the judge that was named; the models
    that answered; the judges that are known. Raises DataError naming the ways where several are
    left, or none.
    """
    ways = [
        (folder[: match.start()], folder[match.end() :])
        for match in re.finditer("_", folder)
        if folder[: match.start()] and folder[match.end() :]
    ]
    if terms.judge is not None:
        ways = [way for way in ways if way[1] == terms.judge]
        if not ways:
            raise DataError(f"{folder}: does not end in _{terms.judge}, the --judge given")
        return ways[0]
    ways = [way for way in ways if way[0] in models] or ways
    if len(ways) > 1:
        ways = [way for way in ways if way[1] in terms.judges] or ways
    if len(ways) == 1:
        return ways[0]
    if not ways:
        raise DataError(f"{folder}: expected a folder named <model>_<judge>")
    choices = ", ".join(judge for _, judge in ways)
    raise DataError(f"{folder}: which part is the judge is not clear ({choices}): say --judge NAME")


def _usable(name: str, what: str) -> str:
    """Return a name that can be one here; ``/`` becomes ``--`` and other marks ``-``."""
    usable = unicodedata.normalize("NFC", name).replace("/", "--")
    usable = _NOT_IN_NAMES.sub("-", usable).strip()
    check_name(usable, what)
    return usable


def _predicted(root: Path) -> frozenset[str]:
    """Return the models that have a prediction in AgentIF's tree."""
    folder = root / "prediction"
    return frozenset(p.parent.relative_to(folder).as_posix() for p in folder.rglob("*.json"))


def _others(root: Path) -> Iterator[Outcome]:
    """Yield what a person may expect to be taken and is not."""
    for path in sorted((root / "scores").rglob("accuracy.json")):
        if not any(path.with_name(name).exists() for name in _RESULTS):
            yield Outcome(path, "left", "sums without verdicts: its results.json is needed")
    for path in sorted(root.glob("*.zip")):
        yield Outcome(path, "left", "unpack it first")
    for path in sorted((root / "prediction").rglob("*.json")):
        if path.name != "run_config.json":
            yield Outcome(
                path,
                "left",
                "answers without verdicts; to judge them: python scripts/judge.py --input FILE "
                "--output RESULTS",
            )
