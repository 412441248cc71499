"""The fields of ``global.yaml``, of model files and of judge files.

The descriptions here are the field reference: ``configs/README.md`` is generated from them
(``python -m adhere.config.reference``) and a test fails when the two drift.
"""

import math
import re
import shlex
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from adhere.checkers.isolation import Level

NOT_SENT = "not_sent"
# Names of what adhere.scoring and adhere.verdict implement; tests hold them against each other.
PolicyName = Literal["adhere", "upstream-2025", "nemo-0.7"]
ParserName = Literal["adhere", "upstream-2025", "nemo-0.7"]
DEFAULT_BASE_URL = "https://api.openai.com/v1"

_THINKING_DEFAULTS: dict[str, float] = {"temperature": 1.0, "top_p": 0.95, "max_tokens": 32768}
_PLAIN_DEFAULTS: dict[str, float] = {"temperature": 0.0, "top_p": 0.95, "max_tokens": 16384}


class Strict(BaseModel):
    """Base of all config parts: unknown keys are errors, values are never coerced from text."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _floats(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _none_as_empty(value: Any) -> Any:
    return {} if value is None else value


# A parameter of a request: a value, or the word that leaves it out of the request.
NotSent = Literal["not_sent"]
Finite = Annotated[float, BeforeValidator(_floats), Field(allow_inf_nan=False)]
Temperature = Annotated[Finite, Field(ge=0, le=2)] | NotSent
TopP = Annotated[Finite, Field(gt=0, le=1)] | NotSent
MinP = Annotated[Finite, Field(ge=0, le=1)] | NotSent
Penalty = Annotated[Finite, Field(ge=-2, le=2)] | NotSent
Factor = Annotated[Finite, Field(gt=0)] | NotSent
# The upper limits are far beyond any use; they keep numbers within what JSON writers hold.
TopK = Annotated[int, Field(ge=-1, le=1_000_000_000)] | NotSent
PositiveInt = Annotated[int, Field(ge=1, le=1_000_000_000)]
Seconds = Annotated[Finite, Field(gt=0)]
Text = Annotated[str, Field(min_length=1)]


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


def _variable_name(name: str) -> str:
    # Capitals only: a key pasted here by mistake would otherwise pass as a name, and be shown.
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,63}", name):
        # The value is not repeated: it may be the key itself.
        raise ValueError(
            "must be the name of an environment variable in capitals, such as OPENAI_API_KEY, "
            "never a key"
        )
    return name


def _url(url: str) -> str:
    if not re.match(r"https?://[^/\s]|\$\{", url):
        raise ValueError("must begin with http://, https:// or ${NAME}")
    if "@" in url:
        raise ValueError("must hold no user name or password: use `api_key_env`")
    url = url.rstrip("/")
    if url.endswith("/chat/completions"):
        raise ValueError("must end with the version, such as /v1: leave out /chat/completions")
    return url


Url = Annotated[str, AfterValidator(_url)]
VariableName = Annotated[str, AfterValidator(_variable_name)]
ExtraBody = Annotated[dict[str, Any], AfterValidator(_extra_body)]


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
    extra_body: ExtraBody = Field(
        default_factory=dict, description="Further fields of the request, sent as they are."
    )

    @model_validator(mode="after")
    def _one_switch(self) -> "Sampling":
        if self.enable_thinking is not None and "chat_template_kwargs" in self.extra_body:
            raise ValueError(
                "has both `enable_thinking` and `extra_body.chat_template_kwargs`, which would "
                "replace it: write `enable_thinking` into the latter, and let the mode's name "
                "begin with `thinking` where it thinks"
            )
        return self


class Api(Strict):
    """Where an API model is called."""

    base_url: Url = Field(
        description="URL up to and including the version, such as `http://host:8000/v1`; "
        "`${NAME}` is replaced from the environment or `.env`."
    )
    model: Text = Field(description="The model's id at this endpoint.")
    api_key_env: VariableName | None = Field(
        None, description="Name of the environment variable that holds the key, never the key."
    )
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        "max_tokens", description="Name under which the output budget is sent."
    )


def _arguments(value: Any) -> Any:
    return tuple(shlex.split(value)) if isinstance(value, str) else _tuple(value)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _texts(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(
            str(v) if isinstance(v, int | float) and not isinstance(v, bool) else v for v in value
        )
    return value


class Local(Strict):
    """A model that the workflow serves itself; shared by model and judge files."""

    engine: Literal["vllm", "llamacpp"] | None = Field(
        None,
        description="`vllm`, or `llamacpp` for the embedded engine. Default: `llamacpp` for a "
        "`.gguf` file or `package:` path, else `vllm`.",
    )
    model_path: Text | None = Field(
        None,
        description="Folder or file (absolute, or with `${MODELS_DIR}`), hub id, or "
        "`package:NAME` for a model that a Python package carries.",
    )
    max_model_len: PositiveInt | None = Field(
        None, description="Context window in tokens, prompt and output together."
    )
    served_model_name: Text | None = Field(
        None, description="Name under which the server offers the model. Default: the file's name."
    )
    vllm_args: Annotated[tuple[str, ...], BeforeValidator(lambda v: _texts(_arguments(v)))] = Field(
        (), description="Handed to the server verbatim: a list, or one line as in a shell."
    )
    tensor_parallel_size: PositiveInt = Field(1, description="GPUs that share one model copy.")
    num_gpus: Annotated[int, Field(ge=0)] | None = Field(
        None,
        description="GPUs the serving job asks for. Default: `tensor_parallel_size` (`vllm`), "
        "0 (`llamacpp`).",
    )
    gpus: Annotated[tuple[str, ...], BeforeValidator(_texts)] | None = Field(
        None, description="Particular devices (indices or UUIDs) instead of any free ones."
    )
    port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        None, description="A fixed port. Default: any free one."
    )
    slots: PositiveInt = Field(4, description="Parallel sequences of the `llamacpp` engine.")
    threads: PositiveInt = Field(1, description="CPU threads of the `llamacpp` engine.")

    @property
    def engine_name(self) -> Literal["vllm", "llamacpp"]:
        """The engine that serves this model: as configured, or by its path."""
        if self.engine is not None:
            return self.engine
        path = self.model_path or ""
        packaged = path.endswith(".gguf") or path.startswith("package:")
        return "llamacpp" if packaged else "vllm"

    @property
    def gpu_count(self) -> int:
        """GPUs that serving this model takes."""
        if self.num_gpus is not None:
            return self.num_gpus
        if self.gpus is not None:
            return len(self.gpus)
        return self.tensor_parallel_size if self.engine_name == "vllm" else 0


class ModelConfig(Local):
    """One model under test. Either `api`, or `model_path`, `max_model_len` and `modes`."""

    enabled: bool = Field(True, description="`false`: runs only when named in `models=`.")
    demo: bool = Field(
        False, description="`true` marks results whose scores mean nothing; the summary says so."
    )
    api: Api | None = Field(None, description="An endpoint that already runs, see below.")
    modes: dict[str, Annotated[Sampling, BeforeValidator(_none_as_empty)]] = Field(
        default_factory=dict,
        description="Mode name → sampling, see below. Default for an API model: one mode "
        "`default`.",
    )
    concurrency: PositiveInt | None = Field(
        None, description="Requests in flight. Default: `concurrency` of `global.yaml`."
    )

    @model_validator(mode="after")
    def _one_kind(self) -> "ModelConfig":
        if self.api is not None and self.model_path is not None:
            raise ValueError("has both `api` and `model_path`: keep one of them")
        if self.api is None:
            missing = [k for k in ("model_path", "max_model_len", "modes") if not getattr(self, k)]
            if missing:
                raise ValueError(
                    f"lacks {', '.join(f'`{key}`' for key in missing)}: a local model needs "
                    "`model_path`, `max_model_len` and `modes`; an API model needs `api`"
                )
        return self

    @property
    def is_local(self) -> bool:
        """Whether the workflow serves this model itself."""
        return self.api is None

    def mode(self, name: str) -> dict[str, Any]:
        """Return a mode's sampling with every default filled in and nothing left open.

        Keys with None are not sent, nor are those that say ``not_sent``.
        """
        sampling = self.modes[name] if self.modes else Sampling()
        defaults = _THINKING_DEFAULTS if self.thinks(name) else _PLAIN_DEFAULTS
        filled: dict[str, Any] = sampling.model_dump()
        for key, value in defaults.items():
            if filled[key] is None:
                filled[key] = value
        if filled["seed"] is None:
            filled["seed"] = "per_item" if self.is_local else NOT_SENT
        return {k: v for k, v in filled.items() if v not in (None, NOT_SENT, {})}

    def thinks(self, name: str) -> bool:
        """Whether a mode is a thinking mode."""
        sampling = self.modes.get(name, Sampling())
        if sampling.enable_thinking is not None:
            return sampling.enable_thinking
        return name.lower().startswith("thinking")

    @property
    def mode_names(self) -> tuple[str, ...]:
        """The model's modes in the order of its file."""
        return tuple(self.modes) or ("default",)


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
    extra_body: ExtraBody = Field(
        default_factory=dict, description="Further fields of the request, sent as they are."
    )
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
        "cut off, with four times the output budget.",
    )
    concurrency: PositiveInt | None = Field(
        None, description="Requests in flight. Default: `concurrency` of `global.yaml`."
    )
    local: Local | None = Field(
        None, description="Serve the judge in the job itself: fields as for a local model."
    )

    @model_validator(mode="after")
    def _consistent(self) -> "JudgeConfig":
        if self.max_tokens is not None and self.max_completion_tokens is not None:
            raise ValueError("has both `max_tokens` and `max_completion_tokens`: keep one")
        if self.local is not None:
            if self.base_url is not None:
                raise ValueError("has both `local` and `base_url`: keep one of them")
            if not self.local.model_path or not self.local.max_model_len:
                raise ValueError("`local` needs `model_path` and `max_model_len`")
        return self

    def sampling(self) -> dict[str, Any]:
        """Return the fields sent with every request, defaults and ``not_sent`` left out."""
        keys = ("temperature", "top_p", "reasoning_effort", "max_completion_tokens", "max_tokens")
        values = {key: getattr(self, key) for key in keys}
        sent = {k: v for k, v in values.items() if v is not None and v != NOT_SENT}
        return sent | ({"extra_body": self.extra_body} if self.extra_body else {})


