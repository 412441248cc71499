"""Run a model with tools: its calls get canned responses until it answers.

A run is one unit: a request that fails ends it, and asking again begins anew.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from adhere.client import ChatClient, Failure, Reply
from adhere.data import Row
from adhere.prediction.answer import Output, failed, interpret
from adhere.prediction.asking import Question, complete
from adhere.prediction.model import Mode
from adhere.tools import MAX_TURNS, CannedTools

Message = dict[str, Any]
# What a record has beyond what a model is sent again.
_RECORD_ONLY = ("reasoning_content", "is_error")


async def run_live(mode: Mode, row: Row, seed: int, client: ChatClient, key: str) -> Output:
    """Return the output of one item: the final answer, and ``trajectory`` with all messages.

    Raises EndpointError when going on is pointless.
    """
    tools, turns = CannedTools(row), list[Output]()
    messages: list[Message] = list(row["input"])
    calls: list[Message] = []
    for number in range(1, (row.get("max_turns") or MAX_TURNS) + 1):
        question = Question(mode, _sent(messages), seed, tools.offered)
        outcome, flags = await complete(question, client, key)
        turn = _turn(outcome, question)
        turn["flags"] += flags
        turns.append(turn)
        if turn["error"]:
            break
        calls = _calls(outcome, number)
        messages.append(_said(turn, calls))
        messages += map(tools.answer, calls)
        if not calls:
            break
    else:
        turns[-1]["flags"].append("max_turns")
    output = _together(turns, answered=not calls)
    return output | {"trajectory": {"messages": messages, "tools": tools.offered}}


def _sent(messages: Sequence[Message]) -> list[Message]:
    return [{k: v for k, v in message.items() if k not in _RECORD_ONLY} for message in messages]


def _turn(outcome: Reply | Failure, question: Question) -> Output:
    """Return what one reply comes to, as for a single question."""
    if isinstance(outcome, Failure):
        return failed(outcome)
    calls = bool(outcome.tool_calls)
    output = interpret(outcome, thinks=question.mode.thinks or calls, prompt=question.prompt)
    if calls:
        # Who calls a tool need not say anything.
        output["error"] = None
        output["flags"] = [flag for flag in output["flags"] if flag != "ambiguous_empty"]
    return output


def _calls(outcome: Reply | Failure, turn: int) -> list[Message]:
    """Return the calls of a reply; where a server gave a call no id, it gets one."""
    calls = outcome.tool_calls if isinstance(outcome, Reply) else ()
    return [{**call, "id": call["id"] or f"call_{turn}_{n}"} for n, call in enumerate(calls, 1)]


def _said(turn: Output, calls: list[Message]) -> Message:
    message: Message = {"role": "assistant", "content": turn["content"]}
    if turn["reasoning"]:
        message["reasoning_content"] = turn["reasoning"]
    return message | {"tool_calls": calls} if calls else message


def _together(turns: Sequence[Output], *, answered: bool) -> Output:
    """Return the output of a whole run: the last turn's, with the sums and flags of all."""
    last = turns[-1]
    waited = [turn["latency_s"] for turn in turns if turn["latency_s"] is not None]
    return last | {
        "content": last["content"] if answered else "",
        "usage": _sum([turn["usage"] for turn in turns if turn["usage"]]),
        "latency_s": round(sum(waited), 4) if waited else None,
        "flags": list(dict.fromkeys(flag for turn in turns for flag in turn["flags"])),
        "turns": len(turns),
    }


def _sum(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Add up usage objects, figure by figure, those inside others too."""
    total: dict[str, Any] = {}
    for usage in usages:
        for key, value in usage.items():
            if isinstance(value, Mapping):
                total[key] = _sum([total.get(key) or {}, value])
            elif isinstance(value, int | float) and not isinstance(value, bool):
                total[key] = (total.get(key) or 0) + value
    return total or None
