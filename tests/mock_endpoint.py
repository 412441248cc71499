"""A mock of an OpenAI-compatible chat endpoint that injects faults on demand, for tests.

Inside a test, in its own event loop::

    async with MockEndpoint(MockConfig(latency_s=0.01)) as mock:
        ...  # requests to mock.base_url
        assert mock.stats().resent_after_ok == 0

From synchronous tests and for other processes (a workflow under test)::

    with start_mock(tmp_path, MockConfig(require_key="k")) as mock:
        ...  # mock.base_url, mock.stats(), mock.configure(...), mock.log()

By hand: ``python tests/mock_endpoint.py --port 0 --max-seconds 60``.

Served (loopback only, no streaming):

    POST …/v1/chat/completions   a judge answers where the path has ``/judge/`` before ``v1`` or the
                                 model's name contains "judge"; any other path is a model
    GET  …/v1/models
    GET  /stats, /log, /config   JSON
    POST /config                 a JSON object of MockConfig fields; the others keep their values
    POST /reset                  forgets counts, log and the rules' ``times``, keeps the config
    GET  /wait?answered=10       the stats, as soon as every named count is reached

A request is met in this order: rate limits, key, JSON, model, refused parameters, context, rules,
default reply. Every reply is a function of the request's body, the config and the rules' counters,
never of time, rate limits apart.
"""

import argparse
import asyncio
import ctypes
import hashlib
import http.client
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import orjson
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

# Bodies are arbitrary JSON that tests index into.
Json = dict[str, Any]

NO_STATUS = 0
"""Stands for the status of a request that got no status line: reset, or abandoned by its client."""

_PR_SET_PDEATHSIG = 1
_SHUTDOWN_GRACE_S = 0.05
_HOST = "127.0.0.1"
_LIST_WORDS = (b"list", "列表".encode(), b"Extract")
_ENGLISH = (
    "The plan has three parts and each of them is short. ",
    "First, the input is read and checked. ",
    "A tool is called only where the request names one. ",
    "- keep the original order\n",
    "- report what failed\n",
    "Numbers such as 42 or 3.5 stay as they are. ",
    "This covers what was asked for. ",
    "\n\n## Result\n\n",
)
_CHINESE = (
    "计划分为三个部分，每个部分都很简短。",
    "首先读取并检查输入内容。",
    "只有在请求中指定时才会调用工具。",
    "- 保持原有顺序\n",
    "- 说明失败的原因\n",
    "像 42 或 3.5 这样的数字保持不变。",
    "以上内容回答了全部问题。",
    "\n\n## 结果\n\n",
)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ErrorBody(_Strict):
    """The ``error`` object of a refusal; fields that are not set follow from the status."""

    type: str | None = None
    code: str | int | None = None
    param: str | None = None
    message: str | None = None


class Reply(_Strict):
    """What a rule answers. Only fields that are set differ from the default reply.

    ``content``, ``reasoning``, ``finish_reason``, ``usage``, ``served_model`` and
    ``system_fingerprint`` set to None are sent as null (``reasoning``: the field is left out).
    """

    content: str | None = None
    reasoning: str | None = None
    reasoning_field: Literal["reasoning", "reasoning_content"] | None = None
    finish_reason: str | None = None
    usage: Json | None = None
    served_model: str | None = None
    system_fingerprint: str | None = None
    filter: bool = False
    """finish_reason content_filter and, unless set, an empty content."""
    tool_calls: list[Json] = []
    """Calls of tools in the message, whose content is then null unless set; see ``tool_call``."""
    empty_choices: bool = False
    status: int = Field(default=200, ge=200, le=599)
    """Any other than 200 sends ``error`` as the body."""
    error: ErrorBody = ErrorBody()
    retry_after: int | float | str | None = None
    """The Retry-After header: seconds, or text sent as it is."""
    raw_body: str | None = None
    """Sent in place of the JSON: garbage, truncated JSON, HTML."""
    cut: bool = False
    """Declare the whole length, send half of it, close."""
    reset: bool = False
    """Reset the connection (TCP RST) without any reply."""
    hang_s: float = Field(default=0.0, ge=0)
    """Seconds to wait, in addition to the latency, before any of the above."""


def tool_call(name: str, arguments: Json | str, call_id: str | None = "call_a") -> Json:
    """Return a call of a tool as servers send it."""
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


