"""The verifier's service: its verdicts are those of files, and NeMo Gym gets what it expects."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from mock_endpoint import ErrorBody, MockConfig, MockEndpoint, Reply, Rule, RunningMock, start_mock
from verifier import NO_RETRY, Running, code, llm, rollout, serving

from adhere.checkers import CheckerPool
from adhere.client import ChatClient, Endpoint
from adhere.config import JudgeConfig
from adhere.data import Row
from adhere.judging import Judge, judge_rows
from adhere.judging.asking import Asker
from adhere.prediction.answer import without_thinking
from adhere.progress import Progress
from adhere.service.results import verdict_of
from adhere.service.settings import Limits, Settings

SHORT = code("len(response) < 30", dimension="unconditional", type=["formatting"])
LOUD = code("response.isupper()", dimension="example_driven", type="resource")
BROKEN = code("1 / 0", dimension="conditional", type="semantic")
PER_TOOL = code("None")
WITHOUT_DEF = {
    "evaluation": [{"type": "code", "exec": "check_following(response):\n  return True"}]
}
CONDITION = {"type": "llm_conditional_check", "exec": "Does it apply to this? {response}"}
CHAIN = {"evaluation": [CONDITION, {"type": "llm", "exec": "Is it kind? {response}"}]}
TWO = {
    "evaluation": [
        {"type": "llm", "exec": "List the words. {response}"},
        {"type": "code", "exec": "def check_following(response):\n    return len(response) > 3\n"},
    ]
}
RULE = {"evaluation": [{"type": "rule", "exec": {"rule": "sentences", "args": {"max": 2}}}]}
ALL = (SHORT, LOUD, BROKEN, PER_TOOL, WITHOUT_DEF, CHAIN, TWO, RULE, llm("Is it good?"))
TEXTS = (
    "Short.",
    "LOUD",
    "<think>Let me see.</think>\n\nThought over. One. Two. Three.",
    "先想一想，再回答。",
    "",
    "<think>never closed",
)


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMock]:
    """A judge whose verdict depends on the prompt alone."""
    with start_mock(tmp_path_factory.mktemp("mock")) as running:
        yield running


def row(text: str, constraints: Sequence[Row] = ALL) -> Row:
    return {
        "input": [{"role": "user", "content": "Write."}],
        "constraints": list(constraints),
        "output": {"content": text},
    }


async def judged_as_files(rows: Sequence[Row], judge_url: str, **judge: Any) -> list[Row]:
    """Return what the judge stage makes of rows."""
    config = JudgeConfig.model_validate({"model": "m", "api_key_env": None, **judge})
    endpoint = Endpoint(judge_url, "j", retry=NO_RETRY)
    async with ChatClient(endpoint) as client, CheckerPool(workers=1, timeout_s=60) as pool:
        asker = Asker(Judge("j", config), client, None)
        with Progress("judge", "constraints") as progress:
            separated = [without_thinking(row) for row in rows]
            return (await judge_rows(separated, asker, pool, progress)).rows


@pytest.mark.parametrize("parser", ["adhere", "nemo-0.7", "upstream-2025"])
def test_verdicts_are_those_of_files(mock: RunningMock, parser: str) -> None:
    async def main() -> None:
        rows = [row(text) for text in TEXTS]
        files = await judged_as_files(rows, mock.judge_url, parser=parser)
        async with serving(mock.judge_url, parser=parser) as service:
            for text, wanted in zip(TEXTS, files, strict=True):
                item = {"response": text, "constraints": list(ALL), "trace": True}
                item["messages"] = wanted["input"]
                status, found = await service.post("/v1/verify", item)
                assert status == 200
                assert [v["verdict"] for v in found["verdicts"]] == [
                    verdict_of(raw) for raw in wanted["constraints"]
                ]
                assert [timeless(v["steps"]) for v in found["verdicts"]] == [
                    timeless(raw["steps"]) for raw in wanted["constraints"]
                ]
                _, rewarded = await service.post("/verify", rollout(text, *ALL))
                scores = Counter(raw["score"] for raw in wanted["constraints"])
                assert (rewarded["n_true"], rewarded["n_false"]) == (scores[True], scores[False])

    asyncio.run(main())


def timeless(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a trace without how long each reply took."""
    replies = [reply for step in steps for reply in step.get("replies", [])]
    for reply in replies:
        reply.pop("latency_s", None)
    return steps


