"""The event loop takes what is ready a few at a time, and nothing waits for ever."""

import asyncio
import selectors
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from adhere import loop


@pytest.fixture
def ready() -> Iterator[tuple[loop._FewAtATime, list[socket.socket]]]:
    """A selector and fifty sockets that stay ready, numbered."""
    with ExitStack() as stack:
        selector = stack.enter_context(loop._FewAtATime())
        readers = []
        for number in range(50):
            reader, writer = map(stack.enter_context, socket.socketpair())
            writer.send(b"never read")
            selector.register(reader, selectors.EVENT_READ, number)
            readers.append(reader)
        yield selector, readers


Fifty = tuple[loop._FewAtATime, list[socket.socket]]


def test_each_gets_its_turn_though_all_are_always_ready(ready: Fifty) -> None:
    selector, _ = ready
    turns = [[key.data for key, _ in selector.select(0)] for _ in range(70)]
    assert max(map(len, turns)) < 20
    counts = [sum(turn.count(number) for turn in turns) for number in range(50)]
    assert set(counts) == {10}


def test_who_was_given_up_meanwhile_is_not_named(ready: Fifty) -> None:
    selector, readers = ready
    first = {key.data for key, _ in selector.select(0)}
    gone, closed = sorted(set(range(50)) - first)[:2]
    selector.unregister(readers[gone])
    selector.unregister(readers[closed])
    readers[closed].close()
    rest = [key.data for _ in range(20) for key, _ in selector.select(0)]
    assert set(rest) == set(range(50)) - {gone, closed}


def test_who_asks_for_something_else_meanwhile_keeps_its_turn(ready: Fifty) -> None:
    selector, readers = ready
    first = {key.data for key, _ in selector.select(0)}
    more, other = sorted(set(range(50)) - first)[:2]
    selector.modify(readers[more], selectors.EVENT_READ | selectors.EVENT_WRITE, "more")
    selector.modify(readers[other], selectors.EVENT_WRITE, "other")
    rest: list[tuple[object, int]] = []
    while len(rest) < 41:
        rest += [(key.data, events) for key, events in selector.select(0)]
    assert ("more", selectors.EVENT_READ) in rest
    # It was ready to be read, which nobody asks any more; and is named when it can be written to.
    assert ("other", selectors.EVENT_READ) not in rest


def test_a_number_that_was_closed_meanwhile_is_another_socket(ready: Fifty) -> None:
    selector, readers = ready
    named = {key.data for key, _ in selector.select(0)}
    old = readers[next(number for number in range(50) if number not in named)]
    number = old.fileno()
    selector.unregister(old)
    old.close()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert number in (ours.fileno(), theirs.fileno())
        new = ours if ours.fileno() == number else theirs
        selector.register(new, selectors.EVENT_READ, "new")
        rest = [key.data for _ in range(20) for key, _ in selector.select(0)]
        assert "new" not in rest
        selector.unregister(new)


def test_with_nothing_ready_nothing_is_named(ready: Fifty) -> None:
    selector, readers = ready
    for reader in readers:
        selector.unregister(reader)
    assert selector.select(0) == []


def test_it_runs_a_coroutine_as_asyncio_does() -> None:
    async def main() -> type[asyncio.AbstractEventLoop]:
        await asyncio.sleep(0)
        return type(asyncio.get_running_loop())

    assert loop.run(main()) is asyncio.SelectorEventLoop

    async def failing() -> None:
        raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is"):
        loop.run(failing())