class Rule(_Strict):
    """The first rule that matches a request and is not used up decides its reply."""

    match: str = ""
    """Substring of the prompt (all message texts joined by newlines) or of the model's name."""
    judge: bool | None = None
    """Only judge requests (True) or only the others (False)."""
    reply: Reply = Reply()
    times: int | None = Field(default=None, ge=0)
    """Only the first so many matching requests; the next rules get the rest."""
    times_per_body: int | None = Field(default=None, ge=0)
    """Only the first so many requests of each identical body, as a fault that a retry heals."""
    probability: float = Field(default=1.0, ge=0, le=1)
    """Share of bodies that the rule hits; the same bodies every time (keyed by ``seed``)."""


class MockConfig(_Strict):
    """Everything the mock can be told; every field may be changed while it runs."""

    latency_s: float = Field(default=0.0, ge=0)
    rules: list[Rule] = []
    flavour: Literal["vllm", "openai", "llamacpp"] = "vllm"
    """Whose refusal of a prompt that does not fit is imitated."""
    context_tokens: int | None = Field(default=None, gt=0)
    """Context window; a token is four UTF-8 bytes of text, rounded up over the whole prompt."""
    require_key: str | None = None
    models: list[str] = []
    """Known models; empty: any model is."""
    refused_parameters: list[str] = []
    reply_chars: int = Field(default=400, ge=1)
    chinese_share: float = Field(default=0.25, ge=0, le=1)
    yes_share: float = Field(default=0.5, ge=0, le=1)
    reasoning_field: Literal["reasoning", "reasoning_content"] = "reasoning"
    served_model: str | None = None
    """Sent as ``model``; None: the requested name."""
    system_fingerprint: str | None = "fp_mock"
    most_in_flight: int | None = Field(default=None, ge=0)
    """Requests beyond so many at once are refused with 429."""
    most_in_window: int | None = Field(default=None, ge=0)
    """Requests beyond so many accepted within any ``window_s`` seconds are refused with 429 and a
    Retry-After, in seconds, that says when the next one is accepted."""
    window_s: float = Field(default=60.0, gt=0)
    seed: int = 0
    log_entries: int = Field(default=20_000, ge=0)
    log_bytes: int = Field(default=64 * 1024 * 1024, ge=0)
    """Bounds of the request log; the oldest entries go first."""


class Stats(_Strict):
    """Counts of chat requests since the start or the last reset."""

    requests: int = 0
    finished: int = 0
    """Requests that are no longer in flight, however they ended."""
    in_flight: int = 0
    max_in_flight: int = 0
    answered: int = 0
    """Whole chat completions sent with 200 (not cut, not raw, not without choices)."""
    distinct_bodies: int = 0
    resent_after_ok: int = 0
    """Requests whose identical body had been answered (as above) before they arrived."""
    models: dict[str, int] = {}
    statuses: dict[int, int] = {}
    """Requests by status sent; NO_STATUS where none was."""


class LogEntry(_Strict):
    """One chat request. ``body`` is empty where the request was no JSON object."""

    path: str
    model: str
    body: Json
    has_authorization: bool
    authorization_sha256: str | None
    """SHA-256 of the header's value, which itself is kept nowhere."""
    status: int | None
    """None while the request is in flight."""
    answered: bool


def count_tokens(text: str | bytes) -> int:
    """Return the mock's token count of a text: its UTF-8 bytes / 4, rounded up."""
    data = text.encode() if isinstance(text, str) else text
    return (len(data) + 3) // 4


def _digest(data: bytes) -> bytes:
    # SHA-256 has its own instructions on most processors: the fastest here for long prompts.
    return hashlib.sha256(data).digest()[:16]


def _share(key: bytes) -> float:
    """Return a number in [0, 1) that depends on ``key`` only."""
    return int.from_bytes(_digest(key)[:8], "big") / 2**64


def _text(key: bytes, chars: int, chinese_share: float) -> str:
    """Return a text of ``chars`` characters that depends on the arguments only."""
    chinese = _share(b"language" + key) < chinese_share
    sentences = _CHINESE if chinese else _ENGLISH
    parts = [f"{'回答' if chinese else 'Answer'} {key.hex()[:12]}. "]
    length = len(parts[0])
    while length < chars:
        for byte in key:
            parts.append(sentences[byte % len(sentences)])
            length += len(parts[-1])
    return "".join(parts)[:chars]


