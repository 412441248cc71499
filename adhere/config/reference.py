"""The field reference of ``configs/README.md``, generated from the schema.

python -m adhere.config.reference           rewrite that part of the page
python -m adhere.config.reference --check   end with 1 when the page has drifted
"""

import sys
import types
import typing
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from adhere.config import (
    Api,
    Budget,
    Checkers,
    Gate,
    GlobalConfig,
    JudgeConfig,
    Local,
    ModelConfig,
    Prices,
    Recorded,
    Retry,
    Sampling,
    Spotcheck,
)
from adhere.config.problems import model_in
from adhere.generated import GeneratedPart

PAGE = Path("configs/README.md")

_PLAIN: dict[object, str] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    Decimal: "number",
    str: "text",
}
_LOCAL = frozenset(Local.model_fields)


def sections() -> Iterator[tuple[str, str, type[BaseModel], frozenset[str]]]:
    """Yield heading, introduction, model and the fields that are left out, section by section."""
    none: frozenset[str] = frozenset()
    yield "`configs/global.yaml`", "", GlobalConfig, none
    yield "`retry` in `global.yaml`", "", Retry, none
    yield "`checkers` in `global.yaml`", "", Checkers, none
    yield (
        "`budget` in `global.yaml`",
        "It counts what every API model and judge has taken below `results_root`, in earlier calls "
        "too. Local models are not counted.",
        Budget,
        none,
    )
    yield (
        "`gate` in `global.yaml`",
        "Rates are `constraint_rate`, `item_mean`, `all_pass_rate`, and that of a group: "
        "`category.hard`, `severity.must`, `level.step`, `rule.words`, `scenario.refunds`. How it "
        "decides: [docs/gate.md](../docs/gate.md).",
        Gate,
        none,
    )
    yield "`spotcheck` in `global.yaml`", "", Spotcheck, none
    yield (
        "`configs/<model>.yaml`",
        "A model is either local (`model_path`, `max_model_len` and `modes` are required, and the "
        "fields of the next section apply), behind an API (`api` is required), or no model at all "
        "but what an agent did and somebody recorded (`recorded` is required): then nothing is "
        "asked, and the runs are judged, scored and compared like any other.",
        ModelConfig,
        _LOCAL,
    )
    yield (
        "A model that is served locally",
        "At the top level of a model file, and under `local` in a judge file. `max_model_len` may "
        "also stand beside `api`: the output budget is then trimmed to it.",
        Local,
        none,
    )
    yield "`api` in a model file", "", Api, none
    yield (
        "`recorded` in a model file",
        "Without `{run}` in the path there is one run, whatever `repeats` says. Items that carry a "
        "trajectory themselves keep it where there is no file for them.",
        Recorded,
        none,
    )
    yield (
        "`prices` in a model file or a judge file",
        "Prices are no part of what identifies a result: a changed one only writes the summary "
        "anew. Where a model costs nothing, write 0.",
        Prices,
        none,
    )
    yield (
        "One of the `modes` in a model file",
        "Every parameter of sampling may also be the word `not_sent`, which leaves it out of the "
        "request, for servers that refuse it. What is not sent, the server decides: vLLM takes "
        "the model's own `generation_config.json`.",
        Sampling,
        none,
    )
    yield "`judge_configs/<judge>.yaml`", "", JudgeConfig, none


def reference() -> str:
    """Return the generated part of the page, without its markers."""
    parts = []
    for heading, introduction, model, left_out in sections():
        parts.append(f"### {heading}")
        if introduction:
            parts.append(introduction)
        parts.append(table(model, left_out))
    return "\n\n".join(parts)


def table(model: type[BaseModel], left_out: frozenset[str] = frozenset()) -> str:
    """Return a table of a model's fields."""
    rows = ["| field | type | default | |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        if name not in left_out:
            cells = (f"`{name}`", _type(field), _default(field), field.description or "")
            rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def _type(field: FieldInfo) -> str:
    # A key of null is worth writing only where the default is another value.
    nullable = field.default is not None
    return plain_type(field.annotation, tuple(field.metadata), nullable=nullable)


def plain_type(annotation: Any, limits: tuple[Any, ...] = (), *, nullable: bool = False) -> str:
    """Say in plain words what a field takes, such as ``number 0 to 2 or `not_sent```."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return plain_type(arguments[0], (*arguments[1:], *limits), nullable=nullable)
    if origin in (typing.Union, types.UnionType):
        kinds = [plain_type(a, limits) for a in arguments if a is not types.NoneType]
        if nullable and types.NoneType in arguments:
            kinds.append("`null`")
        return " or ".join(kinds)
    if origin is typing.Literal:
        words = [f"`{word}`" for word in arguments]
        return " or ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)
    if origin is dict:
        inside = model_in(arguments[1])
        if inside is not None:
            return "lines `name:` with their own fields"
        return "`key: value` lines"
    if origin in (tuple, list):
        return "list"
    if annotation is Any:
        return "anything"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "own fields"
    return " ".join(filter(None, [_PLAIN[annotation], _range(limits)]))


def _range(limits: tuple[Any, ...]) -> str:
    """Say which numbers are allowed; limits that only guard against nonsense are left out."""
    flat = [
        part
        for limit in limits
        for part in (limit.metadata if isinstance(limit, FieldInfo) else [limit])
    ]
    low = next((f"{part.ge:g}" for part in flat if isinstance(part, Ge)), None)
    above = next((f"{part.gt:g}" for part in flat if isinstance(part, Gt)), None)
    tops = [part.le for part in flat if isinstance(part, Le) and isinstance(part.le, int | float)]
    high = next((f"{top:g}" for top in tops if top < 1e6), None)
    if low is not None:
        return f"{low} to {high}" if high is not None else f"from {low}"
    if above is not None:
        return f"above {above}, at most {high}" if high is not None else f"above {above}"
    return f"up to {high}" if high is not None else ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True, validated_data={})
    if default is None or default in ({}, (), []) or isinstance(default, BaseModel):
        return "–"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


PART = GeneratedPart(PAGE, "field reference", "schema", "adhere.config.reference", reference)
main = PART.main


if __name__ == "__main__":
    sys.exit(main())
