"""vLLM for tests: the real CPU build, and a stand-in that replays recordings of it.

The real one is installed by ``make test-vllm`` into an environment of its own. What its tests ask
goes through a tap that notes requests and replies; ``make test-vllm RECORD=1`` writes them to
``vllm_cpu/recordings.json``, and without RECORD they are compared with what stands there.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from aiohttp import web

from adhere.client import ChatClient, Endpoint
from adhere.config import Retry
from adhere.engines import EngineSpec, LocalServer, _probe, vllm
from adhere.jsonio import canonical, read_json, write_json
from adhere.prediction.model import Mode

T = TypeVar("T")
Json = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
FILES = Path(__file__).with_name("vllm_cpu")
RECORDINGS = FILES / "recordings.json"
REAL = ROOT / ".venv-vllm"
WINDOW = 2048
_USUAL = ("--dtype", "float32", "--enforce-eager", "--reasoning-parser", "qwen3")
ARGS = (*_USUAL, "--no-enable-chunked-prefill", "--max-num-batched-tokens", str(WINDOW))
# This build's engine dies of a request that has a seed and more tokens than one chunk.
DEADLY_ARGS = (*_USUAL, "--max-num-batched-tokens", "512")
QUESTION = [{"role": "user", "content": "Say something short. 请用中文。"}]
# What the workflow is made to ask; only the last one takes several chunks.
ITEMS = [
    [{"role": "user", "content": f"Item {number}: {words}"}]
    for number, words in enumerate(("name a thing.", "name another.", "bodi " * 950))
]
PLAIN: Json = {"temperature": 1.0, "top_p": 0.95, "enable_thinking": False}
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}


def sampled(sampling: Json, budget: int | None, *, thinks: bool = False) -> Mode:
    """Return a mode of the tiny model."""
    return Mode("tiny", "m", thinks, "tiny", sampling, budget, "max_tokens", {})


def mode(budget: int | None, *, thinks: bool = False, **sampling: Any) -> Mode:
    """Return a mode that sends a seed."""
    usual: Json = {"temperature": 1.0, "top_p": 0.95, "seed": "per_item"}
    return sampled(usual | {"enable_thinking": thinks} | sampling, budget, thinks=thinks)


@dataclass(slots=True)
class Recorder:
    """What a real server said and did."""

    get: Json = field(default_factory=dict)
    exchanges: list[Json] = field(default_factory=list)
    ends: Json = field(default_factory=dict)

    def content(self) -> Json:
        """Return the recordings as they are written."""
        words = set()
        for args in (ARGS, DEADLY_ARGS):
            words |= {*vllm.command(EngineSpec("vllm", "MODEL", "tiny", WINDOW, args=args), 0)}
        return {
            "vllm": self.get["/version"]["version"],
            "words": sorted(words - {"vllm", "MODEL", "0"}),
            "get": self.get,
            "exchanges": sorted(self.exchanges, key=_asked),
            "ends": self.ends,
        }


def _asked(exchange: Json) -> tuple[str, bytes]:
    return exchange["path"], canonical(exchange["request"])


# Lines of a log that say why a server ended, and what changes in them from run to run.
_WHY = re.compile(r"unrecognized arguments|EngineDeadError|EngineCore encountered")
_TELLING = re.compile(r"^\(\w+ pid=\d+\) |\x1b\[[0-9;]*m|\b\d\d-\d\d \d\d:\d\d:\d\d |(?<=\.py):\d+")


@dataclass(frozen=True, slots=True)
class Vllm:
    """One of the two: the folder whose ``vllm`` is started, the model, what is recorded."""

    folder: Path
    model: str
    recorder: Recorder | None

    @property
    def path(self) -> str:
        """PATH with the command's folder, which holds nothing else, in front."""
        return os.pathsep.join([str(self.folder), os.environ["PATH"]])

    def spec(self, args: tuple[str, ...] = ARGS, **changes: Any) -> EngineSpec:
        """Return a server of the model."""
        fields: Json = {
            "engine": "vllm",
            "model_path": self.model,
            "served_model_name": "tiny",
            "max_model_len": WINDOW,
            "args": args,
            "env": ENVIRONMENT | {"PATH": self.path},
        }
        return EngineSpec(**fields | changes)

    def work(
        self,
        server: LocalServer,
        work: Callable[[ChatClient], Awaitable[T]],
        *,
        window: int | None = WINDOW,
    ) -> T:
        """Run ``work`` with a client of the server, for as long as the server lives."""

        async def run() -> T:
            async with Tap(server.info.base_url, self.recorder) as base_url:
                endpoint = Endpoint(
                    base_url, "configs/tiny.yaml", retry=Retry(attempts=1), window=window
                )
                async with ChatClient(endpoint) as client:
                    return await work(client)

        return asyncio.run(server.while_alive(run()))

    def note_facts(self, root: str, metrics: Json) -> None:
        """Record what a running server tells of itself."""
        if self.recorder is None:
            return
        cards = _probe.get_json(root, "/v1/models")
        for card in cards["data"]:
            card["root"] = "MODEL"
        version = _probe.get_json(root, "/version")
        self.recorder.get = {"/v1/models": cards, "/version": version, "/metrics": metrics}

    def note_end(self, name: str, server: LocalServer, log: str = "", **more: Any) -> None:
        """Record how a server ended, with the lines of its log that say why."""
        if self.recorder is not None:
            lines = [_TELLING.sub("", line) for line in log.splitlines() if _WHY.search(line)]
            self.recorder.ends[name] = {"exit_status": server.exit_status, "log": lines, **more}

    def note_death(self, server: LocalServer, log: str) -> None:
        """Record the death that the last request brought, and what it was answered."""
        if self.recorder is not None:
            last = self.recorder.exchanges.pop()
            self.note_end("death", server, log, request=last["request"], reply=last["reply"])