def rewarded(*replies: Reply, body: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """Return what a service with these settings answers; the judge's replies come in order."""
    rules = [Rule(reply=reply, times=1) for reply in replies[:-1]]
    rules += [Rule(reply=reply) for reply in replies[-1:]]

    async def main() -> dict[str, Any]:
        async with (
            MockEndpoint(MockConfig(rules=rules)) as judge,
            serving(judge.judge_url, Settings(**settings)) as service,
        ):
            status, found = await service.post("/verify", body)
            assert status == 200, found
            answer: dict[str, Any] = found
            return answer

    return asyncio.run(main())


YES, NO = Reply(content="YES"), Reply(content="NO")
DOWN = Reply(status=500, error=ErrorBody(message="out of order"))


def test_a_response_is_the_request_and_the_results() -> None:
    body = rollout("Short.", SHORT, LOUD, llm("Is it good?"), CHAIN, query_id=7, turn_id=0)
    body |= {"agent_ref": {"name": "a"}, "_ng_task_index": 3, "_ng_rollout_id": "x"}
    found = rewarded(NO, body=body)
    sent = {key: value for key, value in body.items() if key != "_ng_rollout_id"}
    assert {key: found[key] for key in sent} == sent
    assert {key: value for key, value in found.items() if key not in sent} == {
        "reward": 0.0,
        "n_true": 1,
        "n_false": 2,
        "n_null": 1,
        "n_skipped": 1,
        "n_error": 0,
        "isr_pass": 0,
        "isr_counted": 1,
        "by_dimension": {
            "unconditional": {"n_true": 1, "n_false": 0},
            "example_driven": {"n_true": 0, "n_false": 1},
        },
        "by_type": {
            "formatting": {"n_true": 1, "n_false": 0},
            "resource": {"n_true": 0, "n_false": 1},
        },
        "query_id": 7,
        "turn_id": 0,
        "mask_sample": False,
        "failure_kind": None,
        "failure_reason": None,
    }


def test_an_error_counts_the_row_and_fails_it() -> None:
    found = rewarded(YES, body=rollout("Short.", SHORT, BROKEN, PER_TOOL))
    assert (found["n_true"], found["n_error"], found["n_null"]) == (1, 2, 2)
    assert (found["isr_counted"], found["isr_pass"], found["reward"]) == (1, 0, 0.0)
    assert found["failure_kind"] == "verifier_error"
    assert "ZeroDivisionError" in found["failure_reason"]
    assert not found["mask_sample"]
    alone = rewarded(YES, body=rollout("Short.", BROKEN))
    assert (alone["isr_counted"], alone["isr_pass"]) == (1, 0)
    nothing = rewarded(NO, body=rollout("Short.", CHAIN))
    assert (nothing["n_skipped"], nothing["isr_counted"], nothing["reward"]) == (1, 0, 0.0)


def test_another_policy_counts_otherwise() -> None:
    body = rollout("Short.", SHORT, PER_TOOL)
    assert rewarded(YES, body=body)["n_error"] == 1
    assert rewarded(YES, body=body, policy="adhere")["n_skipped"] == 1
    empty = rollout("<think>never closed", SHORT, LOUD)
    found = rewarded(YES, body=empty)
    assert (found["n_error"], found["isr_counted"], found["failure_kind"]) == (2, 1, None)
    assert rewarded(YES, body=empty, policy="adhere")["n_false"] == 2


def test_the_reward_may_be_the_share() -> None:
    body = rollout("Short.", SHORT, LOUD, llm("Is it good?"))
    assert rewarded(YES, body=body, reward="csr")["reward"] == pytest.approx(2 / 3)
    assert rewarded(YES, body=rollout("Short."), reward="csr")["reward"] == 0.0
    assert rewarded(YES, body=rollout("Short.", SHORT))["reward"] == 1.0


@pytest.mark.parametrize(
    ("replies", "kind"),
    [
        ((DOWN,), "judge_failed"),
        ((Reply(status=401, error=ErrorBody(message="no")),), "judge_failed"),
        ((Reply(content="It depends."),), "judge_unparseable"),
    ],
)
def test_a_judge_failure_is_masked_when_asked(replies: tuple[Reply, ...], kind: str) -> None:
    body = rollout("Short.", LOUD, llm("Is it good?"))
    unasked = rewarded(*replies, body=body)
    assert (unasked["mask_sample"], unasked["failure_kind"]) == (False, kind)
    assert (unasked["n_error"], unasked["reward"]) == (1, 0.0)
    asked = rewarded(*replies, body=body, mask=True)
    assert (asked["mask_sample"], asked["failure_kind"]) == (True, kind)
    assert asked["failure_reason"].startswith("constraint 2: judge_")
    by_request = rollout("Short.", llm("Is it good?"), mask_judge_failures=True)
    assert rewarded(*replies, body=by_request)["mask_sample"]
    by_request["verifier_metadata"]["mask_judge_failures"] = False
    assert not rewarded(*replies, body=by_request, mask=True)["mask_sample"]


def test_a_checker_failure_is_never_masked() -> None:
    assert not rewarded(YES, body=rollout("Short.", BROKEN), mask=True)["mask_sample"]


def test_a_checkers_lone_surrogates_are_no_failure_of_the_service(mock: RunningMock) -> None:
    async def main() -> None:
        steps = [*code("eval(response)")["evaluation"], *llm("Is it good?")["evaluation"]]
        raises = code("(_ for _ in ()).throw(ValueError(eval(response)))")
        constraints = [{"evaluation": steps}, raises]
        item = {"response": r"'\ud83d'", "constraints": constraints, "trace": True}
        async with serving(mock.judge_url) as service:
            status, found = await service.post("/v1/verify", {**item, "messages": []})
            assert status == 200, found
            first, second = found["verdicts"]
            assert first["steps"][0]["result"] == "\ufffd"
            assert second["steps"][0]["detail"].startswith("ValueError: \ufffd (checker")

    asyncio.run(main())


def answer(n_true: int, n_false: int, task: int, **more: Any) -> dict[str, Any]:
    counts = {"n_true": n_true, "n_false": n_false}
    fixed = {"n_null": 0, "n_skipped": 0, "n_error": 0, "isr_counted": 1}
    passed = int(n_false == 0)
    return {
        **counts,
        **fixed,
        "isr_pass": passed,
        "reward": float(passed),
        "by_dimension": {"conditional": counts},
        "by_type": {"resource": counts},
        "_ng_task_index": task,
        "response": {"usage": {"output_tokens": 10}},
    } | more


def test_aggregate_metrics(mock: RunningMock) -> None:
    responses = [
        answer(2, 0, 0),
        answer(1, 1, 0, _ng_rollout_index=1),
        answer(4, 0, 1, n_null=3, n_skipped=1, n_error=2, isr_pass=0, reward=0.0),
        answer(9, 0, 2, mask_sample=True),
        answer(0, 9, 1, mask_sample=True),
    ]

    async def main() -> None:
        async with serving(mock.judge_url) as service:
            status, found = await service.post(
                "/aggregate_metrics", {"verify_responses": responses}
            )
            assert status == 200
            wanted = {
                "csr": 7 / 8,
                "isr": 1 / 3,
                "mean_reward": 1 / 3,
                "by_dimension/condition/accuracy": 7 / 8,
                "by_type/tool/accuracy": 7 / 8,
                "count": 3,
                "n_null_total": 3,
                "n_skipped_total": 1,
                "n_error_total": 2,
                "coverage/measured_rollouts": 3,
                "coverage/masked_rollouts": 2,
                "coverage/measured_tasks": 2,
                "coverage/fully_masked_tasks": 1,
                "mean/output_tokens": 10,
                "num_repeats": 2,
            }
            metrics = found["agent_metrics"]
            assert {key: metrics.get(key) for key in wanted} == pytest.approx(wanted)
            assert "by_dimension/vanilla/accuracy" not in metrics
            assert set(found["key_metrics"]) >= {"isr", "csr", "mean_reward"}
            assert [group["_ng_task_index"] for group in found["group_level_metrics"]] == [0, 1]
            assert [each["isr"] for each in found["repeat_level_metrics"]] == [0.5, 0.0]
            assert (await service.post("/aggregate_metrics", {"verify_responses": []}))[1] == {
                "group_level_metrics": [],
                "agent_metrics": {},
                "key_metrics": {},
                "repeat_level_metrics": [],
            }
            huge = [{"reward": 1e308, "n_true": 2**63, "x": -1.5e308}] * 3
            assert (await service.post("/aggregate_metrics", {"verify_responses": huge}))[0] == 200

    asyncio.run(main())


def test_sessions_and_modes(mock: RunningMock) -> None:
    async def main() -> None:
        async with serving(mock.judge_url) as service:
            assert await service.post("/seed_session", {}) == (200, {})
            named = {"resources_session_id": "s", "episode_id": "e", "task_data": {}}
            for path in ("/seed_session", "/close_session"):
                assert (await service.post(path, named))[1]["resources_session_id"] == "s"
            assert json.loads((await service.get("/reverify_mode"))[1]) == "stateless"
            assert (await service.get("/healthz"))[0] == (await service.get("/readyz"))[0] == 200
            about = json.loads((await service.get("/v1/about"))[1])
            assert about["judge_hash"] == service.engine.judge.hash
            assert about["isolation"]["level"] == service.engine.pool.isolation.level

    asyncio.run(main())


MESSAGES = [
    {"role": "user", "content": "Find a lamp."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "1", "content": "A lamp."},
    {"role": "assistant", "content": "There is a lamp."},
]
REACT = "Thought: look\nAction: search\nAction Input: {}\nObservation: A lamp.\nFinal Answer: Lamp."
CALLED = {"id": "called", "rule": "must_call_tool", "args": {"tool": "search"}}
NOT_CALLED = {"rule": "must_call_tool", "args": {"tool": "buy"}}


@pytest.mark.parametrize(
    "given",
    [
        {"messages": MESSAGES},
        {"messages": MESSAGES[:-1], "response": "There is a lamp."},
        {"trajectory": MESSAGES},
        {"trajectory": {"messages": MESSAGES}},
        {"trajectory": REACT},
    ],
)
def test_what_an_agent_did(mock: RunningMock, given: dict[str, Any]) -> None:
    async def main() -> None:
        async with serving(mock.judge_url) as service:
            constraints = [CALLED, NOT_CALLED, {"rule": "contains", "args": {"keyword": "amp"}}]
            status, found = await service.post(
                "/v1/verify", {"id": 5, **given, "constraints": constraints}
            )
            assert status == 200, found
            assert [v["verdict"] for v in found["verdicts"]] == ["followed", "violated", "followed"]
            assert (found["id"], found["verdicts"][0]["id"]) == (5, "called")
            assert found["totals"] == {
                "followed": 2,
                "violated": 1,
                "not_applicable": 0,
                "unscored": 0,
                "csr": pytest.approx(2 / 3),
                "isr": False,
            }

    asyncio.run(main())


def test_gym_rollouts_with_tool_calls() -> None:
    body = rollout("There is a lamp.", CALLED, NOT_CALLED)
    call = {"type": "function_call", "name": "search", "arguments": "{}", "call_id": "1"}
    body["response"]["output"].insert(0, call)
    found = rewarded(YES, body=body)
    assert (found["n_true"], found["n_false"], found["n_error"]) == (1, 1, 0)


def test_questions_and_the_compact_form() -> None:
    async def main() -> None:
        async with (
            MockEndpoint(MockConfig(rules=[Rule(reply=NO)])) as judge,
            serving(judge.judge_url) as service,
        ):
            item = {
                "response": "{}",
                "instruction": "Write JSON.",
                "constraints": [{"id": "kind", "ask": "Be kind."}, SHORT],
            }
            _, found = await service.post("/v1/verify", item)
            assert [v["verdict"] for v in found["verdicts"]] == ["violated", "followed"]
            assert found["verdicts"][0]["reason"] == "NO"
            prompt = judge.log()[0].body["messages"][0]["content"]
            assert all(part in prompt for part in ("Be kind.", "Write JSON.", "{}"))
            _, found = await service.post(
                "/v1/verify", {"response": "{}", "constraints": {"json": True}}
            )
            assert found["totals"]["isr"] is True

    asyncio.run(main())


def test_batches_are_streamed_as_items_are_done() -> None:
    rules = [Rule(match="slowly", reply=Reply(content="YES", hang_s=600)), Rule(reply=YES)]

    async def main() -> None:
        async with MockEndpoint(MockConfig(rules=rules)) as judge:
            limits = Limits(deadline_s=1.5)
            async with serving(judge.judge_url, Settings(limits=limits)) as service:
                items = [
                    {"id": "hangs", "response": "slowly", "constraints": [llm("Good?")]},
                    {"id": "wrong", "response": 3, "constraints": [SHORT]},
                    {"id": "right", "response": "quickly", "constraints": [llm("Good?"), SHORT]},
                ]
                lines = await batch(service, items)
                assert [line.get("index") for line in lines] == [1, 2, 0, None]
                assert lines[0]["error"]["kind"] == "invalid"
                assert lines[1]["result"]["totals"]["isr"] is True
                assert lines[2]["error"]["kind"] == "deadline"
                assert lines[3] == {"done": 3}

    asyncio.run(main())


async def batch(service: Running, items: list[Any]) -> list[dict[str, Any]]:
    """Return the lines of a batch's answer."""
    async with service.session.post(
        f"{service.url}/v1/verify/batch", json={"items": items}
    ) as answer:
        assert answer.status == 200
        assert answer.content_type == "application/x-ndjson"
        return [json.loads(line) async for line in answer.content]
