"""The rules against IFBench's published verdicts on its published responses, read in place.

``tests/rules/ifbench_differences.json`` lists every verdict that comes out differently. A new
difference fails the test, and so does a listed one that is gone.

python tests/test_rules_parity.py prints the differences as they are now.
"""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adhere import jsonio
from adhere.rules import TEXT

ROOT = Path(__file__).resolve().parents[1]
IFBENCH = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared")) / "data" / "ifbench"
LISTED = ROOT / "tests" / "rules" / "ifbench_differences.json"
VERDICTS = {mode: IFBENCH / f"ifbench_eval_results_{mode}.jsonl" for mode in ("strict", "loose")}

needs_ifbench = pytest.mark.skipif(
    not IFBENCH.exists(), reason="not on this machine: IFBench's responses (ADHERE_SHARED)"
)


@dataclass(frozen=True)
class Published:
    """One published verdict: the prompt's key, the instruction, and whether it was followed."""

    key: str
    position: int
    instruction: str
    arguments: dict[str, Any]
    prompt: str
    response: str
    mode: str
    followed: bool

    @property
    def name(self) -> str:
        return f"{self.key}/{self.position} {self.mode}"


def published() -> Iterator[Published]:
    """Yield the verdicts of all responses; the key is empty where no prompt is that response's."""
    prompts = {
        row["prompt"].strip(): row for row in jsonio.read_jsonl(IFBENCH / "IFBench_test.jsonl")
    }
    for mode, path in VERDICTS.items():
        for line in jsonio.read_jsonl(path):
            row = prompts.get(line["prompt"].strip())
            arguments = row["kwargs"] if row else [{} for _ in line["instruction_id_list"]]
            verdicts = zip(
                line["instruction_id_list"], arguments, line["follow_instruction_list"], strict=True
            )
            for position, (instruction, given, followed) in enumerate(verdicts):
                yield Published(
                    key=row["key"] if row else "",
                    position=position,
                    instruction=instruction,
                    arguments={name: value for name, value in given.items() if value is not None},
                    prompt=line["prompt"],
                    response=line["response"],
                    mode=mode,
                    followed=followed,
                )


def call(verdict: Published) -> tuple[str, dict[str, Any]] | None:
    """Return rule and arguments; what an instruction takes from its prompt is read there."""
    prompt, last = verdict.prompt, verdict.prompt.strip().split(". ")[-1]
    columns = re.findall(r'"(\w+)"', prompt)
    special: dict[str, tuple[str, dict[str, Any]]] = {
        "count:person_names": (
            "contains_several",
            {
                "keywords": re.findall(
                    r"[A-Z]\w+", prompt.partition("names: ")[2].partition(" .")[0]
                )
            },
        ),
        "format:output_template": (
            "template",
            {"labels": re.findall(r"[A-Z]\w+ [A-Z]\w+:", prompt.partition("template")[2])},
        ),
        "repeat:repeat_simple": ("repeats_only", {"prompt": last}),
        "custom:csv_quotes": (
            "csv",
            {"columns": columns, "rows": 3, "delimiter": "tab", "quoted": True},
        ),
        "custom:date_format_list": ("dates", {"earliest": 1769, "latest": 1821}),
        "custom:multiples": ("numbers_are", {"values": [14, 21, 28, 35, 42, 49]}),
        "custom:sentence_alphabet": ("sentence_initials", {}),
    }
    if not verdict.key:
        return None
    if verdict.instruction == "count:person_names":
        special[verdict.instruction][1]["min"] = verdict.arguments["N"]
    if verdict.instruction in special:
        return special[verdict.instruction]
    return (verdict.instruction, verdict.arguments) if verdict.instruction in TEXT else None


def differences() -> tuple[dict[str, dict[str, Any]], Counter[str], Counter[str]]:
    """Return what differs by its name, and how many verdicts were compared and left out."""
    found: dict[str, dict[str, Any]] = {}
    compared: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    for verdict in published():
        rule = call(verdict)
        if rule is None:
            left_out[verdict.instruction] += 1
            continue
        compared[verdict.instruction] += 1
        check = TEXT.load(*rule)
        outcome = (check.strict if verdict.mode == "strict" else check.loose)(verdict.response)
        if outcome.followed != verdict.followed:
            found[verdict.name] = {
                "instruction": verdict.instruction,
                "here": "followed" if outcome.followed else "violated",
            }
    return found, compared, left_out


@needs_ifbench
def test_every_difference_from_the_published_verdicts_is_listed() -> None:
    listed = json.loads(LISTED.read_text(encoding="utf-8"))
    found, compared, left_out = differences()
    expected = {
        name: {"instruction": group["instruction"], "here": here}
        for group in listed["differences"]
        for here in ("followed", "violated")
        for name in group.get(here, [])
    }
    assert found == expected
    assert compared.total() == listed["compared"]
    assert dict(left_out) == {name: entry["verdicts"] for name, entry in listed["left_out"].items()}
    assert all(entry["reason"] for entry in (*listed["differences"], *listed["left_out"].values()))
    by_instruction = Counter(entry["instruction"] for entry in found.values())
    assert by_instruction == {g["instruction"]: g["count"] for g in listed["differences"]}


@needs_ifbench
def test_all_responses_are_read() -> None:
    assert {len(jsonio.read_jsonl(path)) for path in VERDICTS.values()} == {294}


if __name__ == "__main__":
    now, counted, without = differences()
    sys.stdout.write(json.dumps({"differences": now, "left_out": without}, indent=1))
    sys.stdout.write(f"\n{len(now)} of {counted.total()} differ\n")
