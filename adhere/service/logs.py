"""Logs: one JSON object a line. They say who asked for what and how it ended, never its text."""

import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from adhere.jsonio import dumps

_LOG = logging.getLogger("adhere.service")


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


def log_lines() -> None:
    """Send this package's lines, and what uvicorn warns of, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (("adhere.service", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False


def log(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Write one line."""
    _LOG.log(level, event, extra={"fields": fields})


def log_error(event: str, error: BaseException, **fields: Any) -> None:
    """Write one line about an exception."""
    trace = (type(error), error, error.__traceback__)
    _LOG.error(event, exc_info=trace, extra={"fields": fields})
