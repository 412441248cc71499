"""How fast to ask: the rates of a configuration, and what a provider's refusals teach."""

from adhere.client.endpoint import ClientCounts

# After a lull so much may be sent at once: what the rate allows in this time, in seconds.
BURST_S = 1.0
# One round without a refusal adds this part of the configured concurrency.
_RECOVERY = 1 / 16


class Pace:
    """Keeps a rate per minute: a bucket that what is sent fills and time empties.

    Any minute holds at most ``per_minute``, the burst included. Times are seconds of one clock.
    """

    def __init__(self, per_minute: float, now: float) -> None:
        self._per_s = per_minute / (60 + BURST_S)
        self._filled = 0.0
        self._then = now
        self._share = 1.0

    def take_share(self, share: float, now: float) -> None:
        """Keep only this part of the rate (0 to 1): others use the rest.

        A larger part begins without its burst, which the others may just have used.
        """
        self._flow(now)
        self._filled += max(0.0, share - self._share) * self._per_s * BURST_S
        self._share = share

    def delay(self, now: float) -> float:
        """Return the seconds until more may be sent; 0 where it may be at once."""
        self._flow(now)
        rate = self._per_s * self._share
        return max(0.0, self._filled / rate - BURST_S) if rate else BURST_S

    def book(self, amount: float) -> None:
        """Count what is sent; negative where less was used than booked before."""
        self._filled = max(0.0, self._filled + amount)

    def _flow(self, now: float) -> None:
        passed, self._then = now - self._then, now
        self._filled = max(0.0, self._filled - passed * self._per_s * self._share)


class TokenEstimate:
    """Guesses the tokens of a request before it is sent, from its size and earlier replies."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._replies = 0
        self._reply_tokens = 0

    def of(self, size: int) -> int:
        """Return the tokens of a request of ``size`` bytes and of its reply.

        A token is taken to be four bytes. Until the first reply its whole output budget counts.
        """
        reply = self._reply_tokens // self._replies if self._replies else self._budget
        return size // 4 + reply

    def learn(self, reply_tokens: int) -> None:
        """Take note of a reply's tokens."""
        self._replies += 1
        self._reply_tokens += reply_tokens


class Backoff:
    """How many requests may be in flight, as a provider's refusals teach.

    Outcomes are looked at in rounds of as many requests as may be in flight. The refused part of
    a round is the part that was too much: it is taken off, at most half. The answered part adds
    its part of a fixed step. So a real limit is found within a round or two, and a provider that
    refuses a few requests for no reason of load costs little.
    """

    def __init__(self, limit: int, counts: ClientCounts) -> None:
        self._limit = limit
        self._counts = counts
        self._size = float(limit)
        self._answered = self._refused = 0
        self.round = 0

    @property
    def size(self) -> int:
        """How many may be in flight: 1 at least."""
        return int(self._size)

    def learn(self, sent_in: int, *, refused: bool) -> bool:
        """Take note of an outcome of a request sent in a round; return whether a round ended.

        What was sent before the present round says nothing about its size.
        """
        if sent_in != self.round:
            return False
        self._answered += not refused
        self._refused += refused
        if self._answered + self._refused < self.size:
            return False
        answered = self._answered / (self._answered + self._refused)
        step = max(1.0, self._limit * _RECOVERY)
        lowered = max(1.0, self._size * max(0.5, answered))
        self._size = min(float(self._limit), lowered + step * answered)
        self._answered = self._refused = 0
        self.round += 1
        if self.size < (self._counts.least_concurrency or self._limit):
            self._counts.least_concurrency = self.size
        return True
