"""The mock in a process of its own, for synchronous tests and for workflows under test."""

import http.client
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mock_endpoint.config import MockConfig
from mock_endpoint.log import LogEntry, Stats, parse_log


@dataclass
class RunningMock:
    """The mock in a process of its own; a context manager that stops it."""

    root_url: str
    process: subprocess.Popen[bytes]

    @property
    def base_url(self) -> str:
        """Base URL of the model, ending in /v1."""
        return f"{self.root_url}/v1"

    @property
    def judge_url(self) -> str:
        """Base URL of the judge, ending in /judge/v1."""
        return f"{self.root_url}/judge/v1"

    def stats(self) -> Stats:
        """Return the counts so far."""
        return Stats.model_validate_json(self._ask("GET", "/stats"))

    def log(self) -> list[LogEntry]:
        """Return the logged requests, oldest first."""
        return parse_log(self._ask("GET", "/log"))

    def until(self, *, timeout_s: float = 60.0, **at_least: int) -> Stats:
        """Wait until each named count is reached. Raises TimeoutError after ``timeout_s``."""
        query = "&".join(f"{name}={minimum}" for name, minimum in at_least.items())
        return Stats.model_validate_json(self._ask("GET", f"/wait?{query}", timeout_s=timeout_s))

    def configure(self, **changes: object) -> None:
        """Change the named config fields; new rules start unused. Raises ValidationError."""
        patch = MockConfig.model_validate(changes)
        self._ask("POST", "/config", patch.model_dump_json(exclude_unset=True).encode())

    def reset(self) -> None:
        """Forget counts, log and the rules' use; keep the config."""
        self._ask("POST", "/reset")

    def stop(self) -> None:
        """End the process; does nothing when it has ended already."""
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def _ask(
        self, method: str, path: str, body: bytes | None = None, timeout_s: float = 60.0
    ) -> bytes:
        # http.client, since urllib would send loopback requests through a configured proxy.
        connection = http.client.HTTPConnection(
            self.root_url.removeprefix("http://"), timeout=timeout_s
        )
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise ValueError(f"{method} {path}: {response.status}: {data.decode()}")
        return data


def start_mock(
    tmp_path: Path, config: MockConfig | None = None, *, max_seconds: float = 600.0
) -> RunningMock:
    """Start the mock in a process of its own and return when it accepts requests.

    Its stderr goes to a file in ``tmp_path``; the config goes through a pipe, so that no key is
    written anywhere. It dies with the thread that called this. Raises RuntimeError with the end of
    its stderr where it does not start.
    """
    command = [sys.executable, "-m", "mock_endpoint", "--config", "-"]
    command += ["--max-seconds", str(max_seconds)]
    handle, name = tempfile.mkstemp(dir=tmp_path, prefix="mock-", suffix=".log")
    with os.fdopen(handle, "wb") as log:
        process = subprocess.Popen(
            command,
            cwd=Path(__file__).resolve().parents[1],  # where Python finds the package
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the mock's pipes are missing")
    with suppress(BrokenPipeError), process.stdin:
        text = (config or MockConfig()).model_dump_json(exclude_unset=True)
        process.stdin.write(text.encode())
    line = process.stdout.readline().decode().strip()
    mock = RunningMock(line.removesuffix("/v1"), process)
    if not line:
        mock.stop()
        raise RuntimeError(f"the mock did not start: {Path(name).read_text()[-2000:]}")
    return mock
