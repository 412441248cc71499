"""The step ``rule``: a registered rule with its arguments, over an answer or a trajectory.

Importing this loads every rule (half a second), so only what meets such a step does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from adhere import jsonio
from adhere.errors import DataError
from adhere.rules import TEXT, Check, Registry
from adhere.rules.registry import unknown
from adhere.trajectories import TRAJECTORY, Trajectory, judge

# Names are unique across them: an instruction set says only the name.
REGISTRIES: tuple[Registry[Any], ...] = (TEXT, TRAJECTORY)
_KEYS = {"rule", "args", "loose"}


@dataclass(frozen=True, slots=True)
class Applied:
    """What a rule said: its verdict (None: there was nothing to check), what was found, and the
    steps of the trajectory that broke it."""

    verdict: bool | None
    reason: str
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleStep:
    """A loaded rule step: one of the two checks is there."""

    name: str
    loose: bool
    on_text: Check[str] | None
    on_trajectory: Check[Trajectory] | None

    def apply(self, working: str, trajectory: Trajectory | None) -> Applied:
        """Judge the working text, or the trajectory it comes from."""
        if self.on_text is not None:
            check = self.on_text
            outcome = check.loose(working) if self.loose else check.strict(working)
            return Applied(outcome.followed, outcome.reason)
        assert self.on_trajectory is not None, "a rule is over one of the two"
        if trajectory is None:
            return Applied(None, "the response is a text: there is no trajectory to look at")
        found = judge(self.on_trajectory, trajectory)
        return Applied(found.followed if found.applies else None, found.reason, found.steps)


@lru_cache(maxsize=4096)
def step_of(text: str) -> RuleStep:
    """Return the step whose ``exec`` this is as JSON, loaded once."""
    return load_step(jsonio.loads(text))


def load_step(step: Any) -> RuleStep:
    """Return a step's ``exec``, ``{"rule": name, "args": {…}, "loose": false}``, ready to run.

    Raises DataError for an unknown rule, key or argument.
    """
    if not isinstance(step, Mapping) or not isinstance(step.get("rule"), str):
        raise DataError("must be an object with `rule`, the name of a rule, and its `args`")
    wrong = sorted(set(step) - _KEYS)
    if wrong:
        raise DataError(f"{wrong[0]}: unknown key; allowed: {', '.join(sorted(_KEYS))}")
    name, args, loose = step["rule"], step.get("args", {}), step.get("loose", False)
    if not isinstance(args, Mapping):
        raise DataError(f"args: found {args!r:.60}: must be the rule's arguments by name")
    if not isinstance(loose, bool):
        raise DataError(f"loose: found {loose!r:.60}: must be true or false")
    if name in TEXT:
        return RuleStep(name, loose, TEXT.load(name, args), None)
    if name in TRAJECTORY:
        if loose:
            raise DataError(f"loose: rule `{name}` is over trajectories, which have no loose form")
        return RuleStep(name, loose, None, TRAJECTORY.load(name, args))
    raise DataError(unknown(name, *REGISTRIES))