class Tap:
    """A proxy that notes every exchange; without a recorder, the server's own address."""

    def __init__(self, base_url: str, recorder: Recorder | None) -> None:
        self._base_url = base_url
        self._recorder = recorder
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> str:
        if self._recorder is None:
            return self._base_url
        app = web.Application()
        app.router.add_post("/{path:.*}", self._forward)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        return f"http://127.0.0.1:{port}/v1"

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _forward(self, request: web.Request) -> web.Response:
        assert self._recorder is not None
        body = await request.read()
        url = self._base_url.removesuffix("/v1") + request.path
        headers = {"Content-Type": "application/json"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=body, headers=headers) as response,
        ):
            content = await response.read()
        reply = {"status": response.status, "body": json.loads(content)}
        reply["body"].pop("tokens", None)  # thousands; their count says it all
        exchange = {"path": request.path, "request": json.loads(body), "reply": reply}
        self._recorder.exchanges.append(exchange)
        return web.Response(status=response.status, body=content, content_type="application/json")


def stand_in(folder: Path) -> Vllm:
    """Return the stand-in, started by a command ``vllm`` in ``folder``."""
    folder.mkdir()
    command = folder / "vllm"
    command.write_text(
        f'#!/bin/sh\nexec {sys.executable} {FILES / "stand_in.py"} "$@"\n', encoding="utf-8"
    )
    command.chmod(0o755)
    return Vllm(folder, "MODEL", None)


def real(folder: Path) -> Vllm:
    """Return the real vLLM with a tiny model that is made in ``folder``."""
    folder.mkdir()
    (folder / "vllm").symlink_to(REAL / "bin" / "vllm")
    model = folder / "model"
    make = [REAL / "bin" / "python", FILES / "make_model.py", model]
    subprocess.run(make, check=True, env=os.environ | ENVIRONMENT, stderr=subprocess.DEVNULL)
    return Vllm(folder, str(model), Recorder())


def compare(recorder: Recorder) -> None:
    """Compare what a real server said with the recordings; with RECORD=1, replace them."""
    found = recorder.content()
    if os.environ.get("RECORD") == "1":
        write_json(RECORDINGS, found)
    known = read_json(RECORDINGS)
    assert essence(found) == essence(known), "make test-vllm RECORD=1 takes over what is new"


# What a reply must have in common with its recording besides its structure.
_KEPT = ("status", "finish_reason", "prompt_tokens", "count", "max_model_len", "error")


def essence(value: Any, name: str = "") -> Any:
    """Return a value without what changes from run to run: texts, times, numbers, ids.

    Where a random model may end by itself, how it ended changes too.
    """
    if name == "finish_reason" and value in ("stop", "length"):
        return "of its own or cut"
    if name in ("fresh", "used"):
        return re.sub(r" \S+$", "", value, flags=re.MULTILINE)
    if name in ("request", "words", "vllm", "exit_status", "log", *_KEPT):
        return value
    if isinstance(value, dict):
        return {key: essence(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [essence(inner) for inner in value]
    return type(value).__name__
