"""Which rule answers a request."""

from collections import Counter

from mock_endpoint.calls import Call
from mock_endpoint.config import MockConfig, Reply, Rule
from mock_endpoint.texts import share

DEFAULT_REPLY = Reply()


class Rules:
    """Rules with what they have been used for so far."""

    def __init__(self, config: MockConfig) -> None:
        self._seed = config.seed
        self._rules = config.rules
        self._used: Counter[int] = Counter()
        self._used_by_body: Counter[tuple[int, bytes]] = Counter()

    def choose(self, call: Call) -> Reply:
        """Return the reply of the first rule that takes the request, else the default one."""
        for index, rule in enumerate(self._rules):
            if self._matches(rule, call) and self._is_left(index, rule, call.digest):
                self._used[index] += 1
                if rule.times_per_body is not None:
                    self._used_by_body[index, call.digest] += 1
                return rule.reply
        return DEFAULT_REPLY

    def _matches(self, rule: Rule, call: Call) -> bool:
        if rule.judge is not None and rule.judge != call.judge:
            return False
        return rule.match.encode() in call.prompt or rule.match in call.model

    def _is_left(self, index: int, rule: Rule, digest: bytes) -> bool:
        if rule.times is not None and self._used[index] >= rule.times:
            return False
        by_body = rule.times_per_body
        if by_body is not None and self._used_by_body[index, digest] >= by_body:
            return False
        if rule.probability >= 1:
            return True
        return share(b"%d:%d:" % (self._seed, index) + digest) < rule.probability
