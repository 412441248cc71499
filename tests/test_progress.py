"""Progress of a job: a live line in a terminal, plain lines in the log."""

import logging
import os
import pty
import sys
import termios
from collections.abc import Callable, Iterator

import pytest

from adhere import progress
from adhere.progress import Progress


class Terminal:
    """A pseudo terminal that stands for stderr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, columns))
        self._open = True
        self.stream = os.fdopen(slave, "w", encoding="utf-8")
        monkeypatch.setattr(sys, "stderr", self.stream)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(progress, "_DRAW_EVERY_S", 0.0)

    def read(self) -> str:
        """Return everything written since the last call."""
        self.stream.flush()
        os.set_blocking(self.master, False)
        parts = []
        while True:
            try:
                parts.append(os.read(self.master, 65536))
            except BlockingIOError:
                return b"".join(parts).decode()

    def hang_up(self) -> None:
        """Close the terminal's other end, as a lost connection does."""
        if self._open:
            os.close(self.master)
            self._open = False

    def close(self) -> None:
        self.hang_up()
        try:
            self.stream.close()
        except OSError:
            # What was not written goes nowhere.
            assert self.stream.closed


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Terminal]]:
    opened: list[Terminal] = []

    def open_terminal(columns: int = 100) -> Terminal:
        opened.append(Terminal(monkeypatch, columns))
        return opened[-1]

    yield open_terminal
    for made in opened:
        made.close()


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """The messages that go to the log."""
    messages: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    log, handler = logging.getLogger("adhere"), Handler()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield messages
    log.removeHandler(handler)
    log.setLevel(level)


def test_a_live_line_in_a_terminal(terminal: Callable[[int], Terminal], logged: list[str]) -> None:
    screen = terminal(100)
    with Progress("predict m", "items") as shown:
        shown.start(total=10, done=2)
        first = screen.read()
        assert first.endswith(
            "\r\x1b[Kpredict m ████" + "░" * 20 + " 2/10 items, 0 failed, 0 retries"
        )
        shown.advance()
        shown.advance(failed=True, retries=5)
        line = screen.read().rpartition("\r\x1b[K")[2]
        assert line.startswith("predict m " + "█" * 9 + "░" * 15 + " 4/10 items, ")
        assert line.endswith(" left, 1 failed, 5 retries")
    # The line is taken away at the end.
    assert screen.read().endswith("\r\x1b[K")
    assert logged[0] == "predict m: 2/10 items, 0 failed, 0 retries, 2 from earlier"
    assert logged[-1].startswith("predict m: 4/10 items, ")
    assert "1 failed, 5 retries, 2 from earlier, took " in logged[-1]
    assert not [line for line in logged if "\x1b" in line or "█" in line]


@pytest.mark.parametrize(("columns", "longest"), [(40, 39), (12, 11), (1, 0), (0, 79)])
def test_a_line_never_wraps(
    columns: int, longest: int, terminal: Callable[[int], Terminal]
) -> None:
    screen = terminal(columns)
    with Progress("predict a model with a rather long name", "items") as shown:
        shown.start(total=7)
        for _ in range(7):
            shown.advance()
    lines = screen.read().split("\r\x1b[K")
    assert max(len(line) for line in lines) == longest


@pytest.mark.parametrize("columns", [100, 0])
def test_nothing_to_count(
    columns: int, terminal: Callable[[int], Terminal], logged: list[str]
) -> None:
    terminal(columns)
    with Progress("t", "items") as shown:
        shown.start(total=0)
    with Progress("never started", "items"):
        pass
    assert logged == ["t: 0/0 items, 0 failed, 0 retries"]


def test_more_done_than_expected(terminal: Callable[[int], Terminal]) -> None:
    screen = terminal(100)
    with Progress("t", "items") as shown:
        shown.start(total=1)
        shown.advance()
        shown.advance()
        assert "█" * 24 + " 2/1 items" in screen.read()


def test_only_one_job_draws(terminal: Callable[[int], Terminal]) -> None:
    screen = terminal(100)
    with Progress("first", "items") as first, Progress("second", "items") as second:
        first.start(total=2)
        second.start(total=2)
        first.advance()
        second.advance()
        text = screen.read()
        assert "first" in text
        assert "second" not in text
    with Progress("third", "items") as third:
        third.start(total=2)
        assert "third" in screen.read()


def test_a_log_in_the_same_terminal_starts_on_a_clean_line(
    terminal: Callable[[int], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = terminal(100)
    monkeypatch.setattr(progress, "_LOG_EVERY_S", 0.0)
    log, handler = logging.getLogger("adhere"), logging.StreamHandler(screen.stream)
    log.addHandler(handler)
    level = log.level
    log.setLevel(logging.INFO)
    try:
        with Progress("t", "items") as shown:
            shown.start(total=3)
            shown.advance()
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    plain = [part for part in screen.read().split("\r\x1b[K") if part.endswith("\r\n")]
    assert len(plain) == 3
    assert all(part.startswith("t: ") for part in plain)


def test_a_lost_terminal_stops_nothing(
    terminal: Callable[[int], Terminal], logged: list[str]
) -> None:
    screen = terminal(100)
    with Progress("t", "items") as shown:
        shown.start(total=3)
        screen.read()
        screen.hang_up()
        for _ in range(3):
            shown.advance()
    assert shown.done == 3
    assert logged[-1].startswith("t: 3/3 items")


def test_without_a_terminal_there_are_plain_lines_only(
    capsys: pytest.CaptureFixture[str], logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LOG_EVERY_S", 0.0)
    with Progress("t", "items") as shown:
        shown.start(total=2)
        shown.advance()
        shown.advance(retries=1)
    assert capsys.readouterr() == ("", "")
    assert [line.partition(" items")[0] for line in logged] == [
        "t: 0/2",
        "t: 1/2",
        "t: 2/2",
        "t: 2/2",
    ]


def test_a_dumb_terminal_is_left_alone(
    terminal: Callable[[int], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = terminal(100)
    monkeypatch.setenv("TERM", "dumb")
    with Progress("t", "items") as shown:
        shown.start(total=1)
        shown.advance()
    assert screen.read() == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (45.4, "45 s"), (89, "89 s"), (90, "2 min"), (600, "10 min"), (5400, "1.5 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert progress._duration(seconds) == text
