"""The registry of rules over trajectories.

A rule takes the part of the trajectory that it looks at (``View``) and its own arguments. Every
rule also takes ``steps`` and ``when``, which choose that part; where they choose nothing, the rule
does not apply.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, get_type_hints

from pydantic import BeforeValidator, Field

from adhere.rules.arguments import Words
from adhere.rules.registry import Example, Outcome, Registry, Validator
from adhere.trajectories.form import Trajectory
from adhere.trajectories.outcome import StepOutcome, not_applicable
from adhere.trajectories.scope import StepRange, When, select

TRAJECTORY: Registry[Trajectory] = Registry("trajectory")


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


# One name or a list of them.
Tools = Annotated[
    list[Words],
    BeforeValidator(_listed, json_schema_input_type=str | list[str]),
    Field(min_length=1),
]

_SCOPE = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
    for name in ("steps", "when")
]


def rule(
    name: str,
    *,
    passes: Sequence[Example[Trajectory]],
    fails: Sequence[Example[Trajectory]],
    valid: Validator | None = None,
) -> Callable[[Callable[..., StepOutcome]], Callable[..., StepOutcome]]:
    """Register the decorated function as a rule over trajectories."""

    def register(function: Callable[..., StepOutcome]) -> Callable[..., StepOutcome]:
        def scoped(trajectory: Trajectory, **args: Any) -> Outcome:
            view = select(trajectory, args.pop("steps"), args.pop("when"))
            if isinstance(view, str):
                return not_applicable(view)
            outcome = function(view, **args)
            # An answer that stands after all steps is no step.
            return replace(outcome, steps=tuple(i for i in outcome.steps if view.has_step(i)))

        # The registry reads a rule's arguments off its signature: the function's, and the scope.
        signature = inspect.signature(function)
        parameters = [*signature.parameters.values(), *_SCOPE]
        hints = get_type_hints(function, include_extras=True)
        scoped.__doc__, scoped.__module__ = function.__doc__, function.__module__
        scoped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        scoped.__annotations__ = {**hints, "steps": StepRange | None, "when": When | None}
        TRAJECTORY.rule(name, passes=passes, fails=fails, valid=valid)(scoped)
        return function

    return register
