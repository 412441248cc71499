"""The texts that the mock writes by itself, and how it counts tokens; all depend on bytes only."""

import hashlib

_LIST_WORDS = (b"list", "列表".encode(), b"Extract")
_ENGLISH = (
    "The plan has three parts and each of them is short. ",
    "First, the input is read and checked. ",
    "A tool is called only where the request names one. ",
    "- keep the original order\n",
    "- report what failed\n",
    "Numbers such as 42 or 3.5 stay as they are. ",
    "This covers what was asked for. ",
    "\n\n## Result\n\n",
)
_CHINESE = (
    "计划分为三个部分，每个部分都很简短。",
    "首先读取并检查输入内容。",
    "只有在请求中指定时才会调用工具。",
    "- 保持原有顺序\n",
    "- 说明失败的原因\n",
    "像 42 或 3.5 这样的数字保持不变。",
    "以上内容回答了全部问题。",
    "\n\n## 结果\n\n",
)


def count_tokens(text: str | bytes) -> int:
    """Return the mock's token count of a text: its UTF-8 bytes / 4, rounded up."""
    data = text.encode() if isinstance(text, str) else text
    return (len(data) + 3) // 4


def digest(data: bytes) -> bytes:
    """Return a checksum of 16 bytes."""
    # SHA-256 has its own instructions on most processors: the fastest here for long prompts.
    return hashlib.sha256(data).digest()[:16]


def share(key: bytes) -> float:
    """Return a number in [0, 1) that depends on ``key`` only."""
    return int.from_bytes(digest(key)[:8], "big") / 2**64


def default_text(key: bytes, chars: int, chinese_share: float) -> str:
    """Return a text of ``chars`` characters that depends on the arguments only."""
    chinese = share(b"language" + key) < chinese_share
    sentences = _CHINESE if chinese else _ENGLISH
    parts = [f"{'回答' if chinese else 'Answer'} {key.hex()[:12]}. "]
    length = len(parts[0])
    while length < chars:
        for byte in key:
            parts.append(sentences[byte % len(sentences)])
            length += len(parts[-1])
    return "".join(parts)[:chars]


def judge_text(prompt: bytes, yes_share: float) -> str:
    """Return a judge's text: a Python list where a list is asked for, else YES or NO."""
    key = digest(prompt)
    if any(word in prompt for word in _LIST_WORDS):
        return repr([f"item {key.hex()[:6]}", "第二项", "third item"][: 1 + key[0] % 3])
    return "YES" if share(key) < yes_share else "NO"
