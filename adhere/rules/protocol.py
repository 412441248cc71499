"""An output protocol: labelled parts that must all be there, in order."""

from typing import Annotated

import regex
from pydantic import AfterValidator, Field

from adhere.rules.arguments import Words
from adhere.rules.registry import Outcome, example
from adhere.rules.text import rule

REACT = ["Thought", "Action", "Action Input", "Observation", "Final Answer"]
_STEP = "Thought: look it up\nAction: search\nAction Input: tea\nObservation: a drink\n"


def _different(labels: list[str]) -> list[str]:
    if len(set(labels)) < len(labels):
        raise ValueError("the labels must be different")
    return labels


Labels = Annotated[list[Words], Field(min_length=2, max_length=20), AfterValidator(_different)]


@rule(
    "protocol",
    passes=[
        example(f"{_STEP}Thought: I know\nFinal Answer: a drink"),
        example(f"{_STEP}{_STEP}Final Answer: a drink"),
        example("思考：查\n行动：搜\n答案：茶", labels=["思考", "行动", "答案"]),
    ],
    fails=[
        example("Thought: I know\nFinal Answer: a drink"),
        example(_STEP),
        example("Action: search\nThought: hm\nAction Input: x\nObservation: y\nFinal Answer: z"),
        example(f"{_STEP}Final Answer:"),
        example(f"{_STEP}Final Answer: a\n{_STEP}"),
        example(f"{_STEP}{_STEP}Final Answer: a drink", repeats=False),
    ],
)
def protocol(text: str, labels: Labels = REACT, repeats: bool = True) -> Outcome:
    """All labelled parts are there, none empty, in order and each on a line of its own.

    The last label closes the answer. The parts before it may come several times, as complete
    rounds (unless `repeats` is false), and the first of them once more before the last.
    """
    parts = _parts(text, labels)
    missing = [label for label in labels if label not in (found for found, _ in parts)]
    if missing:
        return Outcome(False, f"missing: {', '.join(missing)}")
    empty = [label for label, content in parts if not content.strip()]
    if empty:
        return Outcome(False, f"{empty[0]} is empty")
    # One letter a label, so that the order is a regular expression.
    order = "".join(chr(ord("a") + labels.index(label)) for label, _ in parts)
    round_, last = (
        [chr(ord("a") + i) for i in range(len(labels) - 1)],
        chr(ord("a") + len(labels) - 1),
    )
    rounds = f"(?:{''.join(round_)})" + ("+" if repeats else "")
    followed = regex.fullmatch(f"{rounds}{round_[0]}?{last}", order) is not None
    return Outcome(followed, f"the order is {', '.join(label for label, _ in parts[:12])}")


def _parts(text: str, labels: list[str]) -> list[tuple[str, str]]:
    """Return label and content of every part, in their order."""
    names = "|".join(regex.escape(label) for label in sorted(labels, key=len, reverse=True))
    starts = list(
        regex.finditer(rf"(?m)^[^\S\n]*+[*_#>]*+[^\S\n]*+({names})[*_]*+[^\S\n]*+[:：][*_]*+", text)
    )
    ends = [*(match.start() for match in starts), len(text)][1:]
    return [(match[1], text[match.end() : end]) for match, end in zip(starts, ends, strict=True)]
