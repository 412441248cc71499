"""A model server that belongs to the process using it: started, recognised, watched, ended.

    with LocalServer(command, env=…, log=…, ready=…) as server:
        asyncio.run(server.while_alive(predict(server.info.base_url)))

Nothing outlives the ``with`` block, nor this process, however it ends (see ``_process.py``).
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from adhere import jsonio
from adhere.engines import _probe
from adhere.engines._metrics import prefix_cache
from adhere.engines._process import GuardedProcess
from adhere.errors import DataError, EngineError

T = TypeVar("T")

# The argument list for a port; called again with another port when somebody else was faster.
Command = Callable[[int], Sequence[str]]

_PORT_ATTEMPTS = 5
_POLL_S = 0.1


class PortTakenError(EngineError):
    """Somebody else listens on the port that the server was to have."""


@dataclass(frozen=True, slots=True)
class ReadyProbe:
    """How to recognise that a server is up, and that it is the one that was started.

    served_model: the name that ``GET /v1/models`` must list.
    version: returns names and versions, given the server's root URL; called once it is up.
    port: the only port that will do; None for a free one.
    address_file: where a server that chooses its own port writes ``{"address": root URL}``; the
        command is then called with port 0 unless ``port`` is given.
    """

    served_model: str
    version: Callable[[str], dict[str, str]]
    port: int | None = None
    address_file: Path | None = None


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """A running server: base_url ends in ``/v1``; model_card is its own entry in /v1/models."""

    base_url: str
    served_model: str
    version: dict[str, str]
    model_card: dict[str, Any]

    @property
    def window(self) -> int | None:
        """The context window in tokens, where the model card has it as vLLM's does."""
        window = self.model_card.get("max_model_len")
        return window if isinstance(window, int) else None


