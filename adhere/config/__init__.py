"""Configuration: what the YAML files may say, read and validated once, before the first job.

``global_file``, ``model_file`` and ``judge_file`` hold the fields of each kind of file, ``local``,
``sampling``, ``endpoint`` and ``prices`` what model files and judge files share. The fields'
descriptions are the field reference: ``configs/README.md`` is generated from them
(``python -m adhere.config.reference``), and a test fails when the two drift.
"""

from adhere.config.global_file import Budget, Checkers, Gate, GlobalConfig, Retry, Spotcheck
from adhere.config.judge_file import JudgeConfig
from adhere.config.load import RULES_ONLY, Project, load_project
from adhere.config.local import Local
from adhere.config.model_file import Api, ModelConfig, Recorded
from adhere.config.prices import Prices
from adhere.config.sampling import Sampling

__all__ = [
    "RULES_ONLY",
    "Api",
    "Budget",
    "Checkers",
    "Gate",
    "GlobalConfig",
    "JudgeConfig",
    "Local",
    "ModelConfig",
    "Prices",
    "Project",
    "Recorded",
    "Retry",
    "Sampling",
    "Spotcheck",
    "load_project",
]
