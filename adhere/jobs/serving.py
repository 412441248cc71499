"""Serving a model inside a job: GPUs, servers, clients, and what the job's record says of them."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from adhere import loop
from adhere.client import ChatClient, Endpoint
from adhere.config import Local
from adhere.engines import EngineSpec, LocalServer, serve
from adhere.gpus import Grant, Request, granted
from adhere.jobs.endpoints import local_endpoint

T = TypeVar("T")
# An engine that fails its requests may be dying, and take a moment to end (s). Waiting for that
# after the last request tells a dead server, with its log, from an endpoint that failed.
_LAST_WORDS_S = 5.0


@dataclass(frozen=True, slots=True)
class Served:
    """A model that a job serves: what it is started with, and how it is asked.

    log: where the first server writes; further ones write beside it, see ``log_of``.
    wanted: its endpoint but for the address. gpus: what it takes.
    """

    local: Local
    spec: EngineSpec
    log: Path
    wanted: Endpoint
    gpus: Request

    def log_of(self, replica: int) -> Path:
        """Return the log of one of its servers, counted from 1."""
        if replica == 1:
            return self.log
        return self.log.with_name(f"{self.log.stem}.{replica}{self.log.suffix}")


def with_servers(
    served: Served,
    record: dict[str, Any],
    work: Callable[[Sequence[ChatClient]], Coroutine[Any, Any, T]],
) -> T:
    """Serve a model for as long as ``work`` takes, by one server or several.

    ``work`` gets a client for each server, and ends at once when one of them dies. ``record`` gets
    ``engine``, ``gpus``, ``servers`` and ``durations``, filled in while things happen.
    """
    clock = _Clock(record)
    with granted(served.gpus) as grant:
        clock.lap("waiting_for_gpus_s")
        servers = [
            serve(replace(served.spec, env=share.env, held=share.held), served.log_of(number))
            for number, share in enumerate(grant.shares, start=1)
        ]
        record["gpus"] = grant.record
        record["servers"] = [_described(served, grant, number) for number in range(len(servers))]
        with _stopping(servers, record, clock):
            _start(servers)
            clock.lap("starting_s")
            info = servers[0].info
            record["engine"] = {"name": served.spec.engine, "versions": info.version}
            endpoints = [local_endpoint(served.local, s.info, served.wanted) for s in servers]
            result = loop.run(_while_alive(servers, _ask(endpoints, work)))
            for server, entry in zip(servers, record["servers"], strict=True):
                entry["prefix_cache"] = server.metrics()
            return result


def _described(served: Served, grant: Grant, place: int) -> dict[str, Any]:
    """Return what a record says of one server before it starts."""
    share = grant.shares[place]
    names = [device.name for device in share.devices]
    return {"devices": names, "env": dict(share.env), "log": served.log_of(place + 1).name}


class _Clock:
    """Notes how long each part of a job took."""

    def __init__(self, record: dict[str, Any]) -> None:
        self._durations: dict[str, float] = record.setdefault("durations", {})
        self._last = time.monotonic()

    def lap(self, name: str) -> None:
        now = time.monotonic()
        self._durations[name] = round(now - self._last, 3)
        self._last = now


@contextmanager
def _stopping(
    servers: Sequence[LocalServer], record: dict[str, Any], clock: _Clock
) -> Iterator[None]:
    """End all servers with the ``with`` block, and note how each of them ended."""
    try:
        with ExitStack() as stack:
            for server in servers:
                stack.callback(server.stop)
            try:
                yield
            finally:
                clock.lap("asking_s")
    finally:
        clock.lap("stopping_s")
        for server, entry in zip(servers, record["servers"], strict=True):
            entry["exit_status"] = server.exit_status


def _start(servers: Sequence[LocalServer]) -> None:
    """Start servers side by side; when one fails, or a signal comes, the others are given up.

    Raises EngineError for the first that fails.
    """
    with ThreadPoolExecutor(len(servers)) as threads:
        starts = [threads.submit(server.__enter__) for server in servers]
        try:
            for start in wait(starts, return_when=FIRST_EXCEPTION).done:
                start.result()
        except BaseException:
            for server in servers:
                server.give_up()
            raise


async def _ask(
    endpoints: Sequence[Endpoint],
    work: Callable[[Sequence[ChatClient]], Coroutine[Any, Any, T]],
) -> T:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(ChatClient(e)) for e in endpoints]
        result = await work(clients)
        if any(client.counts.lost for client in clients):
            await asyncio.sleep(_LAST_WORDS_S)
        return result


async def _while_alive(servers: Sequence[LocalServer], work: Coroutine[Any, Any, T]) -> T:
    """Await work while every server lives; the first death ends it."""
    for server in servers:
        work = server.while_alive(work)
    return await work