def _judge_text(prompt: bytes, yes_share: float) -> str:
    """Return a judge's text: a Python list where a list is asked for, else YES or NO."""
    key = _digest(prompt)
    if any(word in prompt for word in _LIST_WORDS):
        return repr([f"item {key.hex()[:6]}", "第二项", "third item"][: 1 + key[0] % 3])
    return "YES" if _share(key) < yes_share else "NO"


def _message_texts(body: Json) -> Iterator[str]:
    """Yield the texts of all messages: string contents, and the text parts of lists."""
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else []:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            for part in content:
                if isinstance(part, dict) and isinstance(part.get("text"), str):
                    yield part["text"]


def _secret_digest(value: str | None) -> str | None:
    if value is None:
        return None
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


def _text_key(prompt: bytes, body: Json) -> bytes:
    """Return what the default text depends on: the messages' roles and texts, and the seed."""
    messages = body.get("messages")
    listed = messages if isinstance(messages, list) else []
    roles = [message.get("role") for message in listed if isinstance(message, dict)]
    return _digest(prompt + orjson.dumps([roles, body.get("seed")]))


@dataclass(slots=True)
class _Call:
    """One chat request as it arrived, and what became of it.

    ``body`` is None where it is no JSON object; ``prompt`` is UTF-8. Both are dropped once the
    request is dealt with: ``raw`` is what the log keeps.
    """

    path: str
    raw: bytes
    authorization_sha256: str | None
    digest: bytes
    is_object: bool
    body: Json | None
    model: str
    prompt: bytes
    judge: bool
    status: int | None = None
    answered: bool = False

    @classmethod
    def read(cls, request: web.BaseRequest, raw: bytes) -> Self:
        """Parse a request."""
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError:
            value = None
        body = value if isinstance(value, dict) else None
        model = str(body.get("model", "")) if body else ""
        path = request.path
        return cls(
            path=path,
            raw=raw,
            authorization_sha256=_secret_digest(request.headers.get("Authorization")),
            digest=_digest(raw),
            is_object=body is not None,
            body=body,
            model=model,
            prompt="\n".join(_message_texts(body)).encode() if body else b"",
            judge="/judge/" in path.rpartition("v1/chat")[0] or "judge" in model.lower(),
        )

    def entry(self) -> Json:
        """Return the fields of a LogEntry, its body still serialised."""
        return {
            "path": self.path,
            "model": self.model,
            "body": orjson.Fragment(self.raw if self.is_object else b"{}"),
            "has_authorization": self.authorization_sha256 is not None,
            "authorization_sha256": self.authorization_sha256,
            "status": self.status,
            "answered": self.answered,
        }


@dataclass(slots=True)
class _Outgoing:
    """A reply ready to be sent; ``completion`` says that it is a chat completion with choices."""

    status: int
    payload: bytes
    headers: dict[str, str] = field(default_factory=dict)
    completion: bool = False


_COUNTS = Stats.model_fields.keys() - {"models", "statuses"}
_Waiter = tuple[dict[str, int], asyncio.Future[Stats]]


class _Book:
    """Counts requests, keeps the bounded log and wakes whoever waits for a count."""

    def __init__(self, waiters: list[_Waiter] | None = None) -> None:
        self._waiters: list[_Waiter] = waiters if waiters is not None else []
        self._requests = self._finished = self._max_in_flight = 0
        self._answered = self._resent = 0
        self._models: Counter[str] = Counter()
        self._statuses: Counter[int] = Counter()
        self._bodies: set[bytes] = set()
        self._completed: set[bytes] = set()
        self._log: deque[_Call] = deque()
        self._log_bytes = 0

    def successor(self) -> "_Book":
        """Return an empty book for whoever waits on this one."""
        return _Book(self._waiters)

    def arrive(self, call: _Call, config: MockConfig) -> None:
        """Count a request that has arrived and log it."""
        self._requests += 1
        self._max_in_flight = max(self._max_in_flight, self._requests - self._finished)
        self._models[call.model] += 1
        self._bodies.add(call.digest)
        self._resent += call.digest in self._completed
        self._log.append(call)
        self._log_bytes += len(call.raw)
        while self._log and (
            len(self._log) > config.log_entries or self._log_bytes > config.log_bytes
        ):
            self._log_bytes -= len(self._log.popleft().raw)
        self._wake()

    def depart(self, call: _Call) -> None:
        """Count what became of a request."""
        self._finished += 1
        call.body, call.prompt = None, b""
        if call.status is None:
            call.status = NO_STATUS
        self._statuses[call.status] += 1
        if call.answered:
            self._answered += 1
            self._completed.add(call.digest)
        self._wake()

    def stats(self) -> Stats:
        return Stats(
            requests=self._requests,
            finished=self._finished,
            in_flight=self._requests - self._finished,
            max_in_flight=self._max_in_flight,
            answered=self._answered,
            distinct_bodies=len(self._bodies),
            resent_after_ok=self._resent,
            models=dict(self._models),
            statuses=dict(self._statuses),
        )

    def log_json(self) -> bytes:
        return orjson.dumps([call.entry() for call in self._log])

    async def until(self, minimums: dict[str, int]) -> Stats:
        """Return the stats as soon as every named count is at least its minimum."""
        unknown = minimums.keys() - _COUNTS
        if unknown:
            raise ValueError(f"no such count: {sorted(unknown)}; there are {sorted(_COUNTS)}")
        if self._reached(minimums):
            return self.stats()
        future: asyncio.Future[Stats] = asyncio.get_running_loop().create_future()
        waiter = (minimums, future)
        self._waiters.append(waiter)
        try:
            return await future
        finally:
            self._waiters.remove(waiter)

    def _reached(self, minimums: dict[str, int]) -> bool:
        stats = self.stats()
        return all(getattr(stats, name) >= minimum for name, minimum in minimums.items())

    def _wake(self) -> None:
        for minimums, future in self._waiters:
            if not future.done() and self._reached(minimums):
                future.set_result(self.stats())


