"""The frame around every script: logging, signals, and errors as one message and an exit code."""

import gc
import logging
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adhere.config import load_project
from adhere.errors import told
from adhere.files import claim
from adhere.lifeline import Terminated, raise_on_signals, watch_claim, watch_workflow
from adhere.plan import Plan, make_plan

_LOG = logging.getLogger("adhere")
_QUOTED_LINES = 12
# Containers made before the garbage collector looks for cycles, and rounds before it looks at
# older ones: see collect_garbage_rarely.
_GARBAGE_THRESHOLDS = (50_000, 20, 100)


@dataclass(frozen=True, slots=True)
class Job:
    """One job of the workflow: the plan it belongs to, and what its rule hands over.

    ``resources`` are what Snakemake gave it, which may be less than its rule asked for.
    """

    plan: Plan
    wildcards: Mapping[str, str]
    params: Mapping[str, Any]
    input: Mapping[str, Any]
    output: Mapping[str, Any]
    log: Path
    resources: Mapping[str, Any] = field(default_factory=dict)


def by_hand(main: Callable[[], None], when_ended: str = "") -> None:
    """Run a script's command line; ends the process with 0, 1 or a signal's code.

    ``when_ended`` is what a person who ends it should know: what is kept, and how to go on.
    """
    _log_to(logging.StreamHandler(sys.stderr), "%(message)s")
    try:
        code = _guarded(main, None)
    except Terminated:
        if when_ended:
            _LOG.error("%s", when_ended)
        raise
    sys.exit(code)


def in_workflow(snakemake: Any, run: Callable[[Job], None]) -> None:
    """Run a script as a job of the workflow; ``snakemake`` is what its ``script:`` offers."""
    log = Path(snakemake.log[0])
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        _log_to(logging.FileHandler(log, mode="w", encoding="utf-8"), "%(asctime)s %(message)s")
    except OSError as error:
        _report(f"error: {told(error)}", None)
        sys.exit(1)

    def work() -> None:
        # Configuration is read again rather than handed over, so that a changed number of
        # connections, say, is no reason to compute anything anew.
        plan = make_plan(load_project(Path()), snakemake.config)
        watch_claim(claim(plan.results_root))
        run(
            Job(
                plan,
                wildcards=dict(snakemake.wildcards.items()),
                params=dict(snakemake.params.items()),
                input=dict(snakemake.input.items()),
                output=dict(snakemake.output.items()),
                log=log,
                resources=dict(snakemake.resources.items()),
            )
        )

    code = _guarded(work, log)
    if code:
        sys.exit(code)


def _guarded(work: Callable[[], None], log: Path | None) -> int:
    """Run ``work``; report an error once, where a person looks, and return the exit code."""
    collect_garbage_rarely()
    try:
        with raise_on_signals():
            watch_workflow()
            work()
    except Terminated as stop:
        _LOG.error("ended by %s", signal.Signals(stop.signum).name)
        raise
    except Exception as error:  # noqa: BLE001 - the process ends here; what it was must be seen
        if (message := told(error)) is not None:
            _report(f"error: {message}", log)
            return 1
        trace = traceback.format_exc().rstrip().splitlines()
        _LOG.error("%s", "\n".join(trace))
        _report("\n".join(["unexpected error:", *trace[-_QUOTED_LINES:]]), log, logged=True)
        return 1
    return 0


def collect_garbage_rarely() -> None:
    """Let the garbage collector look for cycles seldom.

    A job's data is large and holds none. With Python's own thresholds the collector's walks took
    a tenth of a judge job's processor time, in pauses during which no reply was read.
    """
    gc.set_threshold(*_GARBAGE_THRESHOLDS)


def _report(message: str, log: Path | None, *, logged: bool = False) -> None:
    if log is None:
        if not logged:
            sys.stderr.write(f"{message}\n")
        return
    if not logged:
        _LOG.error("%s", message)
    sys.stderr.write(f"{message}\nfull log: {log}\n")
    sys.stderr.flush()


def _log_to(handler: logging.Handler, form: str) -> None:
    handler.setFormatter(logging.Formatter(form, datefmt="%Y-%m-%d %H:%M:%S"))
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.INFO)
    _LOG.propagate = False
