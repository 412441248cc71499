"""Asking a judge: journaled calls, votes, and asking again when a reply cannot be read."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adhere.client import ChatClient, Failure, Reply
from adhere.costs.budget import BUDGET
from adhere.journal import Journal
from adhere.jsonio import fingerprint
from adhere.judging.chain import NOT_ASKED, Answered, Question
from adhere.judging.judge import Judge
from adhere.thinking import final_answer
from adhere.verdict import parse, read_by

_TAG = re.compile(r"\s*</?[a-z]", re.IGNORECASE)
# How many times the output budget a reply gets after one that was cut off.
_MORE_ROOM = 4
# Why there is no verdict, by the kind of error that came instead of a reply.
_ERRORS = {
    "content_filter": "judge_filtered",
    "context_overflow": "judge_context",
    "thinking_cut_off": "judge_truncated",
    "empty_choices": "judge_no_choice",
    "null_message": "judge_no_message",
    BUDGET: BUDGET,
}
# … and by how a reply ended.
_ENDS = {"length": "judge_truncated", "content_filter": "judge_filtered"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a question stands: the item (with its number among equal ones) and the step's number
    among equal prompts of the item, so that an inserted constraint disturbs no other one."""

    item: int
    constraint: int
    item_key: tuple[str, int]
    step_keys: tuple[int, ...]


class Asker:
    """Asks one judge about one results file; every reply is journaled under what was asked."""

    def __init__(self, judge: Judge, client: ChatClient | None, journal: Journal | None) -> None:
        self.judge = judge
        self.client = client
        self._journal = journal
        self._asked_hash = fingerprint(judge.asked)
        self.reused = 0

    async def ask(
        self, place: Place, question: Question, position: int, verdict_wanted: bool
    ) -> Answered:
        """Ask one question, with votes where a verdict is wanted and the judge has them."""
        if self.judge.asks_nobody:
            return Answered(None, None, NOT_ASKED, {"reason": NOT_ASKED})
        votes = self.judge.config.votes if verdict_wanted else 1
        calls = [
            self._ask_once(place, question, position, verdict_wanted, vote) for vote in range(votes)
        ]
        # Together, so that votes take no longer than one call, and one batch where there are some.
        asked = await asyncio.gather(*calls)
        if votes == 1:
            return asked[0]
        return _majority(question.prompt, asked)

    async def _ask_once(
        self, place: Place, question: Question, position: int, verdict_wanted: bool, vote: int
    ) -> Answered:
        """Ask until the reply can be read, at most as often as the judge's ``asks`` says."""
        prompt = question.prompt
        replies: list[dict[str, Any]] = []
        text: str | None = None
        verdict: bool | None = None
        reason: str | None = "judge_failed"
        for attempt in range(self.judge.config.asks):
            # A reply that was cut off before its verdict would be cut off again.
            room = _MORE_ROOM if reason == "judge_truncated" else 1
            payload = self.judge.payload(prompt, room=room, verdict_wanted=verdict_wanted)
            reply = await self._reply(place, position, payload, (vote, attempt, room))
            replies.append(reply)
            text, verdict, reason = self._read(reply, question, verdict_wanted)
            if reason is None or "error" in reply or not self._worth_asking_again(reason):
                break
        record: dict[str, Any] = {"prompt": prompt, "replies": replies}
        if verdict is not None:
            record["result"] = verdict
            cut = str(replies[-1].get("finish_reason")) in _ENDS
            if rule := read_by(text or "", self.judge.config.parser, cut=cut):
                record["read_by"] = rule
        if reason is not None:
            record["reason"] = reason
            if replies[-1].get("error", {}).get("retryable"):
                record["retryable"] = True
        return Answered(text, verdict, reason, record)

    async def _reply(
        self, place: Place, position: int, payload: dict[str, Any], call: tuple[int, int, int]
    ) -> dict[str, Any]:
        """Return one reply, from the journal where it was answered before."""
        prompt = payload["messages"][0]["content"]
        where = [place.item_key, place.step_keys[position]]
        fp = fingerprint([self._asked_hash, *where, prompt, call])
        known = self._journal.get(fp) if self._journal is not None else None
        if known is not None:
            self.reused += 1
            return dict(known["reply"])
        assert self.client is not None, "a judge is asked without a client"
        kept = _kept(await self.client.complete(payload, fp))
        final = not kept.get("error", {}).get("retryable", False)
        if self._journal is not None and final:
            at = {"item": place.item, "constraint": place.constraint, "step": position}
            self._journal.append(fp, {**at, "reply": kept})
        return kept

    def _worth_asking_again(self, reason: str) -> bool:
        """Whether the same question may get another reply: not from a filter, and not one that was
        cut off where there is no output budget to raise."""
        return reason != "judge_filtered" and (reason != "judge_truncated" or self.judge.has_budget)

    def _read(
        self, reply: Mapping[str, Any], question: Question, verdict_wanted: bool
    ) -> tuple[str | None, bool | None, str | None]:
        """Return (text, verdict, reason) of one kept reply."""
        if "error" in reply:
            return None, None, _ERRORS.get(reply["error"]["kind"], "judge_failed")
        text = _without_thinking(reply["content"] or "", question)
        cut = _ENDS.get(str(reply.get("finish_reason")))
        if not text.strip():
            return text, None, cut or "judge_empty"
        if not verdict_wanted:
            # A text that was cut off would make the next step judge what is not there.
            return text, None, cut
        verdict = parse(text, self.judge.config.parser, cut=cut is not None)
        if verdict is not None:
            return text, verdict, None
        return text, None, cut or "judge_unreadable"


