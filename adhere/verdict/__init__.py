"""Read YES or NO out of a judge's text.

The parser ``adhere`` removes thinking and markup, what is struck out and boxes that are not ticked,
and blocks of code or quotation beside other text, in which judges show the answer. Of a text it
takes the first of these that decides (rules.py):

1. the last sentence, where it is nothing but a verdict ("… is met. YES"); in the middle of a line
   only where nothing before says the opposite, or a word leads it ("So YES");
2. the later of the last line that is nothing but a verdict and the last label that begins a
   sentence ("Verdict: …", "The answer is …", ``"verdict": …``, "结论：…"), unless a later sentence
   takes it back; of labels that differ only one that speaks of the whole ("Final verdict: …");
3. the first token of the text, standing alone, unless a later label or the last sentence says the
   opposite;
4. the only kind of verdict word that occurs, where the last sentence has it.

Otherwise there is no verdict, and the judge is asked again: wherever two places differ and neither
is plainly the judge's last word. JSON that begins a line is read by the key that names a verdict,
at its top before anything below; what is said after it counts for more, and what is said plainly
before it may not contradict it (structured.py).

The words are yes/no, 是/否/不是. true/false count as they do, and words that mean something else
within a sentence (y/n, pass/fail, 对/错, 满足/不满足 and the like) as a whole line, label or
sentence, but never against them: "NO. The answer is correct, but too long" is NO. "Not applicable"
counts in 1 and 2, too, and means that there is no verdict. A word is none (words.py, quoting.py)

- beside a slash or inside a longer word or name (YES/NO, no-one, NOTE, 是否), as "No." before a
  number, or as the determiner or adjective of the next word ("no emojis", "true story");
- in a list of the options ("YES or NO", 是/否), which is taken out beforehand;
- in quotation marks, or as what the response says; in lines, or JSON, that the line before shows
  ("The response ends with:");
- in a clause with a negation, doubt or condition ("not a yes", "YES would be wrong", 并非“是”), or
  where the sentence goes on with the opposite ("No, it doesn't violate the constraint"), or the
  next or last sentence says it of the constraint;
- as the answer to another question ("Any emojis? No"), or to what asks for the opposite
  ("violation: yes");
- as a boolean under a JSON key that does not name a verdict ({"has_errors": true}) or in an
  assignment (debug=true).

Of a text whose end is missing only what opens it counts, where it is complete: its first token with
the end of the sentence, or a label or a JSON key with its word.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from adhere.errors import ConfigError
from adhere.verdict.others import nemo_0_7, upstream_2025
from adhere.verdict.reading import read
from adhere.verdict.words import SURE_WORDS

OWN_PARSER: Final = "adhere"
READING: Final = 3
"""Raised whenever ``adhere`` reads a text otherwise than before: verdicts are then read anew."""

# A longer text is no verdict; reading it would hold up everything else.
_MOST_CHARS: Final = 200_000
# Judges that keep to their protocol say the same few words thousands of times.
_REMEMBERED_CHARS: Final = 64


def parse(text: str, parser: str = OWN_PARSER, *, cut: bool = False) -> bool | None:
    """Return the verdict of a judge's text: True for YES, False for NO, None where there is none.

    ``parser`` is a key of PARSERS. ``cut`` says that the text's end is missing, which the parsers
    of others do not ask. Raises ConfigError for another name; never for any text.
    """
    try:
        function = PARSERS[parser]
    except KeyError:
        allowed = ", ".join(PARSERS)
        raise ConfigError(f"parser: {parser!r} is not known; allowed: {allowed}") from None
    if cut and function is _adhere:
        return read(text[:_MOST_CHARS], cut=True).verdict
    return _remembered(function, text) if len(text) <= _REMEMBERED_CHARS else function(text)


def read_by(text: str, parser: str = OWN_PARSER, *, cut: bool = False) -> str | None:
    """Return the rule by which ``adhere`` reads a verdict out of a text.

    None where there is no verdict, where the text is nothing but its word, and for other parsers.
    """
    if parser != OWN_PARSER or text.strip().rstrip(".").lower() in SURE_WORDS:
        return None
    reading = read(text[:_MOST_CHARS], cut=cut)
    return None if reading.verdict is None else reading.rule


@lru_cache(maxsize=4096)
def _remembered(function: Callable[[str], bool | None], text: str) -> bool | None:
    return function(text)


def _adhere(text: str) -> bool | None:
    return read(text).verdict if len(text) <= _MOST_CHARS else None


PARSERS: Mapping[str, Callable[[str], bool | None]] = MappingProxyType(
    {OWN_PARSER: _adhere, "upstream-2025": upstream_2025, "nemo-0.7": nemo_0_7}
)
