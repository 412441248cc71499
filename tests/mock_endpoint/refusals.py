"""Requests that a provider does not let in, and prompts that do not fit its context window."""

import time
from collections import deque

from mock_endpoint.config import MockConfig
from mock_endpoint.outgoing import Outgoing, failure, refuse


class Limits:
    """What a provider lets in: so many at once, and so many in a stretch of time."""

    def __init__(self) -> None:
        self.accepted = 0
        self._times: deque[float] = deque()

    def refusal(self, config: MockConfig) -> Outgoing | None:
        """Return the refusal of a request that comes now; None where it is let in, and counted."""
        if config.most_in_flight is not None and self.accepted >= config.most_in_flight:
            return refuse(429, "Too many requests at once.", "rate_limit_exceeded")
        if config.most_in_window is not None:
            now = time.monotonic()
            while self._times and self._times[0] <= now - config.window_s:
                self._times.popleft()
            if len(self._times) >= config.most_in_window:
                refusal = refuse(429, "Too many requests.", "rate_limit_exceeded")
                rest = self._times[0] + config.window_s - now if self._times else config.window_s
                refusal.headers["Retry-After"] = f"{rest:.3f}"
                return refusal
            self._times.append(now)
        self.accepted += 1
        return None


def context_refusal(config: MockConfig, prompt_tokens: int, limit: int | None) -> Outgoing | None:
    """Return the refusal of a request that does not fit, as the imitated server words it.

    vLLM refuses a prompt that leaves no room and a max_tokens that alone is too large (their sum
    is clamped); OpenAI refuses the sum; llama.cpp refuses the prompt only.
    """
    window = config.context_tokens
    if window is None:
        return None
    maximum = f"This model's maximum context length is {window} tokens"
    if config.flavour == "llamacpp":
        if prompt_tokens < window:
            return None
        message = f"request ({prompt_tokens} tokens) exceeds the context size ({window} tokens)"
        numbers = {"n_prompt_tokens": prompt_tokens, "n_ctx": window}
        kind = "exceed_context_size_error"
        return failure(400, {"code": 400, "message": message, "type": kind, **numbers})
    if config.flavour == "openai":
        if prompt_tokens + (limit or 0) <= window:
            return None
        message = f"{maximum}. However, you asked for {prompt_tokens} + {limit or 0} tokens."
        return refuse(400, message, "context_length_exceeded", "messages")
    if prompt_tokens >= window:
        message = f"{maximum}. However, your request has {prompt_tokens} input tokens."
        param = "input_tokens"
    elif limit is not None and limit > window:
        message = f"max_tokens={limit} is too large. {maximum}."
        param = "max_tokens"
    else:
        return None
    kind = "BadRequestError"
    return failure(400, {"message": message, "type": kind, "param": param, "code": 400})
