"""How long serving a model will take: from earlier runs, its file's estimate, or a crude rule.

An estimate decides about an order only; a wrong one costs time and never a result. The model
behind all three: a start-up, then answers in waves of as many as are asked for at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from adhere.config import ModelConfig
from adhere.errors import DataError
from adhere.jsonio import read_json

# Items of AgentIF: what `hours_per_run` is stated for.
REFERENCE_ITEMS = 707
# The crude rule, in seconds. Larger models take more GPUs, load longer and answer more slowly.
START_S = 60.0
START_PER_GPU_S = 60.0
ANSWER_S = 20.0
ANSWER_PER_GPU_S = 5.0
# A thinking mode writes several times as much as another.
THINKING = 4.0
# Records that are looked at: the newest, since machines and settings change.
NEWEST = 5


@dataclass(frozen=True, slots=True)
class Work:
    """What is left of one cell: items of a mode that have no answer yet."""

    mode: str
    items: int


@dataclass(frozen=True, slots=True)
class Record:
    """What an earlier serving job took: seconds to start and stop, and to ask for its answers.

    ``modes`` has one entry for each of its cells, ``servers`` is how many shared the work.
    """

    modes: tuple[str, ...]
    answered: int
    servers: int
    idle_s: float
    asking_s: float


@dataclass(frozen=True, slots=True)
class Serving:
    """How a model is served: its configuration, servers, and requests in flight to each."""

    config: ModelConfig
    servers: int
    concurrency: int

    def weight(self, mode: str) -> float:
        """How many times as long as one without thinking an answer takes."""
        return THINKING if self.config.thinks(mode) else 1.0

    def waves(self, items: float, servers: int) -> float:
        """How many times as long as a single answer so many take."""
        return max(1.0, items / (self.concurrency * servers))


def estimate(
    serving: Serving, work: Sequence[Work], records: Sequence[Record]
) -> tuple[float, str]:
    """Return seconds for all of ``work``, and in words where they come from."""
    config = serving.config
    items = sum(piece.items for piece in work)
    idle = START_S + START_PER_GPU_S * config.gpu_count
    if records:
        idle = fmean(record.idle_s for record in records)
        answer = {piece.mode: _answer_s(serving, piece.mode, records) for piece in work}
        source = f"{len(records)} earlier run{'s' if len(records) > 1 else ''}"
    elif config.hours_per_run is not None:
        hours = config.hours_per_run / serving.servers
        return 3600 * hours * items / REFERENCE_ITEMS, "hours_per_run"
    else:
        plain = ANSWER_S + ANSWER_PER_GPU_S * config.gpu_count
        answer = {piece.mode: plain * serving.weight(piece.mode) for piece in work}
        source = "crude rule"
    if not items:
        return idle, source
    mean = sum(answer[piece.mode] * piece.items for piece in work) / items
    return idle + mean * serving.waves(items, serving.servers), source


def _answer_s(serving: Serving, mode: str, records: Sequence[Record]) -> float:
    """Return seconds an answer of a mode takes: by runs of that mode alone where there are any,
    else by all, in which thinking modes count ``THINKING`` times."""
    alone = [record for record in records if set(record.modes) == {mode}]
    plain = waves = 0.0
    for record in alone or records:
        plain += record.asking_s / fmean(serving.weight(m) for m in record.modes)
        waves += serving.waves(record.answered, record.servers)
    return serving.weight(mode) * plain / waves


def earlier_runs(results_root: Path, model: str) -> list[Record]:
    """Return what the newest serving jobs of a model took, those without any answer left out."""
    found = []
    for path in sorted((results_root / "run_metadata" / model).glob("*.json"), reverse=True):
        record = _record(path)
        if record is not None:
            found.append(record)
        if len(found) == NEWEST:
            break
    return found


def _record(path: Path) -> Record | None:
    """Read one record; None for another stage's, and for what another version wrote."""
    try:
        content: Any = read_json(path)
        if content["stage"] != "serve":
            return None
        times = content["durations"]
        record = Record(
            modes=tuple(str(cell["mode"]) for cell in content["cells"]),
            answered=int(content["answered"]),
            servers=len(content["servers"]),
            idle_s=float(times["starting_s"]) + float(times["stopping_s"]),
            asking_s=float(times["asking_s"]),
        )
    except (DataError, KeyError, TypeError, ValueError):
        return None
    return record if record.modes and record.answered and record.servers else None
