"""The list of rules in ``docs/rules.md``, generated from the registry.

python -m adhere.rules.reference           rewrite that part of the page
python -m adhere.rules.reference --check   end with 1 when the page has drifted
"""

import inspect
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from adhere.config.reference import plain_type
from adhere.generated import GeneratedPart
from adhere.rules import TEXT
from adhere.rules.registry import Registry, Rule
from adhere.trajectories import TRAJECTORY

PAGE = Path("docs/rules.md")
# Arguments that every rule over trajectories takes.
_SCOPE = ("steps", "when")
_SCOPED = """\
They look at an agent's steps. Every one of them also takes `steps: {from: 2, to: 5}` (by number,
from 1) and `when: {after_tool: search}` or `when: {before_tool: pay}` (steps later than, or before,
the one that first calls this tool); where these choose no step, the rule does not apply. `tool`
takes one name or a list of them."""


def reference() -> str:
    """Return the generated part of the page, without its markers."""
    parts = ["## Rules over texts", *_sections(TEXT)]
    parts += ["### Names of IFEval and IFBench", _aliases()]
    return "\n\n".join([*parts, "## Rules over trajectories", _SCOPED, *_sections(TRAJECTORY)])


def _sections(registry: Registry[Any]) -> Iterator[str]:
    for module, rules in _modules(registry):
        yield _heading(module)
        yield _table(rules)


def _modules(registry: Registry[Any]) -> Iterator[tuple[str, list[Rule[Any]]]]:
    """Yield the modules, in the order of their names, with their rules."""
    by_module: dict[str, list[Rule[Any]]] = {}
    for rule in registry.rules.values():
        by_module.setdefault(rule.function.__module__, []).append(rule)
    yield from sorted(by_module.items())


def _heading(module: str) -> str:
    title, _, rest = inspect.cleandoc(sys.modules[module].__doc__ or "").partition("\n")
    return "\n\n".join(filter(None, [f"### {title.rstrip('.')}", rest.strip().replace("``", "`")]))


def _table(rules: list[Rule[Any]]) -> str:
    rows = ["| rule | arguments | what it looks at |", "|---|---|---|"]
    for rule in rules:
        fields = rule.arguments.model_fields.items()
        arguments = "; ".join(_argument(n, f) for n, f in fields if n not in _SCOPE)
        rows.append(_row(f"`{rule.name}`", arguments or "–", rule.summary.replace("``", "`")))
    return "\n".join(rows)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _argument(name: str, field: FieldInfo) -> str:
    text = f"`{name}`: {_type(field.annotation, tuple(field.metadata))}"
    if field.is_required():
        return f"**{text}**"
    if field.default is None:
        return text
    shown = str(field.default).lower() if isinstance(field.default, bool) else field.default
    return f"{text}, `{shown}`"


def _type(annotation: Any, limits: tuple[Any, ...] = ()) -> str:
    """Say what an argument takes, lists included, which configuration files do not have."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type(arguments[0], (*arguments[1:], *limits))
    if origin in (typing.Union, types.UnionType):
        kinds = [_type(a, limits) for a in arguments if a is not types.NoneType]
        # Whole numbers are numbers.
        wider = {f"whole {kind}" for kind in kinds}
        return " or ".join(kind for kind in kinds if kind not in wider)
    if origin is list:
        return f"list of {_type(arguments[0])}"
    return plain_type(annotation, limits)


def _aliases() -> str:
    rows = ["| name | arguments | rule |", "|---|---|---|"]
    for alias in TEXT.aliases.values():
        arguments = ", ".join(f"`{name}`" for name in alias.arguments.model_fields)
        rows.append(_row(f"`{alias.name}`", arguments or "–", f"`{alias.of}`"))
    return "\n".join(rows)


PART = GeneratedPart(PAGE, "rules", "rules", "adhere.rules.reference", reference)
main = PART.main


if __name__ == "__main__":
    sys.exit(main())
