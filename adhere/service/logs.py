"""Logs: one JSON object a line. They say who asked for what and how it ended, never its text."""

import logging
import queue
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from typing import Any

from adhere.jsonio import dumps

_LOG = logging.getLogger("adhere.service")
# Lines that may wait for the thread that writes them.
_LINES = 10_000


class JsonLines(logging.Formatter):
    """Formats a record as one line.

    Of an exception its type and where it was raised: its message may quote what a client sent.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage().strip(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            line["exception"] = record.exc_info[0].__name__
            line["at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-8:]]
        return dumps(line).decode()


class _Queued(QueueHandler):
    """Hands lines to a thread that writes them: whoever reads the log slowly holds up no request.

    Where it is not read at all, lines are dropped once the queue is full.
    """

    def enqueue(self, record: logging.LogRecord) -> None:
        with suppress(queue.Full):
            self.queue.put_nowait(record)


@contextmanager
def log_lines() -> Iterator[None]:
    """Send this package's lines, and what uvicorn warns of, to stderr while the block runs."""
    lines: queue.Queue[logging.LogRecord] = queue.Queue(_LINES)
    handler = _Queued(lines)
    handler.setFormatter(JsonLines())
    for name, level in (("adhere.service", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
    writer = QueueListener(lines, logging.StreamHandler(sys.stderr))
    writer.start()
    try:
        yield
    finally:
        with suppress(queue.Full):
            writer.stop()


def log(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Write one line."""
    _LOG.log(level, event, extra={"fields": fields})


def log_error(event: str, error: BaseException, **fields: Any) -> None:
    """Write one line about an exception."""
    trace = (type(error), error, error.__traceback__)
    _LOG.error(event, exc_info=trace, extra={"fields": fields})
