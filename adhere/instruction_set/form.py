"""The form of an instruction set that a team writes by hand: items with their constraints.

The descriptions here are the field reference (docs/instruction-sets.md) and the JSON Schema that
editors use; both are generated from them.
"""

import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from adhere.config.fields import Strict, Text

Category = Literal["hard", "process", "format", "content"]
Severity = Literal["must", "should"]
Level = Literal["answer", "step", "goal"]
FailureMode = Literal["format", "process", "omission", "hallucination", "other"]
About = Literal["answer", "trajectory"]
Role = Literal["system", "developer", "user", "assistant"]


def _date(value: Any) -> Any:
    # YAML's dates are texts here; a date that is none would never come due.
    if isinstance(value, str):
        try:
            return datetime.date.fromisoformat(value).isoformat()
        except ValueError:
            raise ValueError("must be a date such as 2026-11-30") from None
    return value


def _identity(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Date = Annotated[str, BeforeValidator(_date)]
Identity = Annotated[
    str,
    BeforeValidator(_identity, json_schema_input_type=str | int),
    Field(min_length=1, max_length=200),
]


class Message(Strict):
    """One message of a layout."""

    role: Role = Field(description="Who speaks.")
    content: Text = Field(
        description="Its text; `{instruction}` and `{input}` stand for those of the item."
    )


def _layout(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    if not any("{instruction}" in message.content for message in messages):
        raise ValueError("no message holds {instruction}, so the model would not see it")
    return messages


Layout = (
    Literal["user", "system"]
    | Annotated[
        tuple[Message, ...],
        BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v),
        Field(min_length=1),
        AfterValidator(_layout),
    ]
)


class Provenance(Strict):
    """Where a constraint or an item comes from, and when somebody should look at it again."""

    source: Text | None = Field(None, description="Requirement, ticket or log it was taken from.")
    created: Date | None = Field(None, description="Date it was written.")
    scenario: Text | None = Field(None, description="The kind of situation it belongs to.")
    added_from: Text | None = Field(None, description="Set, archive or person that brought it in.")
    review_by: Date | None = Field(
        None, description="Date from which it is listed as due for review."
    )


class Constraint(Strict):
    """One thing to follow: a rule, a question for the judge, or a chain in AgentIF's form."""

    id: Identity | None = Field(None, description="Name in reports. Default: its position.")
    text: Text | None = Field(None, description="The requirement in words, for reports.")
    rule: Text | None = Field(None, description="A registered rule (docs/rules.md).")
    args: dict[str, Any] = Field(default_factory=dict, description="The rule's arguments.")
    loose: bool = Field(
        False,
        description="`true` also accepts the answer without its first or last line or its "
        "asterisks (rules over texts).",
    )
    ask: Text | None = Field(
        None, description="A requirement that needs meaning: put to the judge by its template."
    )
    evaluation: list[dict[str, Any]] | None = Field(
        None, description="A chain of steps in AgentIF's form (data/README.md)."
    )
    category: Category | None = Field(
        None,
        description="`hard`, `process`, `format` or `content`. Default: by the rule; `content` "
        "for a question.",
    )
    severity: Severity = Field(
        "must", description="`must`, or `should`, whose misses never fail an item."
    )
    level: Level | None = Field(
        None, description="`answer`, `step` or `goal`. Default: `step` for a rule over steps."
    )
    about: About | None = Field(
        None,
        description="What a question is about: the final `answer` or the whole `trajectory`. "
        "Default: `trajectory` for category `process` and level `step`.",
    )
    failure_mode: FailureMode | None = Field(
        None, description="What a miss is counted as. Default: by rule and category."
    )
    provenance: Provenance | None = Field(None, description="Default: the item's.")

    @model_validator(mode="after")
    def _consistent(self) -> "Constraint":
        kinds = [k for k in ("rule", "ask", "evaluation") if getattr(self, k) is not None]
        if len(kinds) != 1:
            found = " and ".join(f"`{kind}`" for kind in kinds) or "none of them"
            raise ValueError(f"needs one of `rule`, `ask` and `evaluation`, found {found}")
        if (self.args or self.loose) and self.rule is None:
            raise ValueError("has `args` or `loose` and no `rule` that takes them")
        if self.about is not None and self.ask is None:
            raise ValueError(
                "has `about` and no `ask`: only a question has it, a rule knows what it looks at"
            )
        if self.category == "hard" and self.severity != "must":
            raise ValueError(
                "is `category: hard` with `severity: should`: a hard constraint is always a "
                "`must`; drop `severity`, or choose another category"
            )
        return self


class ToolResponse(Strict):
    """What a tool answers in a live run, for calls that match."""

    tool: Text = Field(description="Name of a tool of `tools`.")
    when: dict[str, Any] = Field(
        default_factory=dict,
        description="Arguments that a call must have for this response; {} matches every call.",
    )
    response: Any = Field(description="Text, or JSON that is sent as text.")


Tools = Annotated[
    tuple[dict[str, Any], ...], BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v)
]
Responses = Annotated[
    tuple[ToolResponse, ...], BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v)
]


class Shared(Strict):
    """What items have in common: fields of an item that hold where it does not say otherwise."""

    layout: Layout | None = Field(
        None,
        description="`user` (instruction, then input, in one user message; the default), `system` "
        "(instruction as system message, input as user message), or a list of messages.",
    )
    scenario: Text | None = Field(None, description="Kind of situation, a group of the report.")
    tools: Tools | None = Field(
        None, description="Tools on offer, as OpenAI's `tools` (type, function)."
    )
    tool_responses: Responses | None = Field(
        None, description="Canned responses of these tools for live runs."
    )
    max_turns: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None, description="Calls of the model in a live run at most. Default: 10."
    )
    provenance: Provenance | None = Field(None, description="Where it comes from.")


class Item(Shared):
    """One instruction with its constraints."""

    id: Identity = Field(description="Unique in the set; results are reported under it.")
    instruction: Text = Field(description="What the model is told to do.")
    input: str | dict[str, Any] | list[Any] | None = Field(
        None, description="What it is to do it with: text, or an object sent as JSON."
    )
    constraints: Annotated[
        Annotated[list[Constraint], Tag("list")] | Annotated[dict[str, Any], Tag("compact")],
        Discriminator(lambda value: "compact" if isinstance(value, dict) else "list"),
    ] = Field(
        default_factory=list,
        description="A list; or the compact form, such as `{json: true, max_sentences: 2}`.",
    )
    verification: dict[str, Any] | None = Field(
        None, description="The other compact form: `{format: …, rules: [{type: …}, …]}`."
    )
    trajectory: str | dict[str, Any] | list[Any] | None = Field(
        None,
        description="What an agent did, recorded: a file beside the set, or the content itself. "
        "Such an item is judged and no model is asked.",
    )
    note: Text | None = Field(None, description="For people; nothing reads it.")

    @model_validator(mode="after")
    def _something_to_follow(self) -> "Item":
        if not self.constraints and not self.verification:
            raise ValueError("has no `constraints` and no `verification`: nothing to follow")
        return self


class Defaults(Shared):
    """``defaults`` of a set."""

    judge_template: Text | None = Field(
        None,
        description="File beside the set with the prompt for `ask`. Default: judge_template.md "
        "beside the set, else the one that comes with the program.",
    )


class InstructionSet(Strict):
    """A set in one YAML or JSON file; as JSONL each line is an item, `defaults` the first line."""

    defaults: Defaults = Field(default_factory=Defaults, description="What items share.")
    items: list[Item] = Field(min_length=1, description="The instructions.")
