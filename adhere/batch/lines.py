"""The files of a batch: a line for each request, and what each line of a result came to. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adhere.client.error_body import ErrorBody
from adhere.client.refusal import classify_error
from adhere.client.reply import Failure, Reply, classify, read_completion
from adhere.costs.expected import message_tokens
from adhere.costs.tokens import BY_BATCH, Tokens
from adhere.jsonio import dumps, fingerprint, lines, loads

URL: Final = "/v1/chat/completions"
# Limits of one file, by OpenAI's reference of `POST /batches` (200 MB, taken as decimal).
MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
# Kinds of failure that only batches have.
UNANSWERED, REJECTED, QUEUE_FULL = "batch_unanswered", "batch_rejected", "batch_queue_full"
# Output tokens of a reply whose request states no limit.
_USUAL_REPLY = 800


@dataclass(frozen=True, slots=True)
class Request:
    """One chat request as a line of a batch file; ``id`` is its ``custom_id``."""

    id: str
    payload: Mapping[str, Any]

    @property
    def line(self) -> bytes:
        """The request as the file has it."""
        body = {"custom_id": self.id, "method": "POST", "url": URL, "body": self.payload}
        return dumps(body) + b"\n"

    @property
    def bound(self) -> Tokens:
        """What it may take: a high guess of its prompt, and all the output that it allows."""
        texts = (message.get("content") for message in self.payload.get("messages", ()))
        prompt = message_tokens(text for text in texts if isinstance(text, str)).high
        limits = (self.payload.get(name) for name in ("max_completion_tokens", "max_tokens"))
        output = next((limit for limit in limits if isinstance(limit, int)), _USUAL_REPLY)
        return Tokens(calls=1, prompt=round(prompt), completion=output).in_batch()


def request_of(payload: Mapping[str, Any], key: str) -> Request:
    """Return a request that every later call of the program knows again by its id."""
    return Request(fingerprint([key, payload])[:32], payload)


def in_files(requests: Sequence[Request], most: int = MOST_REQUESTS) -> Iterator[list[Request]]:
    """Yield requests in groups that fit into one file each: ``most`` of them, and its bytes."""
    group: list[Request] = []
    size = 0
    for request in requests:
        length = len(request.line)
        if group and (len(group) >= most or size + length > MOST_BYTES):
            yield group
            group, size = [], 0
        group.append(request)
        size += length
    if group:
        yield group


def read_results(content: bytes) -> dict[str, Reply | Failure]:
    """Read an output file or an error file; lines that cannot be read are left out."""
    found: dict[str, Reply | Failure] = {}
    for line in lines(content):
        try:
            result = loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(result, dict) and isinstance(result.get("custom_id"), str):
            found[result["custom_id"]] = _outcome(result)
    return found


def _outcome(result: Mapping[str, Any]) -> Reply | Failure:
    response = result.get("response")
    status = response.get("status_code") if isinstance(response, dict) else None
    if not isinstance(response, dict) or not isinstance(status, int):
        error = result.get("error")
        said = error if isinstance(error, dict) else {}
        told = f"{said.get('code') or 'no response'}: {said.get('message') or ''}".rstrip(": ")
        return Failure(UNANSWERED, told, retryable=True)
    if not 200 <= status < 300:
        return classify(status, dumps(response.get("body")))
    outcome = read_completion(response.get("body"))
    if isinstance(outcome, Reply):
        return replace(outcome, usage={**(outcome.usage or {}), BY_BATCH: True})
    return outcome


def rejection(error: ErrorBody, *, of_line: bool) -> Failure:
    """Name what validation says of one line of a batch, or of all of it."""
    if error.label == "token_limit_exceeded":
        return Failure(QUEUE_FULL, error.message, retryable=True)
    failure = classify_error(400, error)
    # What is wrong with a file need not be wrong with its requests.
    unclear = failure.kind == "bad_request" and not of_line
    return replace(failure, kind=REJECTED) if unclear else failure
