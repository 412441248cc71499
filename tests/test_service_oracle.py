"""Published results, verified by NeMo Gym 0.7's own AgentIF app and by this service, on demand.

``ADHERE_ORACLE=1`` gets the wheel ``nemo-gym`` by pip into a temporary folder, and
``ADHERE_ORACLE_ROWS`` says how many rows of each published file are compared (default: 40; 0: all).
Differences are decisions: gym/differences.json lists them by kind, with their counts over all rows.

The judge's text is the one on record. A chain that asks twice has only its last text there: where
its verdict says that the condition applied, the condition's own text is taken to be YES.
"""

import asyncio
import gzip
import json
import os
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from verifier import Running, serving

from adhere.data import Row

ROOT = Path(__file__).resolve().parents[1]
AGENTIF = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared")) / "data" / "agentif"
GYM = ROOT / "tests" / "gym"
WHEEL = "nemo-gym==0.7.0"
APP = "resources_servers/agentif/app.py"
MODELS = ("Qwen3-32B", "claude-3-5-sonnet-20241022", "Mistral-7B-Instruct-v0.3")
ROWS = int(os.environ.get("ADHERE_ORACLE_ROWS", "40"))

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("ADHERE_ORACLE") != "1",
        reason="not on this machine: NeMo Gym's own app (ADHERE_ORACLE=1 gets it)",
    ),
    pytest.mark.skipif(not AGENTIF.exists(), reason=f"{AGENTIF} is not here"),
]


@dataclass(frozen=True, slots=True)
class Case:
    """One row: a request, and the judge's text for each call by the first line of its prompt."""

    place: str
    body: dict[str, Any]
    constraints: list[Row]
    judge: dict[str, str]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The app's file, out of the wheel."""
    folder = tmp_path_factory.mktemp("gym")
    wanted = ["--no-deps", "--python-version", "3.13.14", "--only-binary=:all:", WHEEL]
    pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check"]
    done = subprocess.run([*pip, *wanted, "-d", str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"not on this machine: {WHEEL}: {done.stderr.strip()[-300:]}")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return Path(wheel.extract(APP, folder))


def cases(model: str) -> Iterator[Case]:
    packed = AGENTIF / "published" / f"{model}.results.json.gz"
    rows = json.loads(gzip.decompress(packed.read_bytes()))
    for number, row in enumerate(rows[: ROWS or None]):
        judge: dict[str, str] = {}
        kept = []
        for index, raw in enumerate(row["constraints"]):
            texts = recorded(raw)
            if texts is None:
                continue
            steps = []
            for position, step in enumerate(raw["evaluation"]):
                key = f"[{model} {number} {index} {position}]"
                if step["type"] != "code":
                    judge[key] = texts[position]
                    step = step | {"exec": f"{key}\n{step['exec']}"}
                steps.append(step)
            kept.append({**raw, "evaluation": steps})
        text = row["output"]["content"] or ""
        message = {"type": "message", "content": [{"type": "output_text", "text": text}]}
        body = {
            "responses_create_params": {"input": row["input"]},
            "response": {"output": [message], "output_text": text},
            "verifier_metadata": {"constraints": kept, "query_id": row.get("query_id")},
        }
        yield Case(f"{model} {number + 1}", body, kept, judge)


def recorded(raw: Row) -> dict[int, str] | None:
    """Return the judge's text of each step that asks; None where it is not on record."""
    asking = [n for n, step in enumerate(raw["evaluation"]) if step["type"] != "code"]
    if not asking:
        return {}
    text = raw.get("llm_output")
    if not isinstance(text, str) or not text.strip():
        return None
    conditions = [n for n in asking if raw["evaluation"][n]["type"] == "llm_conditional_check"]
    if len(asking) - len(conditions) > 1:
        return None
    applied = raw.get("score") is not None
    return {n: "YES" if n in conditions and applied and len(asking) > 1 else text for n in asking}


def theirs(app: Path, found: list[Case]) -> list[dict[str, Any]]:
    """Return what NeMo Gym's app says."""
    lines = (
        {"body": case.body, "constraints": case.constraints, "judge": case.judge} for case in found
    )
    done = subprocess.run(
        [sys.executable, str(GYM / "oracle.py"), str(app)],
        input="".join(json.dumps(line) + "\n" for line in lines),
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def ours(found: list[Case], parser: str) -> list[dict[str, Any]]:
    """Return what the service says, of each constraint and in its counts."""
    texts = {key: text for case in found for key, text in case.judge.items()}

    async def reply(request: web.Request) -> web.Response:
        prompt = (await request.json())["messages"][0]["content"]
        message = {"role": "assistant", "content": texts[prompt.partition("\n")[0]]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"choices": [choice], "model": "m"})

    async def one(service: Running, case: Case) -> dict[str, Any]:
        status, counts = await service.post("/verify", case.body)
        assert status == 200, counts
        text = case.body["response"]["output_text"]
        item = {"response": text, "messages": case.body["responses_create_params"]["input"]}
        if not case.constraints:
            return {"verdicts": [], "counts": counts}
        status, judged = await service.post("/v1/verify", item | {"constraints": case.constraints})
        assert status == 200, judged
        return {"verdicts": judged["verdicts"], "counts": counts}

    async def main() -> list[dict[str, Any]]:
        judge = web.Application(client_max_size=2**26)
        judge.router.add_post("/v1/chat/completions", reply)
        runner = web.AppRunner(judge)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        try:
            async with serving(url, parser=parser) as service:
                return [await one(service, case) for case in found]
        finally:
            await runner.cleanup()

    return asyncio.run(main())


def kind(constraint: Row, verdict: dict[str, Any], other: object) -> str:
    """Name a difference: the chain, what each side says, and why there is no verdict here."""
    chain = "→".join(step["type"] for step in constraint["evaluation"])
    reason = verdict["reason"] if verdict["verdict"] == "unscored" else verdict["verdict"]
    return f"{chain}: here {reason}, there {other}"


NAMES = {True: "followed", False: "violated", "skipped": "not_applicable", "error": "unscored"}


@pytest.mark.parametrize("parser", ["nemo-0.7", "adhere"])
def test_verdicts_and_counts(app: Path, parser: str) -> None:
    found = [case for model in MODELS for case in cases(model)]
    differences: Counter[str] = Counter()
    places: dict[str, list[str]] = {}
    compared: Counter[str] = Counter()
    rows = Counter[str]()
    for case, their, our in zip(found, theirs(app, found), ours(found, parser), strict=True):
        same = True
        for constraint, verdict, other in zip(
            case.constraints, our["verdicts"], their["verdicts"], strict=True
        ):
            chain = "→".join(step["type"] for step in constraint["evaluation"])
            compared[chain] += 1
            if NAMES[other] != verdict["verdict"]:
                same = False
                name = kind(constraint, verdict, NAMES[other])
                differences[name] += 1
                places.setdefault(name, []).append(f"{case.place} {verdict['index'] + 1}")
        counts = {key: our["counts"][key] for key in their["counts"]}
        rows["equal" if counts == their["counts"] else "different"] += 1
        if same:
            assert counts == their["counts"], case.place
    for name, number in differences.most_common():
        print(f"{number} {name}, such as {', '.join(places[name][:3])}")
    print(f"compared: {dict(compared)}, {compared.total()} in all; rows: {dict(rows)}")
    listed = json.loads((GYM / "differences.json").read_text(encoding="utf-8"))
    known = {each["kind"]: each["count"] for each in listed[parser]}
    assert set(differences) <= set(known)
    assert all(number <= known[name] for name, number in differences.items())
    if not ROWS:
        assert differences == known
        assert compared == listed["compared"]