class Retry(Strict):
    """Patience with an endpoint that fails for a while."""

    attempts: PositiveInt = Field(6, description="Tries a request at most.")
    first_wait_s: Seconds = Field(1.0, description="Wait before the second try; doubles each time.")
    max_wait_s: Seconds = Field(60.0, description="Longest wait, also for a server's Retry-After.")
    timeout_s: Seconds | None = Field(
        None,
        description="Longest wait for one reply. Default: 120 s + 0.1 s a token of the output "
        "budget.",
    )


class Checkers(Strict):
    """The processes that run a dataset's `check_following` functions."""

    workers: Annotated[int, Field(ge=0)] = Field(0, description="0: one a core.")
    timeout_s: Seconds = Field(10.0, description="Time limit of one check.")
    memory_mb: PositiveInt = Field(1024, description="Memory limit of one check.")
    isolation: Level = Field(
        "medium",
        description="Least isolation of checkers; below it judging stops (README, Safety).",
    )


class GlobalConfig(Strict):
    """What holds for all models and judges."""

    datasets: dict[str, Text] = Field(
        description="Name → file (JSON or JSONL, plain or gzip), relative to the project."
    )
    default_datasets: Annotated[tuple[str, ...], BeforeValidator(_tuple)] = Field(
        min_length=1, description="Datasets that run when `datasets=` names none."
    )
    repeats: PositiveInt = Field(3, description="Independent runs of every (model, mode).")
    default_judge: str = Field(
        description="Judge used by `scripts/judge.py` when none is named; shown first."
    )
    concurrency: PositiveInt = Field(64, description="Requests in flight to one endpoint.")
    policy: PolicyName = Field("adhere", description="How verdicts are counted.")
    results_root: str = Field("results", description="Where everything generated goes.")
    gpus: Annotated[tuple[str, ...], BeforeValidator(_texts)] | Literal["auto"] = Field(
        "auto",
        description="The GPUs local models may use: a list, or `auto` for all there are. Not used "
        "yet: devices are not leased to jobs, so serve one local `vllm` model at a time with "
        "`--resources gpu=N`, N being the GPUs of the largest.",
    )
    retry: Retry = Field(default_factory=Retry, description="See below.")
    checkers: Checkers = Field(default_factory=Checkers, description="See below.")
