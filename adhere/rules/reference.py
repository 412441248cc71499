"""The list of rules in ``docs/rules.md``, generated from the registry.

python -m adhere.rules.reference           rewrite that part of the page
python -m adhere.rules.reference --check   end with 1 when the page has drifted
"""

import argparse
import inspect
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from adhere.config.reference import plain_type
from adhere.errors import ConfigError
from adhere.rules import TEXT
from adhere.rules.registry import Rule

PAGE = Path("docs/rules.md")
BEGIN = "<!-- rules: written by `python -m adhere.rules.reference`, do not edit -->"
END = "<!-- end of the rules -->"


def reference() -> str:
    """Return the generated part of the page, without its markers."""
    parts = [part for module, rules in _modules() for part in (_heading(module), _table(rules))]
    return "\n\n".join([*parts, "### Names of IFEval and IFBench", _aliases()])


def _modules() -> Iterator[tuple[str, list[Rule[str]]]]:
    """Yield the modules, in the order of their names, with their rules."""
    by_module: dict[str, list[Rule[str]]] = {}
    for rule in TEXT.rules.values():
        by_module.setdefault(rule.function.__module__, []).append(rule)
    yield from sorted(by_module.items())


def _heading(module: str) -> str:
    title, _, rest = inspect.cleandoc(sys.modules[module].__doc__ or "").partition("\n")
    return "\n\n".join(filter(None, [f"### {title.rstrip('.')}", rest.strip().replace("``", "`")]))


def _table(rules: list[Rule[str]]) -> str:
    rows = ["| rule | arguments | what it looks at |", "|---|---|---|"]
    for rule in rules:
        arguments = "; ".join(_argument(n, f) for n, f in rule.arguments.model_fields.items())
        rows.append(_row(f"`{rule.name}`", arguments or "–", rule.summary))
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


def with_reference(page: str) -> str:
    """Return the page with its generated part renewed. Raises ConfigError without its markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ConfigError(f"{PAGE}: the lines that mark the list are gone:\n{BEGIN}\n{END}")
    return f"{before}{BEGIN}\n\n{reference()}\n\n{END}{after}"


def main(arguments: list[str] | None = None) -> int:
    """Rewrite the page, or check it; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m adhere.rules.reference", description="Write the list of rules."
    )
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    check: bool = parser.parse_args(arguments).check
    try:
        page = PAGE.read_text(encoding="utf-8")
        renewed = with_reference(page)
    except (OSError, ConfigError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    if renewed == page:
        return 0
    if check:
        sys.stderr.write(
            f"error: {PAGE} does not match the rules: run python -m adhere.rules.reference\n"
        )
        return 1
    PAGE.write_text(renewed, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
