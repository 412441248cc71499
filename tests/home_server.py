"""A small web server on loopback that serves files well, badly, or not at all, for tests."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Home:
    """What is served under each path: one reply after the other, the last one for good."""

    def __init__(self) -> None:
        self.port = 0
        self.replies: dict[str, list[Reply]] = {}
        self.requests: Counter[str] = Counter()

    def url(self, name: str, *replies: Reply) -> str:
        """Serve replies under a name and return its address."""
        if replies:
            self.replies[name] = list(replies)
        return f"http://127.0.0.1:{self.port}/{name}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name = request.path.removeprefix("/")
        self.requests[name] += 1
        replies = self.replies.get(name)
        if not replies:
            raise web.HTTPNotFound
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        return await reply(request)


@contextmanager
def start_home() -> Iterator[Home]:
    """Serve in a thread until the context ends."""
    home = Home()
    started = threading.Event()
    ending: list[Callable[[], object]] = []

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        ending.append(lambda: loop.call_soon_threadsafe(stop.set))
        app = web.Application()
        app.router.add_get("/{name:.*}", home.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.01)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        home.port = runner.addresses[0][1]
        started.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    started.wait()
    try:
        yield home
    finally:
        ending[0]()
        thread.join()


def whole(body: bytes, **headers: str) -> Reply:
    """The file as it is."""

    async def reply(_request: web.Request) -> web.StreamResponse:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return web.Response(body=body, headers=named)

    return reply


def status(code: int) -> Reply:
    """A status and no file."""

    async def reply(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=code, text="no")

    return reply


def moved(to: str) -> Reply:
    """A redirect."""

    async def reply(_request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(to)

    return reply


def broken_off(body: bytes, *, with_length: bool) -> Reply:
    """The first half of the file, then nothing: the connection is closed."""

    async def reply(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if with_length:
            response.content_length = len(body)
        else:
            response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(body[: len(body) // 2])
        assert request.transport is not None
        request.transport.close()
        return response

    return reply


def closed() -> Reply:
    """No answer: the connection is closed at once."""

    async def reply(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return reply


def silent(body: bytes, half_sent: threading.Event | None = None) -> Reply:
    """The first half of the file, and then silence while the connection stays open."""

    async def reply(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_length = len(body)
        await response.prepare(request)
        await response.write(body[: len(body) // 2])
        if half_sent is not None:
            half_sent.set()
        await asyncio.Event().wait()
        return response

    return reply
