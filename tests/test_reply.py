"""Replies and refusals are read for what they are: no crash, no failure put to the wrong account.

The wordings are our own short versions of what servers send; each keeps what is essential in it.
"""

import json
import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adhere.client import Failure, Reply
from adhere.client.reply import classify, parse_completion
from adhere.prediction.answer import interpret

SHARED = Path(
    os.environ.get("ADHERE_SHARED", Path(__file__).resolve().parents[1].parent / "shared")
)
CASES = SHARED / "cases" / "robustness.jsonl"


def completion(message: Any = None, **choice: Any) -> bytes:
    """Return a chat completion's body; the message is given whole or as its content."""
    if not isinstance(message, dict):
        message = {"role": "assistant", "content": message}
    choices = [{"index": 0, "message": message, "finish_reason": "stop", **choice}]
    return json.dumps({"model": "m", "choices": choices}).encode()


def parsed(body: bytes) -> Reply:
    reply = parse_completion(body)
    assert isinstance(reply, Reply), reply
    return reply


def refusal(body: bytes) -> Failure:
    failure = parse_completion(body)
    assert isinstance(failure, Failure), failure
    return failure


# Replies


def test_calls_of_tools_are_handed_over() -> None:
    def call(function: Any, **more: Any) -> dict[str, Any]:
        return {"id": "c1", "type": "function", "function": function, **more}

    sent = [
        call({"name": "look", "arguments": '{"a": 1}'}, index=0),
        call({"name": "look", "arguments": {"a": "\ud800"}}, id=None),
        call({"name": "look"}, id=7),
        call({"arguments": "{}"}),
        call(None),
        "look",
    ]
    reply = parsed(completion({"content": None, "tool_calls": sent}, finish_reason="tool_calls"))
    assert reply.content is None
    assert [call["id"] for call in reply.tool_calls] == ["c1", None, None]
    arguments = [call["function"]["arguments"] for call in reply.tool_calls]
    assert arguments[0] == '{"a": 1}'
    assert json.loads(arguments[1]) == {"a": "\ufffd"}
    assert arguments[2] == "{}"
    assert set(reply.tool_calls[0]) == {"id", "type", "function"}
    wrong: list[Any] = [None, {}, "look", [None]]
    for odd in wrong:
        assert parsed(completion({"content": "x", "tool_calls": odd})).tool_calls == ()


def test_every_field_is_kept() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    body = {
        "model": "served",
        "system_fingerprint": "fp",
        "usage": usage,
        "choices": [
            {"message": {"content": "Hi", "reasoning": "Hm"}, "finish_reason": "length"},
            {"message": {"content": "the second choice"}, "finish_reason": "stop"},
        ],
    }
    assert parse_completion(json.dumps(body).encode()) == Reply(
        "Hi", "Hm", "length", usage, "served", "fp"
    )


def test_a_bare_reply() -> None:
    body = b'{"choices": [{"message": {"content": "Hi"}}]}'
    assert parse_completion(body) == Reply("Hi", None, None, None, None, None)


@pytest.mark.parametrize(
    ("fields", "content", "reasoning"),
    [
        ({"content": None}, None, None),
        ({"content": ""}, "", None),
        ({}, None, None),
        ({"content": None, "reasoning": "r"}, None, "r"),
        ({"content": None, "reasoning_content": "r"}, None, "r"),
        ({"content": "c", "thinking": "r"}, "c", "r"),
        ({"content": "c", "reasoning": "", "reasoning_content": "r"}, "c", "r"),
        ({"content": "c", "reasoning": "new", "reasoning_content": "old"}, "c", "new"),
        ({"content": "c", "reasoning": {"effort": "low"}}, "c", None),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", None),
        ({"content": ["a", {"type": "image"}, {"text": 7}, None, "b"]}, "ab", None),
        ({"content": {"type": "text", "text": "a"}}, "a", None),
        ({"content": []}, "", None),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "r"}]},
                    {"type": "text", "text": "c"},
                ]
            },
            "c",
            "r",
        ),
        ({"content": [{"type": "reasoning", "text": "r"}, {"text": "c"}]}, "c", "r"),
    ],
)
def test_content_and_reasoning(
    fields: dict[str, Any], content: str | None, reasoning: str | None
) -> None:
    reply = parsed(completion(fields))
    assert (reply.content, reply.reasoning) == (content, reasoning)


