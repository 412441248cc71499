"""One fork server as the judging process sees it: start, request, cancel, stop."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from adhere.checkers.frames import REQUEST, Kind
from adhere.checkers.isolation import Isolation, Level, isolation_of, refusal
from adhere.checkers.link import Link, LostError, Reply
from adhere.checkers.spawn import spawn
from adhere.errors import CheckerError

_START_S: Final = 60.0
_STOP_S: Final = 5.0
# How much longer than a check's own limit the server may take to answer (kill, reap, transfer).
_GRACE_S: Final = 15.0
_MOST_DEATHS: Final = 2
_ATTEMPTS_FILE: Final = Path(__file__).with_name("attempts.py")


class _Connection(NamedTuple):
    process: subprocess.Popen[bytes]
    link: Link


class Worker:
    """A server that is started when it is needed, and again when it has died."""

    def __init__(self, timeout_s: float, memory_mb: int, minimum: Level) -> None:
        self._timeout_s = timeout_s
        self._memory_mb = memory_mb
        self._minimum = minimum
        self._connection: _Connection | None = None
        self._cancelled = False
        self._starting = False
        self._isolation: Isolation | None = None

    @property
    def isolation(self) -> Isolation | None:
        """What confines the checks of the server that was started last; None before that."""
        return self._isolation

    @property
    def pid(self) -> int | None:
        """The server's process id, None where none runs."""
        return self._connection.process.pid if self._connection else None

    async def start(self) -> None:
        """Start the server, wait until it serves and try what its checks could do.

        Raises CheckerError when it does not serve, or confines its checks less than ``minimum``.
        """
        if sys.platform != "linux":
            raise CheckerError(
                f"checkers run on Linux only, this is {sys.platform}: use a container"
            )
        ours, theirs = socket.socketpair()
        with theirs:
            loop = asyncio.get_running_loop()
            _, link = await loop.create_unix_connection(Link, sock=ours)
            try:
                process = spawn(theirs)
            except OSError as error:
                link.close()
                raise CheckerError(f"cannot start {sys.executable} for checkers: {error}") from None
        self._connection = _Connection(process, link)
        self._starting = True
        try:
            async with asyncio.timeout(_START_S):
                if (await link.receive()).kind is not Kind.READY:
                    raise LostError
                self._isolation = await self._probe()
        except (LostError, TimeoutError):
            told = self._kill()
            raise CheckerError(
                "the process that runs checkers did not start "
                f"({sys.executable}): {told or 'it said nothing'}"
            ) from None
        except (asyncio.CancelledError, CheckerError):
            self._kill()
            raise
        finally:
            self._starting = False
        if process.stderr:
            process.stderr.close()

    async def check(self, source: bytes, text: bytes) -> Reply:
        """Run one check; a server found dead is replaced.

        One that dies meanwhile may have been killed for what others did (the machine's memory runs
        out), so the check runs once more; if its second server dies, too, it is KILLED. Raises
        CheckerError when no server can be started.
        """
        self._cancelled = False
        for _ in range(_MOST_DEATHS):
            if self._connection and self._connection.process.poll() is not None:
                self._kill()
            if self._connection is None and not self._cancelled:
                await self.start()
            if self._cancelled:
                return Reply(Kind.CANCELLED, b"")
            try:
                async with asyncio.timeout(self._timeout_s + _GRACE_S):
                    return await self._exchange(source, text, self._timeout_s)
            except LostError:
                self._kill()
            except TimeoutError:
                self._kill()
                return Reply(Kind.KILLED, b"the server that ran it stopped answering")
            except asyncio.CancelledError:
                self._kill()
                raise
        return Reply(Kind.KILLED, b"the server that ran it died, twice")

    def cancel(self) -> None:
        """Ask the server to end the check it runs; its answer is CANCELLED, or came before."""
        self._cancelled = True
        if self._connection and not self._starting:
            self._connection.link.send(REQUEST.pack(Kind.CANCEL, 0.0, 0, 0, 0))

    async def stop(self) -> None:
        """End the server and everything below it; a running check is ended too."""
        if self._connection is None:
            return
        # The server ends when its socket does, after it has ended its check, and closes its side.
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_STOP_S):
                await self._connection.link.end()
        self._kill()

    async def _probe(self) -> Isolation:
        """Run attempts.py as a checker, and say what it could do.

        Raises CheckerError where that is more than ``minimum`` allows, or cannot be found out.
        """
        try:
            handle, file = tempfile.mkstemp()
        except OSError as error:
            raise CheckerError(
                f"no temporary file can be made to try the isolation of checkers with: {error}. "
                "Set TMPDIR to a folder that can be written"
            ) from None
        try:
            given = {"file": file, "bytes": self._memory_mb << 20}
            attempts = _ATTEMPTS_FILE.read_bytes()
            reply = await self._exchange(attempts, json.dumps(given).encode(), _START_S)
        finally:
            os.close(handle)
            Path(file).unlink()
        found = isolation_of(json.loads(reply.payload) if reply.kind is Kind.TEXT else ["probe"])
        if found.meets(self._minimum):
            return found
        if reply.kind is not Kind.TEXT:
            raise CheckerError(
                "the isolation of checkers cannot be tried: "
                f"{reply.kind.name.lower()} {reply.payload.decode(errors='replace')}. Is "
                f"checkers: {{memory_mb: {self._memory_mb}}} of configs/global.yaml enough?"
            )
        raise CheckerError(refusal(found, self._minimum))

    async def _exchange(self, source: bytes, text: bytes, timeout_s: float) -> Reply:
        assert self._connection is not None
        link = self._connection.link
        header = REQUEST.pack(Kind.CHECK, timeout_s, self._memory_mb, len(source), len(text))
        link.send(b"".join((header, source, text)))
        reply = await link.receive()
        if reply.kind is Kind.READY:
            raise LostError
        return reply

    def _kill(self) -> str:
        """Kill the server with everything below it; return what it said on standard error."""
        connection, self._connection = self._connection, None
        if connection is None:
            return ""
        process = connection.process
        connection.link.close()
        for doomed in _tree(process):
            with contextlib.suppress(psutil.NoSuchProcess):
                doomed.kill()
        process.kill()
        process.wait()
        told = b""
        if process.stderr and not process.stderr.closed:
            told = process.stderr.read()
            process.stderr.close()
        return told.decode("utf-8", "replace").strip()[-2000:]


def _tree(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return a running server and its descendants, the server first, so that it forks no more."""
    if process.poll() is not None:
        return []
    try:
        server = psutil.Process(process.pid)
        return [server, *server.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
