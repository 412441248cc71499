"""Faults: a tenth each of passing, permanent, null and torn replies, and kill -9 at half.

The same workload runs twice against mocks that are faulty in the same way: once undisturbed, once
killed in the middle of predicting and of judging. What a kill may cost is the requests that were
in flight: answered, and not yet journaled. They are counted as the answers that the mock gave more
than the journals hold lines for; a journaled request that is sent again would make more of them.
"""

import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from adhere.jsonio import lines as jsonl
from adhere.jsonio import loads
from bench import workload
from bench.figures import Figure
from bench.mock import Behaviour, Mock, running
from bench.project import Project, judge, make_project, model

ITEMS = 150
CONNECTIONS = 16
FAULTY = Behaviour(latency_ms=40, transient=0.1, refused=0.1, null=0.1, torn=0.1)
_RETRY = {"attempts": 5, "first_wait_s": 0.05, "max_wait_s": 1.0, "timeout_s": 30.0}
_CELL = "alpha__plain/run1"
_JOURNALS = (
    f"results/prediction/{_CELL}/bench.partial.jsonl",
    f"results/scores/{_CELL}_judge/bench.partial.jsonl",
)


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished run: what the mock counted, the rows, and the numbers that are reported.

    ``unjournaled`` is how many answers are in no journal.
    """

    stats: dict[str, float]
    rows: int
    verdicts: int
    numbers: Any
    unjournaled: int
    seconds: float


def figures() -> Iterator[Figure]:
    """Run both and compare."""
    data = workload.dataset(ITEMS)
    constraints = sum(len(row["constraints"]) for row in data)
    with tempfile.TemporaryDirectory() as folder:
        calm = _calm(Path(folder) / "calm", data)
        killed, in_flight = _killed(Path(folder) / "killed", data, calm)
    requests, distinct = calm.stats["requests"], calm.stats["distinct"]
    yield Figure(f"{int(requests):,} requests for {int(distinct):,} questions", requests / distinct)
    for kind in ("transient", "refused", "null", "torn"):
        yield Figure(f"questions met with: {kind}", 100 * calm.stats[kind] / distinct, "%")
    for name, run in (("undisturbed", calm), ("killed", killed)):
        yield Figure(f"{name}: items lost", ITEMS - run.rows, "", 0)
        yield Figure(f"{name}: verdicts lost", constraints - run.verdicts, "", 0)
    refused = calm.stats["resent_after_refusal"]
    yield Figure("undisturbed: permanent refusals sent again", refused, "", 0)
    yield Figure("undisturbed: answers in no journal", calm.unjournaled, "", 0)
    yield Figure("killed: answers in no journal when it was killed", in_flight)
    more = killed.unjournaled - in_flight
    yield Figure("killed: answers sent for again beyond these", more, "", 0)
    differing = calm.numbers != killed.numbers
    yield Figure("killed: numbers that differ from the undisturbed run's", differing, "", 0)
    yield _dead()


def _project(root: Path, mock: Mock, data: list[dict[str, Any]]) -> Project:
    project = make_project(root, concurrency=CONNECTIONS, retry=_RETRY)
    project.write_yaml("configs/alpha.yaml", model(mock.base_url))
    project.write_yaml("judge_configs/judge.yaml", judge(mock.judge_url))
    project.write_dataset("bench", data)
    return project


def _calm(root: Path, data: list[dict[str, Any]]) -> Finished:
    with running(FAULTY) as mock:
        project = _project(root, mock, data)
        return _finished(project, mock, project.snakemake())


def _killed(root: Path, data: list[dict[str, Any]], calm: Finished) -> tuple[Finished, int]:
    """Kill a run in both stages; return what came of it and what both kills left unjournaled."""
    judged = calm.stats["judge"] / 2
    predicted = (calm.stats["requests"] - calm.stats["judge"]) / 2
    with running(FAULTY) as mock:
        project = _project(root, mock, data)
        for name, enough in (("requests", predicted), ("judge", judged)):
            with project.start() as process:
                while mock.stats()[name] < enough:
                    if process.poll() is not None:
                        raise SystemExit("bench: the run ended before it could be killed")
                    time.sleep(0.005)
                _kill(process.pid)
            while mock.stats()["in_flight"]:
                time.sleep(0.01)
        in_flight = _unjournaled(project, mock)
        return _finished(project, mock, project.snakemake()), in_flight


def _unjournaled(project: Project, mock: Mock) -> int:
    """Return how many answers of the mock no journal holds a line for; refusals are none."""
    paths = [project.root / name for name in _JOURNALS]
    lines = [loads(line) for path in paths if path.exists() for line in jsonl(path.read_bytes())]
    kept = [line.get("output") or line["reply"] for line in lines]
    answers = sum((k.get("error") or {}).get("kind") in ("empty_answer", None) for k in kept)
    return int(mock.stats()["answered"]) - answers


def _kill(pid: int) -> None:
    """SIGKILL a process and all its descendants."""
    parent = psutil.Process(pid)
    family = [*parent.children(recursive=True), parent]
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.send_signal(signal.SIGKILL)
    psutil.wait_procs(family, timeout=30)


def _finished(project: Project, mock: Mock, seconds: float) -> Finished:
    folder = f"results/scores/{_CELL}_judge/bench"
    accuracy = project.json(f"{folder}/accuracy.json")
    rows = project.json(f"results/prediction/{_CELL}/bench.json")
    keys = ("CSR", "ISR", "by_dimension", "by_type", "coverage", "failure_stats", "responses")
    numbers = [row["output"]["content"] for row in rows], {key: accuracy[key] for key in keys}
    expected = accuracy["coverage"]["expected"]
    unjournaled = _unjournaled(project, mock)
    return Finished(mock.stats(), len(rows), expected, numbers, unjournaled, seconds)


def _dead() -> Figure:
    """Let the endpoint die at half; the patience of every single request would be minutes."""
    patient = _RETRY | {"attempts": 6, "first_wait_s": 1.0, "max_wait_s": 60.0}
    with tempfile.TemporaryDirectory() as folder:
        with running(FAULTY) as mock:
            project = _project(Path(folder) / "dead", mock, workload.dataset(ITEMS))
            project.change_global(retry=patient)
            process = project.start()
            while mock.stats()["requests"] < ITEMS / 2:
                time.sleep(0.005)
        died = time.perf_counter()
        process.communicate()
        if process.returncode == 0:
            raise SystemExit("bench: a run whose endpoint died ended with 0")
        return Figure(
            "the endpoint dies at half: until the run has ended",
            time.perf_counter() - died,
            "s",
            90,
        )
