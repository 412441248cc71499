"""From a model's reply to the ``output`` of a prediction row. Pure."""

from typing import Any

from adhere.client import Failure, Reply
from adhere.thinking import final_answer

Output = dict[str, Any]
# What servers call a reply that its budget cut, and one that a filter took away; any case.
_CUT = frozenset({"length", "max_tokens", "model_length"})
_FILTERED = frozenset({"content_filter", "sensitive", "safety"})
_CALLED = frozenset({"tool_calls", "function_call"})


def interpret(reply: Reply, *, thinks: bool, prompt: str) -> Output:
    """Return the output of one reply: the answer without thinking, and all that came with it.

    ``prompt`` is the text of all messages: a tag such as ``<thought>`` that it asks for is part
    of the answer.
    ``flags`` may hold truncated, filtered, refused, answer_in_reasoning, ambiguous_empty. An
    answer that is empty carries its reason in ``error`` and is final: the policy says what it
    counts.
    """
    parsed = final_answer(reply.content or "", prompt)
    answer = parsed.text
    reasoning = "\n\n".join(filter(None, (reply.reasoning, parsed.reasoning))) or None
    finish = (reply.finish_reason or "").lower()
    flags = _flags(reply, finish)
    error = None
    if not answer.strip():
        borrowed = final_answer(reply.reasoning or "", prompt)
        if borrowed.text.strip() and not thinks and finish not in _CUT | _FILTERED | _CALLED:
            # A reasoning parser that took the whole answer of a mode that does not think.
            answer, reasoning = borrowed.text, borrowed.reasoning or None
            flags.append("answer_in_reasoning")
        else:
            error = _empty(reply, finish, closed=parsed.closed)
            if reply.reasoning and error["kind"] == "empty_answer":
                flags.append("ambiguous_empty")
    return {
        "content": "" if error else answer,
        "model_name": "",
        "reasoning": reasoning,
        "finish_reason": reply.finish_reason,
        "usage": reply.usage,
        "latency_s": reply.latency_s,
        "served_model": reply.served_model,
        "system_fingerprint": reply.system_fingerprint,
        "flags": flags,
        "error": error,
    }


def _flags(reply: Reply, finish: str) -> list[str]:
    marks = {
        "truncated": finish in _CUT,
        "filtered": finish in _FILTERED,
        "refused": reply.refused,
    }
    return [flag for flag, set_ in marks.items() if set_]


def _empty(reply: Reply, finish: str, *, closed: bool) -> dict[str, Any]:
    """Name the reason of an empty answer."""
    if finish in _FILTERED:
        return _error("content_filter", "the provider's filter removed the answer")
    if finish in _CUT:
        return _error("thinking_cut_off", "the output budget ended before an answer began")
    if not closed:
        return _error("thinking_unclosed", "the reply ended inside its thinking")
    if reply.reasoning:
        return _error(
            "empty_answer",
            "all text came in the reasoning field: check the server's reasoning parser and the "
            "mode's enable_thinking",
        )
    return _error("empty_answer", "the reply holds no text")


def without_thinking(row: dict[str, Any]) -> dict[str, Any]:
    """Take the thinking out of an answer that another predictor wrote.

    Ours separates it when the reply is received, and its outputs hold ``flags``.
    """
    output = row["output"]
    content = output.get("content")
    if "flags" in output or not isinstance(content, str):
        return row
    prompt = "\n".join(message["content"] for message in row["input"])
    finish, reasoning = output.get("finish_reason"), output.get("reasoning")
    read = interpret(
        Reply(content, reasoning, finish, None, None, None), thinks=True, prompt=prompt
    )
    if read["content"] == content:
        return row
    changed = {key: read[key] for key in ("content", "reasoning", "flags")}
    return {**row, "output": {**output, **changed, "error": output.get("error") or read["error"]}}


def failed(failure: Failure) -> Output:
    """Return the output of a request that got no reply."""
    return no_answer() | {
        "error": _error(failure.kind, failure.message, retryable=failure.retryable)
    }


def no_answer() -> Output:
    """Return an output with nothing in it."""
    return {
        "content": "",
        "model_name": "",
        "reasoning": None,
        "finish_reason": None,
        "usage": None,
        "latency_s": None,
        "served_model": None,
        "system_fingerprint": None,
        "flags": [],
        "error": None,
    }


def _error(kind: str, message: str, *, retryable: bool = False) -> dict[str, Any]:
    return {"kind": kind, "message": message, "retryable": retryable}


def is_pending(output: Output) -> bool:
    """Whether a prediction failed in a way that asking again may mend."""
    error = output.get("error")
    return isinstance(error, dict) and error.get("retryable") is True


def is_failed(output: Output) -> bool:
    """Whether a prediction holds no answer, whatever the reason."""
    if output.get("error"):
        return True
    if output.get("trajectory") is not None:
        # What an agent did can be judged without a final answer.
        return False
    content = output.get("content")
    return not isinstance(content, str) or not content.strip()