class _Rules:
    """Rules with what they have been used for so far."""

    def __init__(self, config: MockConfig) -> None:
        self._seed = config.seed
        self._rules = config.rules
        self._used: Counter[int] = Counter()
        self._used_by_body: Counter[tuple[int, bytes]] = Counter()

    def choose(self, call: _Call) -> Reply:
        """Return the reply of the first rule that takes the request, else the default one."""
        for index, rule in enumerate(self._rules):
            if self._matches(rule, call) and self._is_left(index, rule, call.digest):
                self._used[index] += 1
                if rule.times_per_body is not None:
                    self._used_by_body[index, call.digest] += 1
                return rule.reply
        return _DEFAULT_REPLY

    def _matches(self, rule: Rule, call: _Call) -> bool:
        if rule.judge is not None and rule.judge != call.judge:
            return False
        return rule.match.encode() in call.prompt or rule.match in call.model

    def _is_left(self, index: int, rule: Rule, digest: bytes) -> bool:
        if rule.times is not None and self._used[index] >= rule.times:
            return False
        by_body = rule.times_per_body
        if by_body is not None and self._used_by_body[index, digest] >= by_body:
            return False
        if rule.probability >= 1:
            return True
        return _share(b"%d:%d:" % (self._seed, index) + digest) < rule.probability


class _Limits:
    """What a provider lets in: so many at once, and so many in a stretch of time."""

    def __init__(self) -> None:
        self.accepted = 0
        self._times: deque[float] = deque()

    def refusal(self, config: MockConfig) -> _Outgoing | None:
        """Return the refusal of a request that comes now; None where it is let in, and counted."""
        if config.most_in_flight is not None and self.accepted >= config.most_in_flight:
            return _refuse(429, "Too many requests at once.", "rate_limit_exceeded")
        if config.most_in_window is not None:
            now = time.monotonic()
            while self._times and self._times[0] <= now - config.window_s:
                self._times.popleft()
            if len(self._times) >= config.most_in_window:
                refusal = _refuse(429, "Too many requests.", "rate_limit_exceeded")
                rest = self._times[0] + config.window_s - now if self._times else config.window_s
                refusal.headers["Retry-After"] = f"{rest:.3f}"
                return refusal
            self._times.append(now)
        self.accepted += 1
        return None


_DEFAULT_REPLY = Reply()
_ERROR_DEFAULTS: dict[int, tuple[str, str | None]] = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}


def _error_payload(status: int, error: ErrorBody) -> Json:
    fallback = "server_error" if status >= 500 else "invalid_request_error"
    error_type, code = _ERROR_DEFAULTS.get(status, (fallback, None))
    return {
        "message": error.message if error.message is not None else f"The mock answers {status}.",
        "type": error.type if error.type is not None else error_type,
        "param": error.param,
        "code": error.code if error.code is not None else code,
    }


def _error(status: int, payload: Json) -> _Outgoing:
    return _Outgoing(status, orjson.dumps({"error": payload}))


