"""Run metadata: one file for each job that called a model, whatever became of it."""

import importlib.metadata
import os
import platform
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adhere import PROTOCOL, __version__
from adhere.client import ChatClient
from adhere.costs.tokens import Tokens
from adhere.jsonio import write_json

_PACKAGES = ("aiohttp", "orjson", "snakemake", "vllm", "xllamacpp")


def versions() -> dict[str, str]:
    """Return the versions of everything that takes part; packages not installed are left out."""
    found = {"adhere": __version__, "protocol": str(PROTOCOL), "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@contextmanager
def job_record(results_root: Path, model: str, stage: str) -> Iterator[dict[str, Any]]:
    """Collect what a job is about to do; write it when the job ends, with how it ended.

    The file is ``run_metadata/{model}/run_metadata_{time}.json`` below ``results_root``.
    """
    started = datetime.now(UTC)
    clock = time.monotonic()
    record: dict[str, Any] = {
        "stage": stage,
        "model": model,
        "started": started.isoformat(timespec="seconds"),
        "host": platform.node(),
        "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
        "versions": versions(),
    }
    try:
        yield record
    except BaseException as error:
        record["status"] = "failed" if isinstance(error, Exception) else "interrupted"
        record["error"] = f"{type(error).__name__}: {error}"
        raise
    else:
        record["status"] = "done"
    finally:
        record["duration_s"] = round(time.monotonic() - clock, 3)
        name = f"run_metadata_{started:%Y%m%dT%H%M%S.%f}Z_{os.getpid()}.json"
        write_json(results_root / "run_metadata" / model / name, record)


def client_figures(clients: Sequence[ChatClient]) -> dict[str, Any]:
    """Return clients' counts for a record, summed: answers, retries, failures by kind, tokens.

    ``throttled`` answers asked for less, ``throttled_s`` seconds nothing was sent therefore, and
    ``least_concurrency`` is the least that one client went down to, None where none did.
    """
    counts = [client.counts for client in clients]
    lowered = [c.least_concurrency for c in counts if c.least_concurrency is not None]
    return {
        "answered": sum(each.answered for each in counts),
        "retries": sum(each.retries for each in counts),
        "failures": dict(sum((each.failures for each in counts), Counter())),
        "tokens": asdict(sum((each.tokens for each in counts), Tokens())),
        "throttled": sum(each.throttled for each in counts),
        "throttled_s": round(sum(each.throttled_s for each in counts), 1),
        "least_concurrency": min(lowered, default=None),
    }
