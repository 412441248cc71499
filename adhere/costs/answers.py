"""The answers of the selected cells: which are there, and what the missing ones will take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adhere.config import Project
from adhere.costs.expected import Span, exactly, mean_of, message_tokens, tokens_in
from adhere.costs.forecast import Forecast
from adhere.costs.tokens import Tokens, tokens_of
from adhere.data import Row
from adhere.journal import read
from adhere.kept import wrong_answer_line
from adhere.plan import Cell
from adhere.prediction import Mode, Task, answered, read_predictions, recorded, task_of
from adhere.prediction.answer import Output, is_failed, is_pending
from adhere.status import prediction_differs
from adhere.tools import MAX_TURNS

# Tokens of a reply, thinking included, and of its visible part, where nothing is known of a model.
_REPLY = {False: Span(50, 3000), True: Span(200, 16_000)}
_VISIBLE = Span(50, 3000)
# How far the ratio of tokens to characters differs between items of one dataset.
_RATIO = Span(0.95, 1.05)


@dataclass(frozen=True, slots=True)
class Answers:
    """One cell: its items, and the outputs that are there by the items' positions."""

    task: Task
    known: Mapping[int, Output]

    @property
    def missing(self) -> list[int]:
        """Positions of the items that are still to be answered."""
        return [i for i in range(len(self.task.fingerprints)) if i not in self.known]


def answers_of(project: Project, cell: Cell) -> Answers:
    """Read what is answered of a cell, from its journal or, without one, its finished file."""
    task = task_of(project, cell)
    known = answered(task)
    root = project.root / project.config.results_root
    finished = recorded(root, cell) and not prediction_differs(project, cell, task.dataset)
    if finished and not read(task.places.journal, wrong_answer_line):
        rows = read_predictions(task.places.prediction)
        known = {i: row["output"] for i, row in enumerate(rows) if not is_pending(row["output"])}
    return Answers(task, known)


def forecast_answers(project: Project, cells: Sequence[Answers]) -> Forecast | None:
    """Return what the missing answers of one (model, mode) will take; None where none is."""
    mode = cells[0].task.mode
    calls = sum((_calls(a.task.dataset.rows[i]) for a in cells for i in a.missing), Span())
    if not calls.low:
        return None
    earlier = [tokens_of(o["usage"]) for o in _outputs(cells) if o.get("usage")]
    output, of_replies = _per_reply(mode, earlier, calls.high)
    prompt, of_prompts = _prompts(cells)
    config = project.models[mode.model]
    return Forecast(
        stage="predict",
        asked=f"{mode.model} {mode.mode}",
        calls=calls,
        prompt=prompt,
        output=calls.times(output),
        basis=f"prompts: {of_prompts}; output: {of_replies}",
        prices=None if config.is_local else config.prices,
        local=config.is_local,
        batch=config.api is not None and config.api.batch,
    )


def _calls(row: Row) -> Span:
    """Return how often a model is called for an item: with tools, until it answers."""
    return Span(1, row.get("max_turns") or MAX_TURNS) if row.get("tools") else exactly(1)


def _outputs(cells: Sequence[Answers]) -> list[Output]:
    return [output for answers in cells for output in answers.known.values()]


def _per_reply(mode: Mode, earlier: Sequence[Tokens], further: float) -> tuple[Span, str]:
    """Return the output tokens of one of so many replies, and what they rest on."""
    mean = mean_of([tokens.completion for tokens in earlier], further)
    if mean is not None:
        return mean.capped(mode.budget), f"{len(earlier):,} earlier replies"
    assumed = _REPLY[mode.thinks].capped(mode.budget)
    return assumed, f"assumed, {assumed.low:,.0f} to {assumed.high:,.0f} a reply"


def _prompts(cells: Sequence[Answers]) -> tuple[Span, str]:
    """Return the tokens of all missing prompts, by the ratio that the answered ones had."""
    expected, counted, measured, replies = Span(), Span(), 0, 0
    for answers in cells:
        for index, row in enumerate(answers.task.dataset.rows):
            span = message_tokens(message["content"] for message in row["input"])
            if index not in answers.known:
                expected += span.times(_calls(row))
            elif (usage := answers.known[index].get("usage")) and tokens_of(usage).prompt:
                counted += span
                measured += tokens_of(usage).prompt
                replies += 1
    if not measured:
        return expected, "characters"
    return exactly(expected.low * measured / counted.low).times(_RATIO), f"{replies:,} earlier"


def visible_tokens(cells: Sequence[Answers]) -> Span:
    """Return the tokens of one answer as a judge sees it."""
    spans = [tokens_in(o["content"]) for o in _outputs(cells) if not is_failed(o)]
    missing = sum(len(answers.missing) for answers in cells)
    low = mean_of([span.low for span in spans], missing)
    high = mean_of([span.high for span in spans], missing)
    if low is None or high is None:
        return _VISIBLE.capped(cells[0].task.mode.budget)
    return Span(low.low, high.high)
