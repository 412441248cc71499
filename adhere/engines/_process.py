"""The owner's side of one guarded process (the guardian is ``_spawn.py``)."""

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from adhere.errors import EngineError

_ROOT = Path(__file__).resolve().parents[2]
# What the guardian may take beyond the grace period, and the kernel for a SIGKILL (s).
_MARGIN_S = 15.0
_TAIL_LINES = 20
_TAIL_BYTES = 65_536
_LINE_CHARACTERS = 500


class GuardedProcess:
    """A server process with all its children, which cannot outlive this object's process.

    It runs in a session of its own; stdout and stderr go to ``log``. It ends when ``stop`` is
    called and when this process ends in whatever way, SIGKILL included: SIGTERM to its process
    group, ``grace_s`` seconds, SIGKILL. It may be started from any thread. The guardian keeps the
    descriptors ``held`` open until nothing of the server is left; the server does not get them.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        grace_s: float,
        held: Sequence[int] = (),
    ) -> None:
        guardian = [sys.executable, "-P", "-m", "adhere.engines._spawn"]
        search = [str(_ROOT), *filter(None, [env.get("PYTHONPATH")])]
        with log.open("ab") as stream:
            self._guardian = subprocess.Popen(
                [*guardian, str(os.getpid()), str(grace_s), *command],
                env={**env, "PYTHONPATH": os.pathsep.join(search)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                start_new_session=True,
                pass_fds=held,
            )
        self._log = log
        self._grace_s = grace_s
        self._return_code: bytes | None = None

    def wait_ended(self, timeout_s: float) -> bool:
        """Wait up to ``timeout_s`` seconds for the process to end; return whether it has."""
        if self._return_code is not None:
            return True
        poll = select.poll()
        assert self._guardian.stdout is not None
        poll.register(self._guardian.stdout, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))

    async def ended(self) -> None:
        """Return when the process has ended."""
        if self._return_code is not None:
            return
        assert self._guardian.stdout is not None
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        # A loop keeps one reader for each descriptor: a copy allows several to wait.
        descriptor = os.dup(self._guardian.stdout.fileno())
        try:
            loop.add_reader(descriptor, over.set)
            await over.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    @property
    def exit_status(self) -> int | None:
        """The server's own return code (negative: the signal that ended it), known after ``stop``.

        None before that, and where the server was killed together with its guardian.
        """
        return int(self._return_code) if self._return_code else None

    def outcome(self) -> str:
        """Say how the process ended, with the path and the end of its log, for an error message.

        Only after it has ended; whatever it left behind is ended too.
        """
        self.stop()
        how = _describe(self._return_code or b"")
        tail = "".join(f"\n    {line}" for line in self.log_tail())
        return f"{how}; its log {self._log} ends with:{tail or ' (nothing)'}"

    def log_tail(self) -> list[str]:
        """Return the last lines of the log, long ones cut."""
        with self._log.open("rb") as stream:
            stream.seek(max(0, self._log.stat().st_size - _TAIL_BYTES))
            lines = stream.read().decode("utf-8", "replace").rstrip().splitlines()
        return [line[:_LINE_CHARACTERS] for line in lines[-_TAIL_LINES:]]

    def members(self) -> list[psutil.Process]:
        """Return all living processes of the session and below the guardian, itself included."""
        session = self._guardian.pid
        found = {}
        for pid in psutil.pids():
            with contextlib.suppress(ProcessLookupError, PermissionError, psutil.NoSuchProcess):
                if os.getsid(pid) == session:
                    found[pid] = psutil.Process(pid)
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(session).children(recursive=True):
                found[child.pid] = child
        return [process for process in found.values() if _lives(process)]

    def stop(self) -> None:
        """End the process and everything below it; return when nothing is left.

        An exception that interrupts the waiting ends it with SIGKILL at once. Raises EngineError
        when something survives even that.
        """
        if self._return_code is not None:
            return
        assert self._guardian.stdin is not None
        try:
            self._guardian.stdin.close()
            self.wait_ended(self._grace_s + _MARGIN_S)
        finally:
            self._sweep()

    def _sweep(self) -> None:
        """Kill what is left (normally nothing), and reap the guardian."""
        assert self._guardian.stdout is not None
        # Collected before the guardian is reaped: until then its session's number is taken.
        left = self.members() if self._guardian.returncode is None else []
        for process in left:
            if process.pid != self._guardian.pid or not self.wait_ended(0):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        self._return_code = self._guardian.stdout.read()
        self._guardian.wait()
        self._guardian.stdout.close()
        deadline = time.monotonic() + _MARGIN_S
        while (left := [process for process in left if _lives(process)]) and (
            time.monotonic() < deadline
        ):
            time.sleep(0.02)
        if left:
            pids = ", ".join(str(process.pid) for process in left)
            raise EngineError(
                f"the model server's processes {pids} do not end, not even by SIGKILL: "
                "they hang in the kernel (look at the GPU driver or the file system)"
            )


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def _describe(return_code: bytes) -> str:
    if not return_code:
        return "was killed together with its guardian"
    code = int(return_code)
    if code >= 0:
        return f"exited with status {code}"
    return f"was ended by {signal.Signals(-code).name}"
