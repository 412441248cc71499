"""Progress of long stages: a live line in a terminal, plain lines in a log.

Several jobs may run at once; one of them draws the live line (it holds a lock on the terminal's
device), the others print a plain line now and then.
"""

import fcntl
import logging
import os
import sys
import time

_LOG = logging.getLogger("adhere")
_LOG_EVERY_S = 15.0
_DRAW_EVERY_S = 0.2
_BAR = 24


class Progress:
    """Counts finished units of one stage; a context manager around the stage."""

    def __init__(self, title: str, unit: str) -> None:
        self.title = title
        self.unit = unit
        self.total = self.done = self.failed = self.retries = 0
        self._resumed = 0
        self._started = self._drawn = self._logged = time.monotonic()
        self._terminal = _own_terminal()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_error: object) -> None:
        if self.total:
            self._plain(final=True)
        self._write("")
        self._leave_terminal()

    def start(self, total: int, done: int = 0) -> None:
        """Begin counting; ``done`` units were there from an earlier call."""
        self.total, self.done, self._resumed = total, done, done
        self._started = time.monotonic()
        self._plain()
        self._draw()

    def advance(self, *, failed: bool = False, retries: int = 0) -> None:
        """Count one finished unit; ``retries`` is the stage's total so far."""
        self.done += 1
        self.failed += failed
        self.retries = retries
        now = time.monotonic()
        if now - self._logged >= _LOG_EVERY_S:
            self._plain()
            self._draw()
        elif now - self._drawn >= _DRAW_EVERY_S:
            self._draw()

    @property
    def _rate(self) -> float:
        """Units a second since this call began."""
        return (self.done - self._resumed) / max(time.monotonic() - self._started, 1e-9)

    def _figures(self) -> str:
        rate = self._rate
        left = (self.total - self.done) / rate if rate else None
        parts = [f"{self.done}/{self.total} {self.unit}"]
        if self.done > self._resumed:
            parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min")
        if left and self.done < self.total:
            parts.append(f"{_duration(left)} left")
        parts.append(f"{self.failed} failed, {self.retries} retries")
        return ", ".join(parts)

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        filled = min(_BAR * self.done // max(self.total, 1), _BAR)
        bar = "█" * filled + "░" * (_BAR - filled)
        self._write(f"{self.title} {bar} {self._figures()}")

    def _write(self, line: str) -> None:
        """Replace the live line, if this stage has one; a terminal that is gone is left alone."""
        if self._terminal is None:
            return
        try:
            # A terminal that does not know its width says 0.
            width = os.get_terminal_size(self._terminal).columns or 80
            sys.stderr.write("\r\x1b[K" + line[: width - 1])
            sys.stderr.flush()
        except OSError:
            self._leave_terminal()

    def _leave_terminal(self) -> None:
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None

    def _plain(self, *, final: bool = False) -> None:
        self._logged = time.monotonic()
        # The log may go to the same terminal.
        self._write("")
        took = f", took {_duration(time.monotonic() - self._started)}" if final else ""
        resumed = f", {self._resumed} from earlier" if self._resumed else ""
        _LOG.info("%s: %s%s%s", self.title, self._figures(), resumed, took)


def _duration(seconds: float) -> str:
    """Write a duration for people: 45 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _own_terminal() -> int | None:
    """Return a locked handle of the terminal on stderr, None without one or when it is taken."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return None
    try:
        handle = os.open(os.ttyname(sys.stderr.fileno()), os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
