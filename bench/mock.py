"""The mock endpoint in C, compiled when it is needed and run as a process of its own."""

import http.client
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

_SOURCE = Path(__file__).with_name("mock.c")
_BINARY = _SOURCE.parents[1] / "build" / "mock"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How the mock answers; the last four are shares of request bodies (see mock.c)."""

    latency_ms: float = 200
    reply_bytes: int = 2000
    transient: float = 0
    refused: float = 0
    null: float = 0
    torn: float = 0


@dataclass(frozen=True, slots=True)
class Mock:
    """A mock that runs."""

    port: int

    @property
    def base_url(self) -> str:
        """Base URL of the model."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def judge_url(self) -> str:
        """Base URL of the judge."""
        return f"http://127.0.0.1:{self.port}/judge/v1"

    def stats(self) -> dict[str, float]:
        """Return the counts since the start."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/stats")
            stats: dict[str, float] = orjson.loads(connection.getresponse().read())
        finally:
            connection.close()
        return stats


@contextmanager
def running(behaviour: Behaviour) -> Iterator[Mock]:
    """Run the mock for as long as the block takes."""
    b = behaviour
    options = (b.latency_ms, b.reply_bytes, b.transient, b.refused, b.null, b.torn)
    command = [str(_compiled()), *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Mock(int(process.stdout.readline()))
        finally:
            process.kill()


def _compiled() -> Path:
    """Compile the mock where its source is newer; raises SystemExit without a C compiler."""
    if _BINARY.exists() and _BINARY.stat().st_mtime > _SOURCE.stat().st_mtime:
        return _BINARY
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise SystemExit("bench: a C compiler is needed for the mock: install gcc or clang")
    _BINARY.parent.mkdir(exist_ok=True)
    subprocess.run([compiler, "-O2", "-o", str(_BINARY), str(_SOURCE)], check=True)
    return _BINARY
