"""What a call computes: the selection on the command line applied to the configured project.

Nothing here reads results or starts anything; datasets are read where a limit asks for their size.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adhere.config import GlobalConfig
from adhere.config.load import Project, parse
from adhere.config.problems import nearest
from adhere.data import load_cached
from adhere.errors import ConfigError, DataError
from adhere.names import limited

# Keys of `--config`. The second group overrides the field of that name in configs/global.yaml.
SELECTION = ("models", "modes", "judges", "datasets", "limit", "retry", "accept_dataset", "calls")
OVERRIDES = ("repeats", "results_root", "policy", "concurrency")


@dataclass(frozen=True, slots=True)
class Cell:
    """One prediction file: a model in a mode, a run and a dataset (with its limit in its name)."""

    model: str
    mode: str
    run: int
    dataset: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One scored file: a prediction cell and the judge that judges it."""

    cell: Cell
    judge: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The selected part of a project.

    ``modes`` maps each selected model to its selected modes; ``passed_over`` are the enabled
    models that have none of the modes asked for. ``datasets`` are the configured names, without
    the limit. ``accept_dataset`` says that files of no known version are meant.
    ``calls_here`` says that jobs which only call an endpoint run where Snakemake runs, also when
    the others go to a cluster's nodes, which seldom reach the internet.
    """

    project: Project
    modes: Mapping[str, tuple[str, ...]]
    judges: tuple[str, ...]
    datasets: tuple[str, ...]
    limit: int | None = None
    retry: bool = False
    accept_dataset: bool = False
    calls_here: bool = True
    passed_over: tuple[str, ...] = ()

    @property
    def config(self) -> GlobalConfig:
        """The global configuration, with what the command line overrides."""
        return self.project.config

    @property
    def results_root(self) -> Path:
        """Where results go, as written in the configuration."""
        return Path(self.config.results_root)

    def cells(self) -> Iterator[Cell]:
        """Yield every prediction cell in a stable order."""
        datasets = [self.name_of(dataset) for dataset in self.datasets]
        for model, modes in self.modes.items():
            for mode in modes:
                for run in range(1, self.runs(model) + 1):
                    for dataset in datasets:
                        yield Cell(model, mode, run, dataset)

    def name_of(self, dataset: str) -> str:
        """Return the name of a dataset in results: with the limit, where that leaves items out."""
        if self.limit is None or dataset not in self.config.datasets:
            return limited(dataset, self.limit)
        # One that cannot be read is complained about by whoever needs its items.
        with suppress(DataError):
            path = self.project.root / self.config.datasets[dataset]
            return load_cached(dataset, path).named(self.limit)
        return limited(dataset, self.limit)

    def remarks(self) -> list[str]:
        """Return what a selection leaves out without being told so, one sentence each."""
        return [
            f"passed over: {self.project.model_file(name)}: it has none of the modes asked for, "
            f"only {', '.join(self.project.models[name].mode_names)}"
            for name in self.passed_over
        ]

    def runs(self, model: str) -> int:
        """Return how many runs a model has: what was recorded once is not repeated."""
        config = self.project.models.get(model)
        recorded = config.recorded if config is not None else None
        return self.config.repeats if recorded is None or recorded.runs_apart else 1

    def evaluations(self) -> Iterator[Evaluation]:
        """Yield every (cell, judge)."""
        for cell in self.cells():
            for judge in self.judges:
                yield Evaluation(cell, judge)


def make_plan(project: Project, selection: Mapping[str, Any]) -> Plan:
    """Apply ``--config key=value`` pairs.

    Raises ConfigError naming the key, what was found and what is allowed. A model or judge that
    is named explicitly runs even where its file says ``enabled: false``.
    """
    for key in selection:
        if key not in SELECTION + OVERRIDES:
            allowed = ", ".join(sorted(SELECTION + OVERRIDES))
            raise ConfigError(
                f"--config {key}=…: unknown key{nearest(key, SELECTION + OVERRIDES)}; "
                f"allowed: {allowed}"
            )
    project = _override(project, selection)
    config = project.config
    named = _choose("models", selection, project.models, "configs/{}.yaml")
    models = [n for n, m in project.models.items() if m.enabled] if named is None else named
    modes = _modes(project, models, selection)
    if named is not None:
        _refuse_without_mode(project, modes, selection)
    judges = _choose("judges", selection, project.judges, "judge_configs/{}.yaml")
    datasets = _choose("datasets", selection, config.datasets, "configs/global.yaml")
    return Plan(
        project,
        {name: chosen for name, chosen in modes.items() if chosen},
        _default_first(
            judges if judges is not None else [n for n, j in project.judges.items() if j.enabled],
            config.default_judge,
        ),
        tuple(dict.fromkeys(datasets if datasets is not None else config.default_datasets)),
        limit=_limit(selection.get("limit")),
        retry=_flag("retry", selection.get("retry", False)),
        accept_dataset=_flag("accept_dataset", selection.get("accept_dataset", False)),
        calls_here=_here(selection.get("calls", "here")),
        passed_over=tuple(name for name, chosen in modes.items() if not chosen),
    )


def _override(project: Project, selection: Mapping[str, Any]) -> Project:
    changed = {key: selection[key] for key in OVERRIDES if key in selection}
    if not changed:
        return project
    for key in ("results_root", "policy"):
        if key in changed:
            changed[key] = str(changed[key])
    content = project.config.model_dump(exclude_unset=True) | changed
    return replace(project, config=parse(GlobalConfig, content, "--config"))


def words(value: Any) -> list[str]:
    """Split ``A,B`` (or take a list, as a configuration file may hold) into names."""
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    return [text for part in parts if (text := str(part).strip())]


def _choose(
    key: str, selection: Mapping[str, Any], known: Mapping[str, Any], file: str
) -> list[str] | None:
    if selection.get(key) is None:
        return None
    names = list(dict.fromkeys(words(selection[key])))
    for name in names:
        if name not in known:
            place = f"there is no {file.format(name)}" if "{}" in file else f"not in {file}"
            raise ConfigError(
                f"--config {key}={name}: {place}{nearest(name, list(known))}; "
                f"known: {', '.join(known) or 'none'}"
            )
    if not names:
        raise ConfigError(f"--config {key}=: names nothing; known: {', '.join(known)}")
    return names


def _modes(
    project: Project, models: list[str], selection: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    """Return the selected modes of each model, none where it has none of those asked for."""
    every = {name: project.models[name].mode_names for name in models}
    if selection.get("modes") is None:
        return every
    wanted = words(selection["modes"])
    # Where nothing is enabled, the mode may still be one of existing predictions.
    models_with = every.values() or [m.mode_names for m in project.models.values()]
    offered = sorted({mode for modes in models_with for mode in modes})
    for mode in wanted:
        if mode not in offered:
            raise ConfigError(
                f"--config modes={mode}: no selected model has it{nearest(mode, offered)}; "
                f"there are: {', '.join(offered) or 'none'}"
            )
    return {name: tuple(m for m in modes if m in wanted) for name, modes in every.items()}


def _refuse_without_mode(
    project: Project, modes: Mapping[str, tuple[str, ...]], selection: Mapping[str, Any]
) -> None:
    """Raise ConfigError where a model that is named has none of the modes asked for."""
    for name, chosen in modes.items():
        if not chosen:
            wanted, has = words(selection["modes"]), project.models[name].mode_names
            raise ConfigError(
                f"--config modes={','.join(wanted)}: {project.model_file(name)} has none of them"
                f"{nearest(wanted[0], has)}; it has: {', '.join(has)}: name another mode, or leave "
                f"{name} out of `models`"
            )


def _default_first(judges: list[str], default: str) -> tuple[str, ...]:
    return tuple(sorted(judges, key=lambda name: (name != default, name)))


def _limit(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"--config limit={value}: must be a whole number of items from 1")
    return value


def _flag(key: str, value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false", "1", "0"):
        raise ConfigError(f"--config {key}={value}: must be true or false")
    return text in ("true", "1")


def _here(value: Any) -> bool:
    if value not in (None, "here", "nodes"):
        raise ConfigError(f"--config calls={value}: must be here or nodes")
    return bool(value != "nodes")
