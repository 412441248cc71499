"""What came of one check."""

from dataclasses import dataclass, field
from typing import Literal

from adhere.checkers.isolation import Level

Reason = Literal[
    "checker_error", "checker_timeout", "checker_killed", "checker_protocol", "not_defined"
]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of running one checker on one text.

    value     True or False: the verdict. A text: goes on through the chain, lone surrogates
              replaced and 1 MiB of UTF-8 at most. None: the checker ran cleanly and says that it
              does not apply, or it did not run cleanly (see reason).
    reason    None when the checker ran cleanly, else why there is no value:
              checker_error     the source does not compile, raised, or returned something else
              checker_timeout   it ran out of time
              checker_killed    its process ended by a signal or by an exit of its own
              checker_protocol  its process wrote something that is no result
              not_defined       the source defines no check_following
    detail    for people, with a reason only: exception, message (bounded) and line of the source,
              control characters escaped.
    repaired  a missing ``def`` before check_following was supplied.
    isolation how well the server that ran it confines checks; None where none ran it. Says nothing
              of the result, so that equal results stay equal.
    """

    value: bool | str | None
    reason: Reason | None
    detail: str | None
    repaired: bool
    isolation: Level | None = field(default=None, compare=False)