@pytest.mark.parametrize("content", [None, ""])
def test_a_refusal_is_an_answer(content: str | None) -> None:
    reply = parsed(completion({"content": content, "refusal": "I can't."}))
    assert (reply.content, reply.refused) == ("I can't.", True)


def test_an_empty_refusal_is_none() -> None:
    reply = parsed(completion({"content": "Hi", "refusal": None}))
    assert (reply.content, reply.refused) == ("Hi", False)
    assert not parsed(completion({"content": "Hi", "refusal": "partly"})).refused


def test_a_lone_surrogate_can_be_written() -> None:
    reply = parsed(b'{"choices": [{"message": {"content": "bad \\ud835 char \\uD83D\\uDE00"}}]}')
    assert reply.content == "bad \ufffd char \U0001f600"


def test_a_byte_order_mark_changes_nothing() -> None:
    assert parse_completion(b"\xef\xbb\xbf" + completion("é")) == parse_completion(completion("é"))


@pytest.mark.parametrize(
    "usage", [None, [], 5, "many", {"deep": json.loads("[" * 300 + "]" * 300)}]
)
def test_usage_that_no_journal_can_hold_is_dropped(usage: Any) -> None:
    body = {"choices": [{"message": {"content": "Hi"}}], "usage": usage}
    assert parsed(json.dumps(body).encode()).usage is None


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "bad_reply"),
        (b"<html>maintenance</html>", "bad_reply"),
        (b"null", "bad_reply"),
        (b"[]", "bad_reply"),
        (b'"text"', "bad_reply"),
        (b'{"choices": [{"message": {"content": "Hal', "bad_reply"),
        (b'{"choices": [], "usage": {"prompt_tokens": NaN}}', "bad_reply"),
        (b'{"choices": [{"message": {"content": "\xff"}}]}', "bad_reply"),
        (b"[" * 100_000, "bad_reply"),
        (b'{"choices": [{"message": {"content": 5}}]}', "bad_reply"),
        (b'{"choices": [{"message": {"content": true}}]}', "bad_reply"),
        (b"{}", "empty_choices"),
        (b'{"choices": []}', "empty_choices"),
        (b'{"choices": null}', "empty_choices"),
        (b'{"choices": {}}', "empty_choices"),
        (b'{"choices": [null]}', "empty_choices"),
        (b'{"choices": "x"}', "empty_choices"),
        (b'{"choices": [{}]}', "null_message"),
        (b'{"choices": [{"message": null}]}', "null_message"),
        (b'{"choices": [{"message": "Hi"}]}', "null_message"),
    ],
)
def test_a_broken_reply_is_asked_again(body: bytes, kind: str) -> None:
    failure = refusal(body)
    assert (failure.kind, failure.retryable, failure.fatal) == (kind, True, False)
    assert failure.message


@pytest.mark.parametrize("reason", ["error", "abort", "insufficient_system_resource"])
def test_a_generation_that_broke_off_is_no_answer(reason: str) -> None:
    failure = refusal(completion("Half of an ans", finish_reason=reason))
    assert (failure.kind, failure.retryable, failure.fatal) == ("server_error", True, False)


