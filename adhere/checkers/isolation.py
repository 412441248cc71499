"""How well checks are isolated here: a level, found by attempting what must not be possible."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

Level = Literal["strong", "medium", "weak", "none"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)  # best first

# What is attempted (attempts.py), in the words of "a checker could …".
DEEDS: Final = {
    "memory": "take more memory than its limit",
    "environment": "see environment variables",
    "probe": "do anything, since trying it failed",
    "socket": "use the network",
    "process": "start processes",
    "program": "run programs",
    "signal": "signal other processes",
    "limits": "lift its limits",
    "create": "create files",
    "write": "change files",
    "mode": "change the mode of files",
    "shared": "leave shared memory behind",
    "peek": "read the memory of other processes",
    "read": "read the files of this user",
    "system": "read files of the system",
    "proc": "read the environment and memory of this user's other processes",
}
_NONE: Final = frozenset({"memory", "environment", "probe"})
_READING: Final = frozenset({"read", "system", "proc"})


@dataclass(frozen=True, slots=True)
class Isolation:
    """A level and what a checker could still do.

    strong   nothing that was attempted succeeds
    medium   a checker can read what this user can read, keys included, and nothing else: whatever
             it finds can leave it only with its result
    weak     a process of its own with an empty environment and limits, and no more
    none     not even that
    """

    level: Level
    succeeded: tuple[str, ...]

    @property
    def allows(self) -> tuple[str, ...]:
        """What a checker could do, in words."""
        return tuple(DEEDS.get(name, name) for name in self.succeeded)

    def meets(self, minimum: Level) -> bool:
        """Whether this is at least ``minimum``."""
        return LEVELS.index(self.level) <= LEVELS.index(minimum)


def isolation_of(succeeded: Iterable[str]) -> Isolation:
    """Return the isolation under which these attempts succeeded."""
    names = tuple(name for name in DEEDS if name in set(succeeded))
    level: Level = "weak"
    if not names:
        level = "strong"
    elif _NONE.intersection(names):
        level = "none"
    elif _READING.issuperset(names):
        level = "medium"
    return Isolation(level, names)


def weakest(found: Iterable[Isolation]) -> Isolation:
    """Return what holds for several servers together: whatever one of them allows."""
    return isolation_of({name for isolation in found for name in isolation.succeeded})


def refusal(found: Isolation, minimum: Level) -> str:
    """Say why no checker runs where isolation is below the minimum, and how to proceed."""
    return (
        f"checkers would run with isolation {found.level}, at least {minimum} is asked for: here a "
        f"checker could {', '.join(found.allows)}. "
        "Full isolation takes a Linux kernel of 5.13 or newer with seccomp and Landlock, on x86_64 "
        "or aarch64, and a container that lets them through (seccomp and landlock_* system calls); "
        "medium isolation takes seccomp. "
        "To run a dataset whose checkers you trust all the same, set in configs/global.yaml: "
        f"checkers: {{isolation: {found.level}}}"
    )
