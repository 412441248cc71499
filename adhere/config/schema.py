"""The fields of ``global.yaml``, of model files and of judge files.

The descriptions here are the field reference: ``configs/README.md`` is generated from them
(``python -m adhere.config.reference``) and a test fails when the two drift.
"""

import math
import re
import shlex
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from adhere.checkers.isolation import Level

NOT_SENT = "not_sent"
# Names of what adhere.scoring and adhere.verdict implement; tests hold them against each other.
PolicyName = Literal["adhere", "upstream-2025", "nemo-0.7"]
ParserName = Literal["adhere", "upstream-2025", "nemo-0.7"]
# Rates that a gate may look at, and the groups of constraints that have a rate each.
METRICS = ("constraint_rate", "item_mean", "all_pass_rate")
METRIC_GROUPS = ("category", "severity", "level", "rule", "scenario")
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


_BATCH = (
    "`true` asks through the endpoint's batches (OpenAI's `/files` and `/batches`): cheaper, and "
    "answered within a day (docs/endpoints.md, Batches). It changes how requests are sent, never a "
    "result."
)
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
    batch: bool = Field(False, description=_BATCH)


def _recorded_path(pattern: str) -> str:
    if "{id}" not in pattern:
        raise ValueError("must hold {id}, which stands for an item's id")
    return pattern


class Recorded(Strict):
    """Where an agent's recorded runs are."""

    trajectories: Annotated[Text, AfterValidator(_recorded_path)] | None = Field(
        None,
        description="A file for each item, such as `runs/v3/{id}.json`, relative to the project; "
        "`{id}` stands for the item's id, `{run}` for the number of the run. Default: those that "
        "the items carry.",
    )
    format: Text | None = Field(
        None,
        description="Their format, by its name in docs/instruction-sets.md. Default: recognised.",
    )

    @property
    def runs_apart(self) -> bool:
        """Whether each run has files of its own."""
        return self.trajectories is not None and "{run}" in self.trajectories


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


def _devices(names: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse names that CUDA_VISIBLE_DEVICES would take for something else than one device."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9][\w./:-]*", name):
            raise ValueError(f"{name!r} is no device: write an index from 0, a UUID or a MIG name")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"names {', '.join(twice)} more than once")
    return names


Devices = Annotated[tuple[str, ...], BeforeValidator(_texts), AfterValidator(_devices)]


def _decimal(value: Any) -> Any:
    # As it is written: the binary fraction nearest to 0.1 is not 0.1.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return Decimal(str(value)) if number else value


def _currency(code: str) -> str:
    if not re.fullmatch(r"[A-Z]{3}", code):
        raise ValueError("must be three capital letters, such as USD")
    return code


# Six decimals of a price for a million tokens make twelve of what a token costs.
Money = Annotated[
    Decimal, BeforeValidator(_decimal), Field(ge=0, le=1_000_000_000, decimal_places=6)
]
Currency = Annotated[str, AfterValidator(_currency)]
BatchFactor = Annotated[Decimal, BeforeValidator(_decimal), Field(ge=0, le=1, decimal_places=2)]


class Prices(Strict):
    """What an endpoint asks for its tokens. It turns tokens into money and changes no result."""

    input: Money = Field(description="A million tokens of prompt.")
    cached_input: Money | None = Field(
        None, description="The same where the provider had them cached. Default: as `input`."
    )
    output: Money = Field(description="A million tokens of reply, reasoning included.")
    batch_factor: BatchFactor = Field(
        Decimal("0.5"), description="What is asked in batches (`batch`) costs this part of it all."
    )
    currency: Currency = Field("USD", description="Three capital letters.")


def _check_rates(config: "ModelConfig | JudgeConfig", *, endpoint: bool) -> None:
    rates = [r for r in ("requests_per_minute", "tokens_per_minute") if getattr(config, r)]
    if rates and not endpoint:
        raise ValueError(f"has `{rates[0]}`, which is for endpoints only: remove it")


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
        description="GPUs that one server takes. Default: as many as `gpus` names, else "
        "`tensor_parallel_size` (`vllm`), 0 (`llamacpp`). 0 shows the server no GPU.",
    )
    gpus: Devices | None = Field(
        None,
        description="Particular devices (indices, UUIDs or MIG names) instead of any free ones of "
        "the pool; with `num_gpus`, any so many of them. A cluster gives a job its devices itself.",
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
    """One model under test. Either `api`, or `model_path`, `max_model_len` and `modes`, or
    `recorded`."""

    enabled: bool = Field(True, description="`false`: runs only when named in `models=`.")
    demo: bool = Field(
        False, description="`true` marks results whose scores mean nothing; the summary says so."
    )
    api: Api | None = Field(None, description="An endpoint that already runs, see below.")
    recorded: Recorded | None = Field(
        None,
        description="What an agent did, recorded elsewhere, see below; `{}` for the items' own.",
    )
    modes: dict[str, Annotated[Sampling, BeforeValidator(_none_as_empty)]] = Field(
        default_factory=dict,
        description="Mode name → sampling, see below. Default for an API model: one mode "
        "`default`.",
    )
    concurrency: PositiveInt | None = Field(
        None,
        description="Requests in flight, of all jobs that call the endpoint together (to each "
        "server of a local model). Default: `concurrency` of `global.yaml`.",
    )
    requests_per_minute: RequestsPerMinute = None
    tokens_per_minute: TokensPerMinute = None
    replicas: PositiveInt = Field(
        1,
        description="Servers of a local model that share its work, as far as GPUs are free: each "
        "takes `num_gpus` of its own.",
    )
    hours_per_run: Annotated[Finite, Field(gt=0)] | None = Field(
        None,
        description="Estimated hours of serving for one run of one mode over AgentIF's 707 items, "
        "on average over its modes. It decides about the order of serving, and only while no "
        "earlier run is on record. Default: a crude rule by GPUs and modes (`snakemake plan`).",
    )

    prices: Prices | None = Field(None, description="What its tokens cost, see below.")

    @model_validator(mode="after")
    def _one_kind(self) -> "ModelConfig":
        kinds = [
            f"`{k}`" for k in ("api", "model_path", "recorded") if getattr(self, k) is not None
        ]
        if len(kinds) > 1:
            raise ValueError(f"has both {' and '.join(kinds)}: keep one of them")
        if self.recorded is not None and self.modes:
            raise ValueError("has `modes` beside `recorded`: nothing is asked, so none applies")
        if self.is_local:
            missing = [k for k in ("model_path", "max_model_len", "modes") if not getattr(self, k)]
            if missing:
                raise ValueError(
                    f"lacks {', '.join(f'`{key}`' for key in missing)}: a local model needs "
                    "`model_path`, `max_model_len` and `modes`; an API model needs `api`, recorded "
                    "runs `recorded`"
                )
        if self.port is not None and self.replicas > 1:
            raise ValueError("has both `port` and `replicas`: servers cannot share a port")
        _check_rates(self, endpoint=self.api is not None)
        return self

    @property
    def is_local(self) -> bool:
        """Whether the workflow serves this model itself."""
        return self.api is None and self.recorded is None

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
        None,
        description="Requests in flight, of all jobs that call the endpoint together. Default: "
        "`concurrency` of `global.yaml`.",
    )
    requests_per_minute: RequestsPerMinute = None
    tokens_per_minute: TokensPerMinute = None
    batch: bool = Field(False, description=_BATCH)
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
        _check_rates(self, endpoint=self.local is None)
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