@pytest.mark.parametrize(
    ("error", "kind", "retryable", "fatal"),
    [
        ({"code": 429, "message": "slow down"}, "rate_limited", True, False),
        ({"code": "502", "message": "upstream"}, "server_error", True, False),
        ({"code": 401, "message": "who?"}, "unauthorised", True, True),
        ({"code": 1302, "message": "busy"}, "server_error", True, False),
        ({"code": 4000000000, "message": "busy"}, "server_error", True, False),
        ({"code": "x" * 9000}, "server_error", True, False),
        ({"message": "something went wrong"}, "server_error", True, False),
        ("the model crashed", "server_error", True, False),
        ({"code": 400, "message": "Your prompt is too long"}, "context_overflow", False, False),
        ({"message": "maximum context length is 9 tokens"}, "context_overflow", False, False),
        ({"code": "1301", "message": "输入内容可能包含敏感信息"}, "content_filter", False, False),
        ({"code": "1113", "message": "余额不足，请充值"}, "quota", True, True),
        ([["deep"]], "server_error", True, False),
    ],
)
def test_an_error_inside_a_200(error: Any, kind: str, retryable: bool, fatal: bool) -> None:
    for body in (
        {"error": error},
        {"error": error, "choices": None},
        {"choices": [{"error": error, "finish_reason": "error"}]},
    ):
        failure = refusal(json.dumps(body).encode())
        assert (failure.kind, failure.retryable, failure.fatal) == (kind, retryable, fatal)


def test_an_error_of_null_is_none() -> None:
    assert parsed(b'{"error": null, "choices": [{"message": {"content": "a"}, "error": null}]}')


def _shared_cases() -> list[dict[str, Any]]:
    if not CASES.exists():
        return []
    lines = CASES.read_text(encoding="utf-8").splitlines()
    return [case for line in lines if (case := json.loads(line))["kind"] == "chat_reply"]


@pytest.mark.skipif(not CASES.exists(), reason=f"not on this machine: {CASES} (ADHERE_SHARED)")
def test_the_shared_cases_are_there() -> None:
    assert len(_shared_cases()) >= 3


@pytest.mark.parametrize("case", _shared_cases(), ids=str)
def test_shared_cases(case: dict[str, Any]) -> None:
    given_, expected = dict(case["input"]), case["expected"]
    thinks = given_.pop("thinking", False)
    if "choices" in given_:
        assert refusal(json.dumps(given_).encode()).kind == expected["error"]
        return
    choice = {"finish_reason": given_.pop("finish_reason")}
    output = interpret(parsed(completion(given_, **choice)), thinks=thinks, prompt="")
    if "answer" in expected:
        assert output["content"] == expected["answer"]
        assert expected["flag"] in output["flags"]
        assert output["error"] is None
    else:
        # "Not a silent zero": an empty answer that is flagged and says why.
        assert output["flags"] == ["ambiguous_empty"]
        assert output["error"]["kind"] == "empty_answer"
        assert output["reasoning"] == given_["reasoning"]


# Refusals


