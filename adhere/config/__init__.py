"""Configuration: what the YAML files may say, read and validated once, before the first job."""

from adhere.config.load import RULES_ONLY, Project, load_project
from adhere.config.schema import GlobalConfig, JudgeConfig, ModelConfig, Sampling

__all__ = [
    "RULES_ONLY",
    "GlobalConfig",
    "JudgeConfig",
    "ModelConfig",
    "Project",
    "Sampling",
    "load_project",
]
