"""Checkers run outside the judging process: right results, named failures, harmless neighbours."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from checking import IDENTITY, TIMEOUT_S, Check, Setup, neighbour_is_right, one_server
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from adhere.checkers import CheckerPool, CheckResult, link
from adhere.checkers.frames import MAX_DETAIL, MAX_REQUEST, MAX_TEXT
from adhere.checkers.source import defining_line, repair
from adhere.jsonio import clean_text, dumps

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared"))


@pytest.fixture(scope="module")
def setup() -> Iterator[Setup]:
    with one_server(TIMEOUT_S) as setup:
        yield setup


@pytest.fixture
def check(setup: Setup) -> Check:
    return setup.check


# What a checker may be, and what it may return


@pytest.mark.parametrize(
    ("value", "expected"),
    [("True", True), ("False", False), ("None", None), ("'text'", "text"), ("''", "")],
)
def test_values_that_a_checker_may_return(check: Check, value: str, expected: Any) -> None:
    result = check(f"def check_following(response): return {value}", "")
    assert result == CheckResult(expected, None, None, False)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("0", "int"),
        ("1", "int"),
        ("1.0", "float"),
        ("b'YES'", "bytes"),
        ("[]", "list"),
        ("re.match('a', 'a')", "re.Match"),
        ("Text('YES')", "Text"),
        ("Falsy()", "Falsy"),
        ("check_following", "function"),
    ],
)
def test_anything_else_is_an_error_that_names_the_type(check: Check, value: str, name: str) -> None:
    source = (
        "import re\n"
        "class Text(str): pass\n"
        "class Falsy:\n"
        "    def __bool__(self): return True\n"
        "    def __eq__(self, other): return True\n"
        f"def check_following(response): return {value}\n"
    )
    result = check(source, "")
    assert (result.value, result.reason) == (None, "checker_error")
    assert result.detail is not None
    assert result.detail.startswith(f"returned {name};")


def test_a_source_runs_whole_in_one_fresh_namespace(check: Check) -> None:
    source = (
        "from __future__ import annotations\n"
        "import collections.abc as abc, json as j\n"
        "from dataclasses import dataclass\n"
        "from typing import List, NamedTuple, get_type_hints\n"
        "assert __name__ != '__main__' and 'LIMIT' not in globals()\n"
        "LIMIT = 3\n"
        "class Pair(NamedTuple):\n"
        "    a: int\n"
        "@dataclass\n"
        "class Words:\n"
        "    words: List[str]\n"
        "def fact(n): return 1 if n == 0 else n * fact(n - 1)\n"
        "def check_following(response: str, scale=1) -> bool:\n"
        "    assert get_type_hints(Words)['words'] == List[str]\n"
        "    return len(Words(response.split()).words) == LIMIT and fact(Pair(3).a) == 6\n"
    )
    for _ in range(2):
        assert check(source, "a b c") == CheckResult(True, None, None, False)


def test_shared_cases(check: Check) -> None:
    path = SHARED / "cases" / "robustness.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    cases = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    checkers = [case for case in cases if case["kind"] == "checker"]
    assert checkers
    for case in checkers:
        result = check(case["input"]["source"], case["input"]["response"])
        assert case["expected"] in (result.reason, result.value), case


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.text())
@example("\ud800 lone \udfff")
@example("\x00\r\n\u2028\ufeff")
def test_any_text_arrives_as_it_left(setup: Setup, text: str) -> None:
    """A checker gets what it is given; of what it returns lone surrogates are replaced."""
    seen = "def check_following(response):\n    return ascii(response)\n"
    assert setup.check(seen, text) == CheckResult(ascii(text), None, None, False)
    assert setup.check(IDENTITY, text) == CheckResult(clean_text(text), None, None, False)


@pytest.mark.parametrize(
    ("body", "value", "detail"),
    [
        ("return eval(response)", "\ufffd", None),
        ("return 'a' + chr(0xd83d) + chr(0xde00)", "a\U0001f600", None),
        ("raise ValueError(eval(response))", None, "ValueError: \ufffd (checker line 2)"),
        (
            "return type('A', (), {'__module__': eval(response)})()",
            None,
            "returned \ufffd.A; allowed are True, False, None and a text",
        ),
    ],
)
def test_what_a_checker_says_can_be_written(
    check: Check, body: str, value: str | None, detail: str | None
) -> None:
    result = check(f"def check_following(response):\n    {body}\n", r"'\ud83d'")
    assert (result.value, result.detail) == (value, detail)
    dumps([result.value, result.detail])


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ("raise ValueError('a' + chr(27) + '[2J')", r"ValueError: a\x1b[2J (checker line 2)"),
        ("return type('A' + chr(10) + chr(0x9b), (), {})()", r"returned A\n\x9b; allowed are"),
        ("raise type('E' + chr(0x202e), (Exception,), {})", r"E\u202e (checker line 2)"),
        ("raise ValueError('不可以')", "ValueError: 不可以 (checker line 2)"),
    ],
)
def test_a_detail_is_one_harmless_line(check: Check, body: str, detail: str) -> None:
    result = check(f"def check_following(response):\n    {body}\n", "")
    assert str(result.detail).startswith(detail)
    assert str(result.detail).isprintable()


@pytest.mark.parametrize(
    ("text", "size"),
    [(f"'x' * {MAX_TEXT}", None), (f"'x' * {60 << 20}", 60 << 20), ("'长' * 349_526", 349_526)],
)
def test_a_returned_text_has_a_limit(check: Check, text: str, size: int | None) -> None:
    result = check(f"def check_following(response): return {text}", "")
    if size is None:
        assert len(str(result.value)) == MAX_TEXT
    else:
        told = f"returned a text of {size} characters, more than 1 MiB of UTF-8"
        assert result == CheckResult(None, "checker_error", told, False)


def test_long_texts() -> None:
    text = "很长" * (4 << 20)
    length = "def check_following(response): return str(len(response))"

    async def main() -> list[CheckResult]:
        async with CheckerPool(workers=1, timeout_s=60) as pool:
            return [
                await pool.check(length, text),
                await pool.check(IDENTITY, "x" * (MAX_REQUEST + 1)),
            ]

    long, too_long_to_send = asyncio.run(main())
    assert long.value == str(len(text))
    assert too_long_to_send.reason == "checker_error"
    assert "64 MiB" in str(too_long_to_send.detail)


# Repair


def test_a_missing_def_is_supplied(check: Check) -> None:
    source = "import re\ncheck_following(response):\n    return len(response) > 1 / 0\n"
    result = check(source, "")
    assert result.repaired
    assert result.detail == "ZeroDivisionError: division by zero (checker line 3)"
    assert repair("check_following(r: str) -> bool:\n return True") == (
        "def check_following(r: str) -> bool:\n return True",
        True,
    )


@pytest.mark.parametrize(
    "source",
    [
        "def check_following(response):\n    return True\ncheck_following('a')\n",
        "class A:\n    def check_following(self): pass\ncheck_following(response):\n",
        "check_following = lambda response: True\n",
        "print(check_following(response))",
        "",
    ],
)
def test_everything_else_is_left_alone(source: str) -> None:
    assert repair(source) == (source, False)


def test_a_byte_order_mark_is_dropped(check: Check) -> None:
    assert check("\ufeff" + IDENTITY, "text") == CheckResult("text", None, None, False)
    assert check("\ufeffcheck_following(response):\n    return True\n", "").repaired
    assert repair("\ufeff") == ("", False)


def test_the_defining_line_is_the_same_in_the_repaired_source() -> None:
    for define in (
        "def check_following(r):",
        "check_following(r):",
        "async def check_following():",
    ):
        assert defining_line(f"# check_following is below\n\n{define}\n    return True\n") == 3
    assert defining_line("check_following = lambda response: True\n") is None


@pytest.mark.parametrize("source", ["", "def check_length(response):\n    return True\n"])
def test_a_source_without_check_following(check: Check, source: str) -> None:
    assert check(source, "").reason == "not_defined"


# Errors


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ("raise ValueError('two\\nlines')", "ValueError: two lines (checker line 3)"),
        ("import sys; sys.exit(0)", "SystemExit: 0 (checker line 3)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt (checker line 3)"),
        ("raise Rude", "Rude (checker line 3)"),
        ("json.loads('{')", "json.decoder.JSONDecodeError: Expecting property name"),
        ("return eval('1 +')", "SyntaxError: invalid syntax (<string>, line 1) (checker line 3)"),
        ("return check_following(response)", "RecursionError: maximum recursion depth exceeded"),
        ("return 'x' * (2 << 30)", "MemoryError (checker line 3)"),
        ("open('file', 'w')", "PermissionError"),
    ],
)
def test_what_a_checker_raises_is_told_with_its_line(check: Check, body: str, detail: str) -> None:
    source = (
        "import json\n"
        "def check_following(response):\n"
        f"    {body}\n"
        "class Rude(Exception):\n"
        "    def __str__(self): raise self\n"
    )
    result = check(source, "")
    assert (result.value, result.reason) == (None, "checker_error")
    if body.startswith("open"):
        # Which error a folder gives that nobody can write to depends on the kind of folder.
        assert "checker line 3" in str(result.detail)
    else:
        assert str(result.detail).startswith(detail)


def test_a_message_is_bounded(check: Check) -> None:
    result = check("def check_following(r): raise ValueError('x' * 10_000_000)", "")
    assert len(str(result.detail)) < 600


def test_a_source_that_does_not_compile(check: Check) -> None:
    result = check("import re\ndef check_following(response)\n    return True\n", "")
    assert result.reason == "checker_error"
    assert result.detail == "SyntaxError: expected ':' (checker line 2)"
    assert check("x = '\x00'", "").reason == "checker_error"


# Processes that misbehave

FORGED_FRAME = "bytes(16) + b'\\x14' + bytes(8)"


def marked(kind: int, size: int) -> str:
    """Send a frame of a kind with the true mark and as many bytes as it promises."""
    return f"put_all(mark() + bytes([{kind}]) + ({size}).to_bytes(8, 'big') + b'x' * {size})"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        # a frame without the mark, on every descriptor
        (f"put_all({FORGED_FRAME})", "checker_protocol"),
        (f"put_all({FORGED_FRAME})\n    os._exit(0)", "checker_protocol"),
        # the mark taken, so that the true result has none
        ("mark()", "checker_protocol"),
        # a marked frame and a second one
        ("put_all(2 * (mark() + b'\\x14' + bytes(8)))", "checker_protocol"),
        # a marked frame of a kind that only servers send
        (marked(12, 0) + "\n    os._exit(0)", "checker_protocol"),
        # a marked frame that promises more than there is
        ("put_all(mark() + b'\\x17' + b'\\xff' * 8)\n    os._exit(0)", "checker_protocol"),
        # marked frames that carry more than their kind may: a verdict, a text, two details
        (marked(20, 1), "checker_protocol"),
        (marked(23, MAX_TEXT + 1), "checker_protocol"),
        (marked(24, MAX_DETAIL + 1), "checker_protocol"),
        (marked(25, 60 << 20), "checker_protocol"),
        # a marked frame as it should be: the checker's own lie
        (marked(24, MAX_DETAIL) + "\n    os._exit(0)", "checker_error"),
        ("put_all(b'x' * (80 << 20))", "checker_protocol"),
        # the channel closed, with and without going on
        ("os.closerange(0, 64)", "checker_killed"),
        ("os.closerange(0, 64)\n    while True: pass", "checker_timeout"),
    ],
)
def test_forged_results(check: Check, body: str, reason: str) -> None:
    source = (
        "import os\n"
        "def get(fd):\n"
        "    try: return os.read(fd, 16)\n"
        "    except OSError: return b''\n"
        "def put(fd, data):\n"
        "    try:\n"
        "        while data and fd > 2: data = data[os.write(fd, data):]\n"
        "    except OSError: pass\n"
        "def put_all(data):\n"
        "    for fd in range(64): put(fd, data)\n"
        "def mark(): return b''.join(get(fd) for fd in range(64))\n"
        "def check_following(response):\n"
        f"    {body}\n"
        "    return True\n"
    )
    result = check(source, "")
    assert (result.value, result.reason) == (None, reason)
    assert len(str(result.detail)) <= MAX_DETAIL
    if written := re.search(r"wrote (\d+) bytes", str(result.detail)):
        assert int(written[1]) < 2 * MAX_TEXT, "no more is read"
    assert neighbour_is_right(check)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        *((f"os._exit({code})", f"exited with code {code} before it had a") for code in (0, 71)),
        (
            "os._exit(72)",
            "exited with code 72 before it had a result, which it also does when it cannot be "
            "confined",
        ),
        ("os.kill(os.getpid(), signal.SIGXCPU)", "killed by signal 24 (SIGXCPU)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed by signal 9 (SIGKILL)"),
    ],
)
def test_how_a_process_ended_is_told_as_far_as_it_is_known(
    check: Check, body: str, detail: str
) -> None:
    result = check(f"import os, signal\ndef check_following(response):\n    {body}\n", "")
    assert result.reason == "checker_killed"
    assert str(result.detail).startswith(detail)


def test_an_answer_too_long_for_its_kind_is_none(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does the judging process take from a server what no server sends."""
    monkeypatch.setattr(link, "MAX_DETAIL", 8)
    result = setup.check("import os\ndef check_following(response): os._exit(3)\n")
    assert result.detail == "the server that ran it died, twice"
    monkeypatch.undo()
    assert neighbour_is_right(setup.check)


