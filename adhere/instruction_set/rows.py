"""From a set to the rows of a dataset: messages, and chains of typed steps with their metadata.

From here on a team's item is an item like any other.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adhere.data import Row, check_constraint, check_rule
from adhere.errors import DataError, reason
from adhere.instruction_set.form import Constraint, Defaults, Item, Provenance
from adhere.instruction_set.read import Placed, ReadSet, refuse
from adhere.jsonio import dumps
from adhere.rules.compact import compact_rules, verification_rules
from adhere.tools import check_tools
from adhere.trajectories import TRAJECTORY, load_one, text_of

TEMPLATE = "judge_template.md"
_OWN_TEMPLATE = Path(__file__).with_name(TEMPLATE)
_IN_LAYOUT = re.compile(r"\{(instruction|input)\}")
_IN_TEMPLATE = re.compile(r"\{(instruction|input|requirement)\}")
_LAYOUTS: dict[str, tuple[tuple[str, str], ...]] = {
    "user": (("user", "{instruction}\n\n{input}"),),
    "system": (("system", "{instruction}"), ("user", "{input}")),
}
_CATEGORIES = {"trajectory": "process", "text": "format", "meaning": "content"}
# Rules whose misses are inventions, or something that was left out.
_INVENTED = frozenset({"claimed_but_not_called", "no_unknown_tool"})
_LEFT_OUT = frozenset({"contains", "contains_all", "contains_any", "required_fields", "calc"})
# Rules over what a text says rather than over its form.
_CONTENT = frozenset(
    {"contains", "contains_all", "contains_any", "not_contains", "calc", "equals_one_of"}
)
# What holds for all items where they do not say otherwise, and is kept with each row.
_SHARED = ("scenario", "tools", "tool_responses", "max_turns")


def to_rows(read: ReadSet) -> list[Row]:
    """Return a set's items as rows.

    Raises DataError naming line, item and constraint of everything that is wrong.
    """
    template = _template(read)
    rows: list[Row] = []
    problems: list[str] = []
    for placed in read.items:
        try:
            rows.append(_row(placed, read, template))
        except DataError as error:
            problems.append(str(error))
    refuse(problems)
    return rows


def _row(placed: Placed, read: ReadSet, template: str) -> Row:
    item, defaults = placed.item, read.defaults
    provenance = item.provenance or defaults.provenance
    shared = _shared(item, defaults)
    row: Row = {
        "id": item.id,
        "input": _messages(placed, defaults),
        "constraints": _constraints(placed, provenance, template),
        **{key: value for key, value in shared.items() if value is not None},
    }
    if problems := check_tools(row):
        raise placed.problem(("tools",), "; ".join(problems))
    if item.trajectory is not None:
        row["trajectory"] = _trajectory(placed, read.path.parent)
    return row


def _trajectory(placed: Placed, folder: Path) -> Any:
    """Return a recorded trajectory's content, from its file where one is named."""
    content, name = placed.item.trajectory, "trajectory"
    try:
        if isinstance(content, str) and "\n" not in content.strip():
            name = str(folder / content)
            content = text_of(folder / content)
        load_one(content, name=name)
    except DataError as error:
        raise placed.problem(("trajectory",), f"trajectory: {error}") from None
    return content


def _shared(item: Item, defaults: Defaults) -> dict[str, Any]:
    """Return what an item has itself or from the set's defaults."""
    own, common = (
        {key: value for key, value in part.model_dump(mode="json").items() if value is not None}
        for part in (item, defaults)
    )
    shared = {key: own.get(key, common.get(key)) for key in _SHARED}
    if not shared["tools"]:
        # `tools: []` takes an item out of what the defaults say.
        return {"scenario": shared["scenario"]}
    if "tool_responses" not in own and "tools" in own and "tool_responses" in common:
        # Common responses of tools that this item does not offer mean nothing here.
        names = {(tool.get("function") or {}).get("name") for tool in own["tools"]}
        shared["tool_responses"] = [r for r in common["tool_responses"] if r["tool"] in names]
    return shared


def _messages(placed: Placed, defaults: Defaults) -> list[dict[str, str]]:
    """Lay an item out as messages; one that would be empty is left out."""
    item = placed.item
    layout = item.layout or defaults.layout or "user"
    if isinstance(layout, str):
        parts = _LAYOUTS[layout]
    else:
        parts = tuple((message.role, message.content) for message in layout)
    values = {"instruction": item.instruction, "input": _text(item.input)}
    filled = [(role, _fill(_IN_LAYOUT, text, values)) for role, text in parts]
    messages = [{"role": role, "content": text} for role, text in filled if text]
    if all(message["role"] in ("system", "developer") for message in messages):
        raise placed.problem(
            ("input",),
            "input: missing, and the layout leaves no user message without it: give an `input`, "
            "or another `layout`",
        )
    return messages


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value, indent=True).decode()


def _fill(pattern: re.Pattern[str], text: str, values: Mapping[str, str]) -> str:
    """Fill placeholders in one pass, so that what is filled in stays data."""
    return pattern.sub(lambda match: values[match[1]], text).strip()


