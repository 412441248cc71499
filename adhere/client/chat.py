"""The chat client: bounded concurrency, one retry layer, and a job that stops when it must.

aiohttp is used directly: a judge call costs a third of a millisecond of CPU with it and several
times that with the comfort layers above it, and a full evaluation makes 50,000 of them a model.
"""

import asyncio
import email.utils
import random
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import aiohttp
import yarl

from adhere.client.counting import count_request, parse_count
from adhere.client.endpoint import LOST, ClientCounts, Endpoint
from adhere.client.manners import Manners
from adhere.client.reply import Failure, Reply, classify, parse_completion
from adhere.config import Retry
from adhere.costs.tokens import tokens_of
from adhere.errors import EndpointError
from adhere.jsonio import dumps

# So many refusals of unknown kind, and not one answer, mean that the request itself is wrong.
# Refusals come back long before answers do: with fewer, the refused ones of many requests in
# flight would stop a job whose other items are being answered.
_REFUSALS_BEFORE_GIVING_UP = 200
# So many requests in a row that spent their patience and met nobody who answered mean that the
# endpoint is gone, though it was there before.
_LOST_BEFORE_GIVING_UP = 100
_CONNECT_S = 30.0
# Longest wait for a count of tokens, and the answers of servers that do not count.
_COUNT_S = 30.0
_NO_SUCH_PATH = frozenset({404, 405, 501})
# Refusals that the same request would meet again at once, though not on another day.
NOT_REPEATED = frozenset({"bad_request", "context_overflow"})


class ChatClient:
    """Calls one endpoint; an async context manager.

    ``complete`` returns a Reply or a Failure. It raises EndpointError when going on is pointless:
    the key, model or a parameter is refused, or nothing was ever reached.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.counts = ClientCounts()
        self._manners = Manners(endpoint, self.counts)
        self._url = _url(endpoint)
        self._key = (endpoint.api_key or "").encode()
        self._unreachable = False
        self._lost_in_a_row = 0
        self._reached = False
        self._counts_tokens = True
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "ChatClient":
        headers = {"Content-Type": "application/json"}
        if self.endpoint.api_key is not None:
            headers["Authorization"] = f"Bearer {self.endpoint.api_key}"
        await self._manners.__aenter__()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self.endpoint.concurrency),
            timeout=aiohttp.ClientTimeout(total=self.endpoint.timeout_s, sock_connect=_CONNECT_S),
            headers=headers,
            # A load balancer's cookie would send every request to the same replica.
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *_error: object) -> None:
        if self._session is not None:
            await self._session.close()
        # Only now is nothing in flight any more.
        await self._manners.__aexit__()

    @property
    def width(self) -> int:
        """How many requests a stage should have waiting for it at once."""
        return self.endpoint.concurrency

    async def complete(self, payload: Mapping[str, Any], _key: str = "", /) -> Reply | Failure:
        """Send one chat request, again while that may help.

        Its key tells it apart from others with the same payload, in every call of the program; a
        client that collects its replies later knows it by that.
        """
        body = dumps(payload)
        async with self._manners.slots:
            outcome = await self._attempts(body)
        return self._settled(outcome)

    def _settled(self, outcome: Reply | Failure) -> Reply | Failure:
        """Count what a request came to. Raises EndpointError when going on is pointless."""
        lost = isinstance(outcome, Failure) and outcome.kind in LOST
        self._lost_in_a_row = self._lost_in_a_row + 1 if lost else 0
        if isinstance(outcome, Failure):
            self.counts.failures[outcome.kind] += 1
            self._give_up_if_pointless(outcome)
        else:
            self.counts.answered += 1
            self.counts.tokens += tokens_of(outcome.usage)
        return outcome

    async def count_tokens(self, payload: Mapping[str, Any]) -> int | None:
        """Ask the server how many tokens the prompt of a chat request has, its template included.

        None where it does not tell: counting is a help, and never what fails a request.
        """
        assert self._session is not None, "the client is used outside its context"
        if not self._counts_tokens:
            return None
        body = dumps(count_request(payload))
        limit = aiohttp.ClientTimeout(total=_COUNT_S)
        try:
            async with self._session.post(
                self._url.origin() / "tokenize", data=body, allow_redirects=False, timeout=limit
            ) as response:
                self._counts_tokens = response.status not in _NO_SUCH_PATH
                return parse_count(await response.read()) if response.status == 200 else None
        except (aiohttp.ClientError, OSError):
            return None

    async def _attempts(self, body: bytes) -> Reply | Failure:
        retry = self.endpoint.retry
        for attempt in range(1, retry.attempts + 1):
            turn = await self._manners.turn(len(body))
            outcome = await self._attempt(body)
            self._manners.learn(turn, outcome)
            if isinstance(outcome, Reply) or not outcome.retryable or outcome.fatal:
                break
            # A server that has gone away is not worth the whole patience of every request.
            if outcome.kind in NOT_REPEATED or attempt == retry.attempts or self._unreachable:
                break
            self.counts.retries += 1
            await asyncio.sleep(_wait(retry, attempt, outcome.retry_after_s))
            await self._manners.slots.again()
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
            return self._without_key(parse_completion(content))
        location = response.headers.get("Location")
        if 300 <= response.status < 400 and location is not None:
            content = f"the server redirects to {location}".encode()
        retry_after_s = _retry_after(response.headers.get("Retry-After"))
        return self._without_key(classify(response.status, content, retry_after_s))

    def _without_key(self, outcome: Reply | Failure) -> Reply | Failure:
        """Take the key out of texts in which JSON wrote it with escapes ("\\/")."""
        key = self.endpoint.api_key
        names = ("message",) if isinstance(outcome, Failure) else ("content", "reasoning")
        for name in names if key else ():
            text = getattr(outcome, name)
            if text and key in text:
                outcome = replace(outcome, **{name: text.replace(key, "[key]")})
        return outcome

    def _give_up_if_pointless(self, failure: Failure) -> None:
        """Raise EndpointError for a failure that every further request would meet."""
        advice = {
            "unauthorised": "check the key that `api_key_env` names, and what it may be used for",
            "not_found": "check `model` and `base_url`",
            "quota": "the account has no credit left; what is answered is kept: start again later",
            "refused_parameter": "change the parameter, or write `not_sent` as its value",
            "bad_request": "check the model's parameters",
            "refused": "check `base_url`",
            "unreachable": "check `base_url`, and that the server runs; what is answered is kept",
        }
        gone = "check that the server works, and start again; what is answered is kept"
        never_answered = self.counts.answered == 0
        refusals = self.counts.failures["bad_request"]
        if not (
            failure.fatal
            or (failure.kind == "unreachable" and not self._reached)
            or self._lost_in_a_row >= max(_LOST_BEFORE_GIVING_UP, 2 * self.endpoint.concurrency)
            or (never_answered and refusals >= _REFUSALS_BEFORE_GIVING_UP)
        ):
            return
        status = f"HTTP {failure.status}: " if failure.status else ""
        raise EndpointError(
            f"{self.endpoint.owner}: {self.endpoint.base_url} {failure.kind.replace('_', ' ')}: "
            f"{status}{failure.message}: {advice.get(failure.kind, gone)}"
        )


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
