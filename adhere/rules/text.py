"""Rules over texts: their registry, and what loose means for a text."""

from collections.abc import Sequence

from adhere.jsonio import clean_text
from adhere.rules.registry import Arguments, Outcome, Registry


def views(text: str) -> Sequence[str]:
    """Return the text and its seven loose readings, those without content left out.

    Of an empty text nothing is left: it follows no rule.

    They are IFEval's (Zhou et al. 2023, section 3.2): without its first line, without its last,
    without both, and each of the four without asterisks.
    """
    text = clean_text(text).replace("\r\n", "\n")
    lines = text.split("\n")
    cut = [text, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    readings = [*cut, *(reading.replace("*", "") for reading in cut)]
    return [reading for reading in dict.fromkeys(readings) if reading.strip()]


TEXT: Registry[str] = Registry("text", views)
rule = TEXT.rule
alias = TEXT.alias


def check(name: str, args: Arguments, text: str, *, loose: bool = False) -> Outcome:
    """Load a rule and judge one text. Raises DataError where name or arguments are wrong."""
    loaded = TEXT.load(name, args)
    return loaded.loose(text) if loose else loaded.strict(text)
