"""Bounded concurrency over work that is made while it is done."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


async def drain(
    queues: Sequence[tuple[Iterator[T], int]], handle: Callable[[T], Awaitable[None]]
) -> None:
    """Handle every element of every queue, each queue by its own number of workers.

    The first error cancels the rest and is raised as it is, without an exception group.
    """

    async def work(queue: Iterator[T]) -> None:
        for element in queue:
            await handle(element)

    try:
        async with asyncio.TaskGroup() as group:
            for queue, workers in queues:
                for _ in range(workers):
                    group.create_task(work(queue))
    except BaseExceptionGroup as errors:
        raise _first(errors) from None


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
