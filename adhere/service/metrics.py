"""Figures for Prometheus, each server's own; no label holds what a client sent."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from adhere.client import ChatClient
from adhere.data import Row
from adhere.service.gate import Gate
from adhere.service.results import verdict_of

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)


class Metrics:
    """What one server has done."""

    def __init__(self, gate: Gate, client: ChatClient | None) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        self._requests = Counter(
            "adhere_requests", "Answered requests", ["endpoint", "status"], registry=registry
        )
        self._seconds = Histogram(
            "adhere_request_seconds",
            "Time to the end of the answer",
            ["endpoint"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._verdicts = Counter(
            "adhere_verdicts", "Judged constraints", ["verdict", "reason"], registry=registry
        )
        self._gauge("adhere_open", "Requests that are not answered yet", lambda: gate.open)
        self._gauge("adhere_running", "Items that are being judged", lambda: gate.running)
        self._gauge("adhere_held", "Bytes of open requests' bodies", lambda: gate.held)
        ProcessCollector(registry=registry)
        if client is not None:
            registry.register(_Judge(client))

    def _gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        Gauge(name, text, registry=self.registry).set_function(value)

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(endpoint, str(status)).inc()
        self._seconds.labels(endpoint).observe(seconds)

    def judged(self, row: Row) -> None:
        """Count one item's verdicts."""
        for raw in row["constraints"]:
            verdict = verdict_of(raw)
            reason = raw["null_reason"] if verdict == "unscored" else ""
            self._verdicts.labels(verdict, reason).inc()


class _Judge(Collector):
    """What the judge's client counts by itself."""

    def __init__(self, client: ChatClient) -> None:
        self._client = client

    def collect(self) -> Iterator[Metric]:
        counts = self._client.counts
        calls = CounterMetricFamily("adhere_judge_calls", "Calls of the judge", labels=["outcome"])
        calls.add_metric(["answered"], counts.answered)
        for kind, number in counts.failures.items():
            calls.add_metric([kind], number)
        yield calls
        retries = CounterMetricFamily("adhere_judge_retries", "Calls that were made again")
        retries.add_metric([], counts.retries)
        yield retries
        tokens = CounterMetricFamily(
            "adhere_judge_tokens", "Tokens, as the judge counts them", labels=["kind"]
        )
        for kind in ("prompt", "cached", "completion", "reasoning"):
            tokens.add_metric([kind], getattr(counts.tokens, kind))
        yield tokens
