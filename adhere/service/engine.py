"""From a row to its verdicts: the chains, prompts, parser and sandbox that judge files."""

import asyncio
from dataclasses import replace
from typing import Any

from adhere.checkers import CheckerPool
from adhere.client import ChatClient
from adhere.data import Row
from adhere.errors import CheckerError, DataError, EndpointError
from adhere.judging import Judge
from adhere.judging.asking import Asker
from adhere.judging.chain import Answered, Question, Tools, run_chain
from adhere.judging.stage import JudgeRun, Work, prepared, record, tools_for
from adhere.rule_steps import Applied
from adhere.service.gate import Gate
from adhere.service.refusal import Refusal
from adhere.workers import drain

# A rule looks at so long a text in a thread, so that other requests go on meanwhile.
_LONG = 20_000
# So many constraints of one item are under way at once.
_WIDTH = 64
JUDGE_FAILED = "judge_failed"


class Engine:
    """Judges rows by one judge, with one client and one pool of checkers for all requests."""

    def __init__(
        self, judge: Judge, client: ChatClient | None, pool: CheckerPool, gate: Gate
    ) -> None:
        self.judge = judge
        self.client = client
        self.pool = pool
        self.gate = gate
        self._asker = Asker(judge, client, None)

    async def verdicts(self, row: Row) -> Row:
        """Return the row with every constraint judged, as ``judge_rows`` does.

        ``row`` holds ``input``, ``constraints`` and ``output``. Raises Refusal: 504 once the
        deadline has passed, which cancels what was under way; 503 where no checker can be run.
        """
        deadline = self.gate.limits.deadline_s
        try:
            async with asyncio.timeout(deadline):
                async with self.gate.slot():
                    return await self._judged(row)
        except TimeoutError:
            raise Refusal(
                504, "deadline", f"not judged within {deadline:g} s: the work was cancelled"
            ) from None
        except CheckerError as error:
            raise Refusal(503, "checkers_unavailable", str(error)) from None
        except DataError as error:
            raise Refusal(422, "invalid", str(error)) from None

    async def _judged(self, row: Row) -> Row:
        if row["output"].get("trajectory") is None:
            run, work = prepared([row])
        else:
            # Trajectories are read there, which may take a while.
            run, work = await asyncio.to_thread(prepared, [row])
        if work:
            await drain(
                [(iter(work), min(len(work), _WIDTH))], lambda piece: self._constraint(piece, run)
            )
        return run.rows[0]

    async def _constraint(self, work: Work, run: JudgeRun) -> None:
        tools = _patient(tools_for(work, self._asker, self.pool.check))
        first = work.constraint.steps[0]
        long = work.evidence.output.get("trajectory") is not None or len(work.answer) > _LONG
        if first.type == "rule" and long:
            applied = await asyncio.to_thread(work.evidence.apply, first.text, work.answer)
            tools = _applied_before(applied, tools)
        record(run, work, await run_chain(work.constraint.steps, work.answer, tools))


def _applied_before(applied: Applied, tools: Tools) -> Tools:
    """Return tools whose first rule has been applied, in the thread that could wait for it."""
    before = [applied]

    def apply(rule: str, text: str) -> Applied:
        return before.pop() if before else tools.apply(rule, text)

    return replace(tools, apply=apply)


def _patient(tools: Tools) -> Tools:
    """Return tools whose judge may be gone: a file's job ends then, a service goes on."""

    async def ask(question: Question, position: int, verdict_wanted: bool) -> Answered:
        try:
            return await tools.ask(question, position, verdict_wanted)
        except EndpointError as error:
            failure = {"kind": "endpoint", "message": str(error), "retryable": True}
            kept: dict[str, Any] = {"prompt": question.prompt, "replies": [{"error": failure}]}
            kept |= {"reason": JUDGE_FAILED, "retryable": True}
            return Answered(None, None, JUDGE_FAILED, kept)

    return replace(tools, ask=ask)
