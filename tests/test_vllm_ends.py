"""How vLLM ends: a wrong argument, an engine that dies, SIGTERM with requests in flight.

``make test`` runs the stand-in, ``make test-vllm`` the real server (see ``vllm_engine.py``).
"""

import asyncio
import http.client
import json
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from vllm_engine import (
    ARGS,
    DEADLY_ARGS,
    ENVIRONMENT,
    ITEMS,
    PLAIN,
    QUESTION,
    WINDOW,
    Vllm,
    mode,
    sampled,
)
from workflow_project import WorkflowProject, make_project

from adhere import journal
from adhere.client import ChatClient
from adhere.engines import _probe, serve
from adhere.errors import EngineError
from adhere.prediction.answer import Output, is_pending
from adhere.prediction.asking import ask


def test_wrong_argument_ends_the_start_with_the_servers_own_words(
    vllm: Vllm, tmp_path: Path
) -> None:
    log = tmp_path / "serve.log"
    server = serve(vllm.spec((*ARGS, "--no-such-option")), log)
    with pytest.raises(EngineError, match=r"does not start: it exited with status 2.*") as caught:
        server.__enter__()
    assert "unrecognized arguments: --no-such-option" in str(caught.value)
    assert server.exit_status == 2
    vllm.note_end("bad_argument", server, log.read_text("utf-8"))


def test_engine_that_dies_in_mid_run(vllm: Vllm, tmp_path: Path) -> None:
    """A prompt of several chunks whose request has a seed does it."""
    seen: list[Output] = []
    seeded = sampled(PLAIN | {"seed": "per_item"}, 20)

    async def until_death(client: ChatClient) -> None:
        async with asyncio.timeout(120):
            seen.append(await ask(sampled(PLAIN, 20), ITEMS[0], 1, client))
            seen.append(await ask(seeded, ITEMS[-1], 1, client))
            await asyncio.Event().wait()

    log = tmp_path / "serve.log"
    with (
        serve(vllm.spec(DEADLY_ARGS), log) as server,
        pytest.raises(EngineError, match="died while it was needed: it exited with status"),
    ):
        vllm.work(server, until_death)
    assert not is_pending(seen[0])
    if len(seen) > 1:  # else the death came before the answer
        assert seen[1]["error"]["kind"] == "server_error" and seen[1]["error"]["retryable"]
    assert "EngineDeadError" in log.read_text("utf-8")
    vllm.note_death(server, log.read_text("utf-8"))


def test_sigterm_with_requests_in_flight(vllm: Vllm, tmp_path: Path) -> None:
    payload = mode(1900, extra_body={"ignore_eos": True}).payload(QUESTION, 1, 1900)
    body = json.dumps(payload | {"stream": True})
    with serve(vllm.spec(), tmp_path / "serve.log") as server:
        netloc = urlsplit(server.info.base_url).netloc
        connections = [http.client.HTTPConnection(netloc, timeout=60) for _ in range(16)]
        for connection in connections:
            connection.request(
                "POST", "/v1/chat/completions", body, {"Content-Type": "application/json"}
            )
        streams = [connection.getresponse() for connection in connections]
        lines = [stream.readline() for stream in streams]
        assert all(line.startswith(b"data: ") for line in lines)
        processes = [psutil.Process(pid) for pid in server.pids]
        began = time.monotonic()
    assert time.monotonic() - began < 20  # 10 s of grace, then SIGKILL
    assert not any(process.is_running() for process in processes)
    assert not _probe.listeners(int(netloc.rpartition(":")[2]))
    for connection in connections:
        connection.close()
    vllm.note_end("in_flight", server, first_line=lines[0].decode().strip())


def served_project(root: Path) -> WorkflowProject:
    """Return a project with one model that the workflow serves itself, and code checks only."""
    project = make_project(root, "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1")
    (project.root / "configs" / "alpha.yaml").unlink()
    code = {"type": "code", "exec": "def check_following(response):\n    return True\n"}
    constraint = {
        "id": 0,
        "dimension": "unconditional",
        "type": "formatting",
        "evaluation": [code],
    }
    rows = [{"id": n, "input": item, "constraints": [constraint]} for n, item in enumerate(ITEMS)]
    project.write_dataset(rows)
    # With the usual patience the server is gone before a request is given up.
    project.change_yaml("configs/global.yaml", retry={})
    project.write_yaml("configs/tiny.yaml", model_config(seeded=True))
    return project


def model_config(*, seeded: bool) -> dict[str, Any]:
    """Return the model; with a seed in its first mode, its server dies of the last item."""
    first = PLAIN | {"max_tokens": 20, "seed": "per_item" if seeded else "not_sent"}
    second = PLAIN | {"max_tokens": 20, "seed": "not_sent", "temperature": 0.5}
    return {
        "engine": "vllm",
        "model_path": "${TINY_MODEL}",
        "served_model_name": "tiny",
        "max_model_len": WINDOW,
        "vllm_args": list(DEADLY_ARGS),
        "num_gpus": 0,
        "concurrency": 1,
        "modes": {"first": first, "second": second},
    }


@pytest.mark.workflow
def test_workflow_survives_the_death_of_its_engine(vllm: Vllm, tmp_path: Path) -> None:
    project = served_project(tmp_path / "project")
    env = {"PATH": vllm.path, "TINY_MODEL": vllm.model, **ENVIRONMENT}
    options = ("--config", "repeats=1")

    died = project.snakemake(*options, env=env)
    assert died.code != 0
    assert "the server of model 'tiny' died while it was needed" in died.text
    kept = journaled(project, "second")
    assert len(kept) == len(journaled(project, "first")) == len(ITEMS) - 1
    (record,) = records(project)
    assert record["status"] == "failed" and record["engine"]["versions"] == {"vllm": "0.32.0"}
    assert not servers_left(project)

    project.write_yaml("configs/tiny.yaml", model_config(seeded=False))
    finished = project.snakemake(*options, env=env)
    assert finished.code == 0, finished.text
    rows = project.json("results/prediction/tiny__second/run1/tiny.json")
    assert not any(is_pending(row["output"]) for row in rows)
    assert [rows[index]["output"] for index in kept] == list(kept.values())
    assert len(journaled(project, "first")) == len(ITEMS)
    assert {record["status"] for record in records(project)} == {"failed", "done"}
    assert "tiny" in (project.root / "results" / "summary.md").read_text("utf-8")
    assert project.plan(*options, env=env).idle
    assert not servers_left(project)


def journaled(project: WorkflowProject, mode_name: str) -> dict[int, Output]:
    """Return what a mode's journal holds that is final, by item."""
    path = project.root / f"results/prediction/tiny__{mode_name}/run1/tiny.partial.jsonl"
    entries = journal.read(path).values() if path.exists() else ()
    return {e["item"]: e["output"] for e in entries if not is_pending(e["output"])}


def records(project: WorkflowProject) -> list[dict[str, Any]]:
    """Return the run metadata of serving jobs."""
    folder = project.root / "results" / "run_metadata" / "tiny"
    found = [project.json(str(path.relative_to(project.root))) for path in folder.iterdir()]
    return [record for record in found if record["stage"] == "serve"]


def servers_left(project: WorkflowProject) -> list[psutil.Process]:
    """Return processes that still run in the project's folder."""
    left = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.cwd() == str(project.root):
                left.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return left
