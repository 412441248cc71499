"""From requests to rows of a dataset: messages, constraints, and an output to judge."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from adhere import instruction_set
from adhere.config.problems import describe
from adhere.data import Row, check_constraint
from adhere.errors import DataError
from adhere.instruction_set import to_rows
from adhere.instruction_set.form import Defaults
from adhere.instruction_set.form import Item as SetItem
from adhere.instruction_set.read import Placed, ReadSet
from adhere.jsonio import dumps
from adhere.prediction.answer import without_thinking
from adhere.service.forms import Item
from adhere.service.settings import Limits
from adhere.trajectories import TRAJECTORY, load

# A set that is no file: questions are put by the template that comes with the program.
_NO_FILE = Path(instruction_set.__file__)
_PLACE = "{response}"
_MOST_PLACES = 100
_NO_TASK = "(not given)"


def row_of(item: Item, limits: Limits) -> Row:
    """Return the row to be judged. Raises DataError naming what is wrong."""
    messages, response = item.messages or [], item.response
    if item.trajectory is not None:
        # The importers take thinking and answer apart, so nothing is left to be taken out.
        output = {"content": _only(item.trajectory), "trajectory": item.trajectory, "flags": []}
        return bounded(_row(item, [], output, limits), limits)
    if response is None:
        if messages[-1].get("role") != "assistant":
            raise DataError(
                "messages: the last one is not the assistant's: give the `response`, or end with it"
            )
        *messages, last = messages
        response = text_of(last.get("content"))
    row = _row(item, messages, {"content": response}, limits)
    if about_steps(row["constraints"]):
        answered = {"role": "assistant", "content": response}
        row["output"]["trajectory"] = (
            item.messages if item.response is None else [*messages, answered]
        )
    return bounded(row, limits)


def _only(trajectory: Any) -> str:
    found = load(trajectory)
    if len(found) != 1:
        raise DataError(f"trajectory: holds {len(found)} of them: give each an item of its own")
    return found[0].final_answer or ""


def _row(item: Item, messages: Sequence[Mapping[str, Any]], output: Row, limits: Limits) -> Row:
    shown = plain_messages(messages)
    task = item.instruction or "\n\n".join(m["content"] for m in shown) or _NO_TASK
    return without_thinking(
        {
            "input": shown or [{"role": "user", "content": task}],
            "constraints": constraint_rows(item.constraints, task, limits.constraints),
            "output": output,
        }
    )


def plain_messages(messages: Any) -> list[dict[str, str]]:
    """Return what somebody said to the model, as texts; anything else in there is passed over."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    listed = messages if isinstance(messages, list | tuple) else []
    return [
        {"role": str(message.get("role", "user")), "content": text_of(message["content"])}
        for message in listed
        if isinstance(message, Mapping) and "content" in message
    ]


def text_of(content: Any) -> str:
    """Return a message's content as text: its text parts put together."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def constraint_rows(written: Any, task: str, most: int) -> list[Row]:
    """Return constraints as a dataset has them; those in AgentIF's form stay as they are.

    ``written`` is a list, or the compact form. Raises DataError naming constraint and key.
    """
    if isinstance(written, Mapping):
        return _converted(dict(written), task)
    if not isinstance(written, list):
        raise DataError(f"constraints: found {written!r:.60}: must be a list")
    if len(written) > most:
        raise DataError(f"constraints: found {len(written)}; allowed: {most} at most")
    own = [raw for raw in written if isinstance(raw, Mapping) and not _is_agentif(raw)]
    converted = iter(_converted(own, task) if own else [])
    rows: list[Row] = []
    for number, raw in enumerate(written, start=1):
        row = raw if _is_agentif(raw) or not isinstance(raw, Mapping) else next(converted)
        for problem in check_constraint(row):
            raise DataError(f"constraint {number}: {problem}")
        # What an earlier judging left is nobody's verdict here.
        rows.append({key: value for key, value in row.items() if key != "score"})
    return rows


def stay_as_they_are(written: Any) -> bool:
    """Whether constraints are chains in AgentIF's form, all of them."""
    return not written or (isinstance(written, list) and all(map(_is_agentif, written)))


def _is_agentif(raw: Any) -> bool:
    """Whether a constraint is a chain as it stands, with any labels beside it."""
    return isinstance(raw, Mapping) and "evaluation" in raw


def _converted(constraints: Any, task: str) -> list[Row]:
    content = {"id": "item", "instruction": task, "constraints": constraints}
    try:
        item = SetItem.model_validate(content)
    except ValidationError as error:
        raise DataError(describe(error, SetItem, content, "item")) from None
    placed = Placed(item, lambda at: ".".join(at) or "item")
    rows: list[Row] = to_rows(ReadSet(_NO_FILE, Defaults(), [placed]))[0]["constraints"]
    return rows


def bounded(row: Row, limits: Limits) -> Row:
    """Return a row whose prompts, filled in, stay within bounds. Raises DataError."""
    output = row["output"]
    longest = max(len(output["content"]), len(dumps(output.get("trajectory"))))
    filled = 0
    for number, raw in enumerate(row["constraints"], start=1):
        for step in raw["evaluation"]:
            places = step["exec"].count(_PLACE) if isinstance(step["exec"], str) else 1
            if places > _MOST_PLACES:
                raise DataError(
                    f"constraint {number}: its prompt holds {_PLACE} {places} times; allowed: "
                    f"{_MOST_PLACES} at most"
                )
            filled += len(step["exec"]) + max(places, 1) * longest
    if filled > limits.filled_bytes:
        raise DataError(
            f"constraints: with the response filled in they take {filled} bytes; allowed: "
            f"{limits.filled_bytes} at most"
        )
    return row


def about_steps(constraints: Sequence[Row]) -> bool:
    """Whether any constraint looks at what led to the answer."""
    return any(
        raw.get("about") == "trajectory"
        or any(
            step["type"] == "rule" and step["exec"].get("rule") in TRAJECTORY
            for step in raw["evaluation"]
        )
        for raw in constraints
    )
