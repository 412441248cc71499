"""Name the failure behind a server's refusal. Pure.

Two mistakes would cost most, and every rule here leans away from them: to count a problem of the
account or the configuration as the model's failure, and to stop a job for what is wrong with one
item. What no rule recognises may be tried again later and stops nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adhere.jsonio import loads

# Failures that a later attempt, or a later day, may turn into a reply.
TRANSIENT_STATUS = frozenset({408, 409, 425, 429, *range(500, 600)})
_LONGEST_MESSAGE = 600


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


@dataclass(frozen=True, slots=True)
class _Refusal:
    """What an error body says, whatever its form; blank or None where it says nothing.

    ``label`` joins its type and code, ``param`` is the refused field of the request.
    """

    message: str
    label: str = ""
    param: str = ""
    context_tokens: int | None = None
    prompt_tokens: int | None = None

    @property
    def text(self) -> str:
        """What is searched for known wordings, without an echo of the item's own text."""
        said = re.split(r"['\"]?input(?:_value)?['\"]?\s*[:=]\s*['\"\[{]", self.message)[0]
        return re.sub(r"(?<=\d),(?=\d{3})", "", f"{self.label} {said}")

    @property
    def about_item(self) -> bool:
        """Whether the refused field is the item's own messages."""
        return self.param.startswith(("messages", "prompt", "input"))


def classify(status: int, body: bytes, retry_after_s: float | None = None) -> Failure:
    """Name the failure behind an HTTP status other than 200."""
    refusal = _read(body)
    message = refusal.message or f"HTTP {status}"
    if status == 429 and _NO_CREDIT.search(refusal.text):
        return Failure("quota", message, retryable=True, status=status, fatal=True)
    if status in TRANSIENT_STATUS:
        kind = "rate_limited" if status == 429 else "server_error"
        return Failure(kind, message, True, status, retry_after_s=retry_after_s)
    if status == 403 and body.lstrip().startswith(b"<"):
        # A page instead of JSON comes from a firewall, which may dislike one item's text only.
        return Failure("bad_request", message, retryable=True, status=status)
    if status in (400, 403, 413, 422):
        return _classify_refusal(status, refusal, message)
    kinds = {401: "unauthorised", 402: "quota", 404: "not_found"}
    return Failure(kinds.get(status, "refused"), message, retryable=True, status=status, fatal=True)


def _classify_refusal(status: int, refusal: _Refusal, message: str) -> Failure:
    """Name a 400, 403, 413 or 422: about this request's content, or about every request."""
    text = refusal.text
    if _RATE.search(text):
        return Failure("rate_limited", message, retryable=True, status=status)
    for pattern, kind in _ABOUT_EVERY_REQUEST:
        if pattern.search(text):
            return Failure(kind, message, retryable=True, status=status, fatal=True)
    if _BUDGET_SPENT.search(text):
        return Failure("thinking_cut_off", message, retryable=False, status=status)
    refused = Failure("refused_parameter", message, retryable=True, status=status, fatal=True)
    if not refusal.about_item and _REFUSED_LABEL.search(refusal.label):
        return refused
    if _CONTEXT.search(text):
        return _overflow(refusal, refused)
    if _FILTER.search(text):
        return Failure("content_filter", message, retryable=False, status=status)
    if status == 403:
        return Failure("unauthorised", message, retryable=True, status=status, fatal=True)
    if refusal.param == "model":
        return Failure("not_found", message, retryable=True, status=status, fatal=True)
    if not refusal.about_item and (refusal.param or _PARAMETER.search(text)):
        return refused
    return Failure("bad_request", message, retryable=True, status=status)


def _overflow(refusal: _Refusal, refused: Failure) -> Failure:
    """Return a context overflow: final, unless it is only the output budget that is too large."""
    text = refusal.text
    context = refusal.context_tokens or _first(_WINDOW, text)
    prompt = refusal.prompt_tokens or _first(_PROMPT, text)
    budget_alone = prompt is None and _BUDGET.search(text) is not None
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


