"""Errors a person can act on.

    AdhereError
    ├── ConfigError        a configuration file or a --config value is wrong
    ├── DataError          a data file is missing, malformed or does not match
    ├── EndpointError      an endpoint refuses every request (key, model, parameter) or is gone
    ├── EngineError        a local model server does not start or died
    ├── CheckerError       the process that runs checkers cannot be used
    ├── JournalError       a journal cannot be written or belongs to somebody else
    └── BudgetError        what may be spent is spent, or cannot be counted

Each message names the file, key or item, what was found, what is allowed and what to do.
"""


class AdhereError(Exception):
    """Base of all errors that are reported without a traceback."""


def reason(error: Exception) -> str:
    """Return why something went wrong, without the number and the path that Python puts there."""
    # What gzip refuses is an OSError too, which has only a text.
    return (isinstance(error, OSError) and error.strerror) or str(error)


def told(error: BaseException) -> str | None:
    """Return the message of an error that a person can act on; None for any other.

    What the system says about a file (a missing right, a folder in its place) is one, wherever it
    comes up.
    """
    if isinstance(error, AdhereError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return (
            f"{error.filename}: {error.strerror}: correct the path or its rights, and start again"
        )
    return None


class ConfigError(AdhereError):
    """A configuration file or a ``--config`` value is wrong."""


class DataError(AdhereError):
    """A data file is missing, malformed or does not match what it is used with."""


class EndpointError(AdhereError):
    """An endpoint refuses every request or cannot be reached at all."""


class EngineError(AdhereError):
    """A local model server does not start, or died while it was needed."""


class CheckerError(AdhereError):
    """The process that runs checkers cannot be started or used."""


class JournalError(AdhereError):
    """A journal cannot be written, or another process holds it."""


class BudgetError(AdhereError):
    """What may be spent is spent before anything was answered, or it cannot be counted."""