def openai(message: str, *, param: str | None = None, code: Any = None, **more: Any) -> Any:
    kind = more.pop("type", "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code, **more}}


def vllm(message: str, *, param: str | None = None, code: int = 400) -> Any:
    return openai(message, param=param, code=code, type="BadRequestError")


MAXIMUM = "This model's maximum context length is"

OVERFLOWS = {
    "vllm up to 0.9, prompt": (
        {"object": "error", "message": f"{MAXIMUM} 8192 tokens. However, you requested 9000 tokens "
         "in the messages, Please reduce the length of the messages.", "code": 400},
        8192, 9000,
    ),
    "vllm up to 0.9, sum": (
        vllm(f"{MAXIMUM} 8192 tokens. However, you requested 9064 tokens (9000 in the messages, "
             "64 in the completion). Please reduce the length of the messages or completion."),
        8192, 9000,
    ),
    "vllm 0.11, prompt": (
        vllm(f"{MAXIMUM} 8192 tokens. However, your request has 9000 input tokens.",
             param="input_tokens"),
        8192, 9000,
    ),
    "vllm 0.11, sum": (
        vllm(f"'max_tokens' or 'max_completion_tokens' is too large: 64. {MAXIMUM} 8192 tokens "
             "and your request has 8150 input tokens (64 > 8192 - 8150).", param="max_tokens"),
        8192, 8150,
    ),
    "vllm 0.25, sum": (
        vllm(f"{MAXIMUM} 8192 tokens. However, you requested 64 output tokens and your prompt "
             "contains 8150 input tokens, for a total of 8214 tokens."),
        8192, 8150,
    ),
    "vllm 0.25, counting stopped": (
        vllm(f"{MAXIMUM} 8192 tokens. However, you requested 64 output tokens and your prompt "
             "contains at least 8129 input tokens, for a total of at least 8193 tokens. "
             "(parameter=input_tokens, value=8129)", param="input_tokens"),
        8192, None,
    ),
    "vllm 0.25, characters": (
        vllm(f"{MAXIMUM} 8192 tokens. However, you requested 64 output tokens and your prompt "
             "contains 100000 characters (more than 81280 characters, which is the upper bound "
             "for 8128 input tokens)."),
        8192, None,
    ),
    "vllm, negative budget": (
        vllm("max_tokens must be at least 1, got -186.", param="max_tokens"), None, None,
    ),
    "sglang, prompt": (
        openai("The input (250000 tokens) is longer than the model's context length "
               "(200000 tokens)."),
        200000, 250000,
    ),
    "sglang, sum": (
        openai("Requested token count exceeds the model's maximum context length of 32768 tokens. "
               "You requested a total of 40000 tokens: 7232 tokens from the input messages and "
               "32768 tokens for the completion."),
        32768, 7232,
    ),
    "openai, messages": (
        openai(f"{MAXIMUM} 4097 tokens. However, your messages resulted in 13393 tokens.",
               param="messages", code="context_length_exceeded"),
        4097, 13393,
    ),
    "openai, configured": (
        openai("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted "
               "in 509178 tokens.", param="messages", code="context_length_exceeded"),
        272000, 509178,
    ),
    "openai, window without numbers": (
        openai("Your input exceeds the context window of this model.", param="input",
               code="context_length_exceeded"),
        None, None,
    ),
    "openai, text too long": (
        openai("Invalid 'messages[0].content': string too long. Expected a string with maximum "
               "length 1048576.", param="messages[0].content", code="string_above_max_length"),
        None, None,
    ),
    "azure, functions": (
        openai(f"{MAXIMUM} 8192 tokens. However, you requested 8213 tokens (6683 in the messages, "
               "730 in the functions, and 800 in the completion).", param="messages"),
        8192, 6683,
    ),
    "old openai": (
        openai(f"{MAXIMUM} 8191 tokens, however you requested 8238 tokens (8238 in your prompt; 0 "
               "for the completion)."),
        8191, 8238,
    ),
    "deepseek": (
        openai(f"{MAXIMUM} 65536 tokens. However, you requested 66343 tokens (62247 in the "
               "messages, 4096 in the completion).", code="invalid_request_error"),
        65536, 62247,
    ),
    "llama.cpp": (
        {"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 5000,
                   "n_ctx": 4096, "message": "the request exceeds the available context size"}},
        4096, 5000,
    ),
    "llama.cpp, in words": (
        openai("request (5000 tokens) exceeds the available context size (4096 tokens), try "
               "increasing it"),
        4096, 5000,
    ),
    "openrouter": (
        {"error": {"message": "This endpoint's maximum context length is 131072 tokens. However, "
                   "you requested about 138956 tokens (7884 of text input, 131072 in the output).",
                   "code": 400, "metadata": {"provider_name": None}}},
        131072, 7884,
    ),
    "openrouter, quoting": (
        {"error": {"message": "Provider returned error", "code": 400, "metadata": {
            "raw": '{"message":"prompt is too long: 207791 tokens > 200000 maximum"}'}}},
        200000, 207791,
    ),
    "anthropic, prompt": (
        {"type": "error", "error": {"type": "invalid_request_error", "message":
         "prompt is too long: 207791 tokens > 200000 maximum"}},
        200000, 207791,
    ),
    "anthropic, sum": (
        {"type": "error", "error": {"type": "invalid_request_error", "message":
         "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease "
         "input length or `max_tokens` and try again"}},
        200000, 178959,
    ),
    "gemini": (
        [{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "The input token count "
                    "(1,200,000) exceeds the maximum number of tokens allowed (1,048,576)."}}],
        1048576, 1200000,
    ),
    "dashscope": (
        openai("<400> InternalError.Algo.InvalidParameter: Range of input length should be "
               "[1, 204800]", code="invalid_parameter_error"),
        None, None,
    ),
    "moonshot": (
        openai("Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)"),
        8192, None,
    ),
    "xai": (
        {"code": "invalid-argument", "error": "This model's maximum prompt length is 131072 but "
         "the request contains 143862 tokens."},
        131072, 143862,
    ),
    "mistral": (
        {"object": "error", "type": "invalid_request_error", "code": "3051", "message":
         "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum "
         "context length"},
        32768, 40000,
    ),
    "groq": (
        openai("Please reduce the length of the messages or completion.", param="messages",
               code="context_length_exceeded"),
        None, None,
    ),
    "tgi": (
        {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. "
         "Given: 3000 `inputs` tokens and 2000 `max_new_tokens`", "error_type": "validation"},
        4096, 3000,
    ),
    "fireworks": (
        openai("The prompt is too long: 140000, model maximum context length: 131071"),
        131071, 140000,
    ),
    "bedrock": ({"message": "Input is too long for requested model."}, None, None),
}  # fmt: skip