def _refuse(status: int, message: str, code: str, param: str | None = None) -> _Outgoing:
    error = ErrorBody(message=message, code=code, param=param)
    return _error(status, _error_payload(status, error))


def _output_limit(body: Json) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        if isinstance(body.get(name), int):
            return int(body[name])
    return None


def _context_refusal(config: MockConfig, prompt_tokens: int, limit: int | None) -> _Outgoing | None:
    """Return the refusal of a request that does not fit, as the imitated server words it.

    vLLM refuses a prompt that leaves no room and a max_tokens that alone is too large (their sum
    is clamped); OpenAI refuses the sum; llama.cpp refuses the prompt only.
    """
    window = config.context_tokens
    if window is None:
        return None
    maximum = f"This model's maximum context length is {window} tokens"
    if config.flavour == "llamacpp":
        if prompt_tokens < window:
            return None
        message = f"request ({prompt_tokens} tokens) exceeds the context size ({window} tokens)"
        numbers = {"n_prompt_tokens": prompt_tokens, "n_ctx": window}
        kind = "exceed_context_size_error"
        return _error(400, {"code": 400, "message": message, "type": kind, **numbers})
    if config.flavour == "openai":
        if prompt_tokens + (limit or 0) <= window:
            return None
        message = f"{maximum}. However, you asked for {prompt_tokens} + {limit or 0} tokens."
        return _refuse(400, message, "context_length_exceeded", "messages")
    if prompt_tokens >= window:
        message = f"{maximum}. However, your request has {prompt_tokens} input tokens."
        param = "input_tokens"
    elif limit is not None and limit > window:
        message = f"max_tokens={limit} is too large. {maximum}."
        param = "max_tokens"
    else:
        return None
    kind = "BadRequestError"
    return _error(400, {"message": message, "type": kind, "param": param, "code": 400})


@dataclass(slots=True)
class _Draft:
    """The default answer to a request, before a rule's reply changes it."""

    content: str | None
    reasoning: str | None
    finish_reason: str
    usage: Json


def _clip(text: str, tokens: int) -> str:
    return text.encode("utf-8")[: 4 * max(0, tokens)].decode("utf-8", "ignore")


def _draft(config: MockConfig, call: _Call, body: Json) -> _Draft:
    """Return the default answer, clipped to the output budget as a real server clips it."""
    limit = _output_limit(body)
    prompt_tokens = count_tokens(call.prompt)
    room = config.context_tokens - prompt_tokens if config.context_tokens else None
    budget = min((n for n in (limit, room) if n is not None), default=None)
    key = _text_key(call.prompt, body)
    content: str | None
    if call.judge:
        content = _judge_text(call.prompt, config.yes_share)
    else:
        content = _text(key, config.reply_chars, config.chinese_share)
    reasoning, finish_reason = None, "stop"
    template = body.get("chat_template_kwargs")
    if isinstance(template, dict) and template.get("enable_thinking") is True:
        reasoning = _text(_digest(key), config.reply_chars, config.chinese_share)
    thought = count_tokens(reasoning) if reasoning is not None else 0
    if budget is not None and thought + count_tokens(content) > budget:
        finish_reason = "length"
        if reasoning is not None and thought >= budget:
            reasoning, thought, content = _clip(reasoning, budget), budget, None
        else:
            content = _clip(content, budget - thought)
    written = count_tokens(content) if content else 0
    return _Draft(content, reasoning, finish_reason, _usage(prompt_tokens, written, thought))


