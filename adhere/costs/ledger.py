"""The ledger: one small file that all jobs of a call add to, so that they share one budget.

It holds two numbers of a fixed width, so that no write changes its length and none can be read
half done. A call starts it from the journals, which stay the account of what was spent.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate, takewhile
from pathlib import Path

from adhere.errors import BudgetError
from adhere.locks import lock

_FORM = "{:030d} {:030d}\n"
_LENGTH = len(_FORM.format(0, 0))
# The smallest amount: a token at the smallest price that a configuration takes, in a batch.
_DECIMALS = 14


@dataclass(frozen=True, slots=True)
class Amount:
    """Tokens (prompt and completion) and money, in the budget's currency."""

    tokens: int = 0
    money: Decimal = Decimal(0)

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.tokens + other.tokens, self.money + other.money)


class Ledger:
    """What was spent below one results folder, kept up to date by every job that spends."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def start(self, spent: Amount) -> None:
        """Begin with what the journals say; only before the first job."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._opened() as handle:
            _write(handle, spent)

    def add(self, spent: Amount) -> None:
        """Add what one reply took. Raises BudgetError where no call has started the ledger."""
        with self._opened() as handle:
            _write(handle, self._read(handle) + spent)

    def reserve(self, wanted: Sequence[Amount], fits: Callable[[Amount], bool]) -> int:
        """Add the longest beginning of ``wanted`` whose sum with what is spent ``fits``.

        Returns how many that are. Raises BudgetError as above.
        """
        with self._opened() as handle:
            sums = list(accumulate(wanted, initial=self._read(handle)))
            fitting = sum(1 for _ in takewhile(fits, sums[1:]))
            _write(handle, sums[fitting])
        return fitting

    def read(self) -> Amount:
        """Return what is spent by now. Raises BudgetError as above."""
        with self._opened() as handle:
            return self._read(handle)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Open and lock the file, for moments."""
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise BudgetError(
                f"{self._path}: cannot be opened: {error.strerror}: correct the path or its rights"
            ) from error
        try:
            lock(handle, wait=True)
            yield handle
        finally:
            os.close(handle)

    def _read(self, handle: int) -> Amount:
        record = os.pread(handle, _LENGTH, 0).decode("ascii", "replace")
        try:
            tokens, money = map(int, record.split())
        except ValueError:
            raise BudgetError(
                f"{self._path}: holds no account of what is spent: start the workflow again, "
                "which makes it anew from the journals"
            ) from None
        return Amount(tokens, Decimal(money).scaleb(-_DECIMALS))


def _write(handle: int, amount: Amount) -> None:
    record = _FORM.format(amount.tokens, int(amount.money.scaleb(_DECIMALS)))
    os.pwrite(handle, record.encode(), 0)
