"""NeMo Gym's contract (0.7, its AgentIF server): forms, and rewards from verdicts.

A request passes through: the response is the request's fields and the results beside them.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from adhere.costs.budget import BUDGET
from adhere.data import Row
from adhere.errors import DataError
from adhere.judging.chain import NOT_APPLICABLE, NOT_ASKED
from adhere.labels import DIMENSIONS, TYPES
from adhere.prediction.answer import without_thinking
from adhere.scoring import get_policy
from adhere.scoring.parse import parse_results
from adhere.scoring.policies import Verdict, account
from adhere.service.items import about_steps, bounded, constraint_rows, plain_messages, text_of
from adhere.service.settings import Limits, Reward

Count = dict[str, dict[str, int]]
# Gym correlates rollouts by it and does not send it on.
_ROLLOUT_ID = "_ng_rollout_id"
# Reasons for which there is no verdict, in Gym's vocabulary; any other is a checker's.
MASKED = ("judge_failed", "judge_unparseable")
_FAILED = ("judge_failed", "judge_filtered", "judge_context", "judge_no_choice", "judge_no_message")
_KIND_OF = {
    **dict.fromkeys((*_FAILED, BUDGET), MASKED[0]),
    **dict.fromkeys(("judge_unreadable", "judge_empty", "judge_truncated"), MASKED[1]),
    "judge_no_majority": MASKED[1],
    NOT_ASKED: MASKED[0],
}
_OF_THE_MODEL = frozenset({"no_response", NOT_APPLICABLE})
_SHOWN = 500


class VerifyRequest(BaseModel):
    """A rollout: the task, the policy's response, and the task's constraints."""

    model_config = ConfigDict(extra="allow")

    responses_create_params: dict[str, Any] = Field(
        description="The request of OpenAI's Responses API that the policy got."
    )
    response: dict[str, Any] = Field(description="The response of that API.")
    verifier_metadata: dict[str, Any] | None = Field(
        None,
        description="`constraints`, and `query_id`, `turn_id` where there are any. With "
        "`mask_judge_failures` it says whether a failed judge masks the sample.",
    )


class VerifyResponse(BaseModel):
    """The request's fields, and the results."""

    model_config = ConfigDict(extra="allow")

    responses_create_params: dict[str, Any]
    response: dict[str, Any]
    verifier_metadata: dict[str, Any] | None
    reward: float
    n_true: int
    n_false: int
    n_null: int = Field(description="n_skipped + n_error")
    n_skipped: int
    n_error: int
    isr_pass: int
    isr_counted: int
    by_dimension: Count
    by_type: Count
    query_id: int | None
    turn_id: int | None
    mask_sample: bool
    failure_kind: str | None
    failure_reason: str | None


def row_of(request: VerifyRequest, limits: Limits) -> Row:
    """Return the row to be judged. Raises DataError naming what is wrong."""
    meta, params = request.verifier_metadata or {}, request.responses_create_params
    messages = plain_messages(params.get("input"))
    task = "\n\n".join(message["content"] for message in messages) or "(not given)"
    constraints = constraint_rows(meta.get("constraints") or [], task, limits.constraints)
    output: Row = {"content": response_text(request.response)}
    if (request.response.get("incomplete_details") or {}) == {"reason": "max_output_tokens"}:
        output["finish_reason"] = "length"
    if about_steps(constraints):
        output["trajectory"] = _trajectory(params, request.response)
    row = {"input": messages, "constraints": constraints, "output": output}
    # What cannot be counted afterwards is refused before anybody is asked.
    parse_results([row], "verifier_metadata")
    return bounded(without_thinking(row), limits)


def response_text(response: Mapping[str, Any]) -> str:
    """Return the text of all messages of a response, as Gym's server reads it.

    A response without any may have it as ``output_text``, as OpenAI's client writes it.
    """
    listed = response.get("output")
    messages = [
        item
        for item in (listed if isinstance(listed, list) else [])
        if isinstance(item, Mapping) and item.get("type") == "message"
    ]
    if not messages:
        return text_of(response.get("output_text"))
    return "".join(text_of(message.get("content")) for message in messages)


