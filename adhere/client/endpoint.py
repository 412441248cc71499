"""What a client is told about its endpoint, and what it says of its work there."""

from collections import Counter
from dataclasses import dataclass, field

from adhere.config import Retry
from adhere.costs.tokens import Tokens

# Failures in which nobody answered that could have.
LOST = frozenset({"unreachable", "timeout", "connection_lost", "server_error"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible endpoint.

    ``owner`` is the configuration file that names it, for messages; ``budget`` is the output
    budget in tokens that the longest wait for a reply is derived from; ``window`` is the context
    window in tokens as the server itself states it, None where it does not. ``shared`` says that
    other jobs may call it at the same time: ``concurrency`` and the rates then hold for all of
    them together.
    """

    base_url: str
    owner: str
    api_key: str | None = field(default=None, repr=False)
    concurrency: int = 64
    retry: Retry = field(default_factory=lambda: Retry())
    budget: int = 4096
    window: int | None = None
    shared: bool = False
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    @property
    def timeout_s(self) -> float:
        """Longest wait for one reply, in seconds."""
        return self.retry.timeout_s or 120 + 0.1 * self.budget


@dataclass(slots=True)
class ClientCounts:
    """What a client has done so far; ``tokens`` sums the servers' own usage figures.

    ``throttled`` counts answers that asked for less; ``throttled_s`` is for how long they stopped
    all requests, in seconds; ``least_concurrency`` is what they lowered the requests in flight to,
    None where they never did.
    """

    answered: int = 0
    retries: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    tokens: Tokens = field(default_factory=Tokens)
    throttled: int = 0
    throttled_s: float = 0.0
    least_concurrency: int | None = None

    @property
    def lost(self) -> int:
        """How many requests were given up because nobody answered."""
        return sum(self.failures[kind] for kind in LOST)
