"""Datasets from their public homes: a valid file of a known version, or the old one stays."""

import copy
import gzip
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from home_server import Home, Reply, broken_off, closed, moved, silent, start_home, status, whole
from workflow_project import ROOT, WorkflowProject, make_project

from adhere import download, fetch, sources
from adhere.cli import Job
from adhere.config import Retry, load_project
from adhere.data import Row, load
from adhere.dataset_notes import notes
from adhere.errors import AdhereError, ConfigError, DataError
from adhere.fetch import Wanted
from adhere.jobs.fetch import fetch_selected
from adhere.jsonio import fingerprint, read_json
from adhere.plan import make_plan
from adhere.sources import Datasets, Known, Source, load_sources

SHARED = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared"))
AGENTIF = SHARED / "data" / "agentif" / "eval.json.gz"
RETRY = Retry(attempts=3, first_wait_s=1e-6, max_wait_s=1e-6)
CODE = "def check_following(response):\n    return bool(response)\n"


def rows(text: str = "Say hello.") -> list[Row]:
    steps = [{"type": "code", "exec": CODE}]
    return [
        {"id": n, "input": [{"role": "user", "content": f"{text} {n} 你好"}], "constraints": [c]}
        for n in range(3)
        for c in [{"id": 0, "is_meta": False, "evaluation": steps}]
    ]


ROWS = rows()
LIST = json.dumps(ROWS, ensure_ascii=False, indent=1).encode()
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
SHA256 = fingerprint(ROWS)
OTHER = rows("Say something else.")
OTHER_SHA256 = fingerprint(OTHER)


def as_bytes(content: object) -> bytes:
    return json.dumps(content).encode()


@pytest.fixture(scope="module")
def _home() -> Iterator[Home]:
    with start_home() as home:
        yield home


