"""Judging rows against a mock judge: made-up rows, a judge that replies as told, verdicts."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mock_endpoint import MockConfig, MockEndpoint, Reply, Rule

from adhere.checkers import CheckerPool
from adhere.client import ChatClient, Endpoint
from adhere.config import JudgeConfig, Retry
from adhere.data import Row
from adhere.journal import Journal
from adhere.judging import Judge, JudgeRun, judge_rows
from adhere.judging.asking import Asker
from adhere.kept import wrong_reply_line
from adhere.progress import Progress

TRUE = "def check_following(response):\n    return True\n"
FALSE = "def check_following(response):\n    return False\n"
NONE = "def check_following(response):\n    return None\n"
RAISES = "def check_following(response):\n    raise ValueError(response)\n"
Chain = Sequence[tuple[str, str]]


def item(text: str, *chains: Chain, answer: str = "An answer.", error: Row | None = None) -> Row:
    """Return a row as `judge_rows` takes it."""
    return {
        "input": [{"role": "user", "content": text}],
        "constraints": [
            {"evaluation": [{"type": kind, "exec": source} for kind, source in chain]}
            for chain in chains
        ],
        "output": {"content": answer, "model_name": "m", "error": error},
    }


def llm(prompt: str) -> Chain:
    return [("llm", f"{prompt} {{response}}")]


@dataclass
class Judging:
    """A mock judge and everything that judging needs besides it."""

    mock: MockEndpoint
    pool: CheckerPool
    path: Path
    concurrency: int = 8

    async def judge(self, rows: Sequence[Row], **fields: object) -> tuple[JudgeRun, Asker]:
        """Judge rows by a judge with these config fields, journaled at ``path``."""
        config = JudgeConfig.model_validate({"model": "m", "api_key_env": None, **fields})
        endpoint = Endpoint(
            self.mock.judge_url,
            "judge_configs/j.yaml",
            concurrency=self.concurrency,
            retry=Retry(attempts=2, first_wait_s=0.001, max_wait_s=0.002),
        )
        with (
            Journal(self.path, wrong_reply_line) as journal,
            Progress("judge", "constraints") as progress,
        ):
            async with ChatClient(endpoint) as client:
                asker = Asker(Judge("j", config), client, journal)
                return await judge_rows(rows, asker, self.pool, progress), asker

    async def requests(self, rows: Sequence[Row], **fields: object) -> int:
        """Judge rows and return how many requests that took."""
        self.mock.reset()
        await self.judge(rows, **fields)
        return self.mock.stats().requests

    @property
    def prompts(self) -> list[str]:
        """The prompts that were sent, in order."""
        return [entry.body["messages"][0]["content"] for entry in self.mock.log()]


@asynccontextmanager
async def judging(
    folder: Path, *replies: Reply | Rule, checkers: int = 0
) -> AsyncIterator[Judging]:
    """A judge that gives these replies one after the other, the last of them for ever.

    ``checkers`` is the number of servers for checkers; without any, none can be run.
    """
    rules = [
        reply
        if isinstance(reply, Rule)
        else Rule(reply=reply, times=1 if n < len(replies) else None)
        for n, reply in enumerate(replies, start=1)
    ]
    pool = CheckerPool(workers=max(checkers, 1), timeout_s=60)
    async with AsyncExitStack() as stack:
        mock = await stack.enter_async_context(MockEndpoint(MockConfig(rules=rules)))
        if checkers:
            await stack.enter_async_context(pool)
        yield Judging(mock, pool, folder / "judge.partial.jsonl")


def verdicts(run: JudgeRun) -> list[list[tuple[bool | None, str | None]]]:
    """Return (score, null_reason) of each constraint of each row."""
    return [[(c["score"], c["null_reason"]) for c in row["constraints"]] for row in run.rows]


def assert_accounted(run: JudgeRun, rows: Sequence[Row]) -> None:
    """Every constraint is there, in order, with a verdict or a reason, and the counts agree."""
    assert [row["input"] for row in run.rows] == [row["input"] for row in rows]
    assert [row["output"] for row in run.rows] == [row["output"] for row in rows]
    tally: Counter[str] = Counter()
    for judged, row in zip(run.rows, rows, strict=True):
        for raw, given in zip(judged["constraints"], row["constraints"], strict=True):
            assert raw["evaluation"] == given["evaluation"]
            assert (raw["score"] is None) == bool(raw["null_reason"]), raw
            name = {True: "followed", False: "violated", None: raw["null_reason"]}
            tally[name[raw["score"]]] += 1
    assert run.counts == tally
    steps = [c["steps"] for row in run.rows for c in row["constraints"]]
    assert run.retryable == sum(any(s.get("retryable") for s in chain) for chain in steps)


YES, NO, MAYBE = Reply(content="YES"), Reply(content="NO"), Reply(content="It depends.")
EMPTY = Reply(content="")
