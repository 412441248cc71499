"""How servers word their refusals: patterns for one line of an error message, any case.

Collected from vLLM, SGLang, TGI, llama.cpp, OpenAI, Azure, Anthropic, Gemini, OpenRouter, DeepSeek,
DashScope, Moonshot, Zhipu, xAI, Groq, Mistral, Together and Fireworks.
"""

import re


def _any(*wordings: str) -> re.Pattern[str]:
    return re.compile("|".join(wordings), re.IGNORECASE)


def first_number(pattern: re.Pattern[str], text: str) -> int | None:
    """Return the number that the first match of a pattern holds, None without a match."""
    match = pattern.search(text)
    digits = next(group for group in match.groups() if group) if match else ""
    # What no window holds is no number of tokens.
    return int(digits) if 0 < len(digits) <= 12 else None


RATE = _any(r"rate.?limit", r"\b[TR]P[MD]\b", r"per[ -]min", r"per day", r"too many requests")

NO_CREDIT = _any(
    r"insufficient[ _](?:account[ _])?(?:quota|balance|credit|fund)",
    r"exceeded_current_quota",
    r"(?:credit|account) balance",
    r"balance is (?:too low|insufficient|not enough)",
    r"arrearage|overdue|in good standing",
    r"(?:more|any|no|out of|all available) credits",
    r"spending limit|billing[ _](?:hard[ _])?limit|payment[ _]required",
    r"余额不足|欠费",
)

KEY = _any(
    r"(?:invalid|incorrect|missing|expired|no) (?:\w+ )?api[ _-]?key",
    r"api[ _-]?key (?:is |was )?(?:not (?:valid|found)|invalid|missing|required|expired)",
    r"invalid_api_key|api_key_invalid|authentication_error|authorization header",
    r"unsupported_country|(?:country|region|territory)[^.]{0,40}not (?:supported|available)",
    r"(?:account|organi[sz]ation|project)[^.]{0,60}"
    r"(?:suspended|disabled|deactivated|banned|terminated|restricted)",
)

MODEL = _any(
    r"model_not_found|model_not_exist|DeploymentNotFound",
    r"model\b.{0,120}?(?:does not exist|not exist|not found|is not available)",
    r"is not a valid model|(?:invalid|unknown|no such) model\b|模型不存在",
)

# A reasoning model that thought until its budget ended: OpenAI refuses instead of answering.
BUDGET_SPENT = _any(r"could not finish the message", r"model output limit was reached")

REFUSED_LABEL = _any(r"unsupported[ _](?:parameter|value)|unknown_parameter|extra_forbidden")

PARAMETER = _any(
    r"unsupported[ _](?:parameter|value)|unrecognized (?:request )?argument",
    r"unknown (?:parameter|field|name)|unexpected keyword argument|cannot find field",
    r"extra[ _](?:inputs|fields)[ _](?:are )?(?:not permitted|forbidden)",
    r"property '\w+' is unsupported",
    # Whatever is wrong with a parameter, its name is said; items are never about these.
    r"(?<![a-z_])(?:temperature|top_[pk]|min_p|\w+_penalty|max_\w*tokens|reasoning_effort|seed"
    r"|chat_template_kwargs|enable_thinking|thinking_budget|logprobs)(?![a-z_])",
)

# One item's messages, by their path in the request.
ITEM = _any(r"\bmessages?(?:\[|\.|/)\d")

FILTER = _any(
    r"content[ _-]?(?:filter|policy|management|violation|violates)",
    r"usage (?:policy|policies|guidelines)|responsible[ _]?ai|moderation|\bflagged\b",
    r"data_?inspection|inappropriate|sensitive ?(?:content|information|words?)",
    r"content exists risk|high[ -]risk|prohibited[ _](?:content|use)|invalid_prompt",
    r"safety[ _](?:check|system|filter|reasons|polic)|敏感|违规",
)

CONTEXT = _any(
    r"context[ _-]?(?:length|size|window|limit)",
    r"exceed_context|max_model_len|(?:model|prompt|sequence) length|string_above_max_length",
    r"(?:prompt|input|messages?|request)(?: is| are)? too long|prompt 超长",
    r"too many (?:\w+ )?tokens|input_tokens|input (?:token count|length)|token limit",
    r"input tokens exceed|number of tokens allowed|max_new_tokens|less than \d+ tokens",
    r"reduce the length|must be at least 1, got -",
)

# The output budget by itself is too large, whatever the prompt.
BUDGET = _any(
    r"max_(?:\w+_)?tokens['\"`]?(?:=\d+)? (?:is too large|cannot be greater|must be less|exceeds)"
)

# Tokens of the context window.
WINDOW = _any(
    r"with (\d+) maximum context",
    r"(?:context|model|prompt)[ _]len(?:gth)?\D{0,24}?(\d+)",
    r"context (?:size|limit|window)[ a-z]{0,12}[(:=]? ?(\d+)(?!\d| \+)",
    r"\d \+ \d+ > (\d+)|tokens > (\d+)|<= (\d+)|less than (\d+) tokens",
    r"tokens allowed \((\d+)\)|configured limit of (\d+)|token limit: (\d+)",
)

# Tokens of the prompt. "At least N input tokens" is no count: that server stopped counting there.
PROMPT = _any(
    r"(\d+) \+ \d+ (?:tokens|>)",
    r"(\d+) (?:tokens )?(?:in|of|from) (?:the |your |text )*(?:messages?|prompt|input)",
    r"resulted in (\d+) tokens|(?:has|contains) (\d+) (?:input )?tokens",
    r"too long: (\d+)|given: (\d+)|token count \((\d+)\)",
    r"(?:prompt|input|request) \((\d+) tokens\)",
)