@pytest.fixture
def home(_home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    _home.replies.clear()
    _home.requests.clear()
    return _home


def known(path: Path, **versions: str | None) -> Known:
    source = Source(title="Hellos", urls=["http://127.0.0.1:9/x"], versions=versions)
    return Known("eval", path, source)


def get(path: Path, *origins: str, known: Known | None = None, accept: bool = False) -> list[str]:
    return fetch.fetch(Wanted("eval", path, origins, known, accept=accept, retry=RETRY))


def old_file(path: Path) -> bytes:
    """Put a valid older dataset where the new one is to go."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(as_bytes(OTHER))
    return path.read_bytes()


def untouched(path: Path, before: bytes) -> bool:
    """Whether the old file stands alone and unchanged."""
    return path.read_bytes() == before and [p.name for p in path.parent.iterdir()] == [path.name]


# What arrives


@pytest.mark.parametrize("name", ["eval.json", "eval.json.gz", "eval.jsonl", "eval.jsonl.gz"])
@pytest.mark.parametrize(
    "reply",
    [
        whole(LIST),
        whole(b"\xef\xbb\xbf" + LIST),
        whole(gzip.compress(LIST)),
        whole(gzip.compress(LIST), Content_Encoding="gzip"),
        whole(LINES, Content_Type="text/plain"),
        whole(gzip.compress(LINES)),
    ],
    ids=["list", "bom", "gz", "encoded", "lines", "lines.gz"],
)
def test_every_form_becomes_the_dataset(
    home: Home, tmp_path: Path, name: str, reply: Reply
) -> None:
    path = tmp_path / "data" / name
    get(path, home.url("file", reply))
    dataset = load("eval", path)
    assert dataset.sha256 == SHA256
    assert list(dataset.rows) == ROWS
    assert path.read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")


def test_a_file_of_the_right_form_is_kept_to_the_byte(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "eval.json"
    get(path, home.url("moved", moved("/really")), home.url("really", whole(LIST)))
    assert path.read_bytes() == LIST
    get(tmp_path / "copy.json", str(path))
    assert (tmp_path / "copy.json").read_bytes() == LIST


def test_the_report_says_what_it_is_and_what_was_normalised(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "eval.json"
    changed = copy.deepcopy(ROWS)
    del changed[0]["id"]
    del changed[1]["constraints"][0]["is_meta"]
    changed[1]["constraints"][0]["is meta"] = True
    url = home.url("file", whole(as_bytes(changed)))
    versions = {"old": SHA256, "new": fingerprint(changed)}
    report = get(path, url, known=known(path, **versions))
    assert report[0] == f"{path}: 3 items, 3 constraints, from {url}"
    assert report[1].endswith(f"{versions['new']}: Hellos new")
    assert any("1 constraint with `is meta`: read as `is_meta`" in line for line in report)
    assert any("1 item without `id`" in line for line in report)
    before = path.stat()
    assert "(as it was)" in get(path, url, known=known(path, **versions))[0]
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    report = get(path, home.url("old", whole(LIST)), known=known(path, **versions))
    assert f"  in place of the file with checksum {versions['new']}" in report


def test_a_damaged_file_that_is_there_is_replaced(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "eval.json"
    path.write_bytes(LIST[:100])
    get(path, home.url("file", whole(LIST)))
    assert path.read_bytes() == LIST


# What does not


@pytest.mark.parametrize(
    ("first", "tries"),
    [
        ([status(500)], 2),
        ([status(503), status(429)], 3),
        ([broken_off(LIST, with_length=True)], 2),
        ([broken_off(LIST, with_length=False)], 2),
        ([closed(), closed()], 3),
    ],
)
def test_what_passes_is_tried_again(
    home: Home, tmp_path: Path, first: list[Reply], tries: int
) -> None:
    path = tmp_path / "eval.json"
    get(path, home.url("file", *first, whole(LIST)))
    assert path.read_bytes() == LIST
    assert home.requests["file"] == tries


@pytest.mark.parametrize(
    ("reply", "tries", "found"),
    [
        (status(404), 1, "status 404 Not Found: not there, or not for everybody"),
        (status(401), 1, "status 401"),
        (status(500), 3, "status 500 Internal Server Error: gave up after 3 tries"),
        (broken_off(LIST, with_length=True), 3, "the transfer broke off: gave up after 3 tries"),
        (broken_off(LIST, with_length=False), 3, "the transfer broke off: gave up after 3 tries"),
        # aiohttp itself asks once more where a connection is closed without an answer.
        (closed(), 6, "gave up after 3 tries"),
        (moved("/file"), 10, "no end of redirects: correct the address"),
        (moved("ftp://127.0.0.1/file"), 1, "not a usable address"),
        (whole(b"<!DOCTYPE html><title>Sign in</title>"), 1, "is a web page, not a dataset"),
        (whole(b"version https://git-lfs.github.com/spec/v1\n"), 1, "is a Git LFS pointer"),
        (whole(LIST[:-20]), 1, "not valid JSON: .*: the file is damaged or cut"),
        (whole(LINES[:-20]), 1, "line 3: not valid JSON"),
        (whole(gzip.compress(LIST)[:-20]), 1, "not valid gzip"),
        (whole(b""), 1, "holds no item"),
        (whole(b"[]"), 1, "holds no item"),
        (whole(b'{"error": "gone"}'), 1, "item 1: input: must be a list"),
        (whole(as_bytes([{**ROWS[0], "constraints": []}])), 1, r"item 1 \(id 0\): constraints"),
    ],
)
def test_whatever_is_wrong_leaves_the_old_file(
    home: Home, tmp_path: Path, reply: Reply, tries: int, found: str
) -> None:
    path = tmp_path / "data" / "eval.json"
    before = old_file(path)
    url = home.url("file", reply)
    with pytest.raises(DataError, match=found) as error:
        get(path, url)
    assert str(error.value).startswith(f"{url}: ")
    assert str(error.value).endswith(f"{path}: left as it is")
    assert untouched(path, before)
    assert home.requests["file"] == tries


def test_silence_has_an_end(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "data" / "eval.json"
    before = old_file(path)
    retry = Retry(attempts=1, timeout_s=0.05)
    with pytest.raises(DataError, match="no answer in time: gave up after 1 tries"):
        fetch.fetch(Wanted("eval", path, [home.url("file", silent(LIST))], None, retry=retry))
    assert untouched(path, before)


@pytest.mark.parametrize(
    "reply",
    [whole(LIST), whole(gzip.compress(LIST), Content_Encoding="gzip"), whole(gzip.compress(LIST))],
    ids=["plain", "encoded", "gz"],
)
def test_size_is_bounded(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    for module in (download, fetch):
        monkeypatch.setattr(module, "MAX_BYTES", len(LIST) - 1)
    with pytest.raises(DataError, match="more than 0 MiB: not a dataset"):
        get(tmp_path / "eval.json", home.url("file", reply))
    for module in (download, fetch):
        monkeypatch.setattr(module, "MAX_BYTES", len(LIST))
    get(tmp_path / "eval.json", home.url("file", reply))


def test_the_next_address_is_tried(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "eval.json"
    gone, page = home.url("gone"), home.url("page", whole(b"<html>"))
    get(path, gone, page, home.url("file", whole(LIST)))
    assert path.read_bytes() == LIST
    with pytest.raises(DataError) as error:
        get(path, gone, page)
    assert f"{gone}: status 404" in str(error.value)
    assert f"{page}: is a web page" in str(error.value)


def test_no_secret_of_an_address_is_shown(
    home: Home, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home.url("file", status(500))
    address = f"http://me:canary@127.0.0.1:{home.port}/file?token=canary#canary"
    logger = logging.getLogger("adhere")
    with caplog.at_level(logging.INFO, logger.name), pytest.raises(DataError) as error:
        get(tmp_path / "eval.json", address)
    assert "canary" not in str(error.value)
    assert caplog.messages and "canary" not in caplog.text
    home.url("file", whole(LIST))
    assert "canary" not in "\n".join(get(tmp_path / "eval.json", address))


@pytest.mark.parametrize(
    ("origin", "found"),
    [
        ("http://127.0.0.1:9/file", "cannot connect to 127.0.0.1:9"),
        ("http://[::1/file", "not a usable address"),
        ("http://", "not a usable address"),
        ("absent.json", "absent.json: cannot be read: No such file or directory"),
        (".", "cannot be read: Is a directory"),
    ],
)
def test_origins_that_are_none(tmp_path: Path, origin: str, found: str) -> None:
    with pytest.raises(DataError, match=re.escape(found)):
        get(tmp_path / "eval.json", origin)


# Which version it is


def test_a_known_version_must_match(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "data" / "eval.json"
    before = old_file(path)
    url = home.url("file", whole(LIST))
    entry = known(path, may="a" * 64, june="b" * 64)
    with pytest.raises(DataError) as error:
        get(path, url, known=entry)
    for text in (f"found: {SHA256}", "may: " + "a" * 64, "june: " + "b" * 64, "--accept"):
        assert text in str(error.value)
    assert untouched(path, before)
    # Told so, it is used, and from then on known.
    report = get(path, url, known=entry, accept=True)
    assert "no known version of Hellos, accepted" in report[1]
    assert path.read_bytes() == LIST
    get(path, url, known=entry)
    with pytest.raises(DataError, match=r"accepted 20.*: " + SHA256):
        get(path, home.url("other", whole(as_bytes(OTHER))), known=entry)


def test_the_first_file_of_an_unknown_version_is_recorded(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "eval.json"
    third = rows("Third.")
    entry = known(path, may=SHA256, new=None)
    assert "Hellos may" in get(path, home.url("may", whole(LIST)), known=entry)[1]
    assert not (tmp_path / "eval.checksum.json").exists()
    url = home.url("new", whole(as_bytes(OTHER)))
    assert "taken for Hellos new" in get(path, url, known=entry)[1]
    record = read_json(tmp_path / "eval.checksum.json")
    assert record["first"]["sha256"] == OTHER_SHA256
    assert get(path, url, known=entry)[1].endswith(": Hellos new")
    before = path.read_bytes()
    with pytest.raises(DataError) as error:
        get(path, home.url("third", whole(as_bytes(third))), known=entry)
    for text in (fingerprint(third), f"new: {OTHER_SHA256} (that of the first file", "remove"):
        assert text in str(error.value)
    assert path.read_bytes() == before
    assert read_json(tmp_path / "eval.checksum.json") == record
    # The known version is still one; an accepted third does not become the first.
    get(path, home.url("may"), known=entry)
    get(path, home.url("third"), known=entry, accept=True)
    assert read_json(tmp_path / "eval.checksum.json")["first"] == record["first"]
    # As soon as the version's checksum is published, the record's word for it counts no more.
    published = known(path, may=SHA256, new="c" * 64)
    with pytest.raises(DataError, match="no known version"):
        get(path, url, known=published)


def test_a_dataset_without_an_entry_is_never_refused(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    for content in (LIST, as_bytes(OTHER)):
        assert "your own" in get(path, home.url("own", whole(content)))[1]
        assert path.read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == ["own.json"]


@pytest.mark.parametrize("content", ["[1]", '{"dataset": "eval", "frist": null}', "{"])
def test_a_damaged_record_is_named(home: Home, tmp_path: Path, content: str) -> None:
    path = tmp_path / "eval.json"
    (tmp_path / "eval.checksum.json").write_text(content, encoding="utf-8")
    with pytest.raises(AdhereError, match=r"eval\.checksum\.json"):
        get(path, home.url("f", whole(LIST)), known=known(path, may="a" * 64, new=None))
    assert not path.exists()


# data/sources.yaml


def entry(**changes: object) -> dict[str, Any]:
    made: dict[str, Any] = {
        "title": "T",
        "urls": ["https://example.org/f"],
        "versions": {"1": None},
    }
    return {"datasets": {"eval": made | changes}}


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ({"dataset": {}}, "dataset: unknown key (did you mean `datasets`?)"),
        (entry(url="x"), "datasets.eval.url: unknown key (did you mean `urls`?)"),
        (entry(urls=[]), "datasets.eval.urls: found a list: must not be empty"),
        (entry(urls=["ftp://example.org/f"]), "must be an address that begins with https://"),
        (entry(versions={}), "datasets.eval.versions: "),
        (entry(versions={"1": "abc"}), "must be a SHA-256: 64 digits 0-9, a-f"),
        (entry(versions={"1": None, "2": None}), "only one version may be without a checksum"),
    ],
)
def test_wrong_sources_are_refused(tmp_path: Path, content: dict[str, Any], found: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sources.yaml").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(found)) as error:
        load_sources(tmp_path)
    assert str(error.value).startswith("data/sources.yaml: ")


def test_the_shipped_sources(tmp_path: Path) -> None:
    source = load_sources(ROOT)["eval"]
    readme = (ROOT / "data" / "README.md").read_text("utf-8")
    assert source.unknown_version == "2026-10"
    assert all(name in readme for name in source.versions)
    assert all(checksum in readme for checksum in source.versions.values() if checksum)
    assert load_sources(tmp_path) == {}


@pytest.mark.skipif(not AGENTIF.exists(), reason=f"AgentIF's file is not at {AGENTIF}")
def test_agentifs_own_file(tmp_path: Path) -> None:
    path = tmp_path / "eval.json"
    report = get(path, str(AGENTIF), known=Known("eval", path, load_sources(ROOT)["eval"]))
    assert "707 items, 8,449 constraints" in report[0]
    assert report[1].endswith(": AgentIF 2025-05")
    assert [line.strip() for line in report[2:]] == [
        "150 constraints with `is meta`: read as `is_meta`",
        "26 constraints with `is_meat`: read as `is_meta`",
        "150 constraints with `other info`: read as `other_info`",
        "178 items without `id`: known by position, as all are",
        "15 items the same as another one: kept, and counted apart",
    ]


def test_nothing_to_note_in_our_own_data() -> None:
    assert notes(load("smoke", ROOT / "data" / "smoke" / "eval.json").rows) == []
    assert notes([*ROWS, {**ROWS[0], "output": None}]) == [
        "1 item the same as another one: kept, and counted apart",
        "1 item with an `output` of its own: no model sees it",
    ]


# Planning


def project_folder(root: Path, versions: dict[str, str | None]) -> Path:
    (root / "data").mkdir(parents=True)
    content = entry(versions=versions)
    (root / "data" / "sources.yaml").write_text(json.dumps(content), encoding="utf-8")
    return root / "data" / "eval.json"


def test_planning_knows_versions_without_a_network(tmp_path: Path) -> None:
    path = project_folder(tmp_path, {"may": SHA256, "new": None})
    datasets = Datasets(tmp_path, accept=False)
    with pytest.raises(DataError, match=r"`snakemake fetch .*scripts/fetch\.py .*--from FILE`"):
        datasets.load("eval", path)
    path.write_bytes(LIST)
    assert datasets.what_is(datasets.load("eval", path)) == "T may"
    path.write_bytes(as_bytes(OTHER))
    assert "taken for T new" in datasets.what_is(datasets.load("eval", path))
    record = tmp_path / "data" / "eval.checksum.json"
    assert not record.exists(), "planning writes nothing"
    datasets.record()
    assert read_json(record)["first"]["sha256"] == OTHER_SHA256
    path.write_bytes(as_bytes(rows("Third.")))
    with pytest.raises(DataError, match="accept_dataset=true"):
        Datasets(tmp_path, accept=False).load("eval", path)
    accepting = Datasets(tmp_path, accept=True)
    accepting.load("eval", path)
    accepting.record()
    Datasets(tmp_path, accept=False).load("eval", path)
    own = tmp_path / "data" / "own.json"
    own.write_bytes(as_bytes(rows("Fourth.")))
    assert datasets.what_is(datasets.load("own", own)) == "–"


def test_a_folder_that_cannot_be_written_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = project_folder(tmp_path, {"new": None})
    path.write_bytes(LIST)
    datasets = Datasets(tmp_path, accept=False)
    datasets.load("eval", path)

    def full(_path: Path, _value: object) -> None:
        raise DataError("cannot be written")

    monkeypatch.setattr(sources, "write_json", full)
    with caplog.at_level(logging.WARNING, "adhere"):
        datasets.record()
    assert "a later file cannot be compared" in caplog.text


# As commands


@pytest.fixture
def project(tmp_path: Path, home: Home) -> WorkflowProject:
    made = make_project(tmp_path / "it's a project", "http://127.0.0.1:9/v1", "http://127.0.0.1:9")
    made.change_yaml("configs/global.yaml", datasets={"eval": "data/eval.json"})
    made.change_yaml("configs/global.yaml", default_datasets=["eval"])
    versions = {"may": SHA256, "new": None}
    urls = [home.url("eval.json", whole(LIST))]
    made.write_yaml("data/sources.yaml", entry(urls=urls, versions=versions))
    return made


def test_fetching_by_hand(project: WorkflowProject, home: Home) -> None:
    done = project.script("fetch")
    assert (done.returncode, home.requests["eval.json"]) == (0, 1), done.stderr
    assert "checksum " + SHA256 + ": T may" in done.stdout
    (project.root / "new.jsonl").write_bytes(LINES.replace(b"hello", b"goodbye"))
    done = project.script("fetch", "--from", "new.jsonl")
    assert done.returncode == 0 and "taken for T new" in done.stdout
    (project.root / "new.jsonl").write_bytes(LINES.replace(b"hello", b"nothing"))
    done = project.script("fetch", "--from", "new.jsonl")
    assert done.returncode == 1
    assert done.stderr.startswith("error: new.jsonl: dataset 'eval': no known version of T")
    assert done.stderr.count("no known version") == 1
    assert project.script("fetch", "--from", "new.jsonl", "--accept").returncode == 0
    done = project.script("fetch", "--dataset", "evil")
    assert done.returncode == 1 and "did you mean `eval`?" in done.stderr
    project.change_yaml("configs/global.yaml", datasets={"eval": "e.json", "own": "own.json"})
    done = project.script("fetch", "--dataset", "own")
    assert done.returncode == 1 and "names no source for it (there are: eval)" in done.stderr
    assert project.script("fetch", "--dataset", "own", "--from", "new.jsonl").returncode == 0


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_fetch_leaves_the_old_file(
    project: WorkflowProject, home: Home, signum: signal.Signals
) -> None:
    path = project.root / "data/eval.json"
    path.write_bytes(as_bytes(OTHER))
    before = sorted(path.parent.iterdir())
    half_sent = threading.Event()
    home.url("eval.json", silent(LIST, half_sent))
    fetching = subprocess.Popen(
        [sys.executable, "scripts/fetch.py"],
        cwd=project.root,
        env=project.environment({"PYTHONPATH": "."}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert half_sent.wait(timeout=60)
        fetching.send_signal(signum)
        assert fetching.wait(timeout=60) != 0
    finally:
        fetching.kill()
    assert path.read_bytes() == as_bytes(OTHER)
    assert sorted(path.parent.iterdir()) == before


def test_selected_datasets_need_a_source(project: WorkflowProject) -> None:
    datasets = {"eval": "data/eval.json", "own": "data/own.json"}
    project.change_yaml("configs/global.yaml", datasets=datasets)
    plan = make_plan(load_project(project.root), {"datasets": "own"})
    with pytest.raises(ConfigError, match=r"names no source for own: .* \(there are: eval\)"):
        fetch_selected(Job(plan, {}, {}, {}, {}, project.root / "log"))
    # Of several, those that have one are fetched.
    plan = make_plan(load_project(project.root), {"datasets": "own,eval"})
    fetch_selected(Job(plan, {}, {}, {}, {}, project.root / "log"))
    assert (project.root / "data/eval.json").read_bytes() == LIST


@pytest.mark.workflow
def test_the_target_fetch(project: WorkflowProject, home: Home) -> None:
    called = project.snakemake("-n")
    assert called.code == 1
    (line,) = [line for line in called.text.splitlines() if line.startswith("error:")]
    assert "snakemake fetch" in line and "scripts/fetch.py" in line
    called = project.snakemake("fetch")
    assert called.code == 0, called.text
    assert called.jobs == {"fetch": 1}
    assert "T may" in called.text
    assert (project.root / "data/eval.json").read_bytes() == LIST
    assert project.plan("predictions").jobs["predict"] == 4
    home.url("eval.json", status(404))
    called = project.snakemake("fetch")
    assert called.code == 1
    assert "status 404" in called.text and "logs/fetch.log" in called.text
    assert (project.root / "data/eval.json").read_bytes() == LIST


@pytest.mark.workflow
def test_the_workflow_refuses_an_unknown_file_until_told(
    project: WorkflowProject, home: Home
) -> None:
    path = project.root / "data/eval.json"
    path.write_bytes(as_bytes(OTHER))
    # The first file of the version that is not known: a plan records nothing, a run does.
    assert project.plan("predictions").jobs["predict"] == 4
    assert not (path.parent / "eval.checksum.json").exists()
    called = project.snakemake("predictions")
    assert called.code == 1 and "taken for T new" in called.text
    assert project.json("data/eval.checksum.json")["first"]["sha256"] == OTHER_SHA256
    third = rows("Third.")
    path.write_bytes(as_bytes(third))
    called = project.snakemake("-n")
    assert called.code == 1
    assert f"found: {fingerprint(third)}" in called.text and "may: " + SHA256 in called.text
    assert "Traceback" not in called.text
    home.url("eval.json", whole(as_bytes(third)))
    called = project.snakemake("fetch", "--config", "accept_dataset=true")
    assert called.code == 0, called.text
    called = project.snakemake("list")
    assert called.code == 0, called.text
    assert "no known version of T, accepted" in called.text