@pytest.mark.parametrize("name", OVERFLOWS)
def test_context_overflow(name: str) -> None:
    body, window, prompt = OVERFLOWS[name]
    failure = classify(400, json.dumps(body).encode())
    assert failure.kind == "context_overflow"
    assert (failure.context_tokens, failure.prompt_tokens) == (window, prompt)
    assert (failure.retryable, failure.fatal) == (False, False)


@pytest.mark.parametrize(
    "message",
    [
        f"max_tokens=40000 is too large. {MAXIMUM} 32768 tokens.",
        "max_tokens=40000 cannot be greater than max_model_len=32768.",
    ],
)
def test_a_budget_beyond_the_window_may_be_trimmed_and_is_never_final(message: str) -> None:
    failure = classify(400, json.dumps(vllm(message, param="max_tokens")).encode())
    assert (failure.kind, failure.context_tokens) == ("context_overflow", 32768)
    assert (failure.prompt_tokens, failure.retryable, failure.fatal) == (None, True, False)


FILTERED: dict[str, tuple[int, Any]] = {
    "azure": (400, openai("The response was filtered due to the prompt triggering the content "
              "management policy.", type=None, param="prompt", code="content_filter",
              innererror={"code": "ResponsibleAIPolicyViolation"})),
    "openai": (400, openai("Invalid prompt: your prompt was flagged as potentially violating our "
               "usage policy.", code="invalid_prompt")),
    "dashscope": (400, openai("Output data may contain inappropriate content.",
                  code="data_inspection_failed")),
    "deepseek": (400, openai("Content Exists Risk", code="invalid_request_error")),
    "xai": (403, {"code": "The caller does not have permission to execute the operation",
            "error": "Content violates usage guidelines. Team: t, API key ID: k, Model: grok, "
            "Failed check: SAFETY_CHECK_TYPE_X"}),
    "openrouter": (403, {"error": {"code": 403, "message": "This model requires moderation. Your "
                   "input was flagged.", "metadata": {"reasons": ["x"]}}}),
    "zhipu": (400, {"error": {"code": "1301", "message": "系统检测到输入内容可能包含敏感内容"}}),
    "volcengine": (400, openai("This may be unsafe", code="InputTextSensitiveContentDetected")),
    "moonshot": (400, openai("The request was rejected because it was considered high risk",
                 type="content_filter")),
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERED)
def test_a_content_filter_concerns_one_item(name: str) -> None:
    status, body = FILTERED[name]
    failure = classify(status, json.dumps(body).encode())
    assert (failure.kind, failure.retryable, failure.fatal) == ("content_filter", False, False)


