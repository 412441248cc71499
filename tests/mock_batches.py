"""A stand-in for the files and batches endpoints of a provider, in front of the mock, for tests.

It runs in a thread of the test, so that tests read its state directly::

    with MockBatches(mock.root_url, key=KEY) as provider:
        ...  # requests to provider.base_url or provider.judge_url
        provider.until(lambda: provider.batches)

Every line of a batch, and every live request, is passed on to the mock, whose rules decide what
becomes of it: a line that is answered goes to the output file, any other to the error file.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import aiohttp
import orjson
from aiohttp import web

Json = dict[str, Any]
_ENDED = ("completed", "failed", "expired", "cancelled")


@dataclass
class File:
    """A file as the provider keeps it."""

    id: str
    name: str
    content: bytes

    def shown(self) -> Json:
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": 1_700_000_000,
            "filename": self.name,
            "purpose": "batch",
            "status": "processed",
        }


@dataclass
class Batch:
    """A batch: its standing as the provider shows it, and the lines of its file."""

    id: str
    input_file_id: str
    requests: list[Json]
    status: str = "validating"
    output: list[Json] = field(default_factory=list)
    errors: list[Json] = field(default_factory=list)
    rejections: list[Json] = field(default_factory=list)
    output_file_id: str | None = None
    error_file_id: str | None = None

    @property
    def ids(self) -> list[str]:
        return [request["custom_id"] for request in self.requests]

    def shown(self) -> Json:
        counts = {
            "total": len(self.requests),
            "completed": len(self.output),
            "failed": len(self.errors),
        }
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "created_at": 1_700_000_000,
            "input_file_id": self.input_file_id,
            "status": self.status,
            "output_file_id": self.output_file_id,
            "error_file_id": self.error_file_id,
            "errors": {"object": "list", "data": self.rejections} if self.rejections else None,
            "request_counts": counts,
        }


@dataclass
class Faults:
    """What goes wrong; numbers are used up.

    hold: batches stay in progress while it is set. expire: so many lines of the next batch are
    answered before it expires, one entry a batch; None lets one pass. reject: validation's errors
    of the next batches. most_lines: more lines at a time are one too many for the queue. create:
    what becomes of a request to create a batch: it hangs before or after that, or its answer is
    lost once.
    """

    hold: bool = False
    expire: list[int | None] = field(default_factory=list)
    reject: list[list[Json]] = field(default_factory=list)
    most_lines: int | None = None
    create: Literal["", "hang_before", "hang_after", "lost"] = ""
    no_batches: bool = False


class MockBatches:
    """The provider in a thread of its own; a context manager."""

    def __init__(self, upstream: str, *, key: str | None = None) -> None:
        self.faults = Faults()
        self.files: dict[str, File] = {}
        self.deleted: list[str] = []
        self.batches: dict[str, Batch] = {}
        self.live: list[Json] = []
        self.uploads = 0
        self.creations = 0
        self.polls = 0
        self.most_running = 0
        self._upstream = upstream
        self._key = key
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(30)
        return self

    def __exit__(self, *_error: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    @property
    def base_url(self) -> str:
        """Base URL of the model, ending in /v1."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def judge_url(self) -> str:
        """Base URL of the judge, ending in /judge/v1."""
        return f"http://127.0.0.1:{self._port}/judge/v1"

    @property
    def lines(self) -> list[str]:
        """The ids of all lines of all batches, in order."""
        return [i for batch in self.batches.values() for i in batch.ids]

    def until(self, reached: Callable[[], object], timeout_s: float = 60.0) -> None:
        """Wait for a state. Raises TimeoutError after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not reached():
                if not self._changed.wait(deadline - time.monotonic()):
                    raise TimeoutError("the stand-in did not get there")

    def change(self, **faults: Any) -> None:
        """Replace the faults."""
        self.faults = Faults(**faults)

    async def _open(self) -> None:
        self._session = aiohttp.ClientSession()
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._port = self._runner.addresses[0][1]

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._runner.cleanup()
        await self._session.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            if self._key and request.headers.get("Authorization") != f"Bearer {self._key}":
                return _refusal(401, "Incorrect API key provided.")
            return await self._route(request)
        finally:
            with self._changed:
                self._changed.notify_all()

    async def _route(self, request: web.BaseRequest) -> web.StreamResponse:
        prefix, _, rest = request.path.partition("/v1/")
        parts = rest.split("/")
        match (request.method, *parts):
            case ("POST", "chat", "completions"):
                body = orjson.loads(await request.read())
                self.live.append(body)
                status, answer = await self._ask(prefix, body)
                return web.json_response(answer, status=status)
            case ("POST" | "GET", "files" | "batches", *_) if self.faults.no_batches:
                return _refusal(404, f"Unknown request: {request.path}")
            case ("POST", "files"):
                return await self._upload(request)
            case ("GET", "files"):
                return _page(request, [file.shown() for file in self.files.values()])
            case ("DELETE", "files", name) if name in self.files:
                self.deleted.append(name)
                del self.files[name]
                return web.json_response({"id": name, "object": "file", "deleted": True})
            case ("GET", "files", name, "content") if name in self.files:
                return web.Response(body=self.files[name].content)
            case ("POST", "batches"):
                return await self._create(prefix, orjson.loads(await request.read()))
            case ("GET", "batches"):
                return _page(request, [batch.shown() for batch in self.batches.values()])
            case ("GET", "batches", name) if name in self.batches:
                self.polls += 1
                return web.json_response(self.batches[name].shown())
            case ("POST", "batches", name, "cancel") if name in self.batches:
                self.batches[name].status = "cancelling"
                return web.json_response(self.batches[name].shown())
        return _refusal(404, f"Unknown request: {request.method} {request.path}")

    async def _upload(self, request: web.BaseRequest) -> web.StreamResponse:
        name, content, purpose = "", b"", ""
        async for part in await request.multipart():
            assert isinstance(part, aiohttp.BodyPartReader)
            if part.name == "file":
                name, content = part.filename or "", bytes(await part.read())
            elif part.name == "purpose":
                purpose = await part.text()
        if purpose != "batch":
            return _refusal(400, "purpose must be batch")
        self.uploads += 1
        return web.json_response(self._keep(name, content).shown())

    def _keep(self, name: str, content: bytes) -> File:
        file = File(f"file-{len(self.files) + len(self.deleted)}", name, content)
        self.files[file.id] = file
        return file

    async def _create(self, prefix: str, body: Json) -> web.StreamResponse:
        if self.faults.create == "hang_before":
            self.creations += 1
            with self._changed:
                self._changed.notify_all()
            await asyncio.sleep(3600)
        lines = self.files[body["input_file_id"]].content.splitlines()
        batch = Batch(
            f"batch_{len(self.batches)}", body["input_file_id"], [orjson.loads(x) for x in lines]
        )
        self.batches[batch.id] = batch
        self.creations += 1
        running = sum(b.status not in _ENDED for b in self.batches.values())
        self.most_running = max(self.most_running, running)
        task = asyncio.ensure_future(self._work(prefix, batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self.faults.create == "hang_after":
            with self._changed:
                self._changed.notify_all()
            await asyncio.sleep(3600)
        if self.faults.create == "lost":
            self.faults.create = ""
            return _refusal(503, "The server is overloaded.")
        return web.json_response(batch.shown())

    async def _work(self, prefix: str, batch: Batch) -> None:
        """Answer a batch's lines, unless it is rejected or expires."""
        faults = self.faults
        waiting = sum(len(b.requests) for b in self.batches.values() if b.status not in _ENDED)
        if faults.most_lines is not None and waiting > faults.most_lines:
            told = "Enqueued token limit reached. Please try again later."
            faults.reject.append([{"code": "token_limit_exceeded", "message": told}])
        if faults.reject:
            batch.rejections = faults.reject.pop(0)
            batch.status = "failed"
            return
        batch.status = "in_progress"
        answered = faults.expire.pop(0) if faults.expire else None
        for request in batch.requests[:answered]:
            status, body = await self._ask(prefix, request["body"])
            response = {"status_code": status, "request_id": "r", "body": body}
            line = {"id": "l", "custom_id": request["custom_id"], "response": response}
            (batch.output if status == 200 else batch.errors).append({**line, "error": None})
        while self.faults.hold:
            await asyncio.sleep(0.02)
        for request in batch.requests[answered:] if answered is not None else []:
            error = {"code": "batch_expired", "message": "This request could not be executed."}
            batch.errors.append(
                {"custom_id": request["custom_id"], "response": None} | {"error": error}
            )
        batch.output_file_id = self._result("output", batch.output)
        batch.error_file_id = self._result("error", batch.errors)
        batch.status = "completed" if answered is None else "expired"

    def _result(self, name: str, lines: list[Json]) -> str | None:
        content = b"".join(orjson.dumps(line) + b"\n" for line in lines)
        return self._keep(f"{name}.jsonl", content).id if lines else None

    async def _ask(self, prefix: str, body: Json) -> tuple[int, Json]:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        url = f"{self._upstream}{prefix}/v1/chat/completions"
        async with self._session.post(url, data=orjson.dumps(body), headers=headers) as response:
            return response.status, orjson.loads(await response.read())


def _refusal(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return web.json_response({"error": error}, status=status)


def _page(request: web.BaseRequest, data: list[Json]) -> web.Response:
    """Return a page of a list, newest first, as ``after`` and ``limit`` ask for it."""
    data = data[::-1]
    after, limit = request.query.get("after"), int(request.query.get("limit", "20"))
    start = next((n + 1 for n, entry in enumerate(data) if entry["id"] == after), 0)
    page = data[start : start + limit]
    more = start + limit < len(data)
    return web.json_response({"object": "list", "data": page, "has_more": more})
