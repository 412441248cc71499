"""Ask a model one item, with an output budget trimmed to what the context window leaves.

vLLM would cut a budget that does not fit silently, but it states its window and counts tokens:
it is asked how long a prompt is wherever it might not fit, and what is sent fits exactly. Any
other server is taken at its refusals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adhere.client import ChatClient, Failure, Reply
from adhere.client.counting import most_tokens
from adhere.prediction.answer import Output, failed, interpret
from adhere.prediction.model import Mode

# Below this a budget is not halved any further: no answer worth scoring fits.
_LEAST_BUDGET = 256


async def ask(
    mode: Mode, messages: list[Any], seed: int, client: ChatClient, key: str = ""
) -> Output:
    """Return the output of one item, whatever becomes of it; ``key`` is that of the request.

    Raises EndpointError when going on is pointless.
    """
    question = Question(mode, messages, seed)
    outcome, flags = await complete(question, client, key)
    if isinstance(outcome, Failure):
        output = failed(outcome)
    else:
        output = interpret(outcome, thinks=mode.thinks, prompt=question.prompt)
    output["flags"] += flags
    return output


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked at once: messages, with the tools that it may call."""

    mode: Mode
    messages: Sequence[Mapping[str, Any]]
    seed: int
    tools: Sequence[Mapping[str, Any]] = ()

    @property
    def prompt(self) -> str:
        """The text of all messages."""
        return "\n".join(message["content"] for message in self.messages)

    def payload(self, budget: int | None) -> dict[str, Any]:
        """Return the request with this output budget."""
        body = self.mode.payload(self.messages, self.seed, budget)
        return body | {"tools": list(self.tools)} if self.tools else body


async def complete(
    question: Question, client: ChatClient, key: str
) -> tuple[Reply | Failure, list[str]]:
    """Return what a question comes to, and the flag of an output budget that had to be trimmed."""
    budget = question.mode.budget
    payload = question.payload(budget)
    outcome = await foreseen(payload, budget, client) or await client.complete(payload, key)
    while budget is not None and (smaller := trimmed(outcome, budget)) is not None:
        budget = smaller
        outcome = await client.complete(question.payload(budget), key)
    cut = _cut_silently(outcome, budget, client.endpoint.window)
    return outcome, ["budget_trimmed"] if budget != question.mode.budget or cut else []


async def foreseen(
    payload: Mapping[str, Any], budget: int | None, client: ChatClient
) -> Failure | None:
    """Return the refusal that a request with this budget deserves, without sending it.

    None where it fits, and where the server does not tell; it is asked only where the length of
    the request leaves a doubt.
    """
    window, output = client.endpoint.window, 1 if budget is None else budget
    if window is None or most_tokens(payload) + output <= window:
        return None
    prompt = await client.count_tokens(payload)
    if prompt is None or prompt + output <= window:
        return None
    return Failure(
        "context_overflow",
        f"the prompt's {prompt} tokens and {output} of output exceed the context window of "
        f"{window}",
        retryable=False,
        context_tokens=window,
        prompt_tokens=prompt,
    )


def trimmed(outcome: Reply | Failure, budget: int) -> int | None:
    """Return a smaller budget that may fit, None where none would or the request fitted.

    The server's own count of the prompt says what is left. Servers that name the window only are
    asked with all of it; those that count nothing, or stop counting, with half of the budget.
    """
    if not isinstance(outcome, Failure) or outcome.kind != "context_overflow":
        return None
    window, prompt = outcome.context_tokens, outcome.prompt_tokens
    if window is not None and prompt is not None and window - prompt < budget:
        return window - prompt if window > prompt else None
    if window is not None and prompt is None and 1 < window <= budget:
        return window - 1
    return budget // 2 if budget // 2 >= _LEAST_BUDGET else None


def _cut_silently(outcome: Reply | Failure, budget: int | None, window: int | None) -> bool:
    """Whether an answer's own figures show that its server had to lower the budget."""
    if isinstance(outcome, Failure) or budget is None or window is None:
        return False
    prompt = (outcome.usage or {}).get("prompt_tokens")
    return isinstance(prompt, int) and prompt + budget > window
