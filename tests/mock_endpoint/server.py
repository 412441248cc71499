"""The mock as a server in the running event loop."""

import asyncio
import socket
import struct
from typing import Self

import orjson
from aiohttp import web

from mock_endpoint.calls import Call, output_limit
from mock_endpoint.completions import chat_completion
from mock_endpoint.config import Json, MockConfig, Reply
from mock_endpoint.log import Book, LogEntry, Stats, parse_log
from mock_endpoint.outgoing import Outgoing, error_payload, failure, refuse
from mock_endpoint.refusals import Limits, context_refusal
from mock_endpoint.rules import DEFAULT_REPLY, Rules
from mock_endpoint.texts import count_tokens

_SHUTDOWN_GRACE_S = 0.05
_HOST = "127.0.0.1"


class MockEndpoint:
    """The mock in the running event loop: an asynchronous context manager.

    ``port`` 0 takes a free one. Requests that hang when the block ends are cut off.
    """

    def __init__(self, config: MockConfig | None = None, *, port: int = 0) -> None:
        self.config = config if config is not None else MockConfig()
        self.port = port
        self._rules = Rules(self.config)
        self._limits = Limits()
        self._book = Book()
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> Self:
        server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_GRACE_S)
        await runner.setup()
        try:
            await web.TCPSite(runner, _HOST, self.port, backlog=1024).start()
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        self.port = runner.addresses[0][1]
        return self

    async def __aexit__(self, *_error: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def root_url(self) -> str:
        """Address without a path, where /stats and the like are."""
        return f"http://{_HOST}:{self.port}"

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
        return self._book.stats()

    def log(self) -> list[LogEntry]:
        """Return the logged requests, oldest first."""
        return parse_log(self._book.log_json())

    async def until(self, **at_least: int) -> Stats:
        """Wait until each named count (such as ``answered=10``) is reached; return the stats."""
        return await self._book.until(at_least)

    def configure(self, **changes: object) -> None:
        """Change the named config fields; new rules start unused. Raises ValidationError."""
        merged = self.config.model_dump(exclude_unset=True) | changes
        self.config = MockConfig.model_validate(merged)
        if changes.keys() & {"rules", "seed"}:
            self._rules = Rules(self.config)

    def reset(self) -> None:
        """Forget counts, log (requests in flight included) and the rules' use; keep the config."""
        self._book = self._book.successor()
        self._rules = Rules(self.config)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if request.method == "POST" and path.endswith("/v1/chat/completions"):
            return await self._chat(request)
        if request.method == "GET" and path.endswith("/v1/models"):
            return _response(self._models(request.headers.get("Authorization")))
        return _response(await self._control(f"{request.method} {path}", request))

    async def _control(self, route: str, request: web.BaseRequest) -> Outgoing:
        try:
            if route == "GET /stats":
                return Outgoing(200, _stats_json(self.stats()))
            if route == "GET /wait":
                minimums = {name: int(value) for name, value in request.query.items()}
                return Outgoing(200, _stats_json(await self.until(**minimums)))
            if route == "GET /log":
                return Outgoing(200, self._book.log_json())
            if route == "GET /config":
                return Outgoing(200, self.config.model_dump_json().encode())
            if route == "POST /reset":
                self.reset()
                return Outgoing(200, b"{}")
            if route == "POST /config":
                self.configure(**orjson.loads(await request.content.read()))
                return Outgoing(200, self.config.model_dump_json().encode())
        except (ValueError, TypeError) as error:
            return refuse(400, str(error), "invalid_config")
        return refuse(404, f"Unknown request: {route}", "unknown_url")

    def _models(self, authorization: str | None) -> Outgoing:
        refusal = self._key_refusal(authorization)
        if refusal is not None:
            return refusal
        cards: list[Json] = []
        for name in self.config.models or ["mock-model"]:
            card = {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "mock"}
            if self.config.flavour == "vllm" and self.config.context_tokens:
                card["max_model_len"] = self.config.context_tokens
            cards.append(card)
        return Outgoing(200, orjson.dumps({"object": "list", "data": cards}))

    def _key_refusal(self, authorization: str | None) -> Outgoing | None:
        key = self.config.require_key
        if key is None or authorization == f"Bearer {key}":
            return None
        return refuse(401, "Incorrect API key provided.", "invalid_api_key")

    def _refusal(self, call: Call, authorization: str | None) -> Outgoing | None:
        """Return what the config refuses about a request, else None."""
        refusal = self._key_refusal(authorization)
        if refusal is not None:
            return refusal
        body = call.body
        if body is None or not isinstance(body.get("messages"), list) or not body["messages"]:
            message = "The body must be a JSON object with a list of messages."
            return refuse(400, message, "invalid_body", "messages")
        if self.config.models and call.model not in self.config.models:
            message = f"The model `{call.model}` does not exist."
            return refuse(404, message, "model_not_found", "model")
        if body.get("stream"):
            return refuse(400, "The mock does not stream.", "unsupported_value", "stream")
        for name in self.config.refused_parameters:
            if name in body:
                message = f"Unsupported parameter: '{name}' is not supported with this model."
                return refuse(400, message, "unsupported_parameter", name)
        if self.config.context_tokens is None:
            return None
        return context_refusal(self.config, count_tokens(call.prompt), output_limit(body))

    async def _chat(self, request: web.BaseRequest) -> web.StreamResponse:
        call = Call.read(request, await request.content.read())
        book = self._book
        book.arrive(call, self.config)
        limits = self._limits
        excess = limits.refusal(self.config)
        try:
            if excess is not None:
                call.status = excess.status
                return await _send(request, excess, cut=False)
            refusal = self._refusal(call, request.headers.get("Authorization"))
            reply = DEFAULT_REPLY if refusal is not None else self._rules.choose(call)
            delay = self.config.latency_s + reply.hang_s
            if delay:
                await asyncio.sleep(delay)
            if reply.reset:
                return _reset(request)
            outgoing = refusal if refusal is not None else self._outgoing(call, reply)
            response = await _send(request, outgoing, cut=reply.cut)
            call.status = outgoing.status
            call.answered = outgoing.completion and not reply.cut
            return response
        except ConnectionError:
            return web.Response()  # the client has gone: nobody reads this
        finally:
            limits.accepted -= excess is None
            book.depart(call)

    def _outgoing(self, call: Call, reply: Reply) -> Outgoing:
        if reply.raw_body is not None:
            outgoing = Outgoing(reply.status, reply.raw_body.encode())
        elif reply.status != 200:
            outgoing = failure(reply.status, error_payload(reply.status, reply.error))
        else:
            completion = chat_completion(self.config, call, call.body or {}, reply)
            outgoing = Outgoing(200, orjson.dumps(completion), completion=not reply.empty_choices)
        if reply.retry_after is not None:
            outgoing.headers["Retry-After"] = str(reply.retry_after)
        return outgoing


def _response(outgoing: Outgoing) -> web.Response:
    headers = {"Content-Type": "application/json", **outgoing.headers}
    return web.Response(status=outgoing.status, body=outgoing.payload, headers=headers)


async def _send(request: web.BaseRequest, outgoing: Outgoing, *, cut: bool) -> web.StreamResponse:
    """Write a reply to the socket, or the first half of it and an end of the connection."""
    if not cut:
        response = _response(outgoing)
        await response.prepare(request)
        await response.write_eof()
        return response
    torn = web.StreamResponse(status=outgoing.status, headers=outgoing.headers)
    torn.content_type = "application/json"
    torn.content_length = len(outgoing.payload)
    await torn.prepare(request)
    await torn.write(outgoing.payload[: len(outgoing.payload) // 2])
    if request.transport is not None:
        request.transport.close()
    return torn


def _reset(request: web.BaseRequest) -> web.Response:
    """End the connection with a TCP reset; the response returned goes nowhere."""
    if request.transport is not None:
        connection = request.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        request.transport.abort()
    return web.Response()


def _stats_json(stats: Stats) -> bytes:
    return stats.model_dump_json().encode()
