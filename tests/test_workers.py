"""Workers that drain queues."""

import asyncio
from collections.abc import Iterator

import pytest
from looping import looped

from adhere.errors import EndpointError
from adhere.workers import drain


@looped
async def test_every_queue_is_drained_by_its_own_workers() -> None:
    busy, most = {"a": 0, "b": 0}, {"a": 0, "b": 0}
    seen: list[str] = []

    async def handle(element: str) -> None:
        name = element[0]
        busy[name] += 1
        most[name] = max(most[name], busy[name])
        for _ in range(3):
            await asyncio.sleep(0)
        busy[name] -= 1
        seen.append(element)

    queues = [(iter([f"a{n}" for n in range(9)]), 3), (iter([f"b{n}" for n in range(4)]), 1)]
    await drain(queues, handle)
    assert sorted(seen) == [f"a{n}" for n in range(9)] + [f"b{n}" for n in range(4)]
    assert most == {"a": 3, "b": 1}


@looped
async def test_work_is_made_while_it_is_done() -> None:
    made: list[int] = []

    def endless() -> Iterator[int]:
        number = 0
        while True:
            made.append(number)
            yield number
            number += 1

    async def handle(element: int) -> None:
        await asyncio.sleep(0)
        if element == 5:
            raise KeyError(element)

    with pytest.raises(KeyError):
        await drain([(endless(), 2)], handle)
    assert len(made) <= 8


@looped
async def test_the_first_error_cancels_the_rest_and_is_raised_as_it_is() -> None:
    cancelled: list[str] = []
    started = asyncio.Event()

    async def handle(element: str) -> None:
        if element == "wait":
            try:
                started.set()
                await asyncio.Event().wait()
            finally:
                cancelled.append(element)
        await started.wait()
        raise EndpointError(element)

    with pytest.raises(EndpointError, match=r"^bad$") as caught:
        await drain([(iter(["wait", "bad", "never"]), 2)], handle)
    assert cancelled == ["wait"]
    assert caught.value.__cause__ is None


@looped
async def test_nothing_to_do() -> None:
    async def handle(_element: int) -> None:
        raise AssertionError

    await drain([], handle)
    await drain([(iter([]), 0), (iter([]), 3)], handle)
