"""Bodies: read within limits, parsed as strict JSON."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from adhere import jsonio
from adhere.service.gate import Gate, Held
from adhere.service.refusal import Refusal

# Seconds for which the rest of a refused body is read and thrown away: a client that still sends
# would otherwise see its connection reset instead of the answer.
_LINGER_S = 2.0


class BoundedRequest(Request):
    """A request whose body is bounded in length, time and depth; ``scope`` holds its gate."""

    async def body(self) -> bytes:
        """Return the body. Raises Refusal."""
        if not hasattr(self, "_body"):
            gate: Gate = self.scope["adhere.gate"]
            try:
                async with asyncio.timeout(gate.limits.body_s):
                    self._body = await self._read(self.scope["adhere.held"])
            except TimeoutError:
                raise Refusal(
                    408, "slow_body", f"the body did not arrive within {gate.limits.body_s:g} s"
                ) from None
            except ClientDisconnect:
                raise Refusal(499, "gone", "the client has gone away") from None
            except Refusal:
                await self._linger()
                raise
            if self._body:
                self._check_kind()
        return self._body

    def _check_kind(self) -> None:
        """Raise Refusal (415) for a body that is not said to be JSON."""
        given = self.headers.get("content-type", "")
        kind = given.partition(";")[0].strip().lower()
        if not re.fullmatch(r"application/(.+\+)?json", kind):
            found = f"is sent as {kind[:60]}" if kind else "comes without a Content-Type"
            raise Refusal(
                415,
                "content_type",
                f"the body {found}: send it with `Content-Type: application/json`",
            )

    async def _read(self, held: Held) -> bytes:
        length = self.headers.get("content-length", "")
        if length.isdecimal():
            held.check(int(length[:20]))
        chunks = []
        async for chunk in self.stream():
            held.add(len(chunk))
            chunks.append(chunk)
        return b"".join(chunks)

    async def _linger(self) -> None:
        # A client that waits to be asked for its body sends none when it is refused.
        if "expect" not in self.headers or self.scope["adhere.held"].bytes:
            await discard(self.receive)

    async def json(self) -> Any:
        """Return the body's value. Raises Refusal (400) for what is no strict JSON."""
        if not hasattr(self, "_json"):
            self._json = strict(await self.body())
        return self._json


class BoundedRoute(APIRoute):
    """A route whose requests are bounded."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's own handler, given a bounded request."""
        handle = super().get_route_handler()

        async def bounded(request: Request) -> Response:
            return await handle(BoundedRequest(request.scope, request.receive))

        return bounded


def strict(body: bytes) -> Any:
    """Parse a body. Raises Refusal (400) for invalid UTF-8, NaN, and nesting beyond reason."""
    try:
        value = jsonio.loads(body)
        # What can be parsed and not be written again is nested too deeply to be anything.
        jsonio.dumps(value)
    except RecursionError:
        raise Refusal(400, "bad_json", "the body is nested too deeply") from None
    except TypeError as error:
        raise Refusal(400, "bad_json", f"the body is nested too deeply: {error}") from None
    except ValueError as error:
        raise Refusal(400, "bad_json", f"the body is no JSON: {error}") from None
    return value


async def discard(receive: Receive) -> None:
    """Read a body that nobody wants, for a moment."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            more = True
            while more:
                message = await receive()
                more = message["type"] == "http.request" and message.get("more_body", False)
