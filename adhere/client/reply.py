"""What one chat request can come to: a reply, a named failure, or a refusal of the whole job."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adhere.jsonio import loads

# Failures that a later attempt, or a later day, may turn into a reply.
TRANSIENT_STATUS = frozenset({408, 409, 425, 429, *range(500, 600)})


@dataclass(frozen=True, slots=True)
class Reply:
    """One completion. ``content`` and ``reasoning`` are None where the server sent none."""

    content: str | None
    reasoning: str | None
    finish_reason: str | None
    usage: Mapping[str, Any] | None
    served_model: str | None
    system_fingerprint: str | None
    latency_s: float = 0.0
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A request without a reply.

    ``kind`` is a stable name; ``retryable`` says whether asking again later may help. A context
    overflow carries the server's own numbers of tokens where it gave them. ``fatal`` failures
    would meet every request of the job alike.
    """

    kind: str
    message: str
    retryable: bool
    status: int | None = None
    fatal: bool = False
    retry_after_s: float | None = None
    context_tokens: int | None = None
    prompt_tokens: int | None = None


def parse_completion(body: bytes) -> Reply | Failure:
    """Read the body of a 200 answer."""
    try:
        answer = loads(body)
    except (ValueError, RecursionError) as error:
        return Failure("bad_reply", f"the answer is not JSON: {error}", retryable=True)
    if not isinstance(answer, dict):
        return Failure("bad_reply", "the answer is not a JSON object", retryable=True)
    choices = answer.get("choices")
    if not choices and isinstance(answer.get("error"), dict):
        code = answer["error"].get("code")
        return classify(code if isinstance(code, int) else 500, body)
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return Failure("empty_choices", "the answer holds no choice", retryable=True)
    message = choices[0].get("message")
    if not isinstance(message, dict):
        return Failure("null_message", "the answer's choice holds no message", retryable=True)
    refusal = _text(message.get("refusal"))
    content = _text(message.get("content"))
    usage = answer.get("usage")
    return Reply(
        content=content if content else (refusal or content),
        reasoning=_text(message.get("reasoning")) or _text(message.get("reasoning_content")),
        finish_reason=_text(choices[0].get("finish_reason")),
        usage=usage if isinstance(usage, dict) else None,
        served_model=_text(answer.get("model")),
        system_fingerprint=_text(answer.get("system_fingerprint")),
        refused=bool(refusal and not content),
    )


def _text(value: Any) -> str | None:
    """Return a text field; parts of a list-valued content are joined."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [part.get("text") for part in value if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return None


_CONTEXT = re.compile(
    r"context[ _](?:length|size|window)|exceed_context|maximum (?:model|context) len"
    r"|max_model_len|too many tokens|prompt is too long|input_tokens",
    re.IGNORECASE,
)
_FILTER = re.compile(
    r"content[ _]?(?:filter|policy|management)|moderation|safety|inappropriate|data_inspection",
    re.IGNORECASE,
)
_PARAMETER = re.compile(
    r"unsupported[ _](?:parameter|value)|unrecognized request argument|unknown (?:parameter|field)"
    r"|extra[ _](?:inputs|fields)[ _](?:are )?(?:not permitted|forbidden)|does not support"
    r"|not supported|invalid_type",
    re.IGNORECASE,
)


def classify(status: int, body: bytes, retry_after_s: float | None = None) -> Failure:
    """Name the failure behind an HTTP status other than 200."""
    error = _error_fields(body)
    message = error["message"][:600] or f"HTTP {status}"
    text = " ".join(error.values())
    if status == 429 and "insufficient_quota" in text:
        return Failure("quota", message, retryable=True, status=status, fatal=True)
    if status in TRANSIENT_STATUS:
        kind = "rate_limited" if status == 429 else "server_error"
        return Failure(kind, message, True, status, retry_after_s=retry_after_s)
    if status in (400, 403, 413, 422):
        return _classify_refusal(status, error, message, text)
    kinds = {401: "unauthorised", 402: "quota", 404: "not_found"}
    return Failure(kinds.get(status, "refused"), message, retryable=True, status=status, fatal=True)


def _classify_refusal(status: int, error: Mapping[str, str], message: str, text: str) -> Failure:
    """Name a 400, 403, 413 or 422: about this request's content, or about every request."""
    # A budget that alone exceeds the window is about a parameter, but lowering it helps.
    if _CONTEXT.search(text) or status == 413:
        context, prompt = _token_counts(text)
        return Failure(
            "context_overflow", message, False, status, context_tokens=context, prompt_tokens=prompt
        )
    if _FILTER.search(text):
        return Failure("content_filter", message, retryable=False, status=status)
    if status == 403:
        return Failure("unauthorised", message, retryable=True, status=status, fatal=True)
    # Servers name the refused parameter; a complaint about `messages` concerns one item.
    named = error["param"] and not error["param"].startswith(("messages", "prompt", "input"))
    if named or _PARAMETER.search(text):
        return Failure("refused_parameter", message, retryable=True, status=status, fatal=True)
    return Failure("bad_request", message, retryable=True, status=status)


def _error_fields(body: bytes) -> dict[str, str]:
    """Return message, type, code and param of an error body, whatever its form; blanks if none."""
    fields = {"message": body[:600].decode("utf-8", "replace"), "type": "", "code": "", "param": ""}
    try:
        answer = loads(body)
    except (ValueError, RecursionError):
        return fields
    error = answer.get("error", answer) if isinstance(answer, dict) else None
    if isinstance(error, str):
        fields["message"] = error
    elif isinstance(error, dict):
        for key in fields:
            if isinstance(error.get(key), str | int) and not isinstance(error.get(key), bool):
                fields[key] = str(error[key])
        for key in ("n_prompt_tokens", "n_ctx"):
            if isinstance(error.get(key), int):
                fields[key] = f"{key}={error[key]}"
    return fields


_LIMIT = re.compile(r"n_ctx=(\d+)|(?:context|model) len(?:gth)?\D{0,24}?(\d+)", re.IGNORECASE)
_PROMPT = re.compile(
    r"n_prompt_tokens=(\d+)|(\d+) (?:tokens )?in the (?:messages|prompt|input)"
    r"|(?:prompt|input)[^.\d]{0,40}?(\d+) (?:input )?tokens|has (\d+) input tokens",
    re.IGNORECASE,
)


def _token_counts(text: str) -> tuple[int | None, int | None]:
    """Find the window and the prompt's size in a server's message about its context."""

    def first(pattern: re.Pattern[str]) -> int | None:
        match = pattern.search(text)
        return int(next(group for group in match.groups() if group)) if match else None

    return first(_LIMIT), first(_PROMPT)
