"""Many items in one request: each is answered on a line of its own as soon as it is done."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from adhere.service.forms import Line, Result
from adhere.service.refusal import Refusal
from adhere.workers import drain

Answer = Callable[[dict[str, Any]], Awaitable[Result]]


async def lines(
    items: Sequence[dict[str, Any]], answer: Answer, width: int
) -> AsyncIterator[bytes]:
    """Yield one line of JSON for each item, in the order in which they are done, and a last one.

    ``width`` items are under way at once; a client that reads slowly holds them up. What is under
    way ends when the iteration is given up.
    """
    done: asyncio.Queue[Line | None] = asyncio.Queue()
    room = asyncio.Semaphore(width)

    async def handle(numbered: tuple[int, dict[str, Any]]) -> None:
        index, item = numbered
        await room.acquire()
        try:
            line = Line(index=index, result=await answer(item))
        except Refusal as refusal:
            error = {"kind": refusal.kind, "message": str(refusal.detail)}
            line = Line(index=index, error=error)
        done.put_nowait(line)

    work = asyncio.create_task(drain([(enumerate(items), min(width, len(items)))], handle))
    work.add_done_callback(lambda _: done.put_nowait(None))
    try:
        while (line := await done.get()) is not None:
            yield _bytes(line)
            room.release()
        await work
        yield _bytes(Line(done=len(items)))
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


def _bytes(line: Line) -> bytes:
    return line.model_dump_json(exclude_unset=True).encode() + b"\n"