def _first(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return int(next(group for group in match.groups() if group)) if match else None


def _read(body: bytes) -> _Refusal:
    """Read an error body: JSON in any of its usual forms, or a text."""
    plain = _Refusal(_short(body[:4096].decode("utf-8", "replace")))
    try:
        answer = loads(body)
    except (ValueError, RecursionError):
        return plain
    if isinstance(answer, list) and answer:
        answer = answer[0]
    if not isinstance(answer, dict):
        return plain
    error = answer.get("error")
    layers = [layer for layer in (error, answer) if isinstance(layer, dict)]
    problem = next((p for layer in layers if (p := _validation(layer)) is not None), None)
    if problem is not None:
        return problem
    said = error if isinstance(error, str) else _field(layers, "message", "msg", "detail")
    message = _short(" ".join(filter(None, (said, _raw(layers))))) or plain.message
    named = re.search(r"'loc': \('body', '(\w+)'", message)
    return _Refusal(
        message,
        label=" ".join(filter(None, (_field(layers, "type", "error_type"), _code(layers)))),
        param=_field(layers, "param") or (named[1] if named else ""),
        context_tokens=_number(layers, "n_ctx"),
        prompt_tokens=_number(layers, "n_prompt_tokens"),
    )


def _short(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_MESSAGE]


def _field(layers: list[dict[str, Any]], *names: str) -> str:
    """Return the first text under one of the names, the inner layer first."""
    values = (layer.get(name) for layer in layers for name in names)
    return next((value for value in values if isinstance(value, str) and value), "")


def _code(layers: list[dict[str, Any]]) -> str:
    codes = [code for layer in layers if isinstance(code := layer.get("code"), str)]
    return " ".join(codes)


def _number(layers: list[dict[str, Any]], name: str) -> int | None:
    values = (layer.get(name) for layer in layers)
    return next((value for value in values if isinstance(value, int)), None)


def _raw(layers: list[dict[str, Any]]) -> str:
    """Return what a relay quotes of the server behind it, which says more than its own message."""
    metadata = layers[0].get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return raw if isinstance(raw, str) else ""


def _validation(layer: Mapping[str, Any]) -> _Refusal | None:
    """Read a list of validation problems, ``[{"loc": ["body", FIELD, …], "msg": …}]``."""
    problems = layer.get("detail")
    if isinstance(inner := layer.get("message"), dict):
        problems = inner.get("detail")
    if not isinstance(problems, list) or not problems or not isinstance(problems[0], dict):
        return None
    problem = problems[0]
    loc = problem.get("loc")
    path = [str(part) for part in loc if part != "body"] if isinstance(loc, list) else []
    field, kind = ".".join(path), problem.get("type")
    message = _short(f"{field}: {problem.get('msg')}")
    return _Refusal(message, label=kind if isinstance(kind, str) else "", param=field)


def _any(*wordings: str) -> re.Pattern[str]:
    return re.compile("|".join(wordings), re.IGNORECASE)


_RATE = _any(r"rate.?limit", r"\b[TR]P[MD]\b", r"per[ -]min", r"per day", r"too many requests")
_NO_CREDIT = _any(
    r"insufficient[ _](?:account[ _])?(?:quota|balance|credit|fund)",
    r"exceeded_current_quota",
    r"(?:credit|account) balance",
    r"balance is (?:too low|insufficient|not enough)",
    r"arrearage|overdue|in good standing",
    r"(?:more|any|no|out of|all available) credits",
    r"spending limit|billing[ _](?:hard[ _])?limit|payment[ _]required",
    r"余额不足|欠费",
)
_KEY = _any(
    r"(?:invalid|incorrect|missing|expired|no) (?:\w+ )?api[ _-]?key",
    r"api[ _-]?key (?:is |was )?(?:not (?:valid|found)|invalid|missing|required|expired)",
    r"invalid_api_key|api_key_invalid|authentication_error|unsupported_country",
    r"(?:country|region|territory)[^.]{0,40}not (?:supported|available)",
    r"(?:account|organi[sz]ation|access|project)[^.]{0,60}"
    r"(?:suspended|disabled|deactivated|banned|terminated|restricted)",
)
_MODEL = _any(
    r"model_not_found|model_not_exist|DeploymentNotFound",
    r"model\b[^.]{0,120}?(?:does not exist|do not exist|not exist|not found|is not available)",
    r"is not a valid model|(?:invalid|unknown|no such) model\b|模型不存在",
)
_ABOUT_EVERY_REQUEST = ((_NO_CREDIT, "quota"), (_KEY, "unauthorised"), (_MODEL, "not_found"))
# A reasoning model that thought until its budget ended: refused by OpenAI instead of answered.
_BUDGET_SPENT = _any(r"could not finish the message", r"model output limit was reached")
_REFUSED_LABEL = _any(r"unsupported[ _](?:parameter|value)|unknown_parameter|extra_forbidden")
_CONTEXT = _any(
    r"context[ _-]?(?:length|size|window|limit)",
    r"exceed_context|max_model_len|(?:model|prompt|sequence) length|string_above_max_length",
    r"(?:prompt|input|messages?|request)(?: is| are)? too long|prompt 超长",
    r"too many (?:\w+ )?tokens|input_tokens|input (?:token count|length)|token limit",
    r"input tokens exceed|number of tokens allowed|max_new_tokens",
    r"reduce the length|must be at least 1, got -",
)
_BUDGET = _any(
    r"max_(?:\w+_)?tokens['\"`]?(?:=\d+)? (?:is too large|cannot be greater|must be less|exceeds)"
)
_FILTER = _any(
    r"content[ _-]?(?:filter|policy|management|violation|violates)",
    r"usage (?:policy|policies|guidelines)|responsible[ _]?ai|moderation|\bflagged\b",
    r"data_?inspection|inappropriate|sensitive ?(?:content|information|words?)",
    r"content exists risk|high[ -]risk|prohibited|invalid_prompt",
    r"safety[ _](?:check|system|filter|reasons|polic)|敏感|违规",
)
_PARAMETER = _any(
    r"unsupported[ _](?:parameter|value)|unrecognized (?:request )?argument",
    r"unknown (?:parameter|field|name)|unexpected keyword argument|cannot find field",
    r"extra[ _](?:inputs|fields)[ _](?:are )?(?:not permitted|forbidden)",
    r"property '\w+' is unsupported",
    # Whatever is wrong with a parameter, its name is said; items are never about these.
    r"(?<![a-z_])(?:temperature|top_[pk]|min_p|\w+_penalty|max_\w*tokens|reasoning_effort|seed"
    r"|chat_template_kwargs|enable_thinking|thinking_budget|logprobs)(?![a-z_])",
)
_WINDOW = _any(
    r"with (\d+) maximum context",
    r"(?:context|model|prompt)[ _]len(?:gth)?\D{0,24}?(\d+)",
    r"context (?:size|limit|window)[ \w]{0,12}[(:=]? ?(\d+)(?! \+)",
    r"\d \+ \d+ > (\d+)|tokens > (\d+)|<= (\d+)",
    r"tokens allowed \((\d+)\)|configured limit of (\d+)|token limit: (\d+)",
)
# "At least N input tokens" is no count of the prompt: such a server stopped counting there.
_PROMPT = _any(
    r"(\d+) \+ \d+ (?:tokens|>)",
    r"(\d+) (?:tokens )?(?:in|of|from) (?:the |your |text )*(?:messages?|prompt|input)",
    r"resulted in (\d+) tokens|(?:has|contains) (\d+) (?:input )?tokens",
    r"too long: (\d+)|given: (\d+)|token count \((\d+)\)",
    r"(?:prompt|input|request) \((\d+) tokens\)",
)
