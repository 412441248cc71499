"""Separate a model's thinking from its final answer.

The rules, in the order in which they are tried:

1. gpt-oss channels that leaked: the answer is the last message of channel ``final``; analysis
   without such a message is unclosed thinking.
2. A block that opens the text (after nothing but blanks, zero-width characters or a BOM) is
   thinking up to its first closer, and so is every block that follows it directly. The closer is
   the one spelled like the opener, otherwise another word in angle brackets. A block without any
   closer is unclosed: there is no answer.
3. A stray closer ends thinking that began with the text, since chat templates open the block in
   the prompt; the last one counts. A closer is stray when no opener before it answers to it. One
   alone on its line before an empty line, as templates write it, answers only to an opener at the
   start of a line: an opener named within a sentence does not hide it.
4. Everything else is answer. An opener after real text never starts thinking, so an answer that
   explains the tags or shows a whole block stays whole. Nor does a tag count that is only talked
   about: quoted, named ("the </think> tag"), inside a code span, or, for a closer, in a closed
   code fence unless it is written as templates write it.

Some prompts ask for ``<thought>`` or ``<thinking>`` blocks as part of the answer: in AgentIF 100
of 707 items and 210 constraints are about them. Words of ordinary language are therefore *written*
spellings: no thinking where the prompt names the tag and, where the prompt is not known, none
where another tag follows the block, as it does in such formats.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass

from adhere.code_regions import Regions, code_fences, code_spans

_BLANKS = re.compile(r"[\s\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*")
# How tags begin. Looked for first: most texts have none, and the search for whole tags is slow.
_TAG_BEGINS = ("<", "[", "◁")
_TAG = re.compile(
    rf"(?=[{re.escape(''.join(_TAG_BEGINS))}])(?:"
    r"<[ \t]?(?P<slash>/?)[ \t]?"
    r"(?P<word>(?:[a-z]{1,16}[:_])?think(?:ing)?|thoughts?|reasoning|reflection)"
    r"(?:\s{1,3}[a-z_-]{1,20}=[^<>]{0,99}?)?\s{0,3}(?P<empty>/?)>"
    r"|\[(?P<bracket>/?)think\]"
    r"|◁(?P<triangle>/?)think▷"
    r"|<\|(?:begin|(?P<thought>end))_of_thought\|>"
    r"|<\|(?:start|(?P<cohere>end))_thinking\|>"
    r"|<\|channel>thought|(?P<gemma><channel\|>)"
    r"|<unused94>thought|(?P<medgemma><unused95>))",
    re.IGNORECASE,
)
# What tells an opener from its closer; a tag without it is the name of its spelling.
_SPELLING = re.compile(r"begin|start|end|thought$|[</[\]|>]|9[45]")
_WRITTEN = frozenset({"thinking", "thought", "thoughts", "reasoning", "reflection"})
# Blocks only: no chat template is known to open these in the prompt.
_NEVER_STRAY = frozenset({"reasoning", "reflection"})
_TAG_FOLLOWS = re.compile(r"\s*</?[a-z]", re.IGNORECASE)
_NAMED = re.compile(
    r"[ \t]{1,2}(?:tag|token|marker|element|delimiter)s?\b|[ \t]?(?:标签|标记|标识)"
)
_QUOTES = frozenset({"''", '""', "``", "“”", "‘’", "「」", "『』", "«»", "《》"})
_TEMPLATE_END = re.compile(r"[ \t\r]*(?:\Z|\n[ \t\r]*(?:\Z|\n))")

_FINAL = re.compile(
    r"(?P<turn><\|start\|>assistant[ \t]{0,3}|<\|end\|>|\n)?"
    r"<\|channel\|>[ \t]{0,3}final[^<\n]{0,60}(?:<\|constrain\|>[^<\n]{0,60})?<\|message\|>"
)
_MESSAGE_END = re.compile(r"<\|(?:end|return|start|call)\|>")
_CHANNEL_OPENS = re.compile(r"(?:<\|start\|>[^<\n]{0,40})?<\|channel\|>")
_CHANNEL_MARK = re.compile(r"<\|(?:(?:start|channel|constrain)\|>[^<\n]{0,60}|(?:message|end)\|>)")
# What is left of the channels when a server drops special tokens.
_BARE_ANALYSIS, _BARE_FINAL = "analysis", "assistantfinal"
# Special tokens some of these models put around the answer itself.
_ANSWER_OPENS = re.compile(r"<\|(?:begin_of_solution|START_RESPONSE|START_TEXT)\|>")
_ANSWER_ENDS = re.compile(r"<\|(?:end_of_solution|END_RESPONSE|END_TEXT)\|>")


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """A reply, split.

    text: the answer; the reply itself, unchanged, where it holds no thinking; "" while unclosed.
    reasoning: the thinking without its tags, blocks separated by an empty line.
    closed: False where the reply ends within its thinking.
    """

    text: str
    reasoning: str
    closed: bool


@dataclass(frozen=True, slots=True)
class _Tag:
    start: int
    end: int
    name: str
    closes: bool
    empty: bool


def final_answer(text: str, prompt: str | None = None) -> FinalAnswer:
    """Split the thinking from a model's reply by the rules of this module.

    ``prompt`` is the text of the messages the model answered: tags it names belong to the answer.
    "" says that it names none, None that it is not known. Never raises; linear in both lengths.
    """
    channels = _split_channels(text)
    if channels is not None:
        return channels
    tags = _tags(text)
    if not tags:
        return FinalAnswer(text, "", True)
    if prompt is not None:
        asked = {tag.name for tag in _tags(prompt)} & _WRITTEN
        return _Reply(text, [tag for tag in tags if tag.name not in asked]).split()
    answer = _Reply(text, tags).split()
    if _TAG_FOLLOWS.match(answer.text):
        return _Reply(text, [tag for tag in tags if tag.name not in _WRITTEN]).split()
    return answer


def _tags(text: str) -> list[_Tag]:
    """Return everything in a text that is spelled like a tag of thinking, in order."""
    if not any(begin in text for begin in _TAG_BEGINS):
        return []
    return [_tag(match) for match in _TAG.finditer(text)]


def _tag(match: re.Match[str]) -> _Tag:
    word = match["word"]
    closers = ("slash", "bracket", "triangle", "thought", "cohere", "gemma", "medgemma")
    name = word.lower() if word else _SPELLING.sub("", match[0].lower())
    closes = any(match[group] for group in closers)
    return _Tag(match.start(), match.end(), name, closes, bool(match["empty"]))


class _Reply:
    """One reply with the tags that may count, in order."""

    def __init__(self, text: str, tags: list[_Tag]) -> None:
        self.text = text
        self.spans, self.fences = Regions(code_spans(text)), Regions(code_fences(text))
        self.tags = [tag for tag in tags if not _talked_about(text, tag)]
        self.starts = [tag.start for tag in self.tags]
        self.at = {tag.start: tag for tag in self.tags}
        self.closers: defaultdict[str, list[_Tag]] = defaultdict(list)
        for tag in self.tags:
            if tag.closes:
                self.closers[tag.name].append(tag)
                if text[tag.start] == "<" and text[tag.end - 2] != "|":
                    self.closers[""].append(tag)

    def split(self) -> FinalAnswer:
        cut, thoughts, closed = 0, list[str](), True
        while closed and (inner := self._thinking(cut)) is not None:
            start, closer = inner
            closed = closer is not None
            thoughts.append(self.text[start : closer.start if closer else None].strip())
            cut = closer.end if closer else len(self.text)
        return FinalAnswer(_rest(self.text, cut), "\n\n".join(filter(None, thoughts)), closed)

    def _thinking(self, cut: int) -> tuple[int, _Tag | None] | None:
        """Return where thinking begins after ``cut`` and its closer (None: unclosed), if any."""
        opener = self.at.get(_skip_blanks(self.text, cut))
        if opener is None or opener.closes:
            stray = self._stray_closer(cut)
            return None if stray is None else (cut, stray)
        if opener.empty:
            return opener.end, opener
        word = self.text[opener.start] == "<" and self.text[opener.end - 2] != "|"
        for name in (opener.name, "") if word else (opener.name,):
            closers = self.closers[name]
            index = bisect_left(closers, opener.end, key=lambda tag: tag.start)
            if index < len(closers):
                return opener.end, closers[index]
        return opener.end, None

    def _stray_closer(self, cut: int) -> _Tag | None:
        """Return the first closer from ``cut`` on that no opener after ``cut`` answers to."""
        open_tags: Counter[tuple[str, int | None, bool]] = Counter()
        for index in range(bisect_left(self.starts, cut), len(self.tags)):
            tag = self.tags[index]
            if self.spans.containing(tag.start) is not None or tag.empty:
                continue
            fence = self.fences.containing(tag.start)
            if not tag.closes:
                open_tags[tag.name, fence, _begins_line(self.text, tag)] += 1
                continue
            template = _written_as_by_templates(self.text, tag)
            kinds = (True,) if template else (False, True)
            answered = next((k for k in kinds if open_tags[tag.name, fence, k]), None)
            if answered is not None:
                open_tags[tag.name, fence, answered] -= 1
            elif (fence is None or template) and tag.name not in _NEVER_STRAY:
                return tag
        return None


def _talked_about(text: str, tag: _Tag) -> bool:
    around = text[max(tag.start - 1, 0) : tag.start] + text[tag.end : tag.end + 1]
    return around in _QUOTES or _NAMED.match(text, tag.end) is not None


def _begins_line(text: str, tag: _Tag) -> bool:
    # A bounded look back keeps a long line with many tags linear.
    before = text[max(tag.start - 8, 0) : tag.start].rstrip(" \t")
    return before.endswith("\n") or (not before and tag.start <= 8)


def _written_as_by_templates(text: str, tag: _Tag) -> bool:
    return _begins_line(text, tag) and _TEMPLATE_END.match(text, tag.end) is not None


def _skip_blanks(text: str, start: int) -> int:
    match = _BLANKS.match(text, start)
    return match.end() if match else start


def _rest(text: str, cut: int) -> str:
    """Return the answer after ``cut``: no empty lines before it, its own indentation kept."""
    if cut == 0:
        return text
    start = _skip_blanks(text, cut)
    wrapper = _ANSWER_OPENS.match(text, start)
    end = None
    if wrapper:
        cut, start = wrapper.end(), _skip_blanks(text, wrapper.end())
        closing = _ANSWER_ENDS.search(text, start)
        end = closing.start() if closing else None
    if start == len(text):
        return ""
    newline = text.rfind("\n", cut, start)
    return text[start if newline < 0 else newline + 1 : end]


def _split_channels(text: str) -> FinalAnswer | None:
    """Split a reply that shows gpt-oss channels; None for any other reply."""
    start = _skip_blanks(text, 0)
    if "<|channel|>" not in text:
        found = text.find(_BARE_FINAL) if text.startswith(_BARE_ANALYSIS, start) else -1
        if found < 0:
            return None
        reasoning = text[start + len(_BARE_ANALYSIS) : found].strip()
        return FinalAnswer(_rest(text, found + len(_BARE_FINAL)), reasoning, True)
    leading = _CHANNEL_OPENS.match(text, start) is not None
    code = (Regions(code_spans(text)), Regions(code_fences(text)))
    final = None
    for match in _FINAL.finditer(text):
        shown = any(regions.containing(match.start()) is not None for regions in code)
        if not shown and (leading or match["turn"]):
            final = match
    if final is None and not leading:
        return None
    thinking = text[start : final.start() if final else None]
    reasoning = _CHANNEL_MARK.sub("\n", thinking).strip()
    if final is None:
        return FinalAnswer("", reasoning, False)
    end = _MESSAGE_END.search(text, final.end())
    return FinalAnswer(_rest(text[: end.start() if end else None], final.end()), reasoning, True)