# What every further request would meet: never final, always fatal.
FATAL: dict[str, tuple[int, Any, str]] = {
    "parameter not supported": (400, openai("Unsupported parameter: 'max_tokens' is not supported "
        "with this model. Use 'max_completion_tokens' instead.", param="max_tokens",
        code="unsupported_parameter"), "refused_parameter"),
    "value not supported": (400, openai("Unsupported value: 'temperature' does not support 0 with "
        "this model. Only the default (1) value is supported.", param="temperature",
        code="unsupported_value"), "refused_parameter"),
    "the same without fields": (400, {"error": "Unsupported parameter: 'top_p' is not supported "
        "with this model."}, "refused_parameter"),
    "unrecognised argument": (400, openai("Unrecognized request argument supplied: top_k"),
        "refused_parameter"),
    "openai, budget above the model's": (400, openai("max_tokens is too large: 32768. This model "
        "supports at most 16384 completion tokens.", param="max_tokens", code="invalid_value"),
        "refused_parameter"),
    "groq, budget above the model's": (400, openai("`max_tokens` must be less than or equal to "
        "`16384`, the maximum value for `max_tokens` is less than the `context_window` for this "
        "model", param="max_tokens"), "refused_parameter"),
    "groq, property": (400, openai("property 'top_k' is unsupported"), "refused_parameter"),
    "anthropic, budget": (400, {"type": "error", "error": {"type": "invalid_request_error",
        "message": "max_tokens: 65536 > 8192, which is the maximum allowed number of output "
        "tokens"}}, "refused_parameter"),
    "anthropic, pair": (400, openai("`temperature` and `top_p` cannot both be specified for this "
        "model."), "refused_parameter"),
    "deepseek, budget": (400, openai("Invalid max_tokens value, the valid range of max_tokens is "
        "[1, 8192]"), "refused_parameter"),
    "dashscope, budget": (400, openai("Range of max_tokens should be [1, 8192]"),
        "refused_parameter"),
    "dashscope, thinking": (400, openai("parameter.enable_thinking must be set to false for "
        "non-streaming calls"), "refused_parameter"),
    "zhipu, budget": (400, openai("max_tokens参数非法：限制数值范围[1,131072]", code="1210"),
        "refused_parameter"),
    "gemini, name": (400, [{"error": {"code": 400, "message": "Invalid JSON payload received. "
        "Unknown name \"top_k\": Cannot find field."}}], "refused_parameter"),
    "vllm, range": (400, vllm("temperature must be non-negative, got -1.0."), "refused_parameter"),
    "vllm, extra field": (400, vllm("[{'type': 'extra_forbidden', 'loc': ('body', 'wild'), 'msg': "
        "'Extra inputs are not permitted', 'input': 'content policy'}]"), "refused_parameter"),
    "fastapi, extra field": (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "wild"],
        "msg": "Extra inputs are not permitted", "input": 1}]}, "refused_parameter"),
    "mistral, extra field": (422, {"object": "error", "message": {"detail": [{"type": "missing",
        "loc": ["body", "wild"], "msg": "x"}]}}, "refused_parameter"),
    "a filter's own parameter": (400, openai("Unknown parameter: 'safety_system'.",
        param="safety_system", code="unknown_parameter"), "refused_parameter"),
    "openrouter, quoting": (400, {"error": {"message": "Provider returned error", "code": 400,
        "metadata": {"raw": "Unsupported parameter: 'top_p' is not supported"}}},
        "refused_parameter"),
    "vllm, model": (404, openai("The model `x-4.1` does not exist.", type="NotFoundError",
        param="model", code=404), "not_found"),
    "openai, model": (404, openai("The model `x` does not exist or you do not have access to it.",
        code="model_not_found"), "not_found"),
    "model as a 400": (400, openai("Model Not Exist"), "not_found"),
    "model id as a 400": (400, {"error": {"message": "a/b-1.5 is not a valid model ID",
        "code": 400}}, "not_found"),
    "model named": (400, openai("Sorry, no.", param="model"), "not_found"),
    "path": (404, {"detail": "Not Found"}, "not_found"),
    "azure, path": (404, {"error": {"code": "404", "message": "Resource not found"}}, "not_found"),
    "key": (401, openai("Incorrect API key provided: sk-…", code="invalid_api_key"),
        "unauthorised"),
    "no key": (401, {"detail": "Unauthorized"}, "unauthorised"),
    "gemini, key": (400, [{"error": {"code": 400, "message": "API key not valid. Please pass a "
        "valid API key."}}], "unauthorised"),
    "forbidden": (403, openai("You may not use this.", type="permission_error"), "unauthorised"),
    "region": (403, openai("Country, region, or territory not supported",
        code="unsupported_country_region_territory"), "unauthorised"),
    "account closed for its content": (403, openai("Your account was suspended for violating the "
        "usage policies."), "unauthorised"),
    "organisation disabled": (400, openai("This organization has been disabled."), "unauthorised"),
    "payment": (402, openai("Insufficient Balance"), "quota"),
    "openrouter, credits": (402, {"error": {"code": 402, "message": "This request requires more "
        "credits, or fewer max_tokens."}}, "quota"),
    "anthropic, credits": (400, {"type": "error", "error": {"type": "invalid_request_error",
        "message": "Your credit balance is too low to access the API."}}, "quota"),
    "dashscope, arrears": (400, openai("Access denied, please make sure your account is in good "
        "standing.", type="Arrearage", code="Arrearage"), "quota"),
    "xai, credits": (403, {"error": "Your team has used all available credits"}, "quota"),
    "openai, quota": (429, openai("You exceeded your current quota, please check your plan and "
        "billing details.", type="insufficient_quota", code="insufficient_quota"), "quota"),
    "moonshot, quota": (429, openai("Your account is suspended, please recharge it",
        type="exceeded_current_quota_error"), "quota"),
    "wrong method": (405, {"detail": "Method Not Allowed"}, "refused"),
}  # fmt: skip


