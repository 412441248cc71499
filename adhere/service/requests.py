"""What the routes share: an item judged for a client that is still there, counted and noted."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi import Request, Response

from adhere.data import Row
from adhere.errors import DataError
from adhere.jsonio import dumps
from adhere.service.engine import Engine
from adhere.service.items import stay_as_they_are
from adhere.service.metrics import Metrics
from adhere.service.refusal import Refusal
from adhere.service.results import verdict_of
from adhere.service.settings import Settings

T = TypeVar("T")
# Bytes of a body that is read and checked within a millisecond or two.
_SHORT = 100_000


class Service:
    """One engine with its settings and figures."""

    def __init__(self, engine: Engine, settings: Settings, metrics: Metrics) -> None:
        self.engine = engine
        self.settings = settings
        self.metrics = metrics

    async def judged(self, request: Request, make: Callable[[], Row], constraints: Any) -> Row:
        """Judge the row that ``make`` makes. Raises Refusal (422 for DataError).

        It is made in a thread, unless it is short and its constraints stay as they are: going
        there and back costs more than that.
        """
        short = request.scope["adhere.held"].bytes < _SHORT
        try:
            quick = short and stay_as_they_are(constraints)
            row = make() if quick else await asyncio.to_thread(make)
        except DataError as error:
            raise Refusal(422, "invalid", str(error)) from None
        row = await self.engine.verdicts(row)
        self.metrics.judged(row)
        note(request, row)
        return row


def note(request: Request, row: Row) -> None:
    """Add an item's counts to the line that the log gets of its request."""
    told: dict[str, int] = request.scope["adhere.told"]
    told["items"] = told.get("items", 0) + 1
    for raw in row["constraints"]:
        verdict = verdict_of(raw)
        told[verdict] = told.get(verdict, 0) + 1


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Await work for a client; when the client goes away it is cancelled. Raises Refusal (499)."""
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Refusal(499, "gone", "the client has gone away")
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def json_response(value: Any) -> Response:
    """Return a value as JSON."""
    return Response(dumps(value), media_type="application/json")