def _usage(prompt_tokens: int, written: int, thought: int) -> Json:
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": written + thought,
        "total_tokens": prompt_tokens + written + thought,
        "prompt_tokens_details": {"cached_tokens": prompt_tokens // 32 * 16},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }


def _apply(draft: _Draft, reply: Reply) -> None:
    """Replace the parts of the default answer that a rule sets; its usage follows the texts."""
    given = reply.model_fields_set
    if reply.filter:
        draft.content, draft.finish_reason = "", "content_filter"
    if "content" in given:
        draft.content = reply.content
        if not reply.filter:
            draft.finish_reason = "stop"
    elif reply.tool_calls:
        draft.content, draft.finish_reason = None, "tool_calls"
    if "reasoning" in given:
        draft.reasoning = reply.reasoning
    if given & {"content", "reasoning", "filter"}:
        written, thought = count_tokens(draft.content or ""), count_tokens(draft.reasoning or "")
        draft.usage = _usage(draft.usage["prompt_tokens"], written, thought)


def _completion(config: MockConfig, call: _Call, body: Json, reply: Reply) -> Json:
    """Return a chat completion: the default answer with what the rule's reply sets."""
    given = reply.model_fields_set
    draft = _draft(config, call, body)
    if given:
        _apply(draft, reply)
    message: Json = {"role": "assistant", "content": draft.content}
    if draft.reasoning is not None:
        message[reply.reasoning_field or config.reasoning_field] = draft.reasoning
    if reply.tool_calls:
        message["tool_calls"] = reply.tool_calls
    reason = reply.finish_reason if "finish_reason" in given else draft.finish_reason
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    default_model = config.served_model or call.model
    default_print = config.system_fingerprint
    return {
        "id": f"chatcmpl-{call.digest.hex()}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": reply.served_model if "served_model" in given else default_model,
        "choices": [] if reply.empty_choices else [choice],
        "usage": reply.usage if "usage" in given else draft.usage,
        "system_fingerprint": (
            reply.system_fingerprint if "system_fingerprint" in given else default_print
        ),
    }


class MockEndpoint:
    """The mock in the running event loop: an asynchronous context manager.

    ``port`` 0 takes a free one. Requests that hang when the block ends are cut off.
    """

    def __init__(self, config: MockConfig | None = None, *, port: int = 0) -> None:
        self.config = config if config is not None else MockConfig()
        self.port = port
        self._rules = _Rules(self.config)
        self._limits = _Limits()
        self._book = _Book()
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> Self:
        server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_GRACE_S)
        await runner.setup()
        try:
            await web.TCPSite(runner, _HOST, self.port, backlog=1024).start()
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        self.port = runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def root_url(self) -> str:
        """Address without a path, where /stats and the like are."""
        return f"http://{_HOST}:{self.port}"

    @property
    def base_url(self) -> str:
        """Base URL of the model, ending in /v1."""
        return f"{self.root_url}/v1"

    @property
    def judge_url(self) -> str:
        """Base URL of the judge, ending in /judge/v1."""
        return f"{self.root_url}/judge/v1"

    def stats(self) -> Stats:
        """Return the counts so far."""
        return self._book.stats()

    def log(self) -> list[LogEntry]:
        """Return the logged requests, oldest first."""
        return _parse_log(self._book.log_json())

    async def until(self, **at_least: int) -> Stats:
        """Wait until each named count (such as ``answered=10``) is reached; return the stats."""
        return await self._book.until(at_least)

    def configure(self, **changes: object) -> None:
        """Change the named config fields; new rules start unused. Raises ValidationError."""
        merged = self.config.model_dump(exclude_unset=True) | changes
        self.config = MockConfig.model_validate(merged)
        if changes.keys() & {"rules", "seed"}:
            self._rules = _Rules(self.config)

    def reset(self) -> None:
        """Forget counts, log (requests in flight included) and the rules' use; keep the config."""
        self._book = self._book.successor()
        self._rules = _Rules(self.config)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if request.method == "POST" and path.endswith("/v1/chat/completions"):
            return await self._chat(request)
        if request.method == "GET" and path.endswith("/v1/models"):
            return _response(self._models(request.headers.get("Authorization")))
        return _response(await self._control(f"{request.method} {path}", request))

    async def _control(self, route: str, request: web.BaseRequest) -> _Outgoing:
        try:
            if route == "GET /stats":
                return _Outgoing(200, _stats_json(self.stats()))
            if route == "GET /wait":
                minimums = {name: int(value) for name, value in request.query.items()}
                return _Outgoing(200, _stats_json(await self.until(**minimums)))
            if route == "GET /log":
                return _Outgoing(200, self._book.log_json())
            if route == "GET /config":
                return _Outgoing(200, self.config.model_dump_json().encode())
            if route == "POST /reset":
                self.reset()
                return _Outgoing(200, b"{}")
            if route == "POST /config":
                self.configure(**orjson.loads(await request.content.read()))
                return _Outgoing(200, self.config.model_dump_json().encode())
        except (ValueError, TypeError) as error:
            return _refuse(400, str(error), "invalid_config")
        return _refuse(404, f"Unknown request: {route}", "unknown_url")

    def _models(self, authorization: str | None) -> _Outgoing:
        refusal = self._key_refusal(authorization)
        if refusal is not None:
            return refusal
        cards: list[Json] = []
        for name in self.config.models or ["mock-model"]:
            card = {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "mock"}
            if self.config.flavour == "vllm" and self.config.context_tokens:
                card["max_model_len"] = self.config.context_tokens
            cards.append(card)
        return _Outgoing(200, orjson.dumps({"object": "list", "data": cards}))

    def _key_refusal(self, authorization: str | None) -> _Outgoing | None:
        key = self.config.require_key
        if key is None or authorization == f"Bearer {key}":
            return None
        return _refuse(401, "Incorrect API key provided.", "invalid_api_key")

    def _refusal(self, call: _Call, authorization: str | None) -> _Outgoing | None:
        """Return what the config refuses about a request, else None."""
        refusal = self._key_refusal(authorization)
        if refusal is not None:
            return refusal
        body = call.body
        if body is None or not isinstance(body.get("messages"), list) or not body["messages"]:
            message = "The body must be a JSON object with a list of messages."
            return _refuse(400, message, "invalid_body", "messages")
        if self.config.models and call.model not in self.config.models:
            message = f"The model `{call.model}` does not exist."
            return _refuse(404, message, "model_not_found", "model")
        if body.get("stream"):
            return _refuse(400, "The mock does not stream.", "unsupported_value", "stream")
        for name in self.config.refused_parameters:
            if name in body:
                message = f"Unsupported parameter: '{name}' is not supported with this model."
                return _refuse(400, message, "unsupported_parameter", name)
        if self.config.context_tokens is None:
            return None
        return _context_refusal(self.config, count_tokens(call.prompt), _output_limit(body))

    async def _chat(self, request: web.BaseRequest) -> web.StreamResponse:
        call = _Call.read(request, await request.content.read())
        book = self._book
        book.arrive(call, self.config)
        limits = self._limits
        excess = limits.refusal(self.config)
        try:
            if excess is not None:
                call.status = excess.status
                return await _send(request, excess, cut=False)
            refusal = self._refusal(call, request.headers.get("Authorization"))
            reply = _DEFAULT_REPLY if refusal is not None else self._rules.choose(call)
            delay = self.config.latency_s + reply.hang_s
            if delay:
                await asyncio.sleep(delay)
            if reply.reset:
                return _reset(request)
            outgoing = refusal if refusal is not None else self._outgoing(call, reply)
            response = await _send(request, outgoing, cut=reply.cut)
            call.status = outgoing.status
            call.answered = outgoing.completion and not reply.cut
            return response
        except ConnectionError:
            return web.Response()  # the client has gone: nobody reads this
        finally:
            limits.accepted -= excess is None
            book.depart(call)

    def _outgoing(self, call: _Call, reply: Reply) -> _Outgoing:
        if reply.raw_body is not None:
            outgoing = _Outgoing(reply.status, reply.raw_body.encode())
        elif reply.status != 200:
            outgoing = _error(reply.status, _error_payload(reply.status, reply.error))
        else:
            completion = _completion(self.config, call, call.body or {}, reply)
            outgoing = _Outgoing(200, orjson.dumps(completion), completion=not reply.empty_choices)
        if reply.retry_after is not None:
            outgoing.headers["Retry-After"] = str(reply.retry_after)
        return outgoing