@pytest.mark.parametrize(
    "body",
    [
        "for name in dir(builtins): setattr(builtins, name, lambda *a, **k: 1 / 0)",
        "for module in list(sys.modules.values()): module.__dict__.clear()",
        "sys.modules.clear()",
        "sys.setrecursionlimit(40)",
        "sys.settrace(lambda *a: None); sys.setprofile(lambda *a: None)",
        "gc.disable(); signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    ],
)
def test_a_spoilt_interpreter_spoils_no_other_check(check: Check, body: str) -> None:
    source = f"import builtins, gc, signal, sys\ndef check_following(response):\n    {body}\n"
    check(source + "    return True\n", "")
    assert neighbour_is_right(check)


def test_replaced_builtins_change_no_result(check: Check) -> None:
    source = (
        "import builtins\n"
        "def check_following(response):\n"
        "    for name in ('len', 'type', 'str', 'isinstance', 'memoryview', 'BaseException'):\n"
        "        setattr(builtins, name, None)\n"
        "    return response\n"
    )
    assert check(source, "text") == CheckResult("text", None, None, False)


def test_what_a_server_inherits(setup: Setup) -> None:
    assert "OPENAI_API_KEY" not in setup.server.environ()
    # Three on /dev/null, the socket, and Landlock's rules where there are any.
    assert setup.server.num_fds() == (5 if setup.pool.isolation.level == "strong" else 4)


def test_flags_of_the_standard_streams_are_each_checks_own(check: Check) -> None:
    look = (
        "import fcntl, os\n"
        "def check_following(response):\n"
        "    return str([fcntl.fcntl(fd, fcntl.F_GETFL) for fd in (0, 1, 2)])\n"
    )
    before = check(look, "").value
    spoilt = "    fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND | os.O_NOATIME)\n"
    assert check(look.replace("    return", spoilt + "    return"), "").value != before
    assert check(look, "").value == before


def test_what_a_check_inherits(check: Check) -> None:
    source = (
        "import os\n"
        "def check_following(response):\n"
        "    found = []\n"
        "    for fd in range(64):\n"
        "        try: found.append(os.fstat(fd).st_rdev == os.makedev(1, 3))\n"
        "        except OSError: pass\n"
        "    return str(found) + ' '.join(sorted(os.environ))\n"
    )
    # Nothing but /dev/null and its own pipes.
    value = check(source, "").value
    assert value == str([True, True, True, False, False]) + (
        "LC_ALL OMP_NUM_THREADS OPENBLAS_NUM_THREADS PYTHONHASHSEED TZ"
    )


def test_a_signal_to_the_whole_job_is_not_the_servers(setup: Setup) -> None:
    server = setup.server
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        server.send_signal(number)
    assert neighbour_is_right(setup.check)
    assert setup.server == server
