"""The chat client: bounded concurrency, one retry layer, and a job that stops when it must.

aiohttp is used directly: a judge call costs a third of a millisecond of CPU with it and several
times that with the comfort layers above it, and a full evaluation makes 50,000 of them a model.
"""

import asyncio
import email.utils
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import aiohttp
import yarl

from adhere.client.reply import Failure, Reply, classify, parse_completion
from adhere.config.schema import Retry
from adhere.errors import EndpointError
from adhere.jsonio import dumps

# So many refusals of unknown kind, and not one answer, mean that the request itself is wrong.
# Refusals come back long before answers do: with fewer, the refused ones of many requests in
# flight would stop a job whose other items are being answered.
_REFUSALS_BEFORE_GIVING_UP = 200
_CONNECT_S = 30.0
# Refusals that the same request would meet again at once, though not on another day.
_NOT_REPEATED = frozenset({"bad_request", "context_overflow"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible endpoint.

    ``owner`` is the configuration file that names it, for messages; ``budget`` is the output
    budget in tokens that the longest wait for a reply is derived from.
    """

    base_url: str
    owner: str
    api_key: str | None = field(default=None, repr=False)
    concurrency: int = 64
    retry: Retry = field(default_factory=lambda: Retry())
    budget: int = 4096

    @property
    def timeout_s(self) -> float:
        """Longest wait for one reply, in seconds."""
        return self.retry.timeout_s or 120 + 0.1 * self.budget


@dataclass(slots=True)
class ClientCounts:
    """What a client has done so far; ``tokens`` sums the servers' own usage figures."""

    answered: int = 0
    retries: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)


class ChatClient:
    """Calls one endpoint; an async context manager.

    ``complete`` returns a Reply or a Failure. It raises EndpointError when going on is pointless:
    the key, model or a parameter is refused, or nothing was ever reached.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.counts = ClientCounts()
        self._slots = asyncio.Semaphore(endpoint.concurrency)
        self._url = _url(endpoint)
        self._key = (endpoint.api_key or "").encode()
        self._unreachable = False
        self._reached = False
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "ChatClient":
        headers = {"Content-Type": "application/json"}
        if self.endpoint.api_key is not None:
            headers["Authorization"] = f"Bearer {self.endpoint.api_key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self.endpoint.concurrency),
            timeout=aiohttp.ClientTimeout(total=self.endpoint.timeout_s, sock_connect=_CONNECT_S),
            headers=headers,
            # A load balancer's cookie would send every request to the same replica.
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def complete(self, payload: Mapping[str, Any]) -> Reply | Failure:
        """Send one chat request, again while that may help."""
        body = dumps(payload)
        async with self._slots:
            outcome = await self._attempts(body)
        if isinstance(outcome, Failure):
            self.counts.failures[outcome.kind] += 1
            self._give_up_if_pointless(outcome)
        else:
            self.counts.answered += 1
            self._count_tokens(outcome.usage or {})
        return outcome

    async def _attempts(self, body: bytes) -> Reply | Failure:
        retry = self.endpoint.retry
        for attempt in range(1, retry.attempts + 1):
            outcome = await self._attempt(body)
            if isinstance(outcome, Reply) or not outcome.retryable or outcome.fatal:
                break
            # A server that has gone away is not worth the whole patience of every request.
            if outcome.kind in _NOT_REPEATED or attempt == retry.attempts or self._unreachable:
                break
            self.counts.retries += 1
            await asyncio.sleep(_wait(retry, attempt, outcome.retry_after_s))
        self._unreachable = isinstance(outcome, Failure) and outcome.kind == "unreachable"
        return outcome

    async def _attempt(self, body: bytes) -> Reply | Failure:
        assert self._session is not None, "the client is used outside its context"
        started = time.monotonic()
        try:
            # A redirected POST becomes a GET, and its key may go to another host.
            async with self._session.post(self._url, data=body, allow_redirects=False) as response:
                self._reached = True
                content = await response.read()
        except aiohttp.ConnectionTimeoutError:
            return Failure("unreachable", f"no connection within {_CONNECT_S:g} s", retryable=True)
        except TimeoutError:
            limit = f"{self.endpoint.timeout_s:g} s"
            return Failure("timeout", f"no complete reply within {limit}", retryable=True)
        except aiohttp.ClientConnectorError as error:
            return Failure("unreachable", str(error), retryable=True)
        except (aiohttp.ClientError, OSError) as error:
            return Failure("connection_lost", f"{type(error).__name__}: {error}", retryable=True)
        outcome = self._read(response, content)
        if isinstance(outcome, Reply):
            return replace(outcome, latency_s=round(time.monotonic() - started, 4))
        return outcome

    def _read(self, response: aiohttp.ClientResponse, content: bytes) -> Reply | Failure:
        if self._key and self._key in content:
            # A server that quotes the key would put it into messages, journals and logs.
            content = content.replace(self._key, b"[key]")
        if 200 <= response.status < 300:
            return parse_completion(content)
        location = response.headers.get("Location")
        if 300 <= response.status < 400 and location is not None:
            content = f"the server redirects to {location}".encode()
        return classify(response.status, content, _retry_after(response.headers.get("Retry-After")))

    def _give_up_if_pointless(self, failure: Failure) -> None:
        """Raise EndpointError for a failure that every further request would meet."""
        advice = {
            "unauthorised": "check the key that `api_key_env` names, and what it may be used for",
            "not_found": "check `model` and `base_url`",
            "quota": "the account has no credit left; what is answered is kept: start again later",
            "refused_parameter": "change the parameter, or write `not_sent` as its value",
            "bad_request": "check the model's parameters",
            "refused": "check `base_url`",
            "unreachable": "check `base_url`, and that the server runs",
        }
        never_answered = self.counts.answered == 0
        refusals = self.counts.failures["bad_request"]
        if not (
            failure.fatal
            or (failure.kind == "unreachable" and not self._reached)
            or (never_answered and refusals >= _REFUSALS_BEFORE_GIVING_UP)
        ):
            return
        status = f"HTTP {failure.status}: " if failure.status else ""
        raise EndpointError(
            f"{self.endpoint.owner}: {self.endpoint.base_url} {failure.kind.replace('_', ' ')}: "
            f"{status}{failure.message}: {advice.get(failure.kind, 'check the file')}"
        )

    def _count_tokens(self, usage: Mapping[str, Any]) -> None:
        details = {
            "prompt": usage.get("prompt_tokens"),
            "completion": usage.get("completion_tokens"),
            "cached": _inner(usage, "prompt_tokens_details", "cached_tokens"),
            "reasoning": _inner(usage, "completion_tokens_details", "reasoning_tokens"),
        }
        for name, value in details.items():
            if isinstance(value, int) and not isinstance(value, bool):
                self.counts.tokens[name] += value


def _url(endpoint: Endpoint) -> yarl.URL:
    """Return where requests go. Raises EndpointError where the address is none."""
    try:
        url = yarl.URL(endpoint.base_url.rstrip("/") + "/chat/completions")
    except ValueError as error:
        raise EndpointError(f"{endpoint.owner}: {endpoint.base_url}: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise EndpointError(
            f"{endpoint.owner}: {endpoint.base_url}: must be an address such as http://host:8000/v1"
        )
    return url


def _inner(usage: Mapping[str, Any], group: str, key: str) -> Any:
    inner = usage.get(group)
    return inner.get(key) if isinstance(inner, dict) else None


def _wait(retry: Retry, attempt: int, retry_after_s: float | None) -> float:
    """Seconds before the next try: doubling with jitter, or what the server asks for, capped."""
    if retry_after_s is not None:
        return min(retry_after_s, retry.max_wait_s) + random.uniform(0, 0.25)
    longest = min(retry.first_wait_s * 2.0 ** min(attempt - 1, 60), retry.max_wait_s)
    return random.uniform(longest / 2, longest)


def _retry_after(value: str | None) -> float | None:
    """Read a Retry-After header, seconds or a date; None when absent or unreadable."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = email.utils.parsedate_to_datetime(value)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None