@pytest.mark.parametrize("name", FATAL)
def test_a_problem_of_account_or_configuration_is_never_final(name: str) -> None:
    status, body, kind = FATAL[name]
    failure = classify(status, json.dumps(body, ensure_ascii=False).encode())
    assert (failure.kind, failure.retryable, failure.fatal) == (kind, True, True)


# What passes, or concerns one item for a reason that may be the server's: stops nothing, ends
# nothing.
PASSING: dict[str, tuple[int, Any, str]] = {
    "too many": (429, openai("Rate limit reached, try again in 4 s", code="rate_limit_exceeded"),
        "rate_limited"),
    "gemini, minute": (429, [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message":
        "You exceeded your current quota, please check your plan and billing details."}}],
        "rate_limited"),
    "groq, large request": (413, openai("Request too large for model `x` on tokens per minute "
        "(TPM): Limit 6000, Requested 12328. Upgrade at /settings/billing", type="tokens",
        code="rate_limit_exceeded"), "rate_limited"),
    "proxy's limit": (413, "<html>413 Request Entity Too Large</html>", "bad_request"),
    "firewall": (403, "  <!DOCTYPE html><p>Sorry, you have been blocked. Safety check.</p>",
        "bad_request"),
    "role in a value": (400, openai("Unsupported value: 'messages[0].role' does not support "
        "'system' with this model.", param="messages[0].role", code="unsupported_value"),
        "bad_request"),
    "role without a field": (400, openai("Failed to deserialize the JSON body: messages[0].role: "
        "unknown field `developer`"), "bad_request"),
    "role in a template": (400, vllm("System role not supported"), "bad_request"),
    "roles in a template": (400, vllm("Conversation roles must alternate user/assistant/…"),
        "bad_request"),
    "unknown key of a message": (400, openai("Unknown parameter: 'messages[1].id'.",
        param="messages[1].id", code="unknown_parameter"), "bad_request"),
    "message refused by FastAPI": (422, {"detail": [{"type": "extra_forbidden", "loc":
        ["body", "messages", 0, "id"], "msg": "Extra inputs are not permitted", "input":
        "What is your context length and content policy?"}]}, "bad_request"),
    "an item that is quoted": (400, vllm("[{'type': 'value_error', 'loc': ('body', 'messages', 0), "
        "'msg': 'no', 'input': {'content': 'the maximum context length of a content filter'}}]"),
        "bad_request"),
    "unknown": (400, openai("Bad request."), "bad_request"),
    "nothing said": (400, "", "bad_request"),
    "timeout": (408, "", "server_error"),
    "conflict": (409, "", "server_error"),
    "server": (500, openai("boom", code="content_filter"), "server_error"),
    "llama.cpp, slots full": (500, openai("Context size has been exceeded."), "server_error"),
    "gateway": (502, "<html>bad gateway</html>", "server_error"),
    "overloaded": (529, {"type": "error", "error": {"type": "overloaded_error", "message": ""}},
        "server_error"),
}  # fmt: skip