def _response(outgoing: _Outgoing) -> web.Response:
    headers = {"Content-Type": "application/json", **outgoing.headers}
    return web.Response(status=outgoing.status, body=outgoing.payload, headers=headers)


async def _send(request: web.BaseRequest, outgoing: _Outgoing, *, cut: bool) -> web.StreamResponse:
    """Write a reply to the socket, or the first half of it and an end of the connection."""
    if not cut:
        response = _response(outgoing)
        await response.prepare(request)
        await response.write_eof()
        return response
    torn = web.StreamResponse(status=outgoing.status, headers=outgoing.headers)
    torn.content_type = "application/json"
    torn.content_length = len(outgoing.payload)
    await torn.prepare(request)
    await torn.write(outgoing.payload[: len(outgoing.payload) // 2])
    if request.transport is not None:
        request.transport.close()
    return torn


def _reset(request: web.BaseRequest) -> web.Response:
    """End the connection with a TCP reset; the response returned goes nowhere."""
    if request.transport is not None:
        connection = request.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        request.transport.abort()
    return web.Response()


def _stats_json(stats: Stats) -> bytes:
    return stats.model_dump_json().encode()


def _parse_log(data: bytes) -> list[LogEntry]:
    return [LogEntry.model_validate(entry) for entry in orjson.loads(data)]


@dataclass
class RunningMock:
    """The mock in a process of its own; a context manager that stops it."""

    root_url: str
    process: subprocess.Popen[bytes]

    @property
    def base_url(self) -> str:
        """Base URL of the model, ending in /v1."""
        return f"{self.root_url}/v1"

    @property
    def judge_url(self) -> str:
        """Base URL of the judge, ending in /judge/v1."""
        return f"{self.root_url}/judge/v1"

    def stats(self) -> Stats:
        """Return the counts so far."""
        return Stats.model_validate_json(self._ask("GET", "/stats"))

    def log(self) -> list[LogEntry]:
        """Return the logged requests, oldest first."""
        return _parse_log(self._ask("GET", "/log"))

    def until(self, *, timeout_s: float = 60.0, **at_least: int) -> Stats:
        """Wait until each named count is reached. Raises TimeoutError after ``timeout_s``."""
        query = "&".join(f"{name}={minimum}" for name, minimum in at_least.items())
        return Stats.model_validate_json(self._ask("GET", f"/wait?{query}", timeout_s=timeout_s))

    def configure(self, **changes: object) -> None:
        """Change the named config fields; new rules start unused. Raises ValidationError."""
        patch = MockConfig.model_validate(changes)
        self._ask("POST", "/config", patch.model_dump_json(exclude_unset=True).encode())

    def reset(self) -> None:
        """Forget counts, log and the rules' use; keep the config."""
        self._ask("POST", "/reset")

    def stop(self) -> None:
        """End the process; does nothing when it has ended already."""
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _ask(
        self, method: str, path: str, body: bytes | None = None, timeout_s: float = 60.0
    ) -> bytes:
        # http.client, since urllib would send loopback requests through a configured proxy.
        connection = http.client.HTTPConnection(
            self.root_url.removeprefix("http://"), timeout=timeout_s
        )
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise ValueError(f"{method} {path}: {response.status}: {data.decode()}")
        return data


def start_mock(
    tmp_path: Path, config: MockConfig | None = None, *, max_seconds: float = 600.0
) -> RunningMock:
    """Start the mock in a process of its own and return when it accepts requests.

    Its stderr goes to a file in ``tmp_path``; the config goes through a pipe, so that no key is
    written anywhere. It dies with the thread that called this. Raises RuntimeError with the end of
    its stderr where it does not start.
    """
    command = [sys.executable, str(Path(__file__).resolve()), "--config", "-"]
    command += ["--max-seconds", str(max_seconds)]
    handle, name = tempfile.mkstemp(dir=tmp_path, prefix="mock-", suffix=".log")
    with os.fdopen(handle, "wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the mock's pipes are missing")
    with suppress(BrokenPipeError), process.stdin:
        text = (config or MockConfig()).model_dump_json(exclude_unset=True)
        process.stdin.write(text.encode())
    line = process.stdout.readline().decode().strip()
    mock = RunningMock(line.removesuffix("/v1"), process)
    if not line:
        mock.stop()
        raise RuntimeError(f"the mock did not start: {Path(name).read_text()[-2000:]}")
    return mock


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


async def _serve(config: MockConfig, arguments: argparse.Namespace) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with MockEndpoint(config, port=arguments.port) as mock:
        if arguments.port_file is not None:
            part = arguments.port_file.with_name(arguments.port_file.name + ".part")
            part.write_text(f"{mock.port}\n")
            part.replace(arguments.port_file)
        print(mock.base_url, flush=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), arguments.max_seconds)


def _read_config(source: str | None) -> MockConfig:
    if source is None:
        return MockConfig()
    text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    return MockConfig.model_validate_json(text)


def main() -> int:
    """Serve until SIGTERM, SIGINT, the parent's death or ``--max-seconds``."""
    parser = argparse.ArgumentParser(description="Serve a mock OpenAI-compatible endpoint.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    parser.add_argument("--port-file", type=Path, help="write the port number to this file")
    parser.add_argument("--max-seconds", type=float, default=600.0, help="stop after (600)")
    parser.add_argument("--config", help="JSON file of MockConfig fields; - reads stdin")
    arguments = parser.parse_args()
    _die_with_parent()
    try:
        config = _read_config(arguments.config)
    except (OSError, ValidationError) as error:
        print(f"--config {arguments.config}: {error}", file=sys.stderr)
        return 2
    asyncio.run(_serve(config, arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main())
