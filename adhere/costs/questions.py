"""The questions to a judge that are still to be asked, and what they will take.

Where an answer is there, its chains are run over the journal with a client that sends nothing:
what it would have sent is what is missing. Where it is not, the dataset's prompts are counted.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adhere import files
from adhere.checkers import CheckResult
from adhere.client import ChatClient, Endpoint, Failure, Reply
from adhere.config import Project
from adhere.costs.answers import Answers, visible_tokens
from adhere.costs.expected import Span, exactly, mean_of, message_tokens, tokens_in
from adhere.costs.forecast import Forecast
from adhere.costs.tokens import Tokens, tokens_of
from adhere.data import Row, Step, constraints
from adhere.journal import Entry, Journal, read
from adhere.judging import Judge
from adhere.judging.asking import Asker
from adhere.judging.chain import Answered, Question, Tools, run_chain
from adhere.judging.stage import Work, prepared, tools_for
from adhere.kept import wrong_reply_line
from adhere.plan import Evaluation
from adhere.status import judging_differs, retryable_verdicts

# Output tokens of one reply of a judge, reasoning included, where none is known.
_REPLY = Span(1, 800)
# Calls a question: some replies cannot be read and are asked for again.
_ASKED_AGAIN = Span(1, 1.1)
# So many earlier replies say more of a judge's prompts than their characters do.
_ENOUGH = 10
_MISSING = {"content": "", "error": {"kind": "missing", "message": "", "retryable": True}}


@dataclass(slots=True)
class Questions:
    """Questions to be asked: how many, and the tokens of their prompts by their characters.

    ``earlier`` are the replies that were received already, for other questions.
    """

    calls: Span = field(default_factory=Span)
    prompt: Span = field(default_factory=Span)
    earlier: list[Tokens] = field(default_factory=list)

    def add(self, calls: Span, prompt: Span) -> None:
        """Add questions with a prompt each of so many tokens."""
        self.calls += calls
        self.prompt += calls.times(prompt)


class _Kept(Journal):
    """A journal that is only looked into."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.entries = read(path, wrong_reply_line)

    def get(self, fp: str) -> Entry | None:
        return self.entries.get(fp)


class _Unsent(ChatClient):
    """A client that sends nothing and notes what it was given."""

    def __init__(self, questions: Questions) -> None:
        super().__init__(Endpoint("http://nowhere/v1", owner=""))
        self._questions = questions

    async def complete(self, payload: Mapping[str, Any], _key: str = "", /) -> Reply | Failure:
        prompt = message_tokens(message["content"] for message in payload["messages"])
        self._questions.add(exactly(1), prompt)
        return Failure("unsent", "", retryable=True)


def questions_about(project: Project, judge: Judge, cells: Sequence[Answers]) -> Questions:
    """Return what a judge is still to be asked about cells of one model in one mode."""
    questions = Questions()
    visible = visible_tokens(cells)
    root = project.root / project.config.results_root
    for answers in cells:
        task = answers.task
        evaluation = Evaluation(task.cell, judge.name)
        journal = _Kept(files.judge_journal(root, evaluation))
        replies = (entry["reply"].get("usage") for entry in journal.entries.values())
        questions.earlier += [tokens_of(usage) for usage in replies if usage]
        if not answers.missing and _finished(project, root, evaluation, answers):
            continue
        rows = [
            {**row, "output": answers.known.get(index, _MISSING)}
            for index, row in enumerate(task.dataset.rows)
        ]
        asyncio.run(_replay(rows, judge, journal, questions))
        for index in answers.missing:
            for chain in constraints(task.dataset.rows[index]):
                _count(chain.steps, exactly(1), visible, judge, questions)
    return questions


def _finished(project: Project, root: Path, evaluation: Evaluation, answers: Answers) -> bool:
    return (
        files.results(root, evaluation).exists()
        and not judging_differs(project, evaluation, answers.task.dataset)
        and not retryable_verdicts(root, evaluation)
    )


async def _replay(rows: list[Row], judge: Judge, journal: Journal, questions: Questions) -> None:
    """Run all chains as far as the journal goes, and count what they would ask for then."""
    asker = Asker(judge, _Unsent(questions), journal)
    for work in prepared(rows)[1]:
        await run_chain(work.constraint.steps, work.answer, _tools(work, asker, questions))


def _tools(work: Work, asker: Asker, questions: Questions) -> Tools:
    """Return a chain's usual tools, but for asking, which counts, and checking, which is left."""

    async def ask(question: Question, position: int, verdict_wanted: bool) -> Answered:
        before = questions.calls
        answered = await usual.ask(question, position, verdict_wanted)
        if questions.calls != before:
            steps = work.constraint.steps
            reached = Span(float(steps[position].type == "llm"), 1)
            _count(steps[position + 1 :], reached, tokens_in(work.answer), asker.judge, questions)
        return answered

    async def check(_source: str, _text: str) -> CheckResult:
        # A checker that passes lets the rest of its chain be counted.
        return CheckResult(True, None, None, False)

    usual = tools_for(work, asker, check)
    return replace(usual, ask=ask)


def _count(
    steps: Sequence[Step], reached: Span, answer: Span, judge: Judge, questions: Questions
) -> None:
    """Count the questions of a chain whose working text is not known.

    ``reached`` is whether its first step is: after a condition a chain may end.
    """
    for position, step in enumerate(steps):
        if not step.asks_judge:
            continue
        conditional = step.type == "llm_conditional_check"
        votes = judge.config.votes if conditional or position == len(steps) - 1 else 1
        prompt = message_tokens([step.text]) + answer
        questions.add(reached.times(exactly(votes)), prompt)
        if conditional:
            reached = Span(0, reached.high)
        else:
            answer = Span(min(_REPLY.low, answer.low), max(_REPLY.high, answer.high))


def forecast_questions(judge: Judge, found: Sequence[Questions]) -> Forecast | None:
    """Return what all missing questions to a judge will take; None where none is."""
    asked = [questions for questions in found if questions.calls.high]
    if not asked:
        return None
    again = _ASKED_AGAIN if judge.config.asks > 1 else exactly(1)
    calls = sum((questions.calls for questions in asked), Span()).times(again)
    earlier = [tokens.completion for questions in found for tokens in questions.earlier]
    most = judge.config.max_completion_tokens or judge.config.max_tokens
    reply = mean_of(earlier, calls.high) or _REPLY.capped(most)
    of_replies = f"assumed, {reply.low:,.0f} to {reply.high:,.0f} a reply"
    local = judge.config.local is not None
    return Forecast(
        stage="judge",
        asked=judge.name,
        calls=calls,
        prompt=sum((_prompt(questions) for questions in asked), Span()).times(again),
        output=calls.times(reply),
        basis="prompts: "
        + ("earlier replies" if all(map(_measured, asked)) else "characters")
        + f"; output: {f'{len(earlier):,} earlier replies' if earlier else of_replies}",
        prices=None if local else judge.config.prices,
        local=local,
        batch=judge.config.batch,
    )


def _measured(questions: Questions) -> bool:
    return len(questions.earlier) >= _ENOUGH


def _prompt(questions: Questions) -> Span:
    """Return the tokens of all prompts, by earlier ones about the same model and dataset."""
    mean = mean_of([tokens.prompt for tokens in questions.earlier], questions.calls.high)
    if mean is None or not _measured(questions):
        return questions.prompt
    return questions.calls.times(mean)
