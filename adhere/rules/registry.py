"""The registry: a rule is one decorated function with texts that follow and violate it.

::

    @rule("sentences", valid=bounds, passes=[example("One. Two.", max=2)],
          fails=[example("One. Two. Three.", max=2)])
    def sentences(text: str, min: Count | None = None, max: Count | None = None) -> Outcome:
        \"\"\"The number of sentences.\"\"\"

The first parameter is what is judged, the others are the rule's arguments; their annotations are
checked by pydantic when a rule is loaded. A registry holds the rules over one kind of thing:
``Registry("text", …)`` here, ``Registry("trajectory")`` where trajectories are defined.
"""

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from adhere.config.problems import describe, nearest
from adhere.errors import DataError

Subject = TypeVar("Subject")
Arguments = Mapping[str, Any]
# Looks at all arguments of a rule together; raises ValueError with what is wrong.
Validator = Callable[[Arguments], None]


@dataclass(frozen=True)
class Outcome:
    """What a rule says: followed or not, and what was found, in words for people."""

    followed: bool
    reason: str


@dataclass(frozen=True)
class RuleCall:
    """A rule's name with its arguments, as they stand in an instruction set."""

    name: str
    args: Arguments = field(default_factory=dict)


@dataclass(frozen=True)
class Example(Generic[Subject]):
    """Something a rule is tried on, with the arguments for it."""

    subject: Subject
    args: Arguments


def example(subject: Subject, **args: Any) -> Example[Subject]:
    """Return an example for the ``passes`` or ``fails`` of a rule."""
    return Example(subject, args)


@dataclass(frozen=True)
class Check(Generic[Subject]):
    """A rule with its arguments, ready to be run. ``name`` is the name that was asked for."""

    name: str
    function: Callable[[Subject], Outcome]
    views: Callable[[Subject], Sequence[Subject]]

    def strict(self, subject: Subject) -> Outcome:
        """Judge the subject as it is."""
        views = self.views(subject)
        return self.function(views[0]) if views else Outcome(False, "the answer is empty")

    def loose(self, subject: Subject) -> Outcome:
        """Judge it leniently: followed when one of its views is. Never below strict."""
        outcomes = map(self.function, self.views(subject)[1:])
        strict = self.strict(subject)
        if strict.followed:
            return strict
        return next((outcome for outcome in outcomes if outcome.followed), strict)


@dataclass(frozen=True)
class Rule(Generic[Subject]):
    """A registered rule. ``summary`` is the docstring of its function, on one line."""

    name: str
    function: Callable[..., Outcome]
    arguments: type[BaseModel]
    summary: str
    passes: Sequence[Example[Subject]]
    fails: Sequence[Example[Subject]]
    valid: Validator | None

    def bind(self, args: Arguments) -> Callable[[Subject], Outcome]:
        """Return the rule with its arguments. Raises DataError where they are wrong."""
        values = _validated(self.name, self.arguments, args)
        if self.valid:
            try:
                self.valid(values)
            except ValueError as error:
                raise DataError(f"rule `{self.name}`: {error}") from None
        return partial(_judge, self.function, values)


@dataclass(frozen=True)
class Alias:
    """Another name for the rule ``of``, with the arguments that go with that name.

    ``convert`` takes them and returns those of the rule.
    """

    name: str
    of: str
    convert: Callable[..., Arguments]
    arguments: type[BaseModel]

    def translated(self, args: Arguments) -> Arguments:
        """Return the rule's own arguments. Raises DataError where these are wrong."""
        return self.convert(**_validated(self.name, self.arguments, args))


def _judge(function: Callable[..., Outcome], args: Arguments, subject: Subject) -> Outcome:
    return function(subject, **args)


def as_it_is(subject: Subject) -> Sequence[Subject]:
    """Return the only view of what has no loose reading, such as a trajectory."""
    return (subject,)


class Registry(Generic[Subject]):
    """The rules over one kind of subject, by name.

    ``views`` returns the subject as it is judged strictly, followed by the readings that count
    when it is judged loosely; nothing at all when there is nothing to judge.
    """

    def __init__(self, kind: str, views: Callable[[Subject], Sequence[Subject]] = as_it_is) -> None:
        self.kind = kind
        self.rules: dict[str, Rule[Subject]] = {}
        self.aliases: dict[str, Alias] = {}
        self._views = views

    def __contains__(self, name: object) -> bool:
        return name in self.rules or name in self.aliases

    def __iter__(self) -> Iterator[str]:
        return iter([*self.rules, *self.aliases])

    def rule(
        self,
        name: str,
        *,
        passes: Sequence[Example[Subject]],
        fails: Sequence[Example[Subject]],
        valid: Validator | None = None,
    ) -> Callable[[Callable[..., Outcome]], Callable[..., Outcome]]:
        """Register the decorated function as a rule; ``valid`` looks at all its arguments."""

        def register(function: Callable[..., Outcome]) -> Callable[..., Outcome]:
            self._must_be_new(name)
            arguments = _model(name, function, skipped=1)
            summary = " ".join((function.__doc__ or "").split())
            self.rules[name] = Rule(name, function, arguments, summary, passes, fails, valid)
            return function

        return register

    def alias(
        self, name: str, of: str
    ) -> Callable[[Callable[..., Arguments]], Callable[..., Arguments]]:
        """Register another name; the decorated function converts its arguments."""

        def register(convert: Callable[..., Arguments]) -> Callable[..., Arguments]:
            self._must_be_new(name)
            arguments = _model(name, convert, skipped=0)
            self.aliases[name] = Alias(name, of, convert, arguments)
            return convert

        return register

    def arguments(self, name: str) -> type[BaseModel]:
        """Return the model of a rule's arguments."""
        rule = self.rules.get(name) or self.aliases[name]
        return rule.arguments

    def load(self, name: str, args: Arguments) -> Check[Subject]:
        """Return the rule, ready to run. Raises DataError for a wrong name or argument."""
        alias = self.aliases.get(name)
        if alias is None and name not in self.rules:
            raise DataError(unknown(name, self))
        rule = self.rules[alias.of if alias else name]
        return Check(name, rule.bind(alias.translated(args) if alias else args), self._views)

    def _must_be_new(self, name: str) -> None:
        if name in self:
            raise ValueError(f"two rules are called {name}")


def unknown(name: str, *registries: Registry[Any]) -> str:
    """Say that no rule of these registries has this name, and which one comes nearest."""
    known = [known for registry in registries for known in registry]
    return f"unknown rule `{name}`{nearest(name, known)}; docs/rules.md lists all of them"


def _model(name: str, function: Callable[..., Any], skipped: int) -> type[BaseModel]:
    """Return the model of a function's parameters, without the first ``skipped``."""
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())[skipped:]
    fields: dict[str, Any] = {
        p.name: (hints[p.name], ... if p.default is p.empty else p.default) for p in parameters
    }
    with warnings.catch_warnings():
        # An argument may be called `schema`, which a model has a deprecated method for.
        warnings.filterwarnings("ignore", message='Field name "schema"')
        return create_model(name, __config__=ConfigDict(extra="forbid", strict=True), **fields)


def _validated(name: str, model: type[BaseModel], args: Arguments) -> dict[str, Any]:
    try:
        values = model.model_validate(dict(args))
    except ValidationError as error:
        raise DataError(describe(error, model, args, f"rule `{name}`")) from None
    return {key: getattr(values, key) for key in model.model_fields}
