"""Where a text claims that a tool was used: a fixed criterion, in English and Chinese.

A clause claims the use of a tool when it names the tool (``get_weather``, also as ``get weather``
or ``get-weather``, in quotes or not) in one of these ways:

- somebody of the agent's used it: "I called get_weather", "we have used the search tool";
- it was used: "get_weather was called";
- it gave something: "get_weather returned …", "the results from search show …";
- something rests on it: "according to get_weather", "after calling search, I found";
- 我(已)调用了 X, 已通过 X 查询到, X 返回/显示 …, 根据 X (的结果).

A clause that denies it or only speaks of it as possible, wanted or yet to come ("I could not
call", "I will use", "if", 没有, 将, 可以) claims nothing. A phrase of the rule's arguments claims
the use of its tool by itself, under the same condition.
"""

import re
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

_QUOTE = r"[\s`\"'“”‘’「」『』*_\[【（(]{0,4}"
_FILLER = r"(?:the|my|your|our|both|tool|function|api|command|named|called)?"
_GAP = rf"(?:\s+{_FILLER}){{0,3}}{_QUOTE}"
_THING = r"(?:['’]s|\s+(?:tool|function|api|call|command|results?|output|response|lookup)){0,3}"
_VERB = r"(?:used|called|invoked|ran|run|executed|queried|consulted|triggered)"
_USING = r"(?:using|calling|invoking|running|executing|querying|consulting)"
_WHO = (
    r"\b(?:i|we)(?:['’]ve|\s+have|\s+had)?(?:\s+(?:just|already|also|first|then|now|successfully))*"
)
_GAVE = r"(?:returned|reported|showed|said|indicated|gave|found|confirmed|responded|produced)"
_TELLS = rf"(?:{_GAVE}|shows?|says?|indicates?|confirms?|reports?|suggests?|is|are|was|were)\b"
_RESULT = r"(?:results?|outputs?|responses?|data|readings?)"
_GOT = r"\b(?:i|we)\s+(?:found|got|saw|learned|confirmed|retrieved|obtained|determined)"

_ENGLISH = (
    rf"{_WHO}\s+{_VERB}{_GAP}@",
    rf"@{_QUOTE}{_THING}\s+(?:was|were|has\s+been|have\s+been)\s+{_VERB}\b",
    rf"@{_QUOTE}{_THING}\s+(?:has\s+|have\s+)?{_GAVE}\b",
    rf"\b{_RESULT}\s+(?:of|from|returned\s+by){_GAP}@{_QUOTE}{_THING}\s*,?\s+{_TELLS}",
    rf"\b(?:according\s+to|based\s+on)(?:\s+the)?(?:\s+{_RESULT}\s+(?:of|from|returned\s+by))?{_GAP}@",
    rf"\b(?:after|having|by|from)?\s*{_USING}{_GAP}@[^.!?;\n]{{0,60}}{_GOT}",
)
_USE_ZH = r"(?:使用|调用|运行|执行|查询|利用|借助|通过|用)"
_SHORT_ZH = r"[^。，；！？,;\n]{0,8}?"
_CHINESE = (
    rf"(?:已经|已|刚刚|刚才|成功){_SHORT_ZH}{_USE_ZH}[了过]?{_SHORT_ZH}@",
    rf"{_USE_ZH}[了过]{_SHORT_ZH}@",
    rf"{_USE_ZH}{_SHORT_ZH}@[^。；！？;\n]{{0,20}}?(?:查到|查询到|查得|得到|获得|获取到|得知|发现|确认了)",
    rf"@{_QUOTE}(?:工具|函数|接口|API)?的?(?:查询|搜索|返回|调用|执行)*(?:结果|返回|显示|表明|给出|反馈)",
    rf"(?:根据|按照|依据|据){_SHORT_ZH}@",
)
_UNREAL = re.compile(
    r"\b(?:not|never|no|cannot|unable|without|would|could|should|will|shall|can|may|might|must|if|let"
    r"|unless|please|going\s+to|plan\s+to|want\s+to|need\s+to|needs\s+to|fail(?:ed)?\s+to|instead\s+of"
    r"|able\s+to)\b|n['’]t\b|['’]ll\b"
    r"|没有|没|未|无法|不能|不会|不需|无需|不用|不再|将会|将|我会|会(?=调用|使用|用|查)|要(?=调用|使用|用)"
    r"|可以|可(?=调用|使用)|应该|应(?=调用|使用)|请(?=调用|使用|用)|如果|假如|若|需要|打算|准备|计划|建议|是否"
    r"|能否|而非|尚未"
)
_CLAUSE_ENDS = re.compile(
    r"[.!?。！？;；\n，、]|,(?=\s)|(?<=\s)(?:but|so|because|then)(?=\s)|但是?|所以|于是"
)
# The most characters of a clause that are looked at before a claim.
_LOOK_BACK = 200


class Claim(NamedTuple):
    """A tool whose use is claimed, and the words that claim it."""

    tool: str
    words: str


def claims(text: str, tools: list[str], phrases: dict[str, list[str]]) -> list[Claim]:
    """Return the claims of a text, at most one for each tool, in the order of the tools."""
    ends = [end.end() for end in _CLAUSE_ENDS.finditer(text)]
    found = []
    for tool in tools:
        patterns = [*_patterns(tool), *map(_literal, phrases.get(tool, ()))]
        words = next((words for p in patterns if (words := _claimed(text, p, ends))), None)
        if words:
            found.append(Claim(tool, words))
    return found


def _claimed(text: str, pattern: re.Pattern[str], ends: list[int]) -> str | None:
    for match in pattern.finditer(text):
        before = bisect_right(ends, match.start())
        start = max(ends[before - 1] if before else 0, match.start() - _LOOK_BACK)
        if not _UNREAL.search(text[start : match.end()].lower()):
            return match[0]
    return None


def _literal(phrase: str) -> re.Pattern[str]:
    return re.compile(re.escape(phrase), re.IGNORECASE)


@lru_cache(maxsize=512)
def _patterns(tool: str) -> tuple[re.Pattern[str], ...]:
    parts = [re.escape(part) for part in re.split(r"[\s_\-]+", tool.strip()) if part]
    name = r"(?<![A-Za-z0-9_])" + r"[\s_-]{1,2}".join(parts) + r"(?![A-Za-z0-9_])"
    return tuple(
        re.compile(pattern.replace("@", name), re.IGNORECASE) for pattern in (*_ENGLISH, *_CHINESE)
    )
