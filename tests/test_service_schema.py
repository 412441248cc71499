"""The verifier's service against its own OpenAPI document: whatever is sent, it answers as told."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from mock_endpoint import start_mock
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.specs.openapi.schemas import OpenApiSchema
from verifier import Process, code, llm, project, rollout, started

CHECKED = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]

ITEM = {"id": 1, "response": "x", "constraints": [code("1 / 0"), llm("Good?"), {"rule": "json"}]}
VALID = {
    "/verify": rollout("x", code("True"), llm("Good?")),
    "/v1/verify": ITEM | {"trace": True},
    "/v1/verify/batch": {"items": [ITEM, {}]},
    "/aggregate_metrics": {"verify_responses": [{"reward": 1.0}]},
}


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """A client that asks no proxy."""
    with requests.Session() as made:
        made.trust_env = False
        yield made


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A service of its own process, which must live to the end."""
    folder = tmp_path_factory.mktemp("schema")
    with start_mock(folder) as judge:
        running = started(project(folder / "p", judge.judge_url), "--deadline-s", "20")
        yield running
        assert running.popen.poll() is None
        running.popen.terminate()
        lines = running.end()
        assert running.popen.returncode == 0
        assert not [line for line in lines if line["level"] == "error"]


@pytest.fixture(scope="module")
def described(service: Process, session: requests.Session) -> OpenApiSchema:
    """The service as it describes itself."""
    document = session.get(f"{service.url}/openapi.json", timeout=60).json()
    made: OpenApiSchema = schemathesis.openapi.from_dict(document)
    made.config.update(base_url=service.url)
    return made


def test_every_answer_is_as_described(described: OpenApiSchema, session: requests.Session) -> None:
    for result in described.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()

        @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy() | operation.as_strategy(GenerationMode.NEGATIVE))
        def answers(case: schemathesis.Case[Any]) -> None:
            case.call_and_validate(session=session, checks=CHECKED)

        answers()
        if operation.path in VALID:
            for body, status in ((VALID[operation.path], 200), ("no object", 422)):
                case = operation.Case(media_type="application/json", body=body)
                answer = case.call_and_validate(session=session, checks=CHECKED)
                assert answer.status_code == status
    figures = session.get(f"{described.config.base_url}/metrics", timeout=60).text
    for path in VALID:
        for status in (200, 422):
            assert f'adhere_requests_total{{endpoint="{path}",status="{status}"}}' in figures
