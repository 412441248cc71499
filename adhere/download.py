"""Download one file: bounded patience, bounded size, and nothing but a complete body."""

import asyncio
import logging
import math

import aiohttp
import yarl

from adhere import __version__
from adhere.config import Retry
from adhere.errors import DataError
from adhere.progress import Progress

_LOG = logging.getLogger("adhere")
# Ten times AgentIF's file; more is not what was asked for.
MAX_BYTES = 512 << 20
_MEGABYTE = 1_000_000
_CONNECT_S = 30.0
_STALL_S = 60.0
# A person waits for it: the patience that a night of requests has would be too much.
_MAX_TRIES = 4
# What another try would meet again.
_FINAL = (
    aiohttp.TooManyRedirects,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
    aiohttp.ClientSSLError,
)
_PASSING_STATUS = (408, 425, 429)


class _PassingStatusError(Exception):
    """The server asks for patience: it is overloaded, or fails for the moment."""


def without_secrets(url: str) -> str:
    """Return an address for messages: without user, password, query and fragment."""
    try:
        return str(yarl.URL(url).with_user(None).with_query(None).with_fragment(None))
    except ValueError:
        return "the address given"


async def download(url: str, retry: Retry) -> bytes:
    """Return what an address holds, decompressed where the transfer was compressed.

    Failures that may pass are tried again within ``retry``. Raises DataError naming the address,
    what was found and what to do.
    """
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=_CONNECT_S, sock_read=retry.timeout_s or _STALL_S
    )
    headers = {"User-Agent": f"adhere/{__version__}"}
    wait, tries = retry.first_wait_s, min(retry.attempts, _MAX_TRIES)
    # trust_env: proxies are given in the environment, as for every other program.
    async with aiohttp.ClientSession(timeout=timeout, headers=headers, trust_env=True) as session:
        for attempt in range(1, tries + 1):
            try:
                return await _body(session, url)
            except _FINAL as error:
                raise _failure(url, error, "correct the address") from None
            except (aiohttp.ClientError, _PassingStatusError, TimeoutError) as error:
                if attempt == tries:
                    raise _failure(url, error, f"gave up after {attempt} tries") from None
                _LOG.info("%s: %s: trying again", without_secrets(url), _reason(error))
            await asyncio.sleep(min(wait, retry.max_wait_s))
            wait *= 2
    raise AssertionError("a retry has at least one attempt")


async def _body(session: aiohttp.ClientSession, url: str) -> bytes:
    shown = without_secrets(url)
    async with session.get(url) as response:
        if response.status >= 500 or response.status in _PASSING_STATUS:
            raise _PassingStatusError(f"status {response.status} {response.reason}")
        if response.status != 200:
            raise DataError(
                f"{shown}: status {response.status} {response.reason}: not there, or not for "
                "everybody: correct the address, or get a copy another way and name it with --from"
            )
        # The length of a compressed transfer says nothing about the file.
        encoded = "Content-Encoding" in response.headers
        length = None if encoded else response.content_length
        body = bytearray()
        with Progress(f"fetch {shown}", "MB") as progress:
            if length is not None:
                progress.start(total=math.ceil(length / _MEGABYTE))
            async for chunk in response.content.iter_any():
                body += chunk
                if max(len(body), length or 0) > MAX_BYTES:
                    raise DataError(f"{shown}: more than {MAX_BYTES >> 20} MiB: not a dataset")
                while progress.done * _MEGABYTE < len(body) and progress.done < progress.total:
                    progress.advance()
        return bytes(body)


def _failure(url: str, error: Exception, advice: str) -> DataError:
    return DataError(
        f"{without_secrets(url)}: cannot be fetched: {_reason(error)}: {advice}, or get a copy "
        "another way and name it with --from"
    )


def _reason(error: Exception) -> str:
    """Return what went wrong, without the address, which may hold a key."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {error.os_error.strerror or 'failed'}"
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        return "not a usable address"
    if isinstance(error, aiohttp.TooManyRedirects):
        return "no end of redirects"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the transfer broke off"
    if isinstance(error, aiohttp.ClientResponseError):
        return error.message
    return str(error) or type(error).__name__
