"""Rules: constraints that code alone decides, over texts and over other things.

``TEXT`` is the registry of rules over a text, with every rule of this package in it::

    check = TEXT.load("sentences", {"max": 3})   # DataError when name or arguments are wrong
    check.strict("One. Two.")                    # Outcome(followed=True, reason="2 sentences, …")
    check.loose("Sure:\\nOne. Two.")

Rules are pure functions of their own code: no model, no network, no ``eval``.
"""

# The modules register their rules when they are imported.
from adhere.rules import (  # noqa: F401
    counts,
    data_formats,
    grammar,
    ifbench,
    ifeval,
    json_rules,
    keywords,
    language,
    layout,
    marks,
    nesting,
    protocol,
    sentence_forms,
    structure,
    values,
    word_forms,
)
from adhere.rules.registry import Check, Outcome, Registry, RuleCall
from adhere.rules.text import TEXT, check

__all__ = ["TEXT", "Check", "Outcome", "Registry", "RuleCall", "check"]
