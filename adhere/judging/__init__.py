"""Judge: run every constraint's chain and keep how each verdict came about."""

from adhere.judging.judge import Judge
from adhere.judging.stage import JudgeRun, judge_rows

__all__ = ["Judge", "JudgeRun", "judge_rows"]
