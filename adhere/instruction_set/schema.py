"""The JSON Schema of instruction sets, for editors: ``python -m adhere.instruction_set.schema``.

It is generated from form.py and from the registered rules, so that an editor knows each rule and
its arguments. ``--check`` only says whether the file is up to date.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adhere import jsonio
from adhere.instruction_set.form import InstructionSet
from adhere.rule_steps import REGISTRIES
from adhere.rules.compact import FORMATS, known_keys

PATH = Path("data/instruction-set.schema.json")
Schema = dict[str, Any]


def schema() -> Schema:
    """Return the schema: a set as one document or a list, or, as in JSONL, an item or defaults."""
    content = InstructionSet.model_json_schema()
    definitions: Schema = content.pop("$defs")
    definitions["InstructionSet"] = content
    _complete_constraint(definitions)
    _complete_item(definitions["Item"])
    item = {"$ref": "#/$defs/Item"}
    line: Schema = {"if": {"required": ["defaults"]}, "then": _only_defaults(), "else": item}
    document: Schema = {
        "if": {"required": ["items"]},
        "then": {"$ref": "#/$defs/InstructionSet"},
        "else": line,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Instruction set",
        "if": {"type": "array"},
        "then": {"items": item, "minItems": 1},
        "else": {"type": "object", **document},
        "$defs": definitions,
    }


def _only_defaults() -> Schema:
    return {
        "properties": {"defaults": {"$ref": "#/$defs/Defaults"}},
        "additionalProperties": False,
    }


def _complete_constraint(definitions: Schema) -> None:
    """Say what form.py checks in code: rules with their arguments, what goes together."""
    constraint = definitions["Constraint"]
    names = [name for registry in REGISTRIES for name in registry]
    constraint["properties"]["rule"] |= {"type": "string", "enum": sorted(names)}
    constraint["properties"]["rule"].pop("anyOf")
    constraint["oneOf"] = [{"required": [kind]} for kind in ("rule", "ask", "evaluation")]
    constraint["dependentRequired"] = {"args": ["rule"], "loose": ["rule"], "about": ["ask"]}
    soft = {"properties": {"severity": {"const": "should"}}, "required": ["severity"]}
    not_hard = {"properties": {"category": {"not": {"const": "hard"}}}}
    constraint["allOf"] = [{"if": soft, "then": not_hard}, *_arguments(definitions)]


def _arguments(definitions: Schema) -> Iterator[Schema]:
    """Yield, for each rule, what its arguments must be; their parts become ``definitions``."""
    for registry in REGISTRIES:
        for name in registry:
            arguments = registry.arguments(name).model_json_schema()
            for part, content in arguments.pop("$defs", {}).items():
                if definitions.setdefault(part, content) != content:
                    raise ValueError(f"two parts of arguments are called {part}")
            needed = ["args"] if arguments.get("required") else []
            yield {
                "if": {"properties": {"rule": {"const": name}}, "required": ["rule"]},
                "then": {"properties": {"args": arguments}, "required": needed},
            }


def _complete_item(item: Schema) -> None:
    """Say which keys the compact forms have, and that an item needs something to follow."""
    item["anyOf"] = [{"required": ["constraints"]}, {"required": ["verification"]}]
    keys: Schema = {"anyOf": [{"enum": sorted(known_keys())}, {"pattern": "._type$"}]}
    compact = {"type": "object", "propertyNames": keys, "minProperties": 1}
    as_list = {"type": "array", "items": {"$ref": "#/$defs/Constraint"}}
    constraints = item["properties"]["constraints"]
    constraints.pop("oneOf")
    constraints |= {"if": {"type": "array"}, "then": as_list, "else": compact}
    rule = {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}}}
    verification = item["properties"]["verification"]
    verification.pop("anyOf")
    verification |= {
        "type": ["object", "null"],
        "properties": {
            "format": {"enum": [*FORMATS, None]},
            "rules": {"type": "array", "items": rule},
        },
        "additionalProperties": False,
    }


def main(arguments: list[str] | None = None) -> int:
    """Write the schema, or check it; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m adhere.instruction_set.schema",
        description="Write the JSON Schema of instruction sets.",
    )
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    check: bool = parser.parse_args(arguments).check
    text = jsonio.dumps(schema(), indent=True) + b"\n"
    if PATH.is_file() and PATH.read_bytes() == text:
        return 0
    if check:
        sys.stderr.write(
            f"error: {PATH} is not up to date: run python -m adhere.instruction_set.schema\n"
        )
        return 1
    PATH.write_bytes(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
