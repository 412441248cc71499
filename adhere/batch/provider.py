"""The endpoint's side of a batch, through the ``openai`` package: files, batches and refusals."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from adhere.batch.lines import URL
from adhere.client import Endpoint
from adhere.client.refusal import TRANSIENT_STATUS, classify
from adhere.errors import EndpointError

if TYPE_CHECKING:
    from openai.types import Batch

_NO_SUCH_PATH = frozenset({404, 405, 501})
# Longest wait for one answer: a file of 200 MB is on its way for a while.
_TIMEOUT_S = 600.0


class Provider:
    """Files and batches of one endpoint.

    Every method raises EndpointError where the endpoint refuses or stays away; the retries are
    those of the ``openai`` package, but for ``submit``.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        # It takes a second or two to import, which only batches pay.
        import openai

        self._endpoint = endpoint
        self._openai = openai
        self._client = openai.AsyncOpenAI(
            # The package insists on a key, and without one takes that of a variable.
            api_key=endpoint.api_key or "none",
            base_url=endpoint.base_url,
            max_retries=endpoint.retry.attempts - 1,
            timeout=_TIMEOUT_S,
            # As for live requests: no proxy that the environment names.
            http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
        )
        # The key says whose account it is, as for live requests; variables do not.
        self._client.organization = self._client.project = None

    async def close(self) -> None:
        """End the connections."""
        await self._client.close()

    async def upload(self, name: str, content: bytes) -> str:
        """Upload a file of requests; return its id."""
        with self._named("uploading a batch"):
            file = await self._client.files.create(file=(name, content), purpose="batch")
        return file.id

    async def uploaded(self, name: str) -> str | None:
        """Return the id of the file of a name, which no other has."""
        with self._named("listing files"):
            async for file in self._client.files.list(purpose="batch"):
                if file.filename == name:
                    return file.id
        return None

    async def delete(self, file_id: str) -> None:
        """Delete a file; one that is gone already is fine."""
        with self._named("deleting a file"):
            try:
                await self._client.files.delete(file_id)
            except self._openai.NotFoundError:
                return

    async def submit(self, file_id: str) -> str:
        """Create a batch from a file, once; return its id.

        An answer that got lost may have created one: it is looked for before the next try.
        """
        retry = self._endpoint.retry
        client = self._client.with_options(max_retries=0)
        with self._named("creating a batch"):
            for attempt in range(retry.attempts):
                try:
                    batch = await client.batches.create(
                        completion_window="24h", endpoint=URL, input_file_id=file_id
                    )
                except self._openai.APIError as error:
                    if attempt == retry.attempts - 1 or not _passes(error):
                        raise
                else:
                    return batch.id
                await asyncio.sleep(min(retry.first_wait_s * 2.0**attempt, retry.max_wait_s))
                if (known := await self.submitted(file_id)) is not None:
                    return known
        raise AssertionError("the last attempt returns or raises")

    async def submitted(self, file_id: str) -> str | None:
        """Return the id of the batch that was created from a file."""
        with self._named("listing batches"):
            async for batch in self._client.batches.list(limit=100):
                if batch.input_file_id == file_id:
                    return batch.id
        return None

    async def batch(self, batch_id: str) -> "Batch | None":
        """Return a batch as it stands; None where the endpoint has none of this id."""
        with self._named(f"asking for batch {batch_id}"):
            try:
                return await self._client.batches.retrieve(batch_id)
            except self._openai.NotFoundError:
                return None

    async def content(self, file_id: str) -> bytes:
        """Return a file's content, without the key where the endpoint quotes it."""
        with self._named("downloading results"):
            content = (await self._client.files.content(file_id)).content
        key = (self._endpoint.api_key or "").encode()
        return content.replace(key, b"[key]") if key else content

    @contextmanager
    def _named(self, doing: str) -> Iterator[None]:
        """Say what was being done when the endpoint refused, or stayed away."""
        where = f"{self._endpoint.owner}: {self._endpoint.base_url}: {doing}"
        advice = "what is submitted goes on there: start again to collect it"
        try:
            yield
        except self._openai.APIStatusError as error:
            if error.status_code in _NO_SUCH_PATH:
                advice = "check `base_url`; where the endpoint offers no batches, remove `batch`"
            said = classify(error.status_code, error.response.content).message
            if self._endpoint.api_key:
                said = said.replace(self._endpoint.api_key, "[key]")
            raise EndpointError(f"{where}: HTTP {error.status_code}: {said}: {advice}") from None
        except self._openai.APIError as error:
            raise EndpointError(f"{where}: {error.message} {advice}") from None


def _passes(error: Exception) -> bool:
    """Whether an error may be gone at the next try: a lost connection, or a passing status."""
    status = getattr(error, "status_code", None)
    return status is None or status in TRANSIENT_STATUS
