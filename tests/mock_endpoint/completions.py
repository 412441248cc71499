"""A chat completion: the default answer to a request, and what a rule's reply changes about it."""

from dataclasses import dataclass

from mock_endpoint.calls import Call, output_limit, text_key
from mock_endpoint.config import Json, MockConfig, Reply
from mock_endpoint.texts import count_tokens, default_text, digest, judge_text


@dataclass(slots=True)
class _Draft:
    """The default answer to a request, before a rule's reply changes it."""

    content: str | None
    reasoning: str | None
    finish_reason: str
    usage: Json


def chat_completion(config: MockConfig, call: Call, body: Json, reply: Reply) -> Json:
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


def _draft(config: MockConfig, call: Call, body: Json) -> _Draft:
    """Return the default answer, clipped to the output budget as a real server clips it."""
    limit = output_limit(body)
    prompt_tokens = count_tokens(call.prompt)
    room = config.context_tokens - prompt_tokens if config.context_tokens else None
    budget = min((n for n in (limit, room) if n is not None), default=None)
    key = text_key(call.prompt, body)
    content: str | None
    if call.judge:
        content = judge_text(call.prompt, config.yes_share)
    else:
        content = default_text(key, config.reply_chars, config.chinese_share)
    reasoning, finish_reason = None, "stop"
    template = body.get("chat_template_kwargs")
    if isinstance(template, dict) and template.get("enable_thinking") is True:
        reasoning = default_text(digest(key), config.reply_chars, config.chinese_share)
    thought = count_tokens(reasoning) if reasoning is not None else 0
    if budget is not None and thought + count_tokens(content) > budget:
        finish_reason = "length"
        if reasoning is not None and thought >= budget:
            reasoning, thought, content = _clip(reasoning, budget), budget, None
        else:
            content = _clip(content, budget - thought)
    written = count_tokens(content) if content else 0
    return _Draft(content, reasoning, finish_reason, _usage(prompt_tokens, written, thought))


def _clip(text: str, tokens: int) -> str:
    return text.encode("utf-8")[: 4 * max(0, tokens)].decode("utf-8", "ignore")


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
