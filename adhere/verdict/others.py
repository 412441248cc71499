"""How other judging scripts read a verdict, for comparing with their numbers."""

import re


def upstream_2025(text: str) -> bool | None:
    """AgentIF's first scripts: "YES" anywhere in the text, otherwise "NO" anywhere."""
    return True if "YES" in text else False if "NO" in text else None


_WHOLE_WORD = re.compile(r"\b(?:YES|NO)\b")


def nemo_0_7(text: str) -> bool | None:
    """NeMo Gym 0.7.0's AgentIF verifier: the only word of the last line, otherwise of the text."""
    text = _without_think_pairs(text)
    lines = [line for line in text.splitlines() if line.strip()]
    for scope in (*lines[-1:], text):
        words = set(_WHOLE_WORD.findall(scope))
        if len(words) == 1:
            return words == {"YES"}
    return None


def _without_think_pairs(text: str) -> str:
    """Drop each <think>…</think>; where there is no pair, all up to the first </think>."""
    kept, position = list[str](), 0
    while (start := text.find("<think>", position)) >= 0:
        end = text.find("</think>", start)
        if end < 0:
            break
        kept.append(text[position:start])
        position = end + len("</think>")
    if position:
        return "".join(kept) + text[position:]
    before, closer, after = text.partition("</think>")
    return after if closer else before
