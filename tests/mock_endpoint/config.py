"""What the mock can be told: its config, and the rules with the replies that they give."""

from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

# Bodies are arbitrary JSON that tests index into.
Json = dict[str, Any]


class Strict(BaseModel):
    """Refuses fields that it does not have, and changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ErrorBody(Strict):
    """The ``error`` object of a refusal; fields that are not set follow from the status."""

    type: str | None = None
    code: str | int | None = None
    param: str | None = None
    message: str | None = None


class Reply(Strict):
    """What a rule answers. Only fields that are set differ from the default reply.

    ``content``, ``reasoning``, ``finish_reason``, ``usage``, ``served_model`` and
    ``system_fingerprint`` set to None are sent as null (``reasoning``: the field is left out).
    """

    content: str | None = None
    reasoning: str | None = None
    reasoning_field: Literal["reasoning", "reasoning_content"] | None = None
    finish_reason: str | None = None
    usage: Json | None = None
    served_model: str | None = None
    system_fingerprint: str | None = None
    filter: bool = False
    """finish_reason content_filter and, unless set, an empty content."""
    tool_calls: list[Json] = []
    """Calls of tools in the message, whose content is then null unless set; see ``tool_call``."""
    empty_choices: bool = False
    status: int = Field(default=200, ge=200, le=599)
    """Any other than 200 sends ``error`` as the body."""
    error: ErrorBody = ErrorBody()
    retry_after: int | float | str | None = None
    """The Retry-After header: seconds, or text sent as it is."""
    raw_body: str | None = None
    """Sent in place of the JSON: garbage, truncated JSON, HTML."""
    cut: bool = False
    """Declare the whole length, send half of it, close."""
    reset: bool = False
    """Reset the connection (TCP RST) without any reply."""
    hang_s: float = Field(default=0.0, ge=0)
    """Seconds to wait, in addition to the latency, before any of the above."""


def tool_call(name: str, arguments: Json | str, call_id: str | None = "call_a") -> Json:
    """Return a call of a tool as servers send it."""
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


class Rule(Strict):
    """The first rule that matches a request and is not used up decides its reply."""

    match: str = ""
    """Substring of the prompt (all message texts joined by newlines) or of the model's name."""
    judge: bool | None = None
    """Only judge requests (True) or only the others (False)."""
    reply: Reply = Reply()
    times: int | None = Field(default=None, ge=0)
    """Only the first so many matching requests; the next rules get the rest."""
    times_per_body: int | None = Field(default=None, ge=0)
    """Only the first so many requests of each identical body, as a fault that a retry heals."""
    probability: float = Field(default=1.0, ge=0, le=1)
    """Share of bodies that the rule hits; the same bodies every time (keyed by ``seed``)."""


class MockConfig(Strict):
    """Everything the mock can be told; every field may be changed while it runs."""

    latency_s: float = Field(default=0.0, ge=0)
    rules: list[Rule] = []
    flavour: Literal["vllm", "openai", "llamacpp"] = "vllm"
    """Whose refusal of a prompt that does not fit is imitated."""
    context_tokens: int | None = Field(default=None, gt=0)
    """Context window; a token is four UTF-8 bytes of text, rounded up over the whole prompt."""
    require_key: str | None = None
    models: list[str] = []
    """Known models; empty: any model is."""
    refused_parameters: list[str] = []
    reply_chars: int = Field(default=400, ge=1)
    chinese_share: float = Field(default=0.25, ge=0, le=1)
    yes_share: float = Field(default=0.5, ge=0, le=1)
    reasoning_field: Literal["reasoning", "reasoning_content"] = "reasoning"
    served_model: str | None = None
    """Sent as ``model``; None: the requested name."""
    system_fingerprint: str | None = "fp_mock"
    most_in_flight: int | None = Field(default=None, ge=0)
    """Requests beyond so many at once are refused with 429."""
    most_in_window: int | None = Field(default=None, ge=0)
    """Requests beyond so many accepted within any ``window_s`` seconds are refused with 429 and a
    Retry-After, in seconds, that says when the next one is accepted."""
    window_s: float = Field(default=60.0, gt=0)
    seed: int = 0
    log_entries: int = Field(default=20_000, ge=0)
    log_bytes: int = Field(default=64 * 1024 * 1024, ge=0)
    """Bounds of the request log; the oldest entries go first."""
