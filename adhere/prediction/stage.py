"""Run predictions into their journals, and write journals out as prediction files."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

from adhere import files
from adhere.client import ChatClient
from adhere.config import Project
from adhere.costs.budget import BUDGET
from adhere.data import Dataset, Row, given, is_recorded, label, load_cached, occurrences
from adhere.errors import BudgetError, DataError, EndpointError
from adhere.journal import Journal, read
from adhere.jsonio import fingerprint, write_json
from adhere.kept import wrong_answer_line
from adhere.names import unlimited
from adhere.plan import Cell
from adhere.prediction.answer import Output, is_failed, is_pending
from adhere.prediction.asking import ask
from adhere.prediction.live import run_live
from adhere.prediction.model import Mode, mode_of
from adhere.prediction.record import record
from adhere.prediction.recordings import recorded_output, with_recordings
from adhere.progress import Progress
from adhere.workers import drain

_LOG = logging.getLogger("adhere")


@dataclass(frozen=True, slots=True)
class Places:
    """Where a cell's files lie; ``run_config`` is None for a prediction made by hand."""

    prediction: Path
    journal: Path
    run_config: Path | None


@dataclass(frozen=True, slots=True)
class Task:
    """All predictions of one cell: the items, and the fingerprint of each one's request."""

    cell: Cell
    mode: Mode
    dataset: Dataset
    fingerprints: tuple[str, ...]
    places: Places


def task_of(project: Project, cell: Cell) -> Task:
    """Prepare a configured cell: load its dataset and compute its fingerprints."""
    name, limit = unlimited(cell.dataset)
    dataset = load_cached(name, project.root / project.config.datasets[name]).first(limit)
    dataset = with_recordings(project, cell, dataset)
    root = project.root / project.config.results_root
    places = Places(
        files.prediction(root, cell),
        files.prediction_journal(root, cell),
        files.run_config(root, cell),
    )
    return make_task(cell, mode_of(project, cell.model, cell.mode), dataset, places)


def make_task(cell: Cell, mode: Mode, dataset: Dataset, places: Places) -> Task:
    """Compute the fingerprint of every request of a cell."""
    inputs = [fingerprint(given(row)) for row in dataset.rows]
    # Duplicate rows are answered separately, and an inserted row does not disturb the others.
    keys = zip(inputs, occurrences(inputs), strict=True)
    fingerprints = tuple(fingerprint([mode.hash, cell.run, *key]) for key in keys)
    return Task(cell, mode, dataset, fingerprints, places)


def seed_of(fp: str) -> int:
    """Derive the seed of one (item, run): 31 bits, the same on every machine."""
    return int(fp[:8], 16) & 0x7FFFFFFF


async def run_tasks(
    tasks: Sequence[Task], clients: Sequence[ChatClient], progress: Progress
) -> None:
    """Answer everything that is not yet journaled, all tasks at once, into their journals.

    Several clients (servers of one model) share the work: each takes the next piece when it has
    room. Raises EndpointError when going on is pointless; what was answered stays journaled.
    """
    with _open_journals(tasks) as journals:
        todo = [
            (task, index)
            for task, index in in_order(tasks)
            if _answered(task, index, journals[task.cell].get(task.fingerprints[index])) is None
        ]
        expected = sum(len(task.fingerprints) for task in tasks)
        progress.start(total=expected, done=expected - len(todo))

        async def answer(assigned: tuple[ChatClient, tuple[Task, int]]) -> None:
            client, (task, index) = assigned
            output = await _answer(task, index, journals[task.cell], client)
            retries = sum(each.counts.retries for each in clients)
            progress.advance(failed=is_failed(output), retries=retries)

        pieces = iter(todo)
        workers = [min(client.width, len(todo)) for client in clients]
        queues = [zip(repeat(client), pieces) for client in clients]
        await drain(list(zip(queues, workers, strict=True)), answer)
        _refuse_if_nothing(tasks, journals, clients[0])


def in_order(tasks: Sequence[Task]) -> list[tuple[Task, int]]:
    """Return every (task, item) in the order of asking: those with a common beginning together.

    A server that keeps what it has read of a prompt (vLLM's prefix cache) then reads it once.
    Ordered as texts, prompts have the longest beginnings in common with their neighbours; one
    item's modes and runs follow each other.
    """
    pieces = [(task, index) for task in tasks for index in range(len(task.fingerprints))]
    # Sorting keeps the order of the tasks among equals.
    return sorted(pieces, key=lambda piece: (_beginning(piece[0].dataset.rows[piece[1]]), piece[1]))


def _beginning(row: Row) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in row["input"]]


@contextmanager
def _open_journals(tasks: Sequence[Task]) -> Iterator[dict[Cell, Journal]]:
    """Open the journals of several tasks together; cells of one run may share one."""
    paths = {task.cell: task.places.journal for task in tasks}
    with ExitStack() as stack:
        opened = {
            path: stack.enter_context(Journal(path, wrong_answer_line))
            for path in set(paths.values())
        }
        yield {cell: opened[path] for cell, path in paths.items()}


def asks_model(rows: Sequence[Row]) -> bool:
    """Whether any item needs a model: without a recording there is nothing to judge."""
    return not all(is_recorded(row) for row in rows)