def _constraints(placed: Placed, provenance: Provenance | None, template: str) -> list[Row]:
    """Return an item's constraints, of whatever form."""
    rows = list(_each_constraint(placed, provenance, template))
    if not rows:
        raise placed.problem(
            ("constraints",),
            "constraints: ask for nothing (`false` asks for nothing): there is nothing to follow",
        )
    return rows


def _each_constraint(placed: Placed, provenance: Provenance | None, template: str) -> Iterator[Row]:
    item = placed.item
    questions = _Questions(template, item)
    written = item.constraints if isinstance(item.constraints, list) else []
    for index, constraint in enumerate(written):
        yield _constraint(placed, index, constraint, provenance, questions)
    for key, convert in (("constraints", compact_rules), ("verification", verification_rules)):
        compact = getattr(item, key)
        if isinstance(compact, Mapping):
            try:
                calls = convert(compact)
            except DataError as error:
                raise placed.problem((key,), f"{key}.{error}") from None
            for call in calls:
                constraint = Constraint(rule=call.name, args=dict(call.args))
                yield _constraint(placed, 0, constraint, provenance, questions)


def _constraint(
    placed: Placed,
    index: int,
    constraint: Constraint,
    provenance: Provenance | None,
    questions: "_Questions",
) -> Row:
    """Return one constraint as a row has it; ``index`` says where it stands in the file."""
    over = _over(constraint)
    kind = "content" if constraint.rule in _CONTENT else _CATEGORIES[over]
    category = constraint.category or kind
    level = constraint.level or ("step" if over == "trajectory" else "answer")
    of_steps = category == "process" or level == "step"
    about = constraint.about or ("trajectory" if of_steps else None)
    row: Row = {
        "id": constraint.id,
        "desc": constraint.text or constraint.ask,
        "evaluation": _evaluation(constraint, questions),
        "rule": constraint.rule,
        "category": category,
        "severity": constraint.severity,
        "level": level,
        "failure_mode": constraint.failure_mode or _failure_mode(constraint.rule, category),
        "about": about if constraint.ask is not None else None,
    }
    source = constraint.provenance or provenance
    if source is not None:
        row["provenance"] = source.model_dump(exclude_none=True)
    row = {key: value for key, value in row.items() if value is not None}
    problems = [
        placed.problem(("constraints", str(index), *at), f"constraints.{index}: {problem}")
        for at, problem in _problems(constraint, row)
    ]
    if problems:
        raise DataError("\n".join(map(str, problems)))
    return row


def _problems(constraint: Constraint, row: Row) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what is wrong with a constraint, each with the keys that lead to it."""
    if constraint.rule is None:
        yield from ((("evaluation",), problem) for problem in check_constraint(row))
        return
    shown = f"rule `{constraint.rule}`: "
    for problem in check_rule(row["evaluation"][0]["exec"]):
        argument = problem.removeprefix(shown).partition(":")[0].split(".")
        if problem.startswith(shown) and argument[0] in constraint.args:
            yield ("args", *argument), problem
        elif problem.startswith("loose: "):
            yield ("loose",), problem
        else:
            yield ("rule",), problem


def _over(constraint: Constraint) -> str:
    """Return what decides a constraint: a rule over a text or a trajectory, or something else."""
    if constraint.rule is None:
        return "meaning"
    return "trajectory" if constraint.rule in TRAJECTORY else "text"


def _evaluation(constraint: Constraint, questions: "_Questions") -> list[dict[str, Any]]:
    if constraint.evaluation is not None:
        return constraint.evaluation
    if constraint.ask is not None:
        return [{"type": "llm", "exec": questions.prompt(constraint.ask)}]
    step: dict[str, Any] = {"rule": constraint.rule, "args": constraint.args}
    if constraint.loose:
        step["loose"] = True
    return [{"type": "rule", "exec": step}]


def _failure_mode(rule: str | None, category: str) -> str:
    """Return what a miss most likely is; a constraint may say it better itself."""
    if rule in _INVENTED:
        return "hallucination"
    if rule in _LEFT_OUT:
        return "omission"
    return {"format": "format", "process": "process"}.get(category, "other")


class _Questions:
    """The prompts of an item's questions."""

    def __init__(self, template: str, item: Item) -> None:
        self._template = template
        self._values = {"instruction": item.instruction, "input": _text(item.input) or "(none)"}

    def prompt(self, requirement: str) -> str:
        """Return the prompt for one requirement, with ``{response}`` still to be filled in.

        What is filled in here may hold that word itself: it is set apart by a blank.
        """
        values = {**self._values, "requirement": requirement}
        safe = {key: value.replace("{response}", "{ response }") for key, value in values.items()}
        return _fill(_IN_TEMPLATE, self._template, safe)


def _template(read: ReadSet) -> str:
    """Return the prompt for questions: that of the set, or the one that comes with the program."""
    named = read.defaults.judge_template
    beside = read.path.parent / (named or TEMPLATE)
    path = beside if named or beside.exists() else _OWN_TEMPLATE
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{read.path}: defaults.judge_template: {path} cannot be read: {reason(error)}"
        ) from None
    for placeholder in ("{requirement}", "{response}"):
        if text.count(placeholder) != 1:
            raise DataError(
                f"{path}: must hold {placeholder} once, found it {text.count(placeholder)} times: "
                "a judge needs the requirement and the response"
            )
    return text
