"""The process: a socket, one event loop, and an end that finishes what was accepted."""

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Iterator

import uvicorn

from adhere.service.app import make_app
from adhere.service.engine import Engine
from adhere.service.gate import Gate
from adhere.service.logs import log
from adhere.service.settings import Settings

_KEEP_ALIVE_S = 75
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Server(uvicorn.Server):
    """A server over one engine.

    The first signal, or ``stop``, closes the socket, and everything that was accepted is answered;
    a second one ends at once what is under way.
    """

    def __init__(self, engine: Engine, settings: Settings) -> None:
        limits = settings.limits
        super().__init__(
            uvicorn.Config(
                make_app(engine, settings),
                http="h11",
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE_S,
                # Beyond what the gate counts: connections that wait for their next request.
                limit_concurrency=2 * (limits.running + limits.waiting) + 64,
            )
        )
        self._engine = engine
        self._settings = settings
        self._gate: Gate = engine.gate
        self._task: asyncio.Task[None] | None = None

    async def serve_on(self, listener: socket.socket) -> None:
        """Serve until the end; ``listener`` is closed by then."""
        host, port = listener.getsockname()[:2]
        log(
            "ready",
            url=f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}",
            judge=self._engine.judge.name,
            token=self._settings.token is not None,
            isolation=self._engine.pool.isolation.level,
        )
        try:
            await self.serve(sockets=[listener])
        except asyncio.CancelledError:
            if not self.force_exit:
                raise
            await asyncio.gather(*self.server_state.tasks, return_exceptions=True)
        log("ended", requests=self.server_state.total_requests, at_once=self.force_exit)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Have signals end this server; where it is not in the main thread, nothing does."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        for signum in _SIGNALS:
            loop.add_signal_handler(signum, self.stop)
        try:
            yield
        finally:
            for signum in _SIGNALS:
                loop.remove_signal_handler(signum)

    def stop(self) -> None:
        """Begin the end; a second time, make it now."""
        if self.should_exit:
            self.force_exit = self._gate.ended = True
            for task in (*self.server_state.tasks, self._task):
                if task is not None:
                    task.cancel()
            return
        log("draining", open=self._gate.open)
        self._gate.draining = True
        self.should_exit = True