def _answered(task: Task, index: int, entry: Mapping[str, Any] | None) -> Output | None:
    """Return an item's final output, where it has one: recorded, or in its line of the journal."""
    row = task.dataset.rows[index]
    if is_recorded(row):
        return recorded_output(row) | {"model_name": task.cell.model}
    if entry is None or is_pending(entry["output"]):
        return None
    output: Output = entry["output"]
    return output


async def _answer(task: Task, index: int, journal: Journal, client: ChatClient) -> Output:
    row, fp = task.dataset.rows[index], task.fingerprints[index]
    if row.get("tools"):
        output = await run_live(task.mode, row, seed_of(fp), client, fp)
    else:
        output = await ask(task.mode, row["input"], seed_of(fp), client, fp)
    output["model_name"] = task.cell.model
    journal.append(fp, {"item": index, "id": row.get("id"), "output": output})
    return output


def _refuse_if_nothing(
    tasks: Sequence[Task], journals: dict[Cell, Journal], client: ChatClient
) -> None:
    """A stage without one answer has nothing to report but its endpoint."""
    entries = [journals[t.cell].get(fp) for t in tasks for fp in t.fingerprints]
    outputs = [entry["output"] for entry in entries if entry is not None]
    if outputs and all(is_pending(output) for output in outputs):
        error = outputs[0]["error"]
        if all(output["error"]["kind"] == BUDGET for output in outputs):
            raise BudgetError(f"{client.endpoint.owner}: not asked: {error.get('message')}")
        raise EndpointError(
            f"{client.endpoint.owner}: {client.endpoint.base_url}: none of {len(outputs)} requests "
            f"was answered; the first failed with {error['kind']}: {error.get('message')}: check "
            "that the server works, and start again"
        )


def answered(task: Task) -> dict[int, Output]:
    """Return the outputs that are final, by item."""
    entries = read(task.places.journal, wrong_answer_line)
    found = {i: _answered(task, i, entries.get(fp)) for i, fp in enumerate(task.fingerprints)}
    return {index: output for index, output in found.items() if output is not None}


def unanswered(tasks: Sequence[Task]) -> int:
    """Return how many predictions are not there yet, or may be tried again."""
    return sum(len(task.fingerprints) - len(answered(task)) for task in tasks)


def collect(task: Task, engine: dict[str, Any], attempt: str = "") -> dict[str, Any]:
    """Write a cell's prediction file and its part of run_config.json from the journal.

    ``engine`` says what answered; {} where nothing was asked: what is on record stays.
    Returns what run_config.json says of the cell. Raises DataError when predictions are missing.
    """
    entries = read(task.places.journal, wrong_answer_line)
    rows: list[Row] = []
    for index, (row, fp) in enumerate(zip(task.dataset.rows, task.fingerprints, strict=True)):
        entry = entries.get(fp)
        output = _answered(task, index, entry) or (entry and entry["output"])
        if output is None:
            raise DataError(
                f"{task.places.journal}: no prediction for "
                f"{label(index, row)}: start the workflow again"
            )
        rows.append({**row, "output": output})
    report = _report(task, rows) | {"attempt": attempt}
    for warning in report["warnings"]:
        _LOG.warning("warning: %s", warning)
    write_json(task.places.prediction, rows)
    if task.places.run_config is not None:
        record(task.places.run_config, task.cell.dataset, _run_config(task, engine), report)
    return report


def _report(task: Task, rows: Sequence[Row]) -> dict[str, Any]:
    outputs = [row["output"] for row in rows]
    errors = Counter(output["error"]["kind"] for output in outputs if output["error"])
    flags = Counter(flag for output in outputs for flag in output["flags"])
    return {
        "hash": task.mode.hash,
        "sampling": dict(task.mode.sampling),
        "sampled": task.mode.sampled,
        "dataset_sha256": task.dataset.sha256,
        "inputs_sha256": task.dataset.inputs_sha256,
        "limit": unlimited(task.cell.dataset)[1],
        "items": len(rows),
        "failed": sum(is_failed(output) for output in outputs),
        "pending": sum(is_pending(output) for output in outputs),
        "errors": dict(errors),
        "flags": dict(flags),
        "outputs_sha256": fingerprint([_judged(output) for output in outputs]),
        "warnings": _warnings(task, outputs),
    }


def _judged(output: Output) -> Any:
    """Return the part of an output that verdicts depend on."""
    trajectory = output.get("trajectory")
    return output["content"] if trajectory is None else [output["content"], trajectory]


def _warnings(task: Task, outputs: Sequence[Output]) -> list[str]:
    where = f"{task.cell.model} {task.cell.mode} run {task.cell.run} on {task.cell.dataset}"
    warnings = []
    for key, what in (("served_model", "model"), ("system_fingerprint", "system fingerprint")):
        seen = sorted({output[key] for output in outputs if output[key]})
        if len(seen) > 1:
            warnings.append(f"{where}: the server changed its {what} in mid-run: {', '.join(seen)}")
    ambiguous = sum("ambiguous_empty" in output["flags"] for output in outputs)
    if ambiguous:
        warnings.append(
            f"{where}: {ambiguous} replies had text in the reasoning field only and count as empty"
        )
    return warnings


def _run_config(task: Task, engine: dict[str, Any]) -> dict[str, Any]:
    """Return what run_config.json says of all its datasets."""
    return {
        "model": task.cell.model,
        "mode": task.cell.mode,
        "run": task.cell.run,
        "hash": task.mode.hash,
        "identity": dict(task.mode.identity),
        "sampled": task.mode.sampled,
        "engine": engine,
    }
