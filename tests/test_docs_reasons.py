"""The page on verdicts names every reason that there can be for having none."""

import re
from pathlib import Path
from typing import get_args

from adhere.checkers.result import Reason
from adhere.costs.budget import BUDGET
from adhere.judging.chain import NOT_APPLICABLE, NOT_ASKED
from adhere.scoring.records import RECORDED_MISSING, RECORDED_NULL

ROOT = Path(__file__).resolve().parents[1]


def test_every_reason_is_explained() -> None:
    page = (ROOT / "docs" / "judging.md").read_text("utf-8").partition("## Why there")[2]
    explained = {
        name
        for line in page.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    sources = (ROOT / "adhere" / "judging" / f"{name}.py" for name in ("asking", "chain", "stage"))
    text = "\n".join(path.read_text("utf-8") for path in sources)
    written = set(re.findall(r'"((?:judge|checker)_[a-z_]+|no_response|prediction_pending)"', text))
    names = {*get_args(Reason), BUDGET, NOT_APPLICABLE, NOT_ASKED, RECORDED_MISSING, RECORDED_NULL}
    assert explained - {"null_reason"} == written | names
