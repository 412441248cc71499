"""Read and validate every configuration file; nothing else of the project reads YAML."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from adhere.config.problems import describe
from adhere.config.schema import GlobalConfig, JudgeConfig, ModelConfig, Strict
from adhere.errors import ConfigError
from adhere.names import check_mode_name, check_name

T = TypeVar("T", bound=Strict)


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


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which refuses a key that is given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str | int | float | bool) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is given twice", key_node.start_mark
                )
            if isinstance(key, str | int | float | bool):
                seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path, shown: str) -> dict[str, Any]:
    """Return a YAML file's mapping; ``shown`` names the file in messages."""
    try:
        # SafeLoader's subclass: no Python objects are built.
        content = yaml.load(path.read_text(encoding="utf-8-sig"), Loader=_Loader)
    except FileNotFoundError:
        raise ConfigError(f"{shown}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{shown}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        text = " ".join(str(error).split())
        raise ConfigError(f"{shown}: not valid YAML: {text}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{shown}: must hold `key: value` lines, found {type(content).__name__}")
    return content


def parse(kind: type[T], content: Mapping[str, Any], shown: str) -> T:
    """Validate one file's content. Raises ConfigError listing every problem in it."""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise ConfigError(describe(error, kind, content, shown)) from None


def _folder(root: Path, folder: str, kind: type[T]) -> dict[str, T]:
    loaded: dict[str, T] = {}
    problems: list[str] = []
    for path in sorted((root / folder).glob("*.y*ml")):
        shown = f"{folder}/{path.name}"
        if path.name.endswith((".example.yaml", ".example.yml")) or path.stem == "global":
            continue
        try:
            if path.suffix != ".yaml":
                raise ConfigError(f"{shown}: rename it to {path.stem}.yaml (or .example.yaml)")
            check_name(path.stem, shown)
            loaded[path.stem] = parse(kind, read_yaml(path, shown), shown)
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("\n".join(problems))
    return loaded


def load_project(root: Path) -> Project:
    """Read ``configs/`` and ``judge_configs/`` below ``root``.

    Raises ConfigError with one line a problem: file, key, what was found, what is allowed.
    """
    shown = "configs/global.yaml"
    config = parse(GlobalConfig, read_yaml(root / "configs" / "global.yaml", shown), shown)
    models = _folder(root, "configs", ModelConfig)
    judges = _folder(root, "judge_configs", JudgeConfig)
    for name, model in models.items():
        for mode in model.modes:
            check_mode_name(mode, f"configs/{name}.yaml: modes")
    for name in config.datasets:
        check_name(name, f"{shown}: datasets")
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
