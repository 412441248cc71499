"""The fields of a model file, ``configs/<model>.yaml``."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from adhere.config.endpoint import (
    Batch,
    RequestsPerMinute,
    TokensPerMinute,
    Url,
    VariableName,
    refuse_rates,
)
from adhere.config.fields import Finite, PositiveInt, Strict, Text
from adhere.config.local import Local
from adhere.config.prices import Prices
from adhere.config.sampling import Sampling


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
    batch: Batch = False


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


def _none_as_empty(value: Any) -> Any:
    return {} if value is None else value


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
        if self.api is None:
            refuse_rates(self)
        return self

    @property
    def is_local(self) -> bool:
        """Whether the workflow serves this model itself."""
        return self.api is None and self.recorded is None

    def mode(self, name: str) -> dict[str, Any]:
        """Return what is sent in a mode, with every default filled in and nothing left open."""
        sampling = self.modes[name] if self.modes else Sampling()
        return sampling.sent(thinking=self.thinks(name), local=self.is_local)

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
