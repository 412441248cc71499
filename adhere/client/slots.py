"""A semaphore whose size changes while it is in use."""

import asyncio
from collections import deque


class Slots:
    """Room for so many requests in flight, first come, first served; an async context manager.

    A smaller size takes nothing away from who is inside, a larger one lets others in at once.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._most = 0

    @property
    def size(self) -> int:
        """How many may be inside."""
        return self._size

    @size.setter
    def size(self, size: int) -> None:
        self._size = size
        self._admit()

    @property
    def taken(self) -> int:
        """How many are inside."""
        return self._taken

    def demand(self) -> int:
        """Return how many were inside or waited, at most, since this was asked last."""
        most, self._most = self._most, self._taken + len(self._waiting)
        return most

    async def again(self) -> None:
        """Go on inside; where the size was lowered meanwhile, queue up anew first."""
        if self._taken <= self._size:
            return
        self._leave()
        try:
            await self.__aenter__()
        except BaseException:
            self._taken += 1  # the block around this leaves once more
            raise

    async def __aenter__(self) -> None:
        if self._taken < self._size and not self._waiting:
            self._taken += 1
            self._most = max(self._most, self._taken)
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._most = max(self._most, self._taken + len(self._waiting))
        try:
            await place
        except BaseException:
            if place.done() and not place.cancelled():
                self._leave()  # let in, and cancelled before it could notice
            raise

    async def __aexit__(self, *_: object) -> None:
        self._leave()

    def _leave(self) -> None:
        self._taken -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._taken < self._size:
            place = self._waiting.popleft()
            if not place.done():  # else cancelled
                self._taken += 1
                place.set_result(None)