class LocalServer:
    """A model server as a context manager.

    Entering returns when the server answers; it raises EngineError, quoting the end of the log,
    as soon as the process ends, when it is not ready after ``start_timeout_s`` seconds, or when
    another server holds a fixed port (a port picked here is replaced instead). Leaving sends
    SIGTERM, after ``grace_s`` seconds SIGKILL, and returns when no process is left.

    Entering and leaving block: do both outside of a running event loop. ``held``: descriptors that
    stay open until nothing of the server is left.
    """

    def __init__(
        self,
        command: Command,
        *,
        env: Mapping[str, str],
        log: Path,
        ready: ReadyProbe,
        grace_s: float = 10.0,
        start_timeout_s: float = 1800.0,
        held: Sequence[int] = (),
    ) -> None:
        self._command = command
        self._env = env
        self._log = log
        self._ready = ready
        self._grace_s = grace_s
        self._start_timeout_s = start_timeout_s
        self._held = held
        self._unwanted = threading.Event()
        self._process: GuardedProcess | None = None
        self._info: ServerInfo | None = None

    def __enter__(self) -> Self:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._log.write_bytes(b"")
        try:
            self._info = self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def info(self) -> ServerInfo:
        """The running server's facts; only inside the ``with`` block."""
        if self._info is None:
            raise RuntimeError("the server has not been started")
        return self._info

    @property
    def pids(self) -> list[int]:
        """The server's living processes (guardian, server, workers)."""
        return [process.pid for process in self._running.members()]

    @property
    def exit_status(self) -> int | None:
        """The server's return code once it has been stopped (negative: the signal), else None."""
        return None if self._process is None else self._process.exit_status

    def metrics(self) -> dict[str, float | None]:
        """Return the prefix cache's figures, see ``prefix_cache``; ask before the server stops."""
        return prefix_cache(self.info.base_url.removesuffix("/v1"))

    def check(self) -> None:
        """Raise EngineError, quoting the end of the log, when the server has died."""
        if self._running.wait_ended(0):
            raise self._death("died while it was needed")

    async def wait_died(self) -> EngineError:
        """Wait until the server dies; return the error to raise."""
        await self._running.ended()
        return self._death("died while it was needed")

    async def while_alive(self, work: Coroutine[Any, Any, T]) -> T:
        """Await ``work`` and return its result; cancel it when the server dies first.

        Raises EngineError, quoting the end of the log, in that case.
        """
        task = asyncio.ensure_future(work)
        death = asyncio.ensure_future(self.wait_died())
        try:
            await asyncio.wait((task, death), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise death.result()
        finally:
            task.cancel()
            death.cancel()
            await asyncio.gather(task, death, return_exceptions=True)

    def give_up(self) -> None:
        """Have the start fail soon, from another thread than the one that starts the server."""
        self._unwanted.set()

    def stop(self) -> None:
        """End the server; return when nothing of it is left. Does nothing the second time."""
        if self._process is not None:
            self._process.stop()
        if self._ready.address_file is not None:
            self._ready.address_file.unlink(missing_ok=True)

    @property
    def _running(self) -> GuardedProcess:
        if self._process is None:
            raise RuntimeError("the server has not been started")
        return self._process

    def _start(self) -> ServerInfo:
        if self._ready.port is not None:
            return self._launch(self._ready.port)
        if self._ready.address_file is not None:
            return self._launch(0)
        for _ in range(_PORT_ATTEMPTS - 1):
            try:
                return self._launch(_probe.free_port())
            except PortTakenError:
                self.stop()
        return self._launch(_probe.free_port())

    def _launch(self, port: int) -> ServerInfo:
        if port and (others := _probe.listeners(port)):
            raise self._port_taken(port, others)
        if self._ready.address_file is not None:
            self._ready.address_file.unlink(missing_ok=True)
        self._process = GuardedProcess(
            self._command(port),
            env=self._env,
            log=self._log,
            grace_s=self._grace_s,
            held=self._held,
        )
        deadline = time.monotonic() + self._start_timeout_s
        while True:
            root = self._root(port)
            if root is not None and (info := self._recognise(root)) is not None:
                return info
            if self._process.wait_ended(_POLL_S):
                raise self._died_starting(port)
            if self._unwanted.is_set():
                raise EngineError(
                    f"the server of model '{self._ready.served_model}' was given up while it "
                    "started"
                )
            if time.monotonic() > deadline:
                raise self._late()

    def _root(self, port: int) -> str | None:
        """Return the server's root URL, None while it is not known."""
        if self._ready.address_file is None:
            return f"http://127.0.0.1:{port}"
        try:
            address: str = jsonio.read_json(self._ready.address_file)["address"]
        except DataError:
            return None
        return address

    def _recognise(self, root: str) -> ServerInfo | None:
        """Return the facts of the server when it is up, None when nothing answers yet.

        Raises PortTakenError when somebody else answers, also beside ours: servers that set
        SO_REUSEPORT share a port silently, and may even serve the same model.
        """
        cards = _probe.model_cards(root)
        if cards is None:
            return None
        port = int(root.rpartition(":")[2])
        others = _probe.listeners(port) - set(self.pids)
        if others:
            raise self._port_taken(port, others)
        names = [card["id"] for card in cards]
        if self._ready.served_model not in names:
            raise EngineError(
                f"the server started for model '{self._ready.served_model}' serves "
                f"{names} instead: see its log {self._log} and the model's arguments"
            )
        return ServerInfo(
            base_url=f"{root}/v1",
            served_model=self._ready.served_model,
            version=self._ready.version(root),
            model_card=cards[names.index(self._ready.served_model)],
        )

    def _death(self, when: str) -> EngineError:
        return EngineError(
            f"the server of model '{self._ready.served_model}' {when}: it {self._running.outcome()}"
        )

    def _died_starting(self, port: int) -> EngineError:
        error = self._death("does not start")
        others = _probe.listeners(port) if port else set()
        if others or "address already in use" in str(error).lower():
            return PortTakenError(str(error))
        return error

    def _late(self) -> EngineError:
        tail = "".join(f"\n    {line}" for line in self._running.log_tail())
        return EngineError(
            f"the server of model '{self._ready.served_model}' is not ready after "
            f"{self._start_timeout_s:g} s; its log {self._log} ends with:{tail or ' (nothing)'}"
        )

    def _port_taken(self, port: int, others: set[int | None]) -> PortTakenError:
        return PortTakenError(
            f"port {port} for model '{self._ready.served_model}' is already used by "
            f"{_probe.describe(others)}: end it, or give the model another `port` or none"
        )
