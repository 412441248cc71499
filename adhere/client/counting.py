"""How many tokens a chat request's prompt has: vLLM's ``POST /tokenize``, below the server's root.

The prompt goes through the chat template as in the request itself, so the count is the one that
the server checks against its context window. Pure.
"""

from collections.abc import Mapping
from typing import Any

from adhere.jsonio import dumps, loads

# Fields of a chat request that take part in its prompt, under the same names in both requests.
_OF_PROMPT = (
    "model",
    "messages",
    "tools",
    "chat_template",
    "add_generation_prompt",
    "continue_final_message",
    "add_special_tokens",
)
# Room for what chat templates add of their own, such as a default system prompt.
_TEMPLATE_BYTES = 4096


def count_request(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request that counts the prompt of a chat request.

    vLLM hands ``reasoning_effort`` to the chat template too, and has it switch thinking where
    ``enable_thinking`` says nothing; counting takes both as the template's own arguments.
    """
    own = {name: payload[name] for name in _OF_PROMPT if name in payload}
    given = payload.get("chat_template_kwargs") or {}
    effort = payload.get("reasoning_effort")
    if effort is not None:
        given = {"enable_thinking": effort != "none", **given, "reasoning_effort": effort}
    return {**own, "chat_template_kwargs": given} if given else own


def parse_count(body: bytes) -> int | None:
    """Read the count of an answer, None where it holds none."""
    try:
        answer = loads(body)
    except (ValueError, RecursionError):
        return None
    count = answer.get("count") if isinstance(answer, dict) else None
    return count if isinstance(count, int) and count > 0 else None


def most_tokens(payload: Mapping[str, Any]) -> int:
    """Return a bound that the prompt's tokens stay below, without asking.

    A token stands for at least one byte of UTF-8, and JSON's own marks are more than what chat
    templates put around a message.
    """
    return _TEMPLATE_BYTES + len(dumps(payload))
