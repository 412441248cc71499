"""Reward responses through HTTP, and compare with what the judge stage says of the same file.

    python examples/verifier_client.py RESULTS [--rows 100]

RESULTS is a file of judged rows: one of AgentIF's published files, or a results.json of your own.
Its first rows are rewarded by a verifier that this script starts, as a trainer would have it done,
and judged by ``scripts/judge.py`` as files are. Both ask the same stand-in for a judge, which
replays the texts on record: nothing is paid for, and every difference would be one between the
service and files.

With a judge of your own start ``scripts/serve_verifier.py`` and keep ``reward`` below.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from adhere.data import Row, load_rows

ROOT = Path(__file__).resolve().parents[1]
LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))
GLOBAL = {"datasets": {"own": "data.json"}, "default_datasets": ["own"], "default_judge": "replay"}


def main() -> None:
    """Reward, judge, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="JSON or JSONL of judged rows, plain or gzip")
    parser.add_argument("--rows", type=int, default=100)
    options = parser.parse_args()
    texts: dict[str, str] = {}
    rows = [keyed(number, row, texts) for number, row in enumerate(load_rows(options.results))]
    rows = rows[: options.rows]
    with tempfile.TemporaryDirectory() as folder, replaying(texts) as judge_url:
        project(Path(folder), judge_url)
        with serving(Path(folder)) as url:
            rewards = [reward(url, row) for row in rows]
        judged = judged_as_files(Path(folder), rows)
    compare(rewards, judged)


def reward(url: str, row: Row) -> dict[str, Any]:
    """Reward one response: this is all that a trainer does."""
    message = {"type": "message", "content": [{"type": "output_text", "text": content(row)}]}
    request = {
        "responses_create_params": {"input": row["input"]},
        "response": {"output": [message]},
        "verifier_metadata": {"constraints": row["constraints"]},
    }
    return post(f"{url}/verify", request)


def compare(rewards: list[dict[str, Any]], judged: list[Row]) -> None:
    """Say how many rows agree. Ends the process with 1 where any does not."""
    names = {True: "n_true", False: "n_false"}
    different = 0
    for number, (rewarded, row) in enumerate(zip(rewards, judged, strict=True), start=1):
        scores = Counter(names.get(raw["score"]) for raw in row["constraints"])
        here = {name: scores[name] for name in names.values()}
        if here != {name: rewarded[name] for name in here}:
            different += 1
            print(f"row {number}: files say {here}, the service {rewarded}")
    mean = sum(each["reward"] for each in rewards) / len(rewards)
    verdicts = sum(len(row["constraints"]) for row in judged)
    print(f"{len(rewards)} responses, {verdicts} verdicts, mean reward {mean:.3f}")
    print(f"{different} rows differ from the files' verdicts")
    sys.exit(bool(different))


def content(row: Row) -> str:
    """Return a row's response."""
    return row["output"].get("content") or ""


def keyed(number: int, row: Row, texts: dict[str, str]) -> Row:
    """Give each question a first line of its own, under which its text on record is kept."""
    constraints = []
    for index, raw in enumerate(row["constraints"]):
        steps = []
        for position, step in enumerate(raw["evaluation"]):
            if step["type"] != "code":
                key = f"[{number} {index} {position}]"
                texts[key] = raw.get("llm_output") or "YES"
                step = {**step, "exec": f"{key}\n{step['exec']}"}
            steps.append(step)
        constraints.append({**raw, "evaluation": steps})
    return {**row, "constraints": constraints}


@contextmanager
def replaying(texts: dict[str, str]) -> Iterator[str]:
    """Stand in for a judge: an OpenAI-compatible endpoint that knows its answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Answer one question."""
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = body["messages"][0]["content"].partition("\n")[0]
            message = {"role": "assistant", "content": texts[key]}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            answer = json.dumps({"model": "replay", "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def project(folder: Path, judge_url: str) -> None:
    """Write a project folder whose judge is at this address; JSON is YAML."""
    judge = {"base_url": judge_url, "model": "replay", "api_key_env": None, "concurrency": 8}
    for name, written in (("configs/global.yaml", GLOBAL), ("judge_configs/replay.yaml", judge)):
        path = folder / name
        path.parent.mkdir()
        path.write_text(json.dumps(written))


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Run the service in a project folder; its log's first line says where it is."""
    command = [sys.executable, str(ROOT / "scripts" / "serve_verifier.py"), "--port", "0"]
    log = folder / "service.log"
    with log.open("w") as stream, subprocess.Popen(command, cwd=folder, stderr=stream) as process:
        try:
            while "\n" not in log.read_text() and process.poll() is None:
                threading.Event().wait(0.05)
            yield json.loads(log.read_text().partition("\n")[0])["url"]
        finally:
            process.terminate()


def judged_as_files(folder: Path, rows: list[Row]) -> list[Row]:
    """Judge the same rows as files are judged."""
    source, output = folder / "predictions.json", folder / "results.json"
    source.write_text(json.dumps(rows))
    script = ROOT / "scripts" / "judge.py"
    command = [sys.executable, str(script), "--input", str(source), "--output", str(output)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return load_rows(output)


def post(url: str, value: Any) -> dict[str, Any]:
    """Send JSON and return the answer."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(value).encode(), headers)
    with LOCAL.open(request, timeout=600) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


if __name__ == "__main__":
    main()
