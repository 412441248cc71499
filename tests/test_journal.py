"""Journals: what is finished stays, whatever becomes of the process, the line or the disk."""

import errno
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adhere.errors import DataError, JournalError
from adhere.journal import Journal, parse, read
from adhere.jsonio import dumps, read_json, write_json

# A busy machine is no reason to fail.
PATIENT = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared"))
CASES = SHARED / "cases" / "robustness.jsonl"


def line(fp: str, value: object = None) -> bytes:
    return dumps({"fp": fp, "value": value}) + b"\n"


def values(entries: dict[str, dict[str, Any]]) -> dict[str, object]:
    return {fp: entry["value"] for fp, entry in entries.items()}


# Lines


def test_what_is_appended_is_found_now_and_later(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "j.jsonl"
    texts = ["plain", "two\nlines\r\n", "\u2028\u2029\x85", "诗 😀", ""]
    with Journal(path) as journal:
        for n, text in enumerate(texts):
            entry = journal.append(f"fp{n}", {"value": text})
            assert entry == {"fp": f"fp{n}", "value": text} == journal.get(f"fp{n}")
        assert len(journal) == 5
        assert values(read(path)) == {f"fp{n}": text for n, text in enumerate(texts)}
    assert path.read_bytes().count(b"\n") == 5, "one line each"
    with Journal(path) as journal:
        assert (len(journal), journal.lines_read, journal.problems) == (5, 5, [])
        assert [journal.get(f"fp{n}") for n in range(5)] == [
            {"fp": f"fp{n}", "value": text} for n, text in enumerate(texts)
        ]
        assert journal.get("another") is None, "a foreign fingerprint gives nothing"


def test_the_last_line_of_a_fingerprint_counts(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(line("a", 1) + line("b", 2) + line("a", 3))
    with Journal(path) as journal:
        assert journal.get("a") == {"fp": "a", "value": 3}
        journal.append("b", {"value": 4})
        assert journal.get("b") == {"fp": "b", "value": 4}
        assert (len(journal), journal.lines_read) == (2, 3)
    assert values(read(path)) == {"a": 3, "b": 4}


@pytest.mark.parametrize(
    "garbage",
    [
        b"null",
        b"[]",
        b'"fp"',
        b"{}",
        b'{"fp": 1}',
        b'{"fp": null, "value": 1}',
        b'{"fp": "x", "value": NaN}',
        b'{"fp": "x"',
        b"\xff\xfe\x00",
        b"\x00" * 4096,
        b"[" * 100_000,
    ],
)
def test_garbage_lines_are_counted_and_left(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "j.jsonl"
    content = line("a", 1) + garbage + b"\n" + line("b", 2)
    path.write_bytes(content)
    with Journal(path) as journal:
        assert (len(journal.problems), len(journal), journal.lines_read) == (1, 2, 3)
        assert journal.problems[0].startswith("line 2: is no ")
        journal.append("c", {"value": 3})
    assert path.read_bytes() == content + line("c", 3)
    assert values(read(path)) == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw.decode().encode("utf-16"),
        lambda raw: raw.replace(b",", b",\n"),
        lambda raw: b"[1, 2]\n" + raw.partition(b"\n")[0] + b"\n5\n",
    ],
)
def test_a_journal_that_is_hardly_readable_is_neither_used_nor_changed(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "j.jsonl"
    damaged = damage(b"".join(line(fp, 1) for fp in "abcd"))
    path.write_bytes(damaged)
    with pytest.raises(
        JournalError, match=rf"{path}: \d+ of its \d+ lines cannot be read \(line 1"
    ):
        Journal(path).__enter__()
    assert path.read_bytes() == damaged


def test_only_a_newline_ends_a_line() -> None:
    """A raw line separator or next-line character inside a text, and a \\r after a line."""
    lines = [
        '{"fp": "a", "value": "x\u2028y\u2029z\x85",\r"x":0}\r',
        "",
        " ",
        '{"fp":"b","value":"\\r"}',
    ]
    raw = "".join(f"{text}\n" for text in lines).encode()
    entries, problems = parse(raw)
    assert (values(entries), problems) == ({"a": "x\u2028y\u2029z\x85", "b": "\r"}, [])


@PATIENT
@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(raw: bytes) -> None:
    entries, problems = parse(raw)
    assert len(entries) + len(problems) <= raw.count(b"\n") + 1


@PATIENT
@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=9)), unique_by=lambda e: e[0]))
def test_bytes_around_lines_cost_no_line(lines: list[tuple[str, str]]) -> None:
    raw = b"\xff{\n".join(line(fp, value) for fp, value in lines)
    entries, problems = parse(raw)
    assert values(entries) == dict(lines)
    assert len(problems) == max(len(lines) - 1, 0)


