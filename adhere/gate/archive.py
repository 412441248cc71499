"""The archive of failures: what was violated, kept once, for people to sort and to make items of.

JSONL, one failure a line. People edit ``cause`` and ``note`` (and may add keys of their own), and
what they wrote stays when failures are added.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adhere import files, jsonio
from adhere.data import Row
from adhere.derived import read_record
from adhere.errors import DataError
from adhere.gate.keys import constraint_keys, item_keys
from adhere.names import unlimited
from adhere.plan import Evaluation
from adhere.scoring.accuracy import Accuracy, outcomes
from adhere.scoring.found import found, title
from adhere.scoring.policies import Outcome, Verdict, get_policy
from adhere.scoring.records import Cell
from adhere.scoring.results import read_results

UNLABELLED, MODEL, AMBIGUOUS, FAULTY = (
    "unlabelled",
    "model",
    "ambiguous_instruction",
    "faulty_check",
)
CAUSES = (UNLABELLED, MODEL, AMBIGUOUS, FAULTY)
_CHECKER = "checker_"
_LONGEST_ANSWER = 4000

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Added:
    """What appending came to; ``lost`` counts constraints of responses that there were not."""

    new: int
    seen_again: int
    lost: int


def load(path: Path) -> dict[str, Entry]:
    """Read an archive by key; empty where there is none.

    Raises DataError naming the line of what is no failure, or has an unknown cause.
    """
    entries: dict[str, Entry] = {}
    if not path.exists():
        return entries
    for number, entry in jsonio.numbered_lines(path, unique_keys=True):
        where = f"{path}: line {number}"
        if not isinstance(entry, dict) or not isinstance(entry.get("key"), str):
            raise DataError(f"{where}: must be an object with a text `key`, as archive writes it")
        if entry.get("cause") not in CAUSES:
            raise DataError(
                f"{where}: cause: found {entry.get('cause')!r:.60}; allowed: {', '.join(CAUSES)}"
            )
        if not isinstance(entry.get("sightings"), list):
            raise DataError(f"{where}: sightings: must be the list that archive writes")
        if entry["key"] in entries:
            raise DataError(f"{where}: key {entry['key']} stands there twice: drop one of them")
        entries[entry["key"]] = entry
    return entries


def add(path: Path, root: Path, evaluations: Iterable[Evaluation], today: str) -> Added:
    """Add the failures of scored files; ``today`` is a date such as 2026-11-30.

    A failure is known by the item's input and by what the constraint asks for. The same answer
    of the same run is counted once, however often it is added.
    """
    entries = load(path)
    new = again = lost = 0
    for evaluation in evaluations:
        for failure, sighting in _failures(root, evaluation):
            if failure is None:
                lost += 1
                continue
            known = entries.setdefault(failure["key"], failure)
            if sighting in known["sightings"]:
                continue
            new += known is failure
            again += known is not failure
            _see(known, failure, sighting, today)
    lines = [jsonio.dumps(entry) + b"\n" for entry in entries.values()]
    jsonio.write_bytes(path, b"".join(lines))
    return Added(new, again, lost)


def _see(known: Entry, failure: Entry, sighting: str, today: str) -> None:
    known["sightings"].append(sighting)
    known["count"] = len(known["sightings"])
    known.setdefault("first_seen", today)
    known["last_seen"] = today
    known["models"] = sorted({*known.get("models", []), *failure["models"]})
    for key in ("found", "answer"):
        known[key] = failure[key]


def _failures(root: Path, evaluation: Evaluation) -> Iterable[tuple[Entry | None, str]]:
    """Yield every failure of one scored file with what tells this sighting from others.

    None stands for a constraint that failed because there was no response.
    """
    path = files.results(root, evaluation)
    policy = get_policy(read_record(files.accuracy(root, evaluation), Accuracy).policy)
    judged = read_results(path)
    rows, items = judged.rows, judged.items
    accounted = outcomes(policy, items)
    for name, row, item, verdicts in zip(item_keys(rows), rows, items, accounted, strict=True):
        keys = constraint_keys(row["constraints"])
        for key, cell, outcome in zip(keys, item.cells, verdicts, strict=True):
            if not _failed(outcome):
                continue
            if item.response != "ok":
                yield None, ""
                continue
            entry = _entry(evaluation, name, row, cell, outcome)
            entry["key"] = jsonio.fingerprint([row["input"], key])[:16]
            yield entry, _sighting(evaluation, row)


def _failed(outcome: Outcome) -> bool:
    """Whether a constraint was violated, or its check is broken."""
    broken = outcome.verdict is Verdict.UNSCORED and (outcome.reason or "").startswith(_CHECKER)
    return outcome.verdict is Verdict.VIOLATED or broken


def _sighting(evaluation: Evaluation, row: Row) -> str:
    cell = evaluation.cell
    made = [cell.model, cell.mode, cell.run, evaluation.judge, row["output"].get("content")]
    return jsonio.fingerprint(made)[:12]


def _entry(evaluation: Evaluation, name: str, row: Row, cell: Cell, outcome: Outcome) -> Entry:
    raw = row["constraints"][cell.position]
    broken = outcome.verdict is Verdict.UNSCORED
    answer = row["output"].get("content")
    kept = ("scenario", "tools", "tool_responses", "max_turns", "trajectory")
    return {
        "key": "",
        "cause": FAULTY if broken else UNLABELLED,
        "note": "",
        "kind": outcome.reason if broken else cell.labels.failure_mode or "other",
        "dataset": unlimited(evaluation.cell.dataset)[0],
        "item": name,
        "constraint": title(raw, cell.position),
        "found": found(raw) or outcome.reason or "",
        "count": 0,
        "models": [evaluation.cell.model],
        "answer": answer[:_LONGEST_ANSWER] if isinstance(answer, str) else None,
        "input": row["input"],
        "asks": {key: value for key, value in raw.items() if key not in _JUDGED},
        "shared": {key: row[key] for key in kept if row.get(key) is not None},
        "sightings": [],
    }


_JUDGED = ("score", "llm_output", "null_reason", "steps")


def to_set(entries: Sequence[Mapping[str, Any]], archive: Path) -> dict[str, Any]:
    """Return an instruction set with an item for each input among the failures.

    Raises DataError where there are none, or an input that no set can hold.
    """
    by_input: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        by_input.setdefault(jsonio.fingerprint(entry["input"]), []).append(entry)
    if not by_input:
        raise DataError(f"{archive}: holds no such failure: choose others with --cause or --kind")
    taken: set[str] = set()
    return {"items": [_item(same, archive, taken) for same in by_input.values()]}


def _item(entries: Sequence[Mapping[str, Any]], archive: Path, taken: set[str]) -> dict[str, Any]:
    first = entries[0]
    name = f"{first['dataset']}-{first['item']}"
    if name in taken:
        name = f"{name}-{first['key']}"
    taken.add(name)
    return {
        "id": name,
        **_messages(first),
        **first["shared"],
        "provenance": {
            "source": f"{first['dataset']}, item {first['item']}",
            "created": min(str(entry["first_seen"]) for entry in entries),
            "added_from": str(archive),
        },
        "constraints": [_constraint(entry) for entry in entries],
    }


def _messages(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return instruction and layout that give an item's messages again, word by word."""
    messages = entry["input"]
    asked = [n for n, message in enumerate(messages) if message["role"] == "user"]
    last = asked[-1] if asked else len(messages) - 1
    others = [message for n, message in enumerate(messages) if n != last]
    if any("{instruction}" in message["content"] for message in others):
        raise DataError(
            f"failure {entry['key']}: a message holds {{instruction}}, which a set would replace: "
            "make this item by hand"
        )
    layout = [
        {"role": message["role"], "content": "{instruction}" if n == last else message["content"]}
        for n, message in enumerate(messages)
    ]
    # Where a message says {input} itself, the input is that word.
    words = {"input": "{input}"} if any("{input}" in m["content"] for m in others) else {}
    return {"instruction": messages[last]["content"], "layout": layout, **words}


