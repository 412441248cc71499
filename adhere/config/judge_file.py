"""The fields of a judge file, ``judge_configs/<judge>.yaml``."""

from typing import Any, Literal

from pydantic import Field, model_validator

from adhere.config.endpoint import (
    Batch,
    RequestsPerMinute,
    TokensPerMinute,
    Url,
    VariableName,
    refuse_rates,
)
from adhere.config.fields import PositiveInt, Strict, Text
from adhere.config.local import Local
from adhere.config.prices import Prices
from adhere.config.sampling import NOT_SENT, ExtraBody, Temperature, TopP

# Names of what adhere.verdict implements; a test holds them against each other.
ParserName = Literal["adhere", "upstream-2025", "nemo-0.7"]


class JudgeConfig(Strict):
    """One judge model. Either an endpoint (`base_url`) or a model served by the job (`local`)."""

    enabled: bool = Field(True, description="`false`: runs only when named in `judges=`.")
    demo: bool = Field(
        False, description="`true` marks results whose scores mean nothing; the summary says so."
    )
    base_url: Url | None = Field(
        None,
        description="Default: the variable `OPENAI_BASE_URL`, else OpenAI's own; `${NAME}` is "
        "replaced from the environment or `.env`.",
    )
    model: Text = Field(description="The judge's id at its endpoint.")
    api_key_env: VariableName | None = Field(
        "OPENAI_API_KEY",
        description="Name of the environment variable that holds the key; `null` sends no key.",
    )
    temperature: Temperature | None = Field(None, description="Sent only when given.")
    top_p: TopP | None = Field(None, description="Sent only when given.")
    reasoning_effort: Text | None = Field(None, description="Sent only when given.")
    max_completion_tokens: PositiveInt | None = Field(
        None, description="Output budget in tokens, reasoning included. Sent only when given."
    )
    max_tokens: PositiveInt | None = Field(
        None, description="The same for servers that know only this older name."
    )
    extra_body: ExtraBody = Field(default_factory=dict)
    votes: PositiveInt = Field(1, description="Independent calls a question; the majority counts.")
    parser: ParserName = Field("adhere", description="How a reply is read.")
    structured: bool = Field(
        False,
        description="`true` asks for verdicts as JSON through `response_format`. AgentIF's prompts "
        "ask for a plain YES or NO, which is the default.",
    )
    asks: PositiveInt = Field(
        2,
        description="Calls a question at most while the reply cannot be read; after one that was "
        "cut off, with four times the output budget, and not again where none is set.",
    )
    concurrency: PositiveInt | None = Field(
        None,
        description="Requests in flight, of all jobs that call the endpoint together. Default: "
        "`concurrency` of `global.yaml`.",
    )
    requests_per_minute: RequestsPerMinute = None
    tokens_per_minute: TokensPerMinute = None
    batch: Batch = False
    local: Local | None = Field(
        None, description="Serve the judge in the job itself: fields as for a local model."
    )
    prices: Prices | None = Field(
        None, description="What its tokens cost: fields as in a model file."
    )

    @model_validator(mode="after")
    def _consistent(self) -> "JudgeConfig":
        if self.max_tokens is not None and self.max_completion_tokens is not None:
            raise ValueError("has both `max_tokens` and `max_completion_tokens`: keep one")
        if self.local is not None:
            if self.batch:
                raise ValueError("has both `local` and `batch`: batches need an endpoint")
            if self.base_url is not None:
                raise ValueError("has both `local` and `base_url`: keep one of them")
            if not self.local.model_path or not self.local.max_model_len:
                raise ValueError("`local` needs `model_path` and `max_model_len`")
            refuse_rates(self)
        return self

    def sampling(self) -> dict[str, Any]:
        """Return the fields sent with every request, defaults and ``not_sent`` left out."""
        keys = ("temperature", "top_p", "reasoning_effort", "max_completion_tokens", "max_tokens")
        values = {key: getattr(self, key) for key in keys}
        sent = {k: v for k, v in values.items() if v is not None and v != NOT_SENT}
        return sent | ({"extra_body": self.extra_body} if self.extra_body else {})
