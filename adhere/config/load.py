"""Read and validate every configuration file; nothing else of the project reads YAML."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from adhere.config.fields import Strict
from adhere.config.global_file import GlobalConfig
from adhere.config.judge_file import JudgeConfig
from adhere.config.model_file import ModelConfig
from adhere.config.problems import describe
from adhere.config.strict_yaml import read_yaml
from adhere.errors import ConfigError
from adhere.names import check_dataset_name, check_mode_name, check_name

T = TypeVar("T", bound=Strict)

_GLOBAL = "configs/global.yaml"
# The judge that needs no file: it is asked nothing, so that only what code can check is judged.
RULES_ONLY = "rules-only"


@dataclass(frozen=True, slots=True)
class Project:
    """All configuration of one project folder.

    ``models`` and ``judges`` hold every file, enabled or not, by the name of the file.
    """

    root: Path
    config: GlobalConfig
    models: Mapping[str, ModelConfig]
    judges: Mapping[str, JudgeConfig]

    def model_file(self, name: str) -> str:
        """Return the file of a model, relative to the project, for messages."""
        return f"configs/{name}.yaml"

    def judge_file(self, name: str) -> str:
        """Return the file of a judge, relative to the project, for messages."""
        return f"judge_configs/{name}.yaml"


def parse(kind: type[T], content: Mapping[str, Any], shown: str) -> T:
    """Validate one file's content. Raises ConfigError listing every problem in it."""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise ConfigError(describe(error, kind, content, shown)) from None


def _is_config(name: str) -> bool:
    """Whether a file is meant as a configuration; hidden files are editors' and systems' own."""
    lower = name.lower()
    return (
        lower.endswith((".yaml", ".yml"))
        and not lower.endswith((".example.yaml", ".example.yml"))
        and not name.startswith(".")
    )


def _read(kind: type[T], path: Path, shown: str, problems: list[str]) -> T | None:
    """Read one file; what is wrong with it goes to ``problems``."""
    try:
        return parse(kind, read_yaml(path, shown), shown)
    except ConfigError as error:
        problems.append(str(error))
        return None


def _folder(root: Path, folder: str, kind: type[T], problems: list[str]) -> dict[str, T]:
    loaded: dict[str, T] = {}
    for path in sorted((root / folder).iterdir() if (root / folder).is_dir() else ()):
        # A name that is no valid text is shown with escapes.
        shown = f"{folder}/{path.name}".encode(errors="surrogateescape").decode(
            errors="backslashreplace"
        )
        if shown == _GLOBAL or not _is_config(path.name):
            continue
        try:
            if path.suffix != ".yaml":
                raise ConfigError(f"{shown}: rename it to {path.stem}.yaml (or .example.yaml)")
            check_name(path.stem, shown)
        except ConfigError as error:
            problems.append(str(error))
            continue
        if (read := _read(kind, path, shown, problems)) is not None:
            loaded[path.stem] = read
    return loaded


def load_project(root: Path) -> Project:
    """Read ``configs/`` and ``judge_configs/`` below ``root``.

    Raises ConfigError with one line a problem: file, key, what was found, what is allowed.
    """
    shown = _GLOBAL
    problems: list[str] = []
    config = _read(GlobalConfig, root / _GLOBAL, shown, problems)
    models = _folder(root, "configs", ModelConfig, problems)
    judges = _folder(root, "judge_configs", JudgeConfig, problems)
    if config is None or problems:
        raise ConfigError("\n".join(problems))
    if RULES_ONLY in judges:
        raise ConfigError(
            f"judge_configs/{RULES_ONLY}.yaml: this name stands for no judge at all: rename it"
        )
    by_default = config.default_judge == RULES_ONLY
    judges[RULES_ONLY] = JudgeConfig(enabled=by_default, model="none", api_key_env=None)
    for name, model in models.items():
        for mode in model.modes:
            check_mode_name(mode, f"configs/{name}.yaml: modes")
    for name in config.datasets:
        check_dataset_name(name, f"{shown}: datasets")
    for name in config.default_datasets:
        if name not in config.datasets:
            raise ConfigError(
                f"{shown}: default_datasets: {name!r} is not in `datasets` "
                f"({', '.join(config.datasets)})"
            )
    if config.default_judge not in judges:
        raise ConfigError(
            f"{shown}: default_judge: there is no judge_configs/{config.default_judge}.yaml "
            f"(there are: {', '.join(judges) or 'none'})"
        )
    return Project(root, config, models, judges)
