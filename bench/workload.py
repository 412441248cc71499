"""Synthetic data in AgentIF's shape. No text of the benchmark is used, only its proportions.

AgentIF has 707 items with prompts of 10 KB on average (most are short, the longest 70 KB), 8,449
constraints with 7,238 questions to a judge and 3,392 checkers, and answers of about 2 KB.
"""

import random
from typing import Any

from adhere.data import Row

ITEMS = 707
CONSTRAINTS = 12
ANSWER_BYTES = 2000
_SENTENCES = (
    "Before a tool is called the plan names what is expected of it. ",
    "A table lists every parameter, its unit and the range that is allowed. ",
    "Where two rules meet, the later one holds and the earlier one is quoted. ",
    "回答之前先检查每一个条件，并说明理由。",
)
_CHECKER = '''import re


def check_following(response):
    """Count words, headings and list marks of a response."""
    words = re.findall(r"\\w+", response)
    headings = [line for line in response.splitlines() if line.startswith("#")]
    marks = [line for line in response.splitlines() if re.match(r"\\s*[-*] ", line)]
    if len(headings) > len(words):
        return False
    return len(words) > NUMBER and len(marks) < len(words)
'''
# Chains by how often they occur among AgentIF's constraints, in percent.
_CHAINS: dict[tuple[str, ...], float] = {
    ("llm",): 49.4,
    ("code",): 24.8,
    ("llm_conditional_check", "llm"): 10.0,
    ("llm", "code"): 8.7,
    ("llm_conditional_check", "code"): 6.6,
    ("llm", "llm"): 0.4,
    ("llm_conditional_check",): 0.1,
}


def dataset(items: int = ITEMS) -> list[Row]:
    """Return a dataset of AgentIF's shape; the same one every time."""
    draw = random.Random(20261130)
    return [_item(number, draw) for number in range(items)]


def _item(number: int, draw: random.Random) -> Row:
    size = int(min(70_000, draw.lognormvariate(8.7, 1.0)))
    count = max(1, round(draw.gauss(CONSTRAINTS, 5)))
    return {
        "id": number,
        "input": [
            {"role": "system", "content": text(draw, size * 3 // 4)},
            {"role": "user", "content": f"[{number}] " + text(draw, size // 4)},
        ],
        "constraints": [_constraint(number, position, draw) for position in range(count)],
    }


def _constraint(item: int, position: int, draw: random.Random) -> dict[str, Any]:
    chain = draw.choices(list(_CHAINS), list(_CHAINS.values()))[0]
    return {
        "id": position,
        "dimension": draw.choice(["unconditional", "conditional", "example_driven"]),
        "type": [draw.choice(["formatting", "semantic", "resource"])],
        "is_meta": False,
        "evaluation": [
            {"type": kind, "exec": _step(kind, f"[{item}/{position}/{number}]")}
            for number, kind in enumerate(chain)
        ],
    }


def _step(kind: str, place: str) -> str:
    return _CHECKER.replace("NUMBER", str(len(place))) if kind == "code" else question(place)


def question(place: str) -> str:
    """Return a question to a judge; ``place`` tells it from all others."""
    return (
        f"{place} Does the response below keep to the rule that every part of its plan is short, "
        "that each part is checked, and that nothing is added that was not asked for? Answer with "
        "YES or NO only.\n\n{response}"
    )


def text(draw: random.Random, size: int) -> str:
    """Return a text of about ``size`` bytes."""
    parts: list[str] = []
    length = 0
    while length < size:
        parts.append(draw.choice(_SENTENCES))
        length += len(parts[-1].encode())
    return "".join(parts)


def questions(count: int) -> list[Row]:
    """Return prediction rows with ``count`` questions to a judge and nothing else, one request
    each of about 2.5 KB, a judge's usual size."""
    draw = random.Random(1)
    rows: list[Row] = []
    for number in range(-(-count // 10)):
        constraints = [
            {"evaluation": [{"type": "llm", "exec": question(f"[{number}/{position}]")}]}
            for position in range(min(10, count - 10 * number))
        ]
        rows.append(
            {
                "input": [{"role": "user", "content": f"[{number}] What is the plan?"}],
                "constraints": constraints,
                "output": {"content": text(draw, ANSWER_BYTES), "flags": [], "error": None},
            }
        )
    return rows


def prompts(count: int, size: int = 30_000) -> list[Row]:
    """Return dataset rows with prompts of ``size`` bytes."""
    draw = random.Random(2)
    return [
        {
            "input": [{"role": "user", "content": f"[{number}] " + text(draw, size)}],
            "constraints": [{"evaluation": [{"type": "llm", "exec": "Is it so? YES or NO."}]}],
        }
        for number in range(count)
    ]