@pytest.mark.parametrize("name", PASSING)
def test_what_passes_stops_nothing_and_is_never_final(name: str) -> None:
    status, body, kind = PASSING[name]
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    failure = classify(status, raw)
    assert (failure.kind, failure.retryable, failure.fatal) == (kind, True, False)
    assert failure.status == status
    assert failure.message


def test_thinking_that_spent_the_budget_is_the_models_failure() -> None:
    body = openai("Could not finish the message because max_tokens or model output limit was "
                  "reached. Please try again with higher max_tokens.")  # fmt: skip
    failure = classify(400, json.dumps(body).encode())
    assert (failure.kind, failure.retryable, failure.fatal) == ("thinking_cut_off", False, False)


def test_the_wait_travels_with_what_passes_only() -> None:
    assert classify(429, b"{}", 7.0).retry_after_s == 7.0
    assert classify(503, b"{}", 7.0).retry_after_s == 7.0
    assert classify(401, b"{}", 7.0).retry_after_s is None


def test_a_message_is_one_line_of_bounded_length() -> None:
    failure = classify(400, json.dumps(openai("a\n b\t" + "c" * 9000)).encode())
    assert failure.message.startswith("a b ccc")
    assert len(failure.message) == 600


# No bytes crash anything

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
FIELDS = (
    "error", "message", "code", "type", "param", "detail", "loc", "msg", "metadata", "raw",
    "choices", "content", "reasoning", "refusal", "finish_reason", "usage", "model", "n_ctx",
)  # fmt: skip
LIKELY = st.recursive(
    JSON | st.sampled_from(["context length is 5", "max_tokens", "input: {", "429", "length"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6)
    ),
    max_leaves=25,
)


def _survives(body: bytes, status: int) -> None:
    for outcome in (parse_completion(body), classify(status, body)):
        if isinstance(outcome, Failure):
            assert outcome.kind
            assert outcome.message
            assert not (outcome.fatal and not outcome.retryable)
        # Whatever it is, a journal can hold it.
        orjson.dumps(outcome)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400), st.integers(300, 599))
@example(b'{"error":{"message":"context length ' + b"9" * 5000 + b'"}}', 400)
@example(b'{"choices":[{"message":{"content":"\\ud800"}}],"usage":{"a":' + b"9" * 99 + b"}}", 400)
@example(b'{"error":' + b"[" * 400 + b"]" * 400 + b"}", 400)
def test_any_bytes(body: bytes, status: int) -> None:
    _survives(body, status)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), LIKELY, max_size=6) | LIKELY, st.integers(300, 599))
def test_any_json(value: Any, status: int) -> None:
    _survives(json.dumps(value).encode(), status)


@settings(max_examples=100, deadline=None)
@given(st.text(), st.text(), st.none() | st.text())
def test_any_text_comes_through(content: str, reasoning: str, finish: str | None) -> None:
    body = completion({"content": content, "reasoning": reasoning}, finish_reason=finish)
    outcome = parse_completion(body)
    if isinstance(outcome, Failure):
        assert outcome.kind == "server_error"
        return
    assert outcome.content == content
    assert outcome.reasoning == (reasoning or None)
    assert outcome.finish_reason == finish