@PATIENT
@given(
    st.lists(st.text(max_size=5), unique=True).flatmap(
        lambda fps: st.tuples(st.just(fps), st.permutations(fps))
    )
)
def test_the_order_of_lines_does_not_matter(orders: tuple[list[str], Sequence[str]]) -> None:
    one, other = (parse(b"".join(line(fp, fp[::-1]) for fp in order))[0] for order in orders)
    assert one == other
    assert values(one) == {fp: fp[::-1] for fp in orders[0]}


# Torn ends


def test_a_file_torn_anywhere_loses_its_last_line_only(tmp_path: Path) -> None:
    """Whatever byte it ends after: complete lines stay, the rest is cut, appending goes on."""
    lines = [line("a", "é\u2028"), line("b", [1]), line("c", {"d": "}"})]
    whole = b"".join(lines)
    path = tmp_path / "j.jsonl"
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        # A line is complete without its newline, since its object is closed.
        complete = sum(len(b"".join(lines[: n + 1])) - 1 <= size for n in range(3))
        with Journal(path) as journal:
            assert [journal.get(fp) is not None for fp in "abc"] == [n < complete for n in range(3)]
            assert (journal.lines_read, journal.problems) == (complete, [])
            journal.append("z", {"value": size})
        assert path.read_bytes() == b"".join(lines[:complete]) + line("z", size)


def test_reading_alone_leaves_a_torn_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    torn = line("a", 1) + line("b", 2)[:-5]
    path.write_bytes(torn)
    assert values(read(path)) == {"a": 1}
    assert path.read_bytes() == torn
    assert read(tmp_path / "absent.jsonl") == {}
    with pytest.raises(JournalError, match=f"{tmp_path}: cannot be read: Is a directory"):
        read(tmp_path)


@pytest.mark.skipif(not CASES.exists(), reason="not on this machine: robustness.jsonl")
def test_the_shared_cases(tmp_path: Path) -> None:
    """Their ids stand for fingerprints here."""
    cases = [json.loads(text) for text in CASES.read_text("utf-8").split("\n") if text]
    handled = 0
    for case in cases:
        if case["kind"] != "jsonl_text":
            continue
        path = tmp_path / "j.jsonl"
        path.write_bytes(re.sub(r'"id": ?(\d+)', r'"fp":"\1"', case["input"]).encode())
        before = path.stat().st_size
        expected = case["expected"]
        with Journal(path) as journal:
            if "records" in expected:
                assert len(journal) == expected["records"]
                assert (path.stat().st_size < before) is expected["torn_tail"]
            else:
                current = expected["current_ids"]
                kept = [n for n in current if journal.get(str(n)) is not None]
                assert kept == expected["kept"]
                assert [n for n in current if n not in kept] == expected["pending"]
                assert journal.lines_read - len(kept) == expected["ignored"]
            handled += 1
    assert handled >= 2


# Other processes


def python(code: str, *arguments: object) -> "subprocess.Popen[str]":
    """Start Python code that uses journals; it talks through its pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: "subprocess.Popen[str]") -> int:
    process.communicate(timeout=60)
    return process.returncode


HOLDER = """
import sys
from pathlib import Path
from adhere.journal import Journal
with Journal(Path(sys.argv[1])) as journal:
    journal.append("a", {"value": 1})
    print("holding", flush=True)
    sys.stdin.read()
