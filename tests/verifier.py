"""The verifier's service in a test's own event loop, and in a process of its own."""

import asyncio
import http.client
import io
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from adhere.checkers import CheckerPool
from adhere.client import ChatClient, Endpoint
from adhere.config import JudgeConfig, Retry
from adhere.data import Row
from adhere.jsonio import dumps
from adhere.judging import Judge
from adhere.service.engine import Engine
from adhere.service.gate import Gate
from adhere.service.server import Server
from adhere.service.settings import Settings, listen

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "serve_verifier.py"
Json = dict[str, Any]
NO_RETRY = Retry(attempts=1, first_wait_s=0.001, max_wait_s=0.002)


def code(source: str, **labels: Any) -> Row:
    """Return a constraint that one checker decides; ``source`` is an expression over response."""
    exec_ = f"def check_following(response):\n    return {source}\n"
    return {"evaluation": [{"type": "code", "exec": exec_}], **labels}


def llm(prompt: str, **labels: Any) -> Row:
    """Return a constraint that the judge decides."""
    return {"evaluation": [{"type": "llm", "exec": f"{prompt} {{response}}"}], **labels}


def rollout(text: str, *constraints: Row, **meta: Any) -> Json:
    """Return a request of NeMo Gym's /verify."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "responses_create_params": {"input": [{"role": "user", "content": "Write."}]},
        "response": {"output": [{"type": "message", "role": "assistant", "content": content}]},
        "verifier_metadata": {"constraints": list(constraints), **meta},
    }


@dataclass
class Running:
    """A server that runs, with a client of it."""

    url: str
    engine: Engine
    server: Server
    session: aiohttp.ClientSession

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        """Return the status and the value of the answer."""
        data = io.BytesIO(dumps(body))
        headers = {"Content-Type": "application/json", **headers}
        async with self.session.post(self.url + path, data=data, headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)

    async def raw(self, path: str, body: Any, kind: str = "application/json") -> tuple[int, str]:
        """Send bytes as they are and return the status and the kind of the refusal."""
        headers = {"Content-Type": kind}
        data = io.BytesIO(body) if isinstance(body, bytes) else body
        async with self.session.post(self.url + path, data=data, headers=headers) as answer:
            return answer.status, (await answer.json(content_type=None))["error"]["kind"]

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Return the status and the text of the answer."""
        async with self.session.get(self.url + path, headers=headers) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def serving(
    judge_url: str, settings: Settings | None = None, concurrency: int = 64, **judge: Any
) -> AsyncIterator[Running]:
    """Serve in this event loop; ``judge`` are fields of the judge's configuration."""
    settings = settings or Settings()
    config = JudgeConfig.model_validate({"model": "m", "api_key_env": None, **judge})
    endpoint = Endpoint(judge_url, "judge_configs/j.yaml", concurrency=concurrency, retry=NO_RETRY)
    pool = CheckerPool(workers=1, timeout_s=60)
    async with ChatClient(endpoint) as client, pool, aiohttp.ClientSession() as session:
        engine = Engine(Judge("j", config), client, pool, Gate(settings.limits))
        server = Server(engine, settings)
        with listen(settings) as listener:
            url = "http://127.0.0.1:{1}".format(*listener.getsockname())
            task = asyncio.create_task(server.serve_on(listener))
            try:
                yield Running(url, engine, server, session)
            finally:
                await session.close()
                server.stop()
                await task


def project(folder: Path, judge_url: str, **more: Any) -> Path:
    """Write a project folder whose judge is at this address."""
    files = {
        "configs/global.yaml": {
            "datasets": {"own": "data.json"},
            "default_datasets": ["own"],
            "default_judge": "mock",
            "retry": {"attempts": 1},
            "checkers": {"workers": 1},
        },
        "judge_configs/mock.yaml": {
            "base_url": judge_url,
            "model": "m",
            "api_key_env": None,
            **more,
        },
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


@dataclass
class Process:
    """``scripts/serve_verifier.py`` as a person starts it."""

    popen: "subprocess.Popen[str]"
    url: str

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def end(self) -> list[Json]:
        """Wait for its end and return the lines of its log that were not read."""
        assert self.popen.stderr is not None
        with self.popen.stderr as stream:
            lines = [json.loads(line) for line in stream]
        self.popen.wait(timeout=60)
        return lines


def started(folder: Path, *arguments: str, script: Path = SCRIPT, **env: str) -> Process:
    """Start the script in a project folder, at a free port, and wait until it is ready."""
    kept = {k: v for k, v in os.environ.items() if not k.endswith(("_KEY", "_BASE_URL"))}
    popen = subprocess.Popen(
        [sys.executable, str(script), *(("--port", "0") if script == SCRIPT else ()), *arguments],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT)} | env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert popen.stderr is not None
    line = popen.stderr.readline()
    try:
        ready = json.loads(line)
    except ValueError:
        popen.wait(timeout=60)
        popen.stderr.close()
        raise AssertionError(f"the service did not start: {line}") from None
    assert ready["event"] == "ready"
    return Process(popen, ready["url"])


def ask(port: int, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
    """Ask a server from a thread."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        method = "GET" if body is None else "POST"
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json", **headers}
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
