"""What is finished under a results folder: every ``accuracy.json`` with its names."""

import re
from dataclasses import dataclass
from pathlib import Path

from adhere.derived import read_record
from adhere.errors import DataError
from adhere.existing import existing_scores, unreadable_folders
from adhere.jsonio import clean_text
from adhere.names import unlimited
from adhere.scoring.accuracy import Accuracy

# What to do about a table beside a score: it is made with the score.
RESCORE = "delete the accuracy.json beside it and give the same command again, which is free"
_RUN_FOLDER = re.compile(r"run([0-9]{1,9})_(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Names:
    """The wildcards of one evaluation; ``dataset`` is the dataset's own name without its limit."""

    model: str
    mode: str
    run: int
    judge: str
    dataset: str


@dataclass(frozen=True, slots=True)
class GroupKey:
    """All that must be equal for rows to stand in one table; None is unknown."""

    dataset: str
    sha256: str | None
    limit: int | None
    policy: str
    judge: str
    judge_hash: str | None
    protocol: int | None


@dataclass(frozen=True, slots=True)
class RunScore:
    """One scored run: its ``accuracy.json`` and where it lies, relative to the results folder."""

    names: Names
    limit: int | None
    path: Path
    scores: Accuracy

    @property
    def key(self) -> GroupKey:
        """Return what it may be compared within."""
        return GroupKey(
            dataset=self.names.dataset,
            sha256=self.scores.dataset.sha256,
            limit=self.limit,
            policy=self.scores.policy,
            judge=self.names.judge,
            judge_hash=self.scores.judge_hash,
            protocol=self.scores.protocol,
        )


@dataclass(frozen=True, slots=True)
class Collected:
    """The scored runs in a fixed order, and a sentence for each file that was left out."""

    runs: tuple[RunScore, ...]
    problems: tuple[str, ...]


def collect(results_root: Path) -> Collected:
    """Read every ``scores/{model}__{mode}/run{run}_{judge}/{dataset}/accuracy.json``.

    Names in a file win over those of its path. A file that cannot be read, or that repeats a
    run already read, is left out and named: one bad file never blocks the others.
    """
    found: dict[tuple[GroupKey, Names], RunScore] = {}
    problems = [
        f"left out: {error.filename}: cannot be read: {error.strerror}: correct its rights"
        for error in unreadable_folders(results_root)
    ]
    for path in sorted(existing_scores(results_root)):
        try:
            score = _read(path, results_root)
        except DataError as error:
            problems.append(f"left out: {error}")
            continue
        first = found.setdefault((score.key, score.names), score)
        if first is not score:
            problems.append(
                f"left out: {score.path}: is the same run as {first.path} (model, mode, run, "
                "judge and dataset are equal): remove one of the two folders"
            )
    return Collected(tuple(found.values()), tuple(map(clean_text, problems)))


def _read(path: Path, results_root: Path) -> RunScore:
    folder = names_of_path(path)
    scores = read_record(path, Accuracy)
    named = scores.prediction
    dataset, limit = unlimited(folder.dataset)
    return RunScore(
        names=Names(
            model=folder.model if named.model is None else named.model,
            mode=folder.mode if named.mode is None else named.mode,
            run=folder.run if named.run is None else named.run,
            judge=folder.judge if scores.judge is None else scores.judge,
            dataset=dataset if scores.dataset.name is None else scores.dataset.name,
        ),
        limit=limit if scores.limit is None else scores.limit,
        path=path.relative_to(results_root),
        scores=scores,
    )


def names_of_path(path: Path) -> Names:
    """Return the names in ``…/{model}__{mode}/run{run}_{judge}/{dataset}/accuracy.json``.

    A model's name may hold ``__``, a mode's may not: the last ``__`` divides them. Raises
    DataError where the folders are not named so.
    """
    # A file name that is not UTF-8 could not be written into the summary.
    folders = [clean_text(path.parents[level].name) for level in range(3)]
    dataset, run_folder, model_folder = folders
    model, divider, mode = model_folder.rpartition("__")
    match = _RUN_FOLDER.fullmatch(run_folder)
    if match is None or not (divider and model and mode):
        raise DataError(
            f"{path}: its folders are {model_folder}/{run_folder}; expected "
            "{model}__{mode}/run{run}_{judge}: rename or remove them"
        )
    return Names(model, mode, int(match[1]), match[2], dataset)
