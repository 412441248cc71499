"""The event loop of everything that makes, or answers, requests by the thousand.

Replies that come at the same time are handled side by side in asyncio: each waits until all of
them are read, all of their successors go out together, and so all of those replies come together
again, in ever larger bunches with idle connections between them. Handled a few at a time, a
reply's successor is on its way before the next reply is read. With 256 connections this is worth
2 to 4 % of the whole time (docs/benchmarks.md).
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

_AT_A_TIME = 8

T = TypeVar("T")


Ready = list[tuple[selectors.SelectorKey, int]]


class _FewAtATime(selectors.DefaultSelector):
    """Names what is ready in portions; the system is asked again when all had their turn."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: Ready = []

    def select(self, timeout: float | None = None) -> Ready:
        """Return pairs of a key and the events that are ready, as the base class does."""
        if not self._waiting:
            ready = super().select(timeout)
            self._waiting = ready[_AT_A_TIME:]
            return ready[:_AT_A_TIME] if self._waiting else ready
        turn, self._waiting = self._waiting[:_AT_A_TIME], self._waiting[_AT_A_TIME:]
        # What is asked for may have changed meanwhile.
        keys = self.get_map()
        now = [(keys[key.fd], events) for key, events in turn]
        return [(key, events & key.events) for key, events in now if events & key.events]

    def unregister(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
        """Forget a descriptor, also where it waits for its turn: its number is soon another's."""
        key = super().unregister(fileobj)
        self._waiting = [each for each in self._waiting if each[0].fd != key.fd]
        return key


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in an event loop of its own, as ``asyncio.run`` does."""
    with asyncio.Runner(loop_factory=_make_loop) as runner:
        return runner.run(main)


def _make_loop() -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop(_FewAtATime())
