"""What ``/v1/verify`` takes and returns. The descriptions are the OpenAPI document's."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Verdict = Literal["followed", "violated", "not_applicable", "unscored"]
Identity = str | int | None


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Item(_Form):
    """A response with its constraints."""

    id: Identity = Field(None, description="Comes back with the result.")
    response: str | None = Field(None, description="The text to be judged.")
    messages: list[dict[str, Any]] | None = Field(
        None,
        description="The conversation as OpenAI's chat messages. With `response`: what it answers; "
        "alone: its last message, the assistant's, is the response.",
    )
    trajectory: dict[str, Any] | list[Any] | str | None = Field(
        None,
        description="What an agent did, in any format that Adhere reads (ATIF, Inspect logs, "
        "SWE-agent, mini-SWE-agent, OpenAI responses or chat, steps, ReAct); its final answer is "
        "the response.",
    )
    constraints: Annotated[list[dict[str, Any]], Field(min_length=1)] | dict[str, Any] = Field(
        description="Each with `evaluation` (a chain in AgentIF's form), `rule` with `args`, or "
        "`ask` (a question for the judge), as in an instruction set; or the compact form, such as "
        "`{json: true}`.",
    )
    instruction: str | None = Field(
        None, description="What `ask` shows the judge as the task. Default: from `messages`."
    )
    trace: bool = Field(False, description="Return each step with its prompts and replies.")

    @model_validator(mode="after")
    def _one_response(self) -> "Item":
        given = (self.response is not None, self.trajectory is not None)
        if all(given) or (self.trajectory is not None and self.messages is not None):
            raise ValueError("`trajectory` holds the response: give no other one beside it")
        if not any(given) and not self.messages:
            raise ValueError("needs `response`, `messages` or `trajectory`")
        return self


class Batch(_Form):
    """Many items."""

    # Each is validated when its turn comes, so that one that is wrong spoils no other.
    items: Annotated[list[dict[str, Any]], Field(min_length=1)] = Field(
        description="Items as `/v1/verify` takes them."
    )


class Judged(_Form):
    """What became of one constraint."""

    index: int = Field(description="Its position, from 0.")
    id: str | None = Field(description="As given.")
    verdict: Verdict
    reason: str | None = Field(
        description="Why: the judge's text, what a rule found, or the name of what kept it from "
        "a verdict (`judge_failed`, `checker_timeout`, …)."
    )
    detail: str | None = Field(description="What a checker or an endpoint said of its failure.")
    broken_steps: list[int] = Field(description="Steps of the trajectory that broke a rule.")
    steps: list[dict[str, Any]] | None = Field(description="With `trace` only.")


class Totals(_Form):
    """Counts of an item's verdicts."""

    followed: int
    violated: int
    not_applicable: int
    unscored: int
    csr: float | None = Field(description="followed / (followed + violated); null where neither.")
    isr: bool | None = Field(
        description="Whether everything that applies was followed and has a verdict; null where "
        "nothing applies."
    )


class Result(_Form):
    """An item's verdicts, in the order of its constraints."""

    id: Identity
    verdicts: list[Judged]
    totals: Totals


class Line(_Form):
    """One line of a batch's answer, written when its item is done; the last one has `done`."""

    index: int | None = Field(None, description="Position of the item in the batch, from 0.")
    result: Result | None = None
    error: dict[str, str] | None = Field(None, description="`kind` and `message`, as in refusals.")
    done: int | None = Field(None, description="Last line only: how many items were answered.")
