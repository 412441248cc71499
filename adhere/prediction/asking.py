"""Ask a model one item, with an output budget trimmed to what the context window leaves."""

from typing import Any

from adhere.client import ChatClient, Failure, Reply
from adhere.prediction.answer import Output, failed, interpret
from adhere.prediction.model import Mode

# Below this a budget is not halved any further: no answer worth scoring fits.
_LEAST_BUDGET = 256


async def ask(mode: Mode, messages: list[Any], seed: int, client: ChatClient) -> Output:
    """Return the output of one item, whatever becomes of it.

    Raises EndpointError when going on is pointless.
    """
    budget = mode.budget
    outcome = await client.complete(mode.payload(messages, seed, budget))
    while budget is not None and (smaller := trimmed(outcome, budget)) is not None:
        budget = smaller
        outcome = await client.complete(mode.payload(messages, seed, budget))
    if isinstance(outcome, Failure):
        output = failed(outcome)
    else:
        prompt = "\n".join(message["content"] for message in messages)
        output = interpret(outcome, thinks=mode.thinks, prompt=prompt)
    if budget != mode.budget:
        output["flags"].append("budget_trimmed")
    return output


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
