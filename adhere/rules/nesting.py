"""Rules about punctuation: which marks occur, brackets in brackets, quotations in quotations."""

import regex

from adhere.rules import measure
from adhere.rules.arguments import Position, several
from adhere.rules.registry import Outcome, example
from adhere.rules.text import rule

_PAIRS = {")": "(", "]": "[", "}": "{", "）": "（", "】": "【", "｝": "｛"}
_FULL_WIDTH_MARKS = str.maketrans("。，！？；：", ".,!?;:")


@rule(
    "punctuation_marks",
    passes=[
        example("Well, a test: stop; go! Why? No?! Yes."),
        example("好，是：停；走！为何？真的？！对。"),
    ],
    fails=[example("Well, a test: stop; go! Why? Yes."), example("One. Two?!")],
)
def punctuation_marks(text: str) -> Outcome:
    """Full stop, comma, exclamation mark, question mark, semicolon, colon and an interrobang
    (`?!`) all occur."""
    plain = text.translate(_FULL_WIDTH_MARKS).replace("‽", "?!").replace("!?", "?!")
    missing = [mark for mark in ".,;:" if mark not in plain]
    rest = plain.replace("?!", "", 1)
    missing += [mark for mark in "!?" if mark not in rest]
    missing += [] if "?!" in plain else ["?!"]
    return Outcome(not missing, f"missing: {' '.join(missing)}" if missing else "all occur")


@rule(
    "nested_brackets",
    passes=[example("(a [b {c} d] e)", depth=3), example("（甲【乙】丙）", depth=2)],
    fails=[example("(a) [b] {c}", depth=2), example("(a [b {c", depth=3)],
)
def nested_brackets(text: str, depth: Position) -> Outcome:
    """Brackets are nested, and closed, so many levels deep."""
    opened: list[tuple[str, int]] = []
    deepest = 0
    for character in text:
        if character in _PAIRS.values():
            opened.append((character, 1))
        elif character in _PAIRS and opened and opened[-1][0] == _PAIRS[character]:
            _, levels = opened.pop()
            deepest = max(deepest, levels)
            if opened:
                outer, above = opened[-1]
                opened[-1] = (outer, max(above, levels + 1))
        elif character in _PAIRS:
            opened.clear()
    return Outcome(deepest >= depth, f"{several(deepest, 'level')}, at least {depth} required")


@rule(
    "nested_quotes",
    passes=[
        example('"She said \'he said "no" to me\' once"', depth=3),
        example("“他说‘好’。”", depth=2),
    ],
    fails=[example('"one" and "two"', depth=2), example("\"She said 'no", depth=2)],
)
def nested_quotes(text: str, depth: Position) -> Outcome:
    """Quotations stand in quotations so many levels deep, in double and single marks by turns."""
    plain = text.translate(str.maketrans("“”‘’「」『』", "\"\"''\"\"''"))
    # An apostrophe inside a word quotes nothing.
    plain = regex.sub(r"(?<=[\p{L}\p{N}--\p{Han}])'(?=[\p{L}--\p{Han}])", "", plain, flags=regex.V1)
    opened: list[str] = []
    deepest = closed = 0
    for mark in regex.findall("[\"']", plain):
        if opened and opened[-1] == mark:
            opened.pop()
            closed = max(closed, deepest - len(opened))
        else:
            opened.append(mark)
            deepest = max(deepest, len(opened))
    return Outcome(closed >= depth, f"{several(closed, 'closed level')}, at least {depth} required")


@rule(
    "explained_quotes",
    passes=[example('"Tea" is a word. "Hot" too, as said.'), example("“茶”是饮料。")],
    fails=[example('As they say, "tea".'), example('"Tea" "hot" and so on')],
)
def explained_quotes(text: str) -> Outcome:
    """Every quotation is followed by words outside quotation marks."""
    plain = text.translate(str.maketrans("“”„«»「」", '"' * 7))
    outside = plain.split('"')[2::2]
    wrong = [part for part in outside if not measure.words(part)]
    return Outcome(not wrong, "a quotation without words after it" if wrong else "all explained")
