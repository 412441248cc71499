"""The door: what each request meets before and after its route, from the first byte to the last."""

import asyncio
import hmac
import ipaddress
import re
import secrets
import time
from contextlib import ExitStack
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adhere.jsonio import dumps
from adhere.service.bodies import discard
from adhere.service.gate import Gate
from adhere.service.logs import log, log_error
from adhere.service.metrics import Metrics
from adhere.service.refusal import Refusal, content

# Asked by machines that hold no token, and telling nothing.
OPEN = frozenset({"/healthz", "/readyz"})
_PORT = re.compile(r"(?:^[^:]*|\]):\d+$")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class Door:
    """ASGI middleware: a number for the request, the token, a place at the gate, a line at the end.

    ``endpoints`` are the paths that are told apart in figures and logs.
    """

    def __init__(
        self, app: ASGIApp, gate: Gate, metrics: Metrics, token: str | None, endpoints: set[str]
    ) -> None:
        self._app = app
        self._gate = gate
        self._metrics = metrics
        self._token = token.encode() if token is not None else None
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        visit = _Visit(scope, receive, send)
        try:
            with ExitStack() as stack:
                self._let_in(scope, stack)
                await self._app(scope, visit.receive, visit.send)
        except Refusal as refusal:
            await visit.refuse(refusal)
        except asyncio.CancelledError:
            if not self._gate.ended:
                raise
            await visit.refuse(Refusal(503, "ended", "the server ends now: ask another one"))
        except Exception as error:  # noqa: BLE001 - the server goes on; whatever it was is logged
            log_error("failed", error, request=visit.number)
            told = Refusal(500, "internal", f"this is a fault of the server: see {visit.number}")
            await visit.refuse(told)
        finally:
            self._told(scope, visit)

    def _let_in(self, scope: Scope, stack: ExitStack) -> None:
        path = scope["path"]
        headers = Headers(scope=scope)
        if path not in OPEN and self._token is not None:
            self._check_token(headers.get("authorization", ""), self._token)
        elif path not in OPEN and not is_loopback(headers.get("host", "")):
            # A web page whose name was made to lead here would ask as if it were this machine.
            raise Refusal(403, "other_host", "ask for 127.0.0.1 or localhost, or use a token")
        scope["adhere.gate"] = self._gate
        scope["adhere.told"] = {}
        if scope["method"] == "POST":
            stack.enter_context(self._gate.admitted())
            scope["adhere.held"] = stack.enter_context(self._gate.holding())

    def _check_token(self, header: str, token: bytes) -> None:
        kind, _, given = header.partition(" ")
        right = hmac.compare_digest(given.strip().encode("latin-1", "replace"), token)
        if kind.lower() != "bearer" or not right:
            raise Refusal(
                401,
                "unauthorized",
                "send the server's token as `Authorization: Bearer …`",
                {"WWW-Authenticate": "Bearer"},
            )

    def _told(self, scope: Scope, visit: "_Visit") -> None:
        endpoint = scope["path"] if scope["path"] in self._endpoints else "other"
        seconds = time.monotonic() - visit.began
        self._metrics.answered(endpoint, visit.status, seconds)
        if endpoint in OPEN:
            return
        held = scope.get("adhere.held")
        told: dict[str, Any] = scope.get("adhere.told", {})
        log(
            "answered",
            request=visit.number,
            method=scope["method"] if scope["method"] in ("GET", "POST") else "other",
            endpoint=endpoint,
            status=visit.status,
            ms=round(seconds * 1000, 1),
            bytes=held.bytes if held else 0,
            **told,
        )


def is_loopback(host: str) -> bool:
    """Whether a Host header names this machine as only this machine can."""
    name = host.rpartition(":")[0] if _PORT.search(host) else host
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


class _Visit:
    """One request: its number, and what has been sent of its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._headers = Headers(scope=scope)
        given = self._headers.get("x-request-id", "")
        self.number = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        self.began = time.monotonic()
        # 499: the client went away before there was an answer.
        self.status = 499
        self._scope = scope
        self._receive = receive
        self._send = send
        self._arrived = not ({"content-length", "transfer-encoding"} & set(self._headers))
        self._started = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._arrived = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            self.status = message["status"]
            MutableHeaders(scope=message)["X-Request-Id"] = self.number
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        """Send a refusal, unless the answer has begun."""
        if self._started:
            return
        if not self._arrived and "expect" not in self._headers:
            await discard(self.receive)
        body = dumps(content(refusal.kind, str(refusal.detail)))
        response = Response(body, refusal.status_code, refusal.headers, "application/json")
        response.headers["Connection"] = "close"
        await response(self._scope, self.receive, self.send)
