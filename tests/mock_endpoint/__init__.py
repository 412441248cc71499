"""A mock of an OpenAI-compatible chat endpoint that injects faults on demand, for tests.

Inside a test, in its own event loop::

    async with MockEndpoint(MockConfig(latency_s=0.01)) as mock:
        ...  # requests to mock.base_url
        assert mock.stats().resent_after_ok == 0

From synchronous tests and for other processes (a workflow under test)::

    with start_mock(tmp_path, MockConfig(require_key="k")) as mock:
        ...  # mock.base_url, mock.stats(), mock.configure(...), mock.log()

By hand, in the folder ``tests``: ``python -m mock_endpoint --port 0 --max-seconds 60``.

Served (loopback only, no streaming):

    POST …/v1/chat/completions   a judge answers where the path has ``/judge/`` before ``v1`` or the
                                 model's name contains "judge"; any other path is a model
    GET  …/v1/models
    GET  /stats, /log, /config   JSON
    POST /config                 a JSON object of MockConfig fields; the others keep their values
    POST /reset                  forgets counts, log and the rules' ``times``, keeps the config
    GET  /wait?answered=10       the stats, as soon as every named count is reached

A request is met in this order: rate limits, key, JSON, model, refused parameters, context, rules,
default reply. Every reply is a function of the request's body, the config and the rules' counters,
never of time, rate limits apart.
"""

from mock_endpoint.config import ErrorBody, Json, MockConfig, Reply, Rule, tool_call
from mock_endpoint.log import NO_STATUS, LogEntry, Stats
from mock_endpoint.process import RunningMock, start_mock
from mock_endpoint.server import MockEndpoint
from mock_endpoint.texts import count_tokens

__all__ = [
    "NO_STATUS",
    "ErrorBody",
    "Json",
    "LogEntry",
    "MockConfig",
    "MockEndpoint",
    "Reply",
    "Rule",
    "RunningMock",
    "Stats",
    "count_tokens",
    "start_mock",
    "tool_call",
]
