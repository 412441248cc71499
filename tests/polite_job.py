"""A job of the tests: one client that asks a shared endpoint so many questions, from a process.

python polite_job.py URL QUESTIONS NAME FIELDS   FIELDS: JSON of further fields of the Endpoint

Prints a line when it begins and, at the end, what its client counted, as JSON.
"""

import asyncio
import sys
from typing import Any

from adhere.client import ChatClient, Endpoint, Reply
from adhere.config import Retry
from adhere.jsonio import dumps, loads
from adhere.metadata import client_figures
from adhere.workers import drain


async def ask(url: str, questions: int, name: str, fields: dict[str, Any]) -> None:
    """Ask, as many at once as the endpoint's concurrency says."""
    retry = Retry(**fields.pop("retry", {}))
    endpoint = Endpoint(url, "configs/polite.yaml", shared=True, retry=retry, **fields)
    async with ChatClient(endpoint) as client:

        async def one(number: int) -> None:
            content = f"{name} {number}"
            message = {"role": "user", "content": content}
            reply = await client.complete({"model": "m", "messages": [message]})
            assert isinstance(reply, Reply), reply

        print("begun", flush=True)
        await drain([(iter(range(questions)), endpoint.concurrency)], one)
    print(dumps(client_figures([client])).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(ask(sys.argv[1], int(sys.argv[2]), sys.argv[3], loads(sys.argv[4])))
