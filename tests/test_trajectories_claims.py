"""What counts as a claim that a tool was used, in English and Chinese."""

import pytest

from adhere.trajectories.claims import claims

TOOLS = ["get_weather", "search", "send-mail", "天气查询"]

CLAIMED = [
    ("I called get_weather and it is 20 °C.", "get_weather"),
    ("I've just used the `get_weather` tool.", "get_weather"),
    ("We have already queried get weather for Paris.", "get_weather"),
    ("GET_WEATHER was called with Paris.", "get_weather"),
    ("The get_weather tool returned 20 °C.", "get_weather"),
    ("The results from search show three shops.", "search"),
    ("According to the search results, it is open.", "search"),
    ("Based on the data from get_weather, take a coat.", "get_weather"),
    ("After calling search, I found three shops.", "search"),
    ("Using get_weather I confirmed that it rains.", "get_weather"),
    ("I could not find it in the notes, so I called search.", "search"),
    ("I ran **search**.", "search"),
    ("I used send_mail.", "send-mail"),
    ("我已经调用了 get_weather，今天 20 度。", "get_weather"),
    ("我使用了get_weather工具。", "get_weather"),
    ("已通过 search 查询到三家店。", "search"),
    ("通过“search”工具查到三家店。", "search"),
    ("get_weather 返回：20 度。", "get_weather"),
    ("search工具的查询结果显示有三家。", "search"),
    ("根据get_weather的结果，今天下雨。", "get_weather"),
    ("我调用了天气查询，今天下雨。", "天气查询"),
    ("没有别的办法，所以我调用了 search。", "search"),
]

NOT_CLAIMED = [
    "It is 20 °C.",
    "I did not call get_weather.",
    "I couldn't use the search tool.",
    "I was unable to see what search returned.",
    "I will call get_weather next.",
    "You can use the search tool yourself.",
    "If I used search, I would know.",
    "Would you like it if I called search?",
    "I searched my memory.",
    "I called research.",
    "I used get_weather_v2.",
    "The search tool finds web pages.",
    "Let me say what search returned: nothing yet.",
    "我没有调用 get_weather。",
    "我无法使用 search 工具。",
    "我将调用 get_weather。",
    "您可以使用 search 查询到结果。",
    "如果调用了 search，就知道了。",
    "请调用 get_weather。",
    "需要先通过 search 查到店名。",
    "今天天气不错。",
]


@pytest.mark.parametrize(("text", "tool"), CLAIMED)
def test_a_claim(text: str, tool: str) -> None:
    assert [claim.tool for claim in claims(text, TOOLS, {})] == [tool]


@pytest.mark.parametrize("text", NOT_CLAIMED)
def test_no_claim(text: str) -> None:
    assert claims(text, TOOLS, {}) == []


def test_phrases_of_the_rule() -> None:
    phrases = {"send-mail": ["sent the mail", "邮件已发送"]}
    assert claims("I SENT the mail.", ["send-mail"], phrases)[0].words == "SENT the mail"
    assert claims("邮件已发送。", ["send-mail"], phrases)
    assert not claims("I have not sent the mail.", ["send-mail"], phrases)
    assert not claims("如果邮件已发送，请告诉我。", ["send-mail"], phrases)


def test_long_texts_are_read_in_good_time() -> None:
    assert claims("I called the " * 20_000, ["search"], {}) == []
    assert claims("根据" * 20_000, ["search"], {}) == []
    assert claims("not search returned " * 5_000, ["search"], {}) == []