def _trajectory(params: Mapping[str, Any], response: Mapping[str, Any]) -> Row:
    output = response.get("output")
    if not isinstance(output, list):
        raise DataError(f"response.output: found {output!r:.60}: must be a list of items")
    kept = {"input": params.get("input"), "tools": params.get("tools"), "output": output}
    return {key: value for key, value in kept.items() if value is not None}


def results(row: Row, request: VerifyRequest, reward: Reward, policy: str, *, mask: bool) -> Row:
    """Return the results of a judged row: counts under a policy, and the reward.

    With ``mask`` a sample whose judge failed is no measurement, whatever else was found: masking
    only some of them would lean the mean reward to one side.
    """
    outcomes = _outcomes(row, policy)
    counts = _tally([verdict for _, verdict in outcomes])
    n_true, n_false, n_error = (counts[key] for key in ("n_true", "n_false", "n_error"))
    scored = n_true + n_false
    passed = int(scored > 0 and n_false == n_error == 0)
    csr = n_true / scored if scored else 0.0
    meta = request.verifier_metadata or {}
    kind, why = _failure(outcomes)
    return {
        "reward": float(passed) if reward == "isr" else csr,
        **counts,
        "n_null": counts["n_skipped"] + n_error,
        "isr_pass": passed,
        "isr_counted": int(scored > 0 or n_error > 0),
        **_breakdowns(outcomes),
        "query_id": _integer(meta.get("query_id")),
        "turn_id": _integer(meta.get("turn_id")),
        "mask_sample": mask and kind in MASKED,
        "failure_kind": kind,
        "failure_reason": why,
    }


def passed_through(request: VerifyRequest) -> Row:
    """Return a request's fields, which the response begins with."""
    extra = request.__pydantic_extra__ or {}
    named = {name: getattr(request, name) for name in VerifyRequest.model_fields}
    return {**{key: value for key, value in extra.items() if key != _ROLLOUT_ID}, **named}


Outcomes = list[tuple[Row, Verdict]]


def _outcomes(row: Row, policy: str) -> Outcomes:
    """Return what each constraint counts as."""
    chosen = get_policy(policy)
    item = parse_results([row], "the judged row")[0]
    counted = [account(chosen, item.response, cell).verdict for cell in item.cells]
    return list(zip(row["constraints"], counted, strict=True))


def _tally(counted: list[Verdict]) -> dict[str, int]:
    return {
        "n_true": counted.count(Verdict.FOLLOWED),
        "n_false": counted.count(Verdict.VIOLATED),
        "n_skipped": counted.count(Verdict.NOT_APPLICABLE),
        "n_error": counted.count(Verdict.UNSCORED),
    }


def _breakdowns(outcomes: Outcomes) -> dict[str, Count]:
    """Return the counts of scored constraints by dimension and by type, under the data's names."""
    found: dict[str, Count] = {"by_dimension": {}, "by_type": {}}
    for raw, verdict in outcomes:
        if verdict not in (Verdict.FOLLOWED, Verdict.VIOLATED):
            continue
        kinds = raw.get("type")
        groups = [("by_dimension", DIMENSIONS, raw.get("dimension"))]
        groups += [("by_type", TYPES, k) for k in (kinds if isinstance(kinds, list) else [kinds])]
        for name, known, group in groups:
            if group in known:
                counts = found[name].setdefault(group, {"n_true": 0, "n_false": 0})
                counts["n_true" if verdict is Verdict.FOLLOWED else "n_false"] += 1
    return found


def _failure(outcomes: Outcomes) -> tuple[str | None, str | None]:
    """Return the kind, in Gym's vocabulary, and the reason of an unscored constraint."""
    kinds = {
        _KIND_OF.get(raw["null_reason"], "verifier_error"): _described(number, raw)
        for number, (raw, verdict) in enumerate(outcomes, start=1)
        if verdict is Verdict.UNSCORED and raw["null_reason"] not in _OF_THE_MODEL
    }
    for kind in (*MASKED, "verifier_error"):
        if kind in kinds:
            return kind, kinds[kind]
    return None, None


def _described(number: int, raw: Row) -> str:
    last = raw["steps"][-1] if raw["steps"] else {}
    replies = last.get("replies") or [{}]
    detail = last.get("detail") or replies[-1].get("error", {}).get("message")
    told = ": ".join(filter(None, (f"constraint {number}", raw["null_reason"], detail)))
    return told[:_SHOWN]


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
