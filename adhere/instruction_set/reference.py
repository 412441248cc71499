"""The field reference of ``docs/instruction-sets.md``, generated from form.py.

python -m adhere.instruction_set.reference           rewrite that part of the page
python -m adhere.instruction_set.reference --check   end with 1 when the page has drifted
"""

import sys
from pathlib import Path

from pydantic import BaseModel

from adhere.config.reference import table
from adhere.generated import GeneratedPart
from adhere.instruction_set.form import (
    Constraint,
    Defaults,
    InstructionSet,
    Item,
    Message,
    Provenance,
    Shared,
    ToolResponse,
)

PAGE = Path("docs/instruction-sets.md")
_SHARED = frozenset(Shared.model_fields)
_SECTIONS: tuple[tuple[str, type[BaseModel], frozenset[str]], ...] = (
    ("A set", InstructionSet, frozenset()),
    ("One of the `items`", Item, _SHARED),
    ("What an item has or takes from `defaults`", Shared, frozenset()),
    ("`defaults` alone", Defaults, _SHARED),
    ("One of the `constraints`", Constraint, frozenset()),
    ("`provenance`", Provenance, frozenset()),
    ("A message of a `layout`", Message, frozenset()),
    ("One of the `tool_responses`", ToolResponse, frozenset()),
)


def reference() -> str:
    """Return the generated part of the page, without its marks."""
    parts = (f"### {title}\n\n{table(model, left_out)}" for title, model, left_out in _SECTIONS)
    return "\n\n".join(parts)


PART = GeneratedPart(
    PAGE, "field reference", "form of sets", "adhere.instruction_set.reference", reference
)
main = PART.main


if __name__ == "__main__":
    sys.exit(main())
