"""The fields of ``configs/global.yaml``, section by section."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from adhere.checkers.isolation import Level
from adhere.config.fields import Finite, PositiveInt, Share, Strict, Text, as_tuple
from adhere.config.local import Devices
from adhere.config.prices import Currency, Money

# Names of what adhere.scoring implements; a test holds them against each other.
PolicyName = Literal["adhere", "upstream-2025", "nemo-0.7"]
# Rates that a gate may look at, and the groups of constraints that have a rate each.
METRICS = ("constraint_rate", "item_mean", "all_pass_rate")
METRIC_GROUPS = ("category", "severity", "level", "rule", "scenario")

Seconds = Annotated[Finite, Field(gt=0)]


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

    workers: Annotated[int, Field(ge=0)] = Field(
        0, description="Servers of a job at most. 0: one a core, eight at most."
    )
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
    default_datasets: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        min_length=1, description="Datasets that run when `datasets=` names none."
    )
    repeats: Annotated[int, Field(ge=1, le=1000)] = Field(
        3, description="Independent runs of every (model, mode)."
    )
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
