"""What was spent: every reply in every journal, those of earlier settings included.

Journals are the account: each line is one reply that was received, whether or not its verdict or
answer is still in use. A request that failed has no reply and no figures.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adhere.costs.tokens import Tokens, total
from adhere.existing import existing_journals, unreadable_folders
from adhere.jsonio import clean_text, lines, loads
from adhere.plan import Cell, Evaluation


@dataclass(frozen=True, slots=True)
class Spent:
    """What one journal holds: the model's replies of a cell, or the judge's of an evaluation."""

    payee: Cell | Evaluation
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class Account:
    """What the journals hold; ``unread`` is a sentence for each that cannot be read, or for
    its folder."""

    spent: tuple[Spent, ...]
    unread: tuple[str, ...]


def spent_below(root: Path) -> Account:
    """Return the account of every journal below a results folder, in a fixed order."""
    spent, errors = [], unreadable_folders(root)
    for payee, path in existing_journals(root):
        try:
            tokens = tally(path.read_bytes())
        except OSError as error:
            errors.append(error)
            continue
        if tokens.calls:
            spent.append(Spent(payee, tokens))
    return Account(tuple(spent), tuple(map(_unread, errors)))


def _unread(error: OSError) -> str:
    return clean_text(
        f"{error.filename}: cannot be read: {error.strerror}: tokens in it are not known; correct "
        "the path or its rights"
    )


def tally(raw: bytes) -> Tokens:
    """Add up the replies of one journal's content; a torn last line is no reply yet."""
    return total(_usages(raw))


def _usages(raw: bytes) -> Iterator[dict[str, Any] | None]:
    for line in lines(raw):
        try:
            entry = loads(line)
        except (ValueError, RecursionError):
            continue
        if (reply := _reply(entry)) is not None:
            usage = reply.get("usage")
            yield usage if isinstance(usage, dict) else None


def _reply(entry: Any) -> dict[str, Any] | None:
    """Return the reply in a line of a journal; None where there was none."""
    if not isinstance(entry, dict):
        return None
    reply = entry.get("output", entry.get("reply"))
    if not isinstance(reply, dict):
        return None
    # Only a reply has a latency; what stands for a failed request has none.
    answered = reply.get("usage") is not None or reply.get("latency_s") is not None
    return reply if answered else None
