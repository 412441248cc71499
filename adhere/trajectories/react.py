"""ReAct text: Thought, Action, Action Input, Observation, Final Answer, each after a colon.

A label stands at the start of a line, with an English or a full-width colon, a number
("Action 2:") or bold type. The Chinese labels are 思考, 行动, 行动输入, 观察 and 最终答案.

The input of an action may be on its line (``search[tea]``, ``search(tea)``), several lines long,
or JSON, bare or in a fence; an action may also be one JSON object ({"action": …, "action_input":
…}). A label inside the fence of an input is text. There is no version.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from adhere.trajectories.building import Builder, Draft
from adhere.trajectories.content import arguments_of, parsed
from adhere.trajectories.form import Action, Observation, Trajectory
from adhere.trajectories.node import Node

FORMAT = "react"
# The tool of an input that stands without its action.
UNNAMED = "(unnamed)"
# A label begins with a capital, so that a line of YAML in an observation is none.
_KINDS = {
    "thought": r"T(?i:hought)|思考|想法",
    "input": r"A(?i:ction)[ \t]?\d{0,4}[ \t]?(?i:input)|行动输入|动作输入",
    "action": r"A(?i:ction)|行动|动作",
    "observation": r"O(?i:bservation)|观察结果|观察",
    "answer": r"F(?i:inal)[ \t](?i:answer)|最终答案|最终回答",
    "question": r"Q(?i:uestion)|问题",
}
_NAMES = "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items())
_LABEL = re.compile(
    rf"[ \t]{{0,8}}[*_#>]{{0,4}}[ \t]?(?:{_NAMES})[ \t]?\d{{0,4}}[*_]{{0,3}}[ \t]?[:：][*_]{{0,3}}"
)
_FENCE = re.compile(r"[ \t]{0,8}(?:```|~~~)")
_FENCED = re.compile(
    r"\s*(?:```|~~~)(?:[^\n`]*\n)?(?P<inside>.*?)\n?[ \t]*(?:```|~~~)\s*", re.DOTALL
)
_WITH_INPUT = re.compile(
    r"(?P<tool>[\w.\-]{1,100})[ \t]?(?:\[(?P<a>.*)\]|\((?P<b>.*)\))", re.DOTALL
)
_NONE = ("", "none", "n/a", "null", "无", "没有")
_ALLOWED = "lines that begin with Thought:, Action: or Final Answer:"


@dataclass(frozen=True, slots=True)
class _Section:
    kind: str
    text: str


def recognises(text: str) -> bool:
    """Whether a text has a line that a ReAct text must have."""
    kinds = {section.kind for section in _sections(text)}
    return bool(kinds & {"thought", "action", "answer"})


def read(node: Node) -> list[Trajectory]:
    """Return the one trajectory. Raises DataError where there is no label at all."""
    text = node.text().replace("\r\n", "\n")
    if not recognises(text):
        raise node.problem(_ALLOWED)
    builder = Builder()
    for section in _sections(text):
        _feed(builder, section)
    return [builder.into(Trajectory(FORMAT))]


def _sections(text: str) -> Iterator[_Section]:
    kind, start, lines = "thought", True, list[str]()
    fences = _Fences(text.split("\n"))
    for number, line in enumerate(text.split("\n")):
        label = None if fences.inside(number, kind) else _LABEL.match(line)
        if label is None:
            lines.append(line)
            continue
        if not start or any(part.strip() for part in lines):
            yield _Section(kind, "\n".join(lines).strip())
        kind, start, lines = label.lastgroup or "", False, [line[label.end() :]]
        fences.begin(number, lines[0])
    if not start:
        yield _Section(kind, "\n".join(lines).strip())


class _Fences:
    """Which lines stand inside a fence of an action or its input."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._closed_at = -1

    def begin(self, number: int, rest: str) -> None:
        """Note a section that begins on this line, whose text after the label is ``rest``."""
        self._closed_at = self._closing(number) if _FENCE.match(rest) else -1

    def inside(self, number: int, kind: str) -> bool:
        """Whether this line of a section is inside a fence or closes one."""
        if kind not in ("input", "action"):
            return False
        if number > self._closed_at and _FENCE.match(self._lines[number]):
            self._closed_at = self._closing(number)
        return number <= self._closed_at

    def _closing(self, number: int) -> int:
        """Return the line that closes a fence; the opening one where none does in time."""
        for later in range(number + 1, len(self._lines)):
            if _FENCE.match(self._lines[later]):
                return later
            label = _LABEL.match(self._lines[later])
            if label and label["observation"]:
                break
        return number


def _feed(builder: Builder, section: _Section) -> None:
    if section.kind == "question":
        builder.message("user", section.text)
        return
    if section.kind == "observation":
        builder.observe(Observation(section.text))
        return
    step = builder.part()
    answered = step.answer is not None
    if answered or (section.kind == "thought" and step.actions):
        builder.close()
        step = builder.part()
    if section.kind == "thought":
        step.thought.append(section.text)
    elif section.kind == "answer":
        step.answer = section.text
    elif section.kind == "action":
        _action(step, section.text)
    else:
        _input(step, section.text)


def _action(step: Draft, text: str) -> None:
    blob = parsed(_unfenced(text))
    if isinstance(blob, dict) and blob:
        _blob(step, blob)
        return
    if _is_none(text):
        return
    match = _WITH_INPUT.fullmatch(text)
    if match:
        step.actions.append(
            Action(match["tool"], parsed(_unfenced(match["a"] or match["b"] or "")))
        )
    else:
        step.actions.append(Action(text.strip("`*\"'[] \n") or UNNAMED))


def _blob(step: Draft, blob: dict[str, JsonValue]) -> None:
    object_ = Node(blob, FORMAT)
    name = object_.get("action", "tool", "name").anything()
    given = object_.get("action_input", "args", "arguments", "input", "parameters")
    if name.lower() in ("final answer", "final_answer"):
        step.answer = given.anything()
    else:
        step.actions.append(Action(name.strip() or UNNAMED, arguments_of(given)))


def _input(step: Draft, text: str) -> None:
    if not step.actions and _is_none(text):
        return
    tool = step.actions.pop().tool if step.actions else UNNAMED
    step.actions.append(Action(tool, parsed(_unfenced(text))))


def _is_none(text: str) -> bool:
    return text.strip("`*\"' ").lower() in _NONE


def _unfenced(text: str) -> str:
    match = _FENCED.fullmatch(text)
    return match["inside"] if match else text.strip()
