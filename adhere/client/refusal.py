"""Name the failure behind a server's refusal. Pure.

Two mistakes would cost most, and every rule here leans away from them: to count a problem of the
account or the configuration as the model's failure, and to stop a job for what is wrong with one
item. What no rule recognises may be tried again later and stops nothing.
"""

from dataclasses import dataclass, replace

from adhere.client import wordings
from adhere.client.error_body import ErrorBody, read_error

# Failures that a later attempt, or a later day, may turn into a reply.
TRANSIENT_STATUS = frozenset({408, 409, 425, 429, *range(500, 600)})
_ABOUT_EVERY_REQUEST = (
    (wordings.NO_CREDIT, "quota"),
    (wordings.KEY, "unauthorised"),
    (wordings.MODEL, "not_found"),
)


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


def classify(status: int, body: bytes, retry_after_s: float | None = None) -> Failure:
    """Name the failure behind an HTTP status that is no success."""
    error = read_error(body)
    if status == 403 and body.lstrip().startswith(b"<"):
        # A page instead of JSON comes from a firewall, which may dislike one item's text only.
        return Failure("bad_request", error.message, retryable=True, status=status)
    failure = classify_error(status, error)
    waits = failure.kind in ("rate_limited", "server_error")
    return replace(failure, retry_after_s=retry_after_s) if waits else failure


def classify_error(status: int, error: ErrorBody) -> Failure:
    """Name the failure behind an error that was read already."""
    message = error.message or f"HTTP {status}"
    if status == 429 and wordings.NO_CREDIT.search(error.text):
        return Failure("quota", message, retryable=True, status=status, fatal=True)
    if status in TRANSIENT_STATUS:
        kind = "rate_limited" if status == 429 else "server_error"
        return Failure(kind, message, retryable=True, status=status)
    if status in (400, 403, 413, 422):
        return _classify_refusal(status, error, message)
    kinds = {401: "unauthorised", 402: "quota", 404: "not_found"}
    return Failure(kinds.get(status, "refused"), message, retryable=True, status=status, fatal=True)


def _classify_refusal(status: int, error: ErrorBody, message: str) -> Failure:
    """Name a 400, 403, 413 or 422: about this request's content, or about every request."""
    text = error.text
    if wordings.RATE.search(text):
        return Failure("rate_limited", message, retryable=True, status=status)
    for pattern, kind in _ABOUT_EVERY_REQUEST:
        if pattern.search(text):
            return Failure(kind, message, retryable=True, status=status, fatal=True)
    if wordings.BUDGET_SPENT.search(text):
        return Failure("thinking_cut_off", message, retryable=False, status=status)
    refused = Failure("refused_parameter", message, retryable=True, status=status, fatal=True)
    if wordings.REFUSED_LABEL.search(error.label) and not error.about_item:
        return refused
    if wordings.CONTEXT.search(text):
        return _overflow(error, refused)
    if wordings.FILTER.search(text):
        return Failure("content_filter", message, retryable=False, status=status)
    if status == 403:
        return replace(refused, kind="unauthorised")
    if error.param == "model":
        return replace(refused, kind="not_found")
    if (error.param or wordings.PARAMETER.search(text)) and not error.about_item:
        return refused
    return Failure("bad_request", message, retryable=True, status=status)


def _overflow(error: ErrorBody, refused: Failure) -> Failure:
    """Return a context overflow: final, unless it is only the output budget that is too large."""
    context = error.context_tokens or wordings.first_number(wordings.WINDOW, error.text)
    prompt = error.prompt_tokens or wordings.first_number(wordings.PROMPT, error.text)
    budget_alone = prompt is None and wordings.BUDGET.search(error.text) is not None
    if budget_alone and context is None:
        return refused
    return Failure(
        "context_overflow",
        refused.message,
        retryable=budget_alone,
        status=refused.status,
        context_tokens=context,
        prompt_tokens=prompt,
    )