def _without_thinking(reply: str, question: Question) -> str:
    """Return a reply without its thinking.

    Tags that the answer under test shows do not keep thinking in, unless nothing or another tag
    follows the block: then the judge repeats a part of the answer.
    """
    text = final_answer(reply, question.template).text
    if text == reply or (text.strip() and not _TAG.match(text)):
        return text
    return final_answer(reply, question.prompt).text


def _kept(outcome: Reply | Failure) -> dict[str, Any]:
    """Return what is kept of one call."""
    if isinstance(outcome, Failure):
        return {
            "error": {
                "kind": outcome.kind,
                "message": outcome.message,
                "retryable": outcome.retryable,
            }
        }
    return {
        "content": outcome.content,
        "reasoning": outcome.reasoning,
        "finish_reason": outcome.finish_reason,
        "usage": outcome.usage,
        "latency_s": outcome.latency_s,
        "served_model": outcome.served_model,
    }


def _majority(prompt: str, asked: list[Answered]) -> Answered:
    """Count the votes: the verdict that more than half of all calls gave."""
    yes = sum(a.verdict is True for a in asked)
    no = sum(a.verdict is False for a in asked)
    votes = [a.verdict for a in asked]
    record: dict[str, Any] = {"prompt": prompt, "votes": votes}
    record["replies"] = [reply for a in asked for reply in a.record["replies"]]
    if any("read_by" in a.record for a in asked):
        record["read_by"] = [a.record.get("read_by") for a in asked]
    if any(a.record.get("retryable") for a in asked):
        record["retryable"] = True
    for verdict, count in ((True, yes), (False, no)):
        if 2 * count > len(asked):
            text = next(a.text for a in asked if a.verdict is verdict)
            record.pop("retryable", None)
            return Answered(text, verdict, None, record | {"result": verdict})
    failed = next((a.reason for a in asked if a.record.get("retryable")), None)
    # Where every call failed alike, that is why there is no verdict.
    alike = asked[0].reason if len({a.reason for a in asked}) == 1 else None
    reason = failed or alike or "judge_no_majority"
    return Answered(asked[-1].text, None, reason, record | {"reason": reason})
