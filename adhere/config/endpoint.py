"""Fields about an endpoint that model files and judge files have alike: address, key, manners."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from adhere.config.fields import PositiveInt, Strict

DEFAULT_BASE_URL = "https://api.openai.com/v1"


def _url(url: str) -> str:
    if not re.match(r"https?://[^/\s]|\$\{", url):
        raise ValueError("must begin with http://, https:// or ${NAME}")
    if "@" in url:
        raise ValueError("must hold no user name or password: use `api_key_env`")
    url = url.rstrip("/")
    if url.endswith("/chat/completions"):
        raise ValueError("must end with the version, such as /v1: leave out /chat/completions")
    return url


def _variable_name(name: str) -> str:
    # Capitals only: a key pasted here by mistake would otherwise pass as a name, and be shown.
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,63}", name):
        # The value is not repeated: it may be the key itself.
        raise ValueError(
            "must be the name of an environment variable in capitals, such as OPENAI_API_KEY, "
            "never a key"
        )
    return name


Url = Annotated[str, AfterValidator(_url)]
VariableName = Annotated[str, AfterValidator(_variable_name)]
Batch = Annotated[
    bool,
    Field(
        description="`true` asks through the endpoint's batches (OpenAI's `/files` and "
        "`/batches`): cheaper, and answered within a day (docs/endpoints.md, Batches). It changes "
        "how requests are sent, never a result."
    ),
]
RequestsPerMinute = Annotated[
    PositiveInt | None,
    Field(
        description="What the provider allows, over all jobs that call the endpoint together. "
        "Default: no limit."
    ),
]
TokensPerMinute = Annotated[
    PositiveInt | None,
    Field(
        description="The same for tokens, prompt and reply together: estimated before a request, "
        "corrected after it."
    ),
]


def refuse_rates(config: Strict) -> None:
    """Raise ValueError where a file that names no endpoint limits the rate of calls to one."""
    for rate in ("requests_per_minute", "tokens_per_minute"):
        if getattr(config, rate):
            raise ValueError(f"has `{rate}`, which is for endpoints only: remove it")