class Budget(Strict):
    """The most that calls to endpoints may take, over everything below `results_root`."""

    money: Money | None = Field(
        None, description="Needs `prices` for every API model and judge that is selected."
    )
    currency: Currency = Field("USD", description="Currency of `money` and of all those prices.")
    tokens: Annotated[int, Field(ge=1, le=10**15)] | None = Field(
        None, description="Prompt and reply together, of API models and judges."
    )

    @model_validator(mode="after")
    def _limits_something(self) -> "Budget":
        if self.money is None and self.tokens is None:
            raise ValueError("limits nothing: give `money`, `tokens` or both")
        return self


def _metrics(limits: dict[str, float]) -> dict[str, float]:
    for name in limits:
        group, _, value = name.partition(".")
        if name not in METRICS and not (group in METRIC_GROUPS and value):
            groups = ", ".join(f"{each}.…" for each in METRIC_GROUPS)
            raise ValueError(f"{name!r} is no rate: allowed: {', '.join(METRICS)}, {groups}")
    return limits


Share = Annotated[Finite, Field(ge=0, le=1)]
Limits = Annotated[dict[str, Share], AfterValidator(_metrics)]


class Gate(Strict):
    """When a change is refused: `snakemake gate`."""

    at_least: Limits = Field(
        default_factory=dict,
        description="Rate → the least it may be, such as `category.hard: 1.0`.",
    )
    no_worse: Limits = Field(
        default_factory=lambda: {"constraint_rate": 0.05, "all_pass_rate": 0.1},
        description="Rate → the drop against the baseline that is allowed; `{}` needs no baseline.",
    )
    confidence: Annotated[Finite, Field(ge=0.5, le=0.999)] = Field(
        0.95, description="Of the intervals that decide."
    )
    coverage: Share = Field(
        0.95, description="Least part of what was asked that must have a verdict to pass."
    )
    baselines: Text = Field("baselines", description="Folder of the stored baselines.")
    against: Text | None = Field(
        None,
        description="`model` or `model__mode` in the baseline that all are compared with. Default: "
        "the same model and mode, else the only one there.",
    )


class Spotcheck(Strict):
    """Which verdicts of judges people look at: `snakemake spotcheck`."""

    share: Annotated[Finite, Field(ge=0.1, le=1)] = Field(
        0.1, description="Part of the verdicts of judges that is drawn."
    )
    at_least: PositiveInt = Field(
        5, description="So many of each kind of constraint and verdict, where there are."
    )
    seed: Annotated[int, Field(ge=0)] = Field(1, description="Another one draws another sample.")
    folder: Text = Field("spotcheck", description="Where the sheets and people's labels are.")


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
    concurrency: PositiveInt = Field(
        64, description="Requests in flight to one endpoint, of all jobs that call it together."
    )
    policy: PolicyName = Field("adhere", description="How verdicts are counted.")
    results_root: str = Field("results", description="Where everything generated goes.")
    gpus: Devices | Literal["auto"] = Field(
        "auto",
        description="The GPUs of this machine that local models share: a list of indices, UUIDs "
        "or MIG names, or `auto` for all that the driver shows; fewer where CUDA_VISIBLE_DEVICES "
        "is set. A cluster's nodes have their own.",
    )
    retry: Retry = Field(default_factory=Retry, description="See below.")
    checkers: Checkers = Field(default_factory=Checkers, description="See below.")
    budget: Budget | None = Field(
        None, description="Where a call stops asking endpoints, see below. Default: no limit."
    )
    gate: Gate = Field(default_factory=Gate, description="See below.")
    spotcheck: Spotcheck = Field(default_factory=Spotcheck, description="See below.")
    archive: Text = Field(
        "archive/failures.jsonl", description="Where `snakemake archive` keeps failures."
    )
