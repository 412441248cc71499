"""Datasets in AgentIF's form: a list of items, each with messages and constraints.

Rows are kept exactly as they are in the file; ``Constraint`` reads them tolerantly. Identity of
an item is its position, of a constraint its position in the item: ids repeat and may be absent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

from adhere import labels
from adhere.errors import DataError
from adhere.jsonio import canonical, dumps, fingerprint, read_json, read_jsonl
from adhere.names import limited
from adhere.tools import check_tools

StepType = Literal["llm", "llm_conditional_check", "code", "rule"]
STEP_TYPES: tuple[str, ...] = get_args(StepType)
JUDGED = frozenset({"llm", "llm_conditional_check"})
Row = dict[str, Any]
# What a model sees of an item beside its messages, where the item has it.
_SEEN = ("tools", "tool_responses", "max_turns")
# What a step may require: every step is given the response, and nothing else.
_REQUIRED_KEYS: tuple[list[str] | None, ...] = (None, [], ["response"])


@dataclass(frozen=True, slots=True)
class Step:
    """One element of a constraint's chain: its type and its prompt, source or (as canonical JSON)
    rule."""

    type: StepType
    text: str

    @property
    def asks_judge(self) -> bool:
        """Whether it needs a judge model."""
        return self.type in JUDGED


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint of an item, by its position in the item."""

    index: int
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Dataset:
    """A dataset as read: its rows in order, and what identifies it.

    ``sha256`` is over the parsed content, so that formatting and compression do not matter;
    ``total`` is the number of rows before a limit was applied.
    """

    name: str
    path: Path
    rows: tuple[Row, ...]
    sha256: str
    total: int

    @cached_property
    def inputs_sha256(self) -> str:
        """Checksum over what answers are made from; a changed constraint does not change it."""
        return fingerprint([given(row) for row in self.rows])

    def first(self, limit: int | None) -> "Dataset":
        """Return the dataset's first ``limit`` items; its checksum stays the whole file's."""
        if limit is None or limit >= self.total:
            return self
        return Dataset(self.name, self.path, self.rows[:limit], self.sha256, self.total)

    def named(self, limit: int | None) -> str:
        """Return the name under which ``first(limit)`` is kept: its own, if that is all of it."""
        return limited(self.name, limit if limit is not None and limit < self.total else None)


def label(index: int, row: Row) -> str:
    """Name an item for messages: its position from 1, with its id where it has one."""
    identity = row.get("id", row.get("query_id"))
    return f"item {index + 1}" + (f" (id {identity!s:.60})" if identity is not None else "")


def seen(row: Row) -> Any:
    """Return what a model sees of an item: its messages; the tools on offer and what they say."""
    more = {key: row[key] for key in _SEEN if row.get(key) is not None}
    return {"input": row["input"], **more} if more else row["input"]


def given(row: Row) -> Any:
    """Return what an item's answer is made from: what a model sees, or what was recorded."""
    if not is_recorded(row):
        return seen(row)
    return {"seen": seen(row), "recorded": [row["trajectory"], row.get("trajectory_format")]}


def is_recorded(row: Row) -> bool:
    """Whether an item carries what an agent did, so that no model is asked."""
    return row.get("trajectory") is not None


def load_rows(path: Path, *, unique_keys: bool = False) -> list[Row]:
    """Read rows from a JSON list or JSONL, plain or gzip, or from an instruction set.

    ``unique_keys`` is for files that people write, as all sets are: it refuses an object that has
    a key twice. Raises DataError.
    """
    if path.suffix not in (".yaml", ".yml"):
        read = read_jsonl if is_jsonl(path) else read_json
        content = read(path, unique_keys=unique_keys)
        if not is_instruction_set(content):
            return as_rows(content, str(path))
    # Loading all rules takes a moment that other datasets need not wait for.
    from adhere.instruction_set import read_set, to_rows

    return as_rows(to_rows(read_set(path)), str(path))


def is_instruction_set(content: Any) -> bool:
    """Whether parsed JSON is an instruction set, by how it begins."""
    rows = content.get("items") if isinstance(content, dict) else content
    heads = rows[:2] if isinstance(rows, list) else []
    return any(isinstance(row, dict) and {"instruction", "defaults"} & set(row) for row in heads)


def is_jsonl(path: Path) -> bool:
    """Whether a file holds one item a line, going by its name."""
    return path.name.removesuffix(".gz").endswith(".jsonl")


def as_rows(content: Any, shown: str) -> list[Row]:
    """Return parsed content that is a list of objects; ``shown`` names it. Raises DataError."""
    if not isinstance(content, list):
        raise DataError(f"{shown}: must hold a list of items, found {type(content).__name__}")
    if not content:
        raise DataError(f"{shown}: holds no item: nothing can be evaluated")
    for index, row in enumerate(content):
        if not isinstance(row, dict):
            raise DataError(f"{shown}: item {index + 1}: must be an object, found {row!r:.60}")
        try:
            # Nested as in the file that the rows will be written to.
            dumps([row])
        except TypeError as error:
            raise DataError(f"{shown}: {label(index, row)}: cannot be kept: {error}") from None
    return content


def load(name: str, path: Path) -> Dataset:
    """Read and validate a dataset.

    Raises DataError naming the file, and the item, constraint and key of every problem (the first
    twenty of them).
    """
    return as_dataset(name, path, load_rows(path, unique_keys=True), str(path))


