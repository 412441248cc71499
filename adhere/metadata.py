"""Run metadata: one file for each job that called a model, whatever became of it."""

import importlib.metadata
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adhere import PROTOCOL, __version__
from adhere.client import ChatClient
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


def client_figures(client: ChatClient | None) -> dict[str, Any]:
    """Return a client's counts for a record: answers, retries, failures by kind, tokens."""
    if client is None:
        return {"answered": 0, "retries": 0, "failures": {}, "tokens": {}}
    counts = client.counts
    return {
        "answered": counts.answered,
        "retries": counts.retries,
        "failures": dict(counts.failures),
        "tokens": dict(counts.tokens),
    }
