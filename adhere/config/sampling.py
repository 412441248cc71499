"""What is sent with a request beside its messages: the parameters of sampling, in every file."""

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from adhere.config.fields import Finite, PositiveInt, Share, Strict, Text

# The word that leaves a parameter out of the request.
NOT_SENT = "not_sent"
NotSent = Literal["not_sent"]
Temperature = Annotated[Finite, Field(ge=0, le=2)] | NotSent
TopP = Annotated[Finite, Field(gt=0, le=1)] | NotSent
MinP = Share | NotSent
Penalty = Annotated[Finite, Field(ge=-2, le=2)] | NotSent
Factor = Annotated[Finite, Field(gt=0)] | NotSent
TopK = Annotated[int, Field(ge=-1, le=1_000_000_000)] | NotSent


def _extra_body(body: dict[str, Any]) -> dict[str, Any]:
    taken = sorted(body.keys() & {"model", "messages", "stream", "n"})
    if taken:
        raise ValueError(f"the request's own fields {', '.join(taken)} cannot be set here")
    budgets = sorted(body.keys() & {"max_tokens", "max_completion_tokens"})
    if budgets:
        raise ValueError(
            f"{', '.join(budgets)} cannot be set here, where it would not be trimmed to the "
            "context window: use the field of that name"
        )
    _check_json(body, ())
    return body


def _check_json(value: Any, around: tuple[int, ...]) -> None:
    """Refuse what JSON cannot hold; ``around`` are the ids of the containers it lies in."""
    if id(value) in around or len(around) > 50:
        raise ValueError("contains itself or is nested too deeply")
    inside = (*around, id(value))
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"the name {key!r} is not text: put it in quotes")
            _check_json(item, inside)
    elif isinstance(value, list):
        for item in value:
            _check_json(item, inside)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a number that JSON can hold")
    elif isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("holds a whole number of more than 64 bits")


ExtraBody = Annotated[
    dict[str, Any],
    AfterValidator(_extra_body),
    Field(description="Further fields of the request, sent as they are."),
]

_THINKING_DEFAULTS = {"temperature": 1.0, "top_p": 0.95, "max_tokens": 32768}
_PLAIN_DEFAULTS = {"temperature": 0.0, "top_p": 0.95, "max_tokens": 16384}


class Sampling(Strict):
    """One mode of a model: what is sent with every request.

    Every number may also be the word ``not_sent``, for servers that refuse the parameter.
    """

    temperature: Temperature | None = Field(
        None, description="Default 1.0 for a thinking mode, 0.0 for any other."
    )
    top_p: TopP | None = Field(None, description="Default 0.95.")
    top_k: TopK | None = Field(None, description="Sent only when given.")
    min_p: MinP | None = Field(None, description="Sent only when given.")
    presence_penalty: Penalty | None = Field(None, description="Sent only when given.")
    frequency_penalty: Penalty | None = Field(None, description="Sent only when given.")
    repetition_penalty: Factor | None = Field(None, description="Sent only when given.")
    max_tokens: PositiveInt | NotSent | None = Field(
        None,
        description="Output budget in tokens, thinking included; trimmed to what the context "
        "leaves. Default 32768 for a thinking mode, 16384 for any other.",
    )
    enable_thinking: bool | None = Field(
        None,
        description="Sent as `chat_template_kwargs.enable_thinking` when given. A mode is a "
        "thinking mode when this is true or, where it is not given, when the mode's name begins "
        "with `thinking`.",
    )
    reasoning_effort: Text | None = Field(None, description="Sent only when given.")
    seed: Literal["per_item"] | NotSent | None = Field(
        None,
        description="`per_item` sends a seed derived from item and run. Default `per_item` for a "
        "local model, `not_sent` for an API.",
    )
    extra_body: ExtraBody = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_switch(self) -> "Sampling":
        if self.enable_thinking is not None and "chat_template_kwargs" in self.extra_body:
            raise ValueError(
                "has both `enable_thinking` and `extra_body.chat_template_kwargs`, which would "
                "replace it: write `enable_thinking` into the latter, and let the mode's name "
                "begin with `thinking` where it thinks"
            )
        return self

    def sent(self, *, thinking: bool, local: bool) -> dict[str, Any]:
        """Return what is sent, with every default filled in and nothing left open.

        Keys without a value are left out, and so are those that say ``not_sent``.
        """
        defaults: dict[str, Any] = {
            **(_THINKING_DEFAULTS if thinking else _PLAIN_DEFAULTS),
            "seed": "per_item" if local else NOT_SENT,
        }
        filled = self.model_dump()
        for key, value in defaults.items():
            if filled[key] is None:
                filled[key] = value
        return {k: v for k, v in filled.items() if v not in (None, NOT_SENT, {})}