"""


def test_a_journal_belongs_to_one_process(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    holder = python(HOLDER, path)
    try:
        assert said(holder) == "holding"
        with (
            pytest.raises(JournalError, match=r"j\.jsonl: another process has been writing"),
            Journal(path, patience_s=0),
        ):
            pass
        assert values(read(path)) == {"a": 1}, "reading needs no lock"
    finally:
        assert end(holder) == 0
    with Journal(path) as journal:
        assert journal.get("a") is not None
        with pytest.raises(JournalError, match="another"), Journal(path, patience_s=0):
            pass
    with Journal(path):
        pass


def test_a_journal_waits_for_the_job_that_shares_it(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    holder = python(HOLDER, path)
    assert said(holder) == "holding"
    with ThreadPoolExecutor() as pool:

        def entries() -> list[str]:
            with Journal(path) as journal:
                return [] if journal.get("a") is None else ["a"]

        waiting = pool.submit(entries)
        assert not waiting.done()
        assert end(holder) == 0
        assert waiting.result(timeout=30) == ["a"]


def test_a_journal_works_where_the_file_system_has_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_handle: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with Journal(tmp_path / "j.jsonl") as journal:
        journal.append("a", {"value": 1})
    assert values(read(tmp_path / "j.jsonl")) == {"a": 1}


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "j.jsonl"):
        with pytest.raises(JournalError, match=f"{path}: cannot be opened: "), Journal(path):
            pass


WRITER = """
import sys
from pathlib import Path
from adhere.journal import Journal
with Journal(Path(sys.argv[1])) as journal:
    for n in range(10**9):
        journal.append(f"fp{n}", {"value": "x" * 100_000 + str(n)})
        print(n, flush=True)
"""


def test_a_killed_writer_loses_nothing_that_it_finished(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    finished = -1
    for round_ in range(3):
        path.unlink(missing_ok=True)
        writer = python(WRITER, path)
        for _ in range(20 + 7 * round_):
            finished = int(said(writer))
        writer.send_signal(signal.SIGKILL)
        assert writer.stdout is not None
        finished = max([finished, *map(int, writer.stdout.read().split())])
        assert end(writer) == -signal.SIGKILL
        with Journal(path) as journal:
            for n in range(finished + 1):
                entry = journal.get(f"fp{n}")
                assert entry is not None
                assert entry["value"] == "x" * 100_000 + str(n)
            assert len(journal) in (finished + 1, finished + 2)
            assert journal.problems == []
            journal.append("after", {"value": 1})
        assert read(path)["after"] == {"fp": "after", "value": 1}


# Full disks


@contextmanager
def tiny_disk(folder: Path) -> Iterator[Path]:
    """A file system of 256 KiB; skips the test where none can be mounted."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"not on this machine: mounting needs root: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_costs_nothing_and_the_journal_goes_on_after_it(tmp_path: Path) -> None:
    with tiny_disk(tmp_path) as disk, Journal(disk / "j.jsonl") as journal:
        write_json(disk / "old.json", "old")
        filler = disk / "filler"
        filler.write_bytes(b"x" * 150_000)
        written = 0
        with pytest.raises(JournalError, match=r"j\.jsonl: cannot be written: No space left"):
            while True:
                journal.append(f"fp{written}", {"value": "y" * 10_000})
                written += 1
        assert written > 3
        assert [*read(journal.path)] == [f"fp{n}" for n in range(written)]
        assert journal.get(f"fp{written}") is None
        with pytest.raises(JournalError):
            journal.append("again", {"value": "y" * 10_000})
        with pytest.raises(DataError, match=r"old\.json: cannot be written: No space left"):
            write_json(disk / "old.json", "y" * 100_000)
        assert read_json(disk / "old.json") == "old"
        assert sorted(p.name for p in disk.iterdir()) == ["filler", "j.jsonl", "old.json"]
        filler.unlink()
        journal.append("after", {"value": 1})
        assert [*read(journal.path)] == [*(f"fp{n}" for n in range(written)), "after"]
        assert journal.path.read_bytes().endswith(line("after", 1))


LIMITED = """
import resource, signal, sys
from pathlib import Path
from adhere.errors import JournalError
from adhere.journal import Journal, read
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
with Journal(path) as journal:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
    written = 0
    try:
        while True:
            journal.append(f"fp{written}", {"value": "y" * 10_000})
            written += 1
    except JournalError as error:
        print(f"{error}".replace(str(path), "PATH"))
    assert list(read(path)) == [f"fp{n}" for n in range(written)], written
    assert path.read_bytes().endswith(b"\\n")
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    journal.append("after", {"value": 1})
print(written)
"""


def test_a_file_that_may_not_grow_keeps_its_lines(tmp_path: Path) -> None:
    """The same without a disk of our own: the size of a file is limited, then no longer."""
    path = tmp_path / "j.jsonl"
    writer = python(LIMITED, path)
    message = said(writer)
    assert message.startswith("PATH: cannot be written: File too large; everything answered")
    written = int(said(writer))
    assert end(writer) == 0
    assert written == 9
    assert [*read(path)] == [*(f"fp{n}" for n in range(written)), "after"]