def _constraint(entry: Mapping[str, Any]) -> dict[str, Any]:
    asks = entry["asks"]
    keys = ("category", "severity", "level", "failure_mode", "provenance")
    made: dict[str, Any] = {key: asks[key] for key in keys if asks.get(key) is not None}
    steps = asks["evaluation"]
    if len(steps) == 1 and steps[0]["type"] == "rule":
        step = steps[0]["exec"]
        made |= {key: step[key] for key in ("rule", "args", "loose") if step.get(key)}
    elif _is_question(asks):
        # Asked by the template of the new set.
        made["ask"] = asks["desc"]
        made |= {key: asks[key] for key in ("about",) if asks.get(key)}
    else:
        made["evaluation"] = steps
    if isinstance(asks.get("desc"), str) and asks["desc"].strip() and "ask" not in made:
        made["text"] = asks["desc"]
    if isinstance(asks.get("id"), str):
        made["id"] = asks["id"]
    return made


def _is_question(asks: Mapping[str, Any]) -> bool:
    """Whether a constraint is one question, whose requirement is known word by word."""
    words, steps = asks.get("desc"), asks["evaluation"]
    if not isinstance(words, str) or not words.strip() or [s["type"] for s in steps] != ["llm"]:
        return False
    return asks.get("category") is not None and words in steps[0]["exec"]