def as_dataset(name: str, path: Path, rows: Sequence[Row], shown: str) -> Dataset:
    """Validate rows that are, or are to be, the dataset in ``path``; ``shown`` names them.

    Raises DataError as ``load`` does.
    """
    problems = [
        f"{shown}: {label(i, row)}: {problem}"
        for i, row in enumerate(rows)
        for problem in check(row)
    ]
    if problems:
        more = [f"… and {len(problems) - 20} problems more"] if len(problems) > 20 else []
        raise DataError("\n".join(problems[:20] + more))
    return Dataset(name, path, tuple(rows), fingerprint(list(rows)), len(rows))


@lru_cache(maxsize=16)
def _load_cached(name: str, path: Path, _size: int, _mtime_ns: int) -> Dataset:
    return load(name, path)


def load_cached(name: str, path: Path) -> Dataset:
    """Read a dataset once a process for each state of its file."""
    try:
        state = path.stat()
    except OSError as error:
        raise DataError(
            f"{path}: dataset {name!r} cannot be read: {error.strerror}; see data/README.md for "
            "where to get it, or correct `datasets` in configs/global.yaml"
        ) from None
    return _load_cached(name, path, state.st_size, state.st_mtime_ns)


def check(row: Row) -> list[str]:
    """Return what is wrong with one row; each text names constraint and key."""
    problems = [*labels.wrong_id(row), *_check_messages(row.get("input"))]
    problems += [*_check_recording(row), *check_tools(row)]
    if not isinstance(scenario := row.get("scenario"), str | None):
        problems.append(f"scenario: found {scenario!r:.60}: must be a text or null")
    constraints = row.get("constraints")
    if not isinstance(constraints, list) or not constraints:
        return [*problems, "constraints: must be a list with at least one constraint"]
    for number, constraint in enumerate(constraints, start=1):
        found = check_constraint(constraint)
        if isinstance(constraint, dict):
            found += labels.wrong(constraint)
        problems += [f"constraint {number}: {problem}" for problem in found]
    return problems


def _check_messages(messages: object) -> list[str]:
    if not isinstance(messages, list) or not messages:
        return ["input: must be a list with at least one message"]
    problems = []
    for number, message in enumerate(messages, start=1):
        if not isinstance(message, dict):
            problems.append(f"input: message {number}: must be an object with role and content")
        elif not isinstance(message.get("role"), str) or not isinstance(
            message.get("content"), str
        ):
            problems.append(f"input: message {number}: role and content must both be text")
    return problems


def _check_recording(row: Row) -> list[str]:
    if not is_recorded(row):
        return []
    # Loading the importers takes a moment that datasets without recordings need not wait for.
    from adhere.trajectories import load_one

    try:
        load_one(row["trajectory"], format=row.get("trajectory_format"))
    except DataError as error:
        return [str(error)]
    return []


def check_constraint(constraint: object) -> list[str]:
    """Return what is wrong with one constraint; each text names step and key."""
    if not isinstance(constraint, dict):
        return [f"must be an object, found {constraint!r:.60}"]
    steps = constraint.get("evaluation")
    if not isinstance(steps, list) or not steps:
        return ["evaluation: must be a list with at least one step"]
    problems = []
    for number, step in enumerate(steps, start=1):
        where = f"evaluation step {number}"
        if not isinstance(step, dict) or step.get("type") not in STEP_TYPES:
            found = step.get("type") if isinstance(step, dict) else step
            problems.append(f"{where}: type: found {found!r:.60}; allowed: {', '.join(STEP_TYPES)}")
        elif step["type"] == "rule":
            problems += [f"{where}: exec: {problem}" for problem in check_rule(step.get("exec"))]
        elif not isinstance(step.get("exec"), str) or not step["exec"].strip():
            problems.append(f"{where}: exec: must be a text that is not empty")
        elif (keys := step.get("required_keys")) not in _REQUIRED_KEYS:
            problems.append(f"{where}: required_keys: found {keys!r:.60}; supported: ['response']")
    return problems


def check_rule(step: object) -> list[str]:
    """Return what is wrong with the ``exec`` of a step ``rule``."""
    # Loading all rules takes a moment that datasets without them need not wait for.
    from adhere.rule_steps import load_step

    try:
        load_step(step)
    except DataError as error:
        return str(error).splitlines()
    return []


def constraints(row: Row) -> list[Constraint]:
    """Return a checked row's constraints in order."""
    return [
        Constraint(
            index,
            tuple(Step(cast(StepType, step["type"]), _text(step)) for step in raw["evaluation"]),
        )
        for index, raw in enumerate(row["constraints"])
    ]


def _text(step: dict[str, Any]) -> str:
    return canonical(step["exec"]).decode() if step["type"] == "rule" else step["exec"]


def occurrences(values: Sequence[str]) -> list[int]:
    """Number equal values from 0 in their order, so that duplicates stay apart."""
    seen: dict[str, int] = {}
    numbers = []
    for value in values:
        numbers.append(seen.get(value, 0))
        seen[value] = numbers[-1] + 1
    return numbers


def asks_judge(rows: Sequence[Row]) -> bool:
    """Whether any step of any constraint asks a judge."""
    steps = (s for row in rows for raw in row["constraints"] for s in raw["evaluation"])
    return any(step["type"] in JUDGED for step in steps)
