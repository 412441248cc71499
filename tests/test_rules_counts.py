"""Words, sentences, characters, list items and paragraphs, against cases counted by hand."""

from collections.abc import Callable, Sized
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adhere.rules import check, measure
from adhere.rules.language import detect
from adhere.rules.sentences import sentences
from adhere.rules.values import numbers

CASES: dict[str, list[tuple[str, int]]] = yaml.safe_load(
    (Path(__file__).parent / "rules" / "counts.yaml").read_text(encoding="utf-8")
)
COUNTERS: dict[str, Callable[[str], Sized]] = {
    "words": measure.words,
    "sentences": sentences,
    "characters": measure.characters,
    "characters without spaces": lambda text: measure.characters(text, spaces=False),
    "characters without punctuation": lambda text: measure.characters(text, punctuation=False),
    "list items": measure.list_items,
    "bulleted items": lambda text: measure.list_items(text, "bulleted"),
    "numbered items": lambda text: measure.list_items(text, "numbered"),
    "paragraphs": measure.paragraphs,
    "numbers": lambda text: list(numbers(text)),
}


@pytest.mark.parametrize(
    ("unit", "text", "count"),
    [(unit, text, count) for unit, cases in CASES.items() for text, count in cases],
)
def test_counts(unit: str, text: str, count: int) -> None:
    found = COUNTERS[unit](text)
    assert len(found) == count, found


def test_there_are_enough_cases() -> None:
    assert set(CASES) == set(COUNTERS)
    assert sum(map(len, CASES.values())) >= 100


@given(st.text(), st.text())
def test_a_blank_line_separates_words_characters_and_paragraphs(one: str, two: str) -> None:
    both = f"{one}\n\n{two}"
    assert measure.words(both) == measure.words(one) + measure.words(two)
    assert len(measure.paragraphs(both)) <= len(measure.paragraphs(one)) + len(
        measure.paragraphs(two)
    )


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The kettle boils and we pour the tea into small cups.", "en"),
        ("Das Wasser kocht, und wir gießen den Tee in kleine Tassen.", "de"),
        ("L'eau bout et nous versons le thé dans de petites tasses.", "fr"),
        ("El agua hierve y servimos el té en tazas pequeñas.", "es"),
        ("Вода кипит, и мы наливаем чай в маленькие чашки.", "ru"),
        ("الماء يغلي ونحن نصب الشاي في أكواب صغيرة.", "ar"),
        ("물이 끓고 우리는 작은 잔에 차를 따릅니다.", "ko"),
        ("水开了，我们把茶倒进小杯子里。", "zh"),
        ("水開了，我們把茶倒進小杯子裡。", "zh"),
        ("お湯が沸いたので、小さなカップにお茶を注ぎます。", "ja"),
        ("请先安装 Python 3.12，再运行 pip install tea。", "zh"),
        ("「こんにちは」是日语的问候语，意思是你好，大家都会说。", "zh"),
        ("The word 茶 is read cha in many languages of Asia and Europe.", "en"),
        ("APIを使ってデータを取得します。", "ja"),
        ("42 + 1", None),
    ],
)
def test_languages(text: str, language: str | None) -> None:
    assert detect(text) == language


@pytest.mark.parametrize(
    ("text", "followed"),
    [
        ("391", True),
        ("= 391.", True),
        ("The answer is 391, not 390.", True),
        ("**391**", True),
        ("'391'", True),
        ("to,391", True),
        ("391.00", True),
        ("３９１", True),
        ("$391", True),
        ("391元", True),
        ("共391个", True),
        ("17*23=391", True),
        (r"\boxed{391}", True),
        ("1391", False),
        ("3910", False),
        ("391.5", False),
        ("0.391", False),
        ("1,391", False),
        ("391,000", False),
        ("-391", False),
        ("x391", False),
        ("391st", False),
        ("2.391.1", False),
    ],
)
def test_a_value_is_a_number_of_its_own(text: str, followed: bool) -> None:
    assert check("calc", {"value": 391}, text).followed is followed


@pytest.mark.parametrize(
    "text", ["12,345.6", "12345.6", "12\u202f345.6", "12'345.6", "1.23456e4", "12_345.6"]
)
def test_thousands_may_be_grouped(text: str) -> None:
    args: dict[str, Any] = {"value": 12345.6}
    assert check("calc", args, text).followed
