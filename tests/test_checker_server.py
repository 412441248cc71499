"""Pieces of the fork server, and of the judging process's end of its socket, each by itself."""

import asyncio
import ctypes
import errno
import re
import socket
import subprocess
import sys
import termios

import pytest
from checking import IDENTITY, one_server
from looping import looped

from adhere.checkers import CheckerPool, child, libc, seccomp
from adhere.checkers.frames import MAX_DETAIL, REPLY, Kind, reply
from adhere.checkers.link import Link, LostError, Reply
from adhere.checkers.worker import Worker


def test_a_failed_fork_is_an_error_with_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        ctypes.set_errno(errno.EAGAIN)
        return -1

    monkeypatch.setattr(libc, "_fork", refused)
    with pytest.raises(BlockingIOError, match="temporarily unavailable"):
        libc.fork()


def test_numbers_of_modules_that_the_server_does_without() -> None:
    names = ("FIOCLEX", "FIONCLEX", "FIONBIO", "FIONREAD", "TCGETS", "TIOCGWINSZ")
    assert [getattr(termios, name) for name in names] == list(seccomp._IOCTL)
    assert int(socket.AF_UNIX) == seccomp._AF_UNIX


def test_what_is_allocated_once_memory_is_settled_lies_in_fewer_pages() -> None:
    script = (
        "import resource, sys\n"
        "from adhere.checkers import memory\n"
        "kept = [bytes(size) for size in range(0, 2000, 8) for _ in range(50)]\n"
        "del kept[::2]\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "if sys.argv[1:]: memory.settle()\n"
        "grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "places = [a(n) for a, sizes in memory._ALLOCATORS for n in sizes for _ in range(3)]\n"
        "print(len({place >> 12 for place in places}), grown)\n"
    )

    def ran(*arguments: str) -> list[int]:
        command = [sys.executable, "-c", script, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [int(word) for word in done.stdout.split()]

    pages, _ = ran()
    settled, grown_kib = ran("settled")
    assert settled < 0.8 * pages
    assert grown_kib < 4096


def test_a_rehearsal_leaves_nothing() -> None:
    before = sys.modules.keys()
    child.rehearse()
    assert sys.modules.keys() == before
    assert vars(re)["_cache"] == {}


@pytest.mark.parametrize(
    "module", ["datetime", "decimal", "difflib", "random", "statistics", "string", "unicodedata"]
)
def test_what_is_not_loaded_beforehand_can_be_imported(module: str) -> None:
    source = f"import {module}\ndef check_following(response): return {module}.__name__\n"
    with one_server(10) as setup:
        assert setup.check(source).value == module


def test_random_numbers_are_each_checks_own() -> None:
    source = "import random\ndef check_following(response): return str(random.random())\n"
    with one_server(10) as setup:
        assert len({setup.check(source).value for _ in range(5)}) == 5


# The link


async def linked() -> tuple[Link, socket.socket]:
    """A link, and the other end of its socket."""
    ours, theirs = socket.socketpair()
    _, link = await asyncio.get_running_loop().create_unix_connection(Link, sock=ours)
    return link, theirs


@looped
async def test_an_answer_in_pieces_and_two_at_once() -> None:
    link, server = await linked()
    with server:
        for byte in reply(Kind.TEXT, b"first"):
            server.send(bytes([byte]))
            await asyncio.sleep(0)
        assert await link.receive() == Reply(Kind.TEXT, b"first")
        server.send(reply(Kind.TRUE) + reply(Kind.ERROR, b"e"))
        assert await link.receive() == Reply(Kind.TRUE, b"")
        assert await link.receive() == Reply(Kind.ERROR, b"e")
        link.send(b"request")
        assert server.recv(100) == b"request"
        link.close()


@looped
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        reply(Kind.TEXT, b"cut off")[:-1],
        REPLY.pack(99, 0),
        REPLY.pack(Kind.TRUE, 1),
        REPLY.pack(Kind.KILLED, MAX_DETAIL + 1),
        REPLY.pack(Kind.TEXT, 1 << 60),
    ],
)
async def test_what_is_no_answer(sent: bytes) -> None:
    link, server = await linked()
    with server:
        server.send(sent)
    with pytest.raises(LostError):
        await link.receive()
    # Nobody listens any more, which is no other error.
    link.send(b"request")
    with pytest.raises(LostError):
        await link.receive()
    await link.end()


@looped
async def test_the_end_waits_for_the_server() -> None:
    link, server = await linked()
    ending = asyncio.create_task(link.end())
    assert await asyncio.to_thread(server.recv, 1) == b""
    assert not ending.done()
    server.close()
    await ending


@looped
async def test_an_error_of_our_own_reaches_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the pool goes on."""

    async def broken(_worker: Worker, _source: bytes, _text: bytes) -> Reply:
        raise ZeroDivisionError

    async with CheckerPool(workers=1) as pool:
        with monkeypatch.context() as patch:
            patch.setattr(Worker, "check", broken)
            with pytest.raises(ZeroDivisionError):
                await pool.check(IDENTITY, "")
        assert (await pool.check(IDENTITY, "text")).value == "text"
