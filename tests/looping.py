"""Asynchronous tests."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec

from adhere import loop

P = ParamSpec("P")


def looped(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run an asynchronous test in an event loop as jobs have it, for at most a minute."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def limited() -> None:
            await asyncio.wait_for(test(*args, **kwargs), 60)

        loop.run(limited())

    return run
