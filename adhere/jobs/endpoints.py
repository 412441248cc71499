"""From configuration to something that answers: endpoints, and what a server is started with."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from adhere import loop
from adhere.batch import BatchClient
from adhere.client import ChatClient, Endpoint
from adhere.config import Local, Project
from adhere.config.endpoint import DEFAULT_BASE_URL
from adhere.costs.budget import Allowance, MeteredClient
from adhere.engines import EngineSpec, ServerInfo
from adhere.environment import expand, lookup, secret

T = TypeVar("T")

# Tokens that the longest wait is derived from where no output budget is sent.
UNSENT_BUDGET = 32768


def model_endpoint(project: Project, name: str, budget: int, shown: str | None = None) -> Endpoint:
    """Return the endpoint of an API model; ``shown`` is what messages name instead of its file.

    Raises ConfigError for a missing key or variable.
    """
    model, file = project.models[name], shown or project.model_file(name)
    assert model.api is not None, "only API models have an endpoint before they are served"
    return Endpoint(
        base_url=expand(model.api.base_url, project.root, f"{file}: api.base_url"),
        owner=file,
        api_key=secret(model.api.api_key_env, project.root, f"{file}: api.api_key_env"),
        concurrency=model.concurrency or project.config.concurrency,
        retry=project.config.retry,
        budget=budget,
        shared=True,
        requests_per_minute=model.requests_per_minute,
        tokens_per_minute=model.tokens_per_minute,
    )


def judge_endpoint(project: Project, name: str) -> Endpoint:
    """Return the endpoint of a judge that already runs. Raises ConfigError as above."""
    judge, file = project.judges[name], project.judge_file(name)
    written = judge.base_url or lookup("OPENAI_BASE_URL", project.root) or DEFAULT_BASE_URL
    return Endpoint(
        base_url=expand(written, project.root, f"{file}: base_url").rstrip("/"),
        owner=file,
        api_key=secret(judge.api_key_env, project.root, f"{file}: api_key_env"),
        concurrency=judge.concurrency or project.config.concurrency,
        retry=project.config.retry,
        budget=judge.max_completion_tokens or judge.max_tokens or 8192,
        shared=True,
        requests_per_minute=judge.requests_per_minute,
        tokens_per_minute=judge.tokens_per_minute,
    )


def engine_spec(project: Project, local: Local, served_name: str, file: str) -> EngineSpec:
    """Return what the engine needs. Raises ConfigError for a variable that is not set."""
    assert local.model_path is not None and local.max_model_len is not None, "validated on load"
    return EngineSpec(
        engine=local.engine_name,
        model_path=expand(local.model_path, project.root, f"{file}: model_path"),
        served_model_name=served_name,
        max_model_len=local.max_model_len,
        slots=local.slots,
        threads=local.threads,
        tensor_parallel_size=local.tensor_parallel_size,
        args=local.vllm_args,
        port=local.port,
    )


def local_endpoint(local: Local, info: ServerInfo, wanted: Endpoint) -> Endpoint:
    """Return the endpoint of a server that this job started, with what is ``wanted`` of it."""
    # More requests than slots only wait inside the server, where their time limit runs.
    most = local.slots if local.engine_name == "llamacpp" else wanted.concurrency
    concurrency = min(wanted.concurrency, most)
    return replace(wanted, base_url=info.base_url, concurrency=concurrency, window=info.window)


def wanted_locally(project: Project, owner: str, concurrency: int | None, budget: int) -> Endpoint:
    """Return what is known of an endpoint before its server has an address."""
    return Endpoint(
        base_url="",
        owner=owner,
        concurrency=concurrency or project.config.concurrency,
        retry=project.config.retry,
        budget=budget,
    )


def with_client(
    endpoint: Endpoint,
    work: Callable[[ChatClient], Coroutine[Any, Any, T]],
    allowance: Allowance | None = None,
    batches: Path | None = None,
) -> T:
    """Run ``work`` with a client of an endpoint, in an event loop of its own.

    With an ``allowance`` the client keeps to the budget. With a file for ``batches`` it asks
    through the endpoint's batches, and keeps there what it has submitted.
    """

    async def run() -> T:
        made = MeteredClient(endpoint, allowance)
        if batches is not None:
            made = BatchClient(endpoint, allowance, batches)
        async with made as client:
            return await work(client)

    return loop.run(run())
