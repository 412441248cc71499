"""Checkers can hurt nobody: hostile ones, as root and as an ordinary user."""

import ast
import asyncio
import contextlib
import ctypes
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from adhere.checkers import CheckerPool, attempts, landlock, syscalls, worker
from adhere.checkers.frames import MAX_REQUEST
from adhere.checkers.isolation import DEEDS, Isolation, Level, isolation_of, weakest
from adhere.config import Checkers, load_project
from adhere.errors import CheckerError
from adhere.jobs.judge import Judging, isolation_warnings, run_judging
from tests.hostile import SNIPPETS

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared"))
HOSTILE = SHARED / "cases" / "hostile"
NOBODY = 65534
# Where anybody, or root, could leave something, and under which names the checkers do.
PUBLIC = [Path(name) for name in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/")]
STRAYS = ("hostile", "sem.hostile", "hostile-write", "write_file")

# Everything runs as root and as an ordinary user; who is no root cannot become one.
USERS = [NOBODY, 0] if os.getuid() == 0 else [os.getuid()]


# Those that are ended by the clock.
SLOW = (
    "regex",
    "compute_in_c",
    "ignore_everything_and_sleep",
    "stop_itself",
    "processor_time_alarm_ignored",
)
NOT_SLOW = [name for name in SNIPPETS if name not in SLOW]


def user_name(uid: int) -> str:
    """Name a user in the name of a test."""
    return "root" if uid == 0 else "ordinary"


def _lacking() -> str | None:
    """Say what this kernel lacks, asked directly and not through the code under test."""
    libc = ctypes.CDLL(None, use_errno=True)
    if syscalls.machine() is None:
        return "a known architecture"
    if libc.prctl(21, 0, 0, 0, 0) < 0:  # PR_GET_SECCOMP
        return "seccomp"
    return None if libc.syscall(ctypes.c_long(444), None, 0, 1) > 0 else "Landlock"


LACKING = _lacking()
# Counted as failed by --fail-on-skip: continuous integration needs a kernel that has both.
pytestmark = pytest.mark.skipif(LACKING is not None, reason=f"needs a kernel with {LACKING}")


class Runner:
    """A driver: a pool of one server under a given user, perhaps without something."""

    def __init__(self, uid: int, without: str = "") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.driver", str(uid), without],
            cwd=ROOT,
            env={**os.environ, "OPENAI_API_KEY": "sk-canary"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.isolation = self._receive()

    def check(self, source: str) -> dict[str, Any]:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(source) + "\n")
        self.process.stdin.flush()
        return self._receive()

    def close(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0

    def _receive(self) -> dict[str, Any]:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module", params=USERS, ids=user_name)
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    runner = Runner(request.param)
    yield runner
    runner.close()


@dataclass
class Evidence:
    """What a checker could reach, spoil or reveal, and what would tell of it."""

    folder: Path
    port: int
    name: str
    listeners: list[socket.socket]
    before: object = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.before = self.state()

    def fill_in(self, source: str) -> str:
        source = source.replace("/tmp/adhere-evidence", str(self.folder))
        source = re.sub("47811|47812", str(self.port), source)
        for name, value in {"EVIDENCE": self.folder, "LISTENER": self.name}.items():
            source = source.replace(name, str(value))
        return re.sub(r"\bPORT\b", str(self.port), source)

    def state(self) -> object:
        """Everything that a hostile checker might have changed."""
        files = {path.name: _facts(path) for path in [self.folder, *self.folder.rglob("*")]}
        shared = [Path("/proc/sysvipc", kind).read_text() for kind in ("shm", "sem", "msg")]
        names = [name for place in PUBLIC for name in place.iterdir() if name.stem in STRAYS]
        return files, [line.split()[:3] for text in shared for line in text.splitlines()], names

    def heard(self) -> bool:
        """Whether anybody connected or sent something."""
        heard = False
        for listener in self.listeners:
            with contextlib.suppress(BlockingIOError):
                if listener.type == socket.SOCK_STREAM:
                    listener.accept()[0].close()
                else:
                    listener.recv(100)
                heard = True
        return heard


def _facts(path: Path) -> tuple[object, ...]:
    facts = path.lstat()
    return (
        facts.st_mode,
        facts.st_uid,
        facts.st_size,
        facts.st_mtime_ns,
        facts.st_ctime_ns,
        sorted(os.listxattr(path, follow_symlinks=False)),
        facts.st_nlink,
    )


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    """A folder that anybody may write to, with files anybody may change, and open ears."""
    folder = Path(tempfile.mkdtemp(prefix="adhere-evidence-"))
    folder.chmod(0o777)
    (folder / "secret.txt").write_text("sk-canary")
    (folder / "module.py").write_text("value = 1\n")
    for path in folder.iterdir():
        path.chmod(0o666)
    name = folder.name
    tcp, udp = socket.create_server(("127.0.0.1", 0)), socket.socket(type=socket.SOCK_DGRAM)
    port = tcp.getsockname()[1]
    udp.bind(("127.0.0.1", port))
    listeners = [tcp, udp]
    for place in (f"{folder}/{name}", f"\0{name}"):
        listeners.append(socket.socket(socket.AF_UNIX))
        listeners[-1].bind(place)
        listeners[-1].listen()
    (folder / name).chmod(0o777)
    for listener in listeners:
        listener.setblocking(False)
    yield Evidence(folder, port, name, listeners)
    for listener in listeners:
        listener.close()
    shutil.rmtree(folder)


def run_hostile(runner: Runner, evidence: Evidence, source: str) -> dict[str, Any]:
    """Run a hostile checker; whatever came of it, nobody else may have noticed."""
    result = runner.check(evidence.fill_in(source))
    assert result["neighbour"]
    assert result["same_server"]
    assert result["left"] == []
    assert not evidence.heard()
    assert evidence.state() == evidence.before
    return result


# Hostile checkers

DEAD: set[object] = {"checker_timeout", "checker_killed", "checker_error"}
# What each shared case may come to: the value of a clean run, or a reason.
EXPECTED: dict[str, set[object]] = {
    "atexit_hook": {True},
    "bigint": {"checker_timeout"},
    "chdir_umask_locale": {True},
    "deep_recursion": DEAD,
    "env_key": {False},
    "fork_children": {"checker_error"},
    "huge_print": {True},
    "huge_return": DEAD,
    "kill_parent": {"checker_error"},
    "loop": {"checker_timeout"},
    "monkeypatch": {True},
    "orphan_daemon": {"checker_error"},
    "os_exit": {"checker_killed"},
    "parent_memory": {False},
    "pickle_bomb": {"checker_error"},
    "ptrace_parent": {False},
    "read_etc": {"checker_error"},
    "read_secret": {"checker_error"},
    "redos": {"checker_timeout"},
    "rlimit_raise": {"checker_error"},
    "segfault": {"checker_killed"},
    "sleep_ignore_signals": {"checker_timeout"},
    "stdout_noise": {False},
    "subprocess_run": {"checker_error"},
    "sys_exit": {"checker_error"},
    "tcp_connect": {"checker_error"},
    "udp_send": {"checker_error"},
    "write_file": {False},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_shared_case(runner: Runner, evidence: Evidence, name: str) -> None:
    path = HOSTILE / f"{name}.py"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    result = run_hostile(runner, evidence, path.read_text("utf-8"))
    assert (result["reason"] or result["value"]) in EXPECTED[name], result


def test_every_shared_case_is_expected() -> None:
    if not HOSTILE.exists():
        pytest.skip(f"{HOSTILE} is not here")
    assert {path.stem for path in HOSTILE.glob("*.py")} == EXPECTED.keys()


@pytest.mark.parametrize("name", SNIPPETS)
def test_hostile_checker(runner: Runner, evidence: Evidence, name: str) -> None:
    result = run_hostile(runner, evidence, SNIPPETS[name])
    # Nothing it wanted was had. An error of its own making would prove nothing.
    assert result["value"] in (False, None), result
    for mistake in ("SyntaxError", "NameError", "ModuleNotFoundError"):
        assert not str(result["detail"]).startswith(mistake), result


# Control: where isolation is weaker the same attacks succeed, so the tests above would see them.

KEY_OF_JUDGE = """
import os
def check_following(response):
    stat = open(f'/proc/{os.getppid()}/stat').read()
    judge = stat.rpartition(')')[2].split()[1]
    return 'sk-canary' in open(f'/proc/{judge}/environ').read()
"""
STATE = """
import ctypes, os, resource
def held(fd):
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
def check_following(response):
    limits = {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if 'RLIMIT_' in n}
    return repr({
        'dumpable': ctypes.CDLL(None).prctl(3, 0, 0, 0, 0),
        'session': os.getsid(0) == os.getpid(),
        'folder': os.getcwd(),
        'descriptors': [fd for fd in range(64) if held(fd)],
        'no more': [name for name, limit in limits.items() if limit == (0, 0)],
        'some': {name: limit[1] for name, limit in limits.items() if 0 < limit[1] < 100},
        'memory': limits['RLIMIT_AS'],
    })
"""
DAEMON = """
import os, time
def check_following(response):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            os.write(writer, str(os.getpid()).encode())
            time.sleep(600)
        os._exit(0)
    return os.read(reader, 20).decode()
"""


@pytest.fixture(params=USERS, ids=user_name)
def weak(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """A kernel with neither Landlock nor seccomp."""
    runner = Runner(request.param, "landlock,seccomp")
    yield runner
    runner.close()


def test_without_isolation_attacks_succeed(weak: Runner, evidence: Evidence) -> None:
    names = ("secret", "tcp4", "unix_abstract")
    try:
        for source in (SNIPPETS[name] for name in names):
            result = weak.check(evidence.fill_in(source))
            assert result["value"] is True, result
            assert result["neighbour"]
    finally:
        heard = evidence.heard()
    assert heard


def test_the_server_shows_nobody_its_memory(weak: Runner, evidence: Evidence) -> None:
    result = weak.check(evidence.fill_in(SNIPPETS["memory_of_the_server"]))
    assert result["value"] is False
    assert result["neighbour"]


def test_what_is_left_of_root(weak: Runner) -> None:
    """Even so a check lacks root's powers: the judging process, with the key, has more."""
    result = weak.check(KEY_OF_JUDGE)
    if weak.isolation["uid"] == 0:
        assert str(result["detail"]).startswith("PermissionError")
    else:
        assert result["value"] is True


def test_a_key_is_out_of_reach(runner: Runner) -> None:
    assert str(runner.check(KEY_OF_JUDGE)["detail"]).startswith("PermissionError")


def test_what_a_check_has(runner: Runner) -> None:
    state = ast.literal_eval(runner.check(STATE)["value"])
    assert len(state["descriptors"]) == 5  # three on /dev/null, and its two pipes
    assert (state["dumpable"], state["session"]) == (0, True)
    assert state["folder"] == "/proc/tty/ldisc"
    assert {"RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_NPROC"} <= set(state["no more"])
    some = {"RLIMIT_CPU": 4, "RLIMIT_NOFILE": 64, "RLIMIT_SIGPENDING": 64}
    assert some.items() <= state["some"].items()
    assert state["memory"] == (1 << 30, 1 << 30)


def test_a_daemon_does_not_outlive_its_check(weak: Runner) -> None:
    """Where processes can be started at all, they end with their check."""
    result = weak.check(DAEMON)
    if weak.isolation["uid"] == 0:
        assert not psutil.pid_exists(int(result["value"]))
    else:
        assert str(result["detail"]).startswith("BlockingIOError")  # the limit binds
    assert result["left"] == []
    assert result["neighbour"]


# Levels


@pytest.mark.parametrize("uid", USERS, ids=user_name)
@pytest.mark.parametrize(
    ("without", "level"),
    [("", "strong"), ("landlock", "medium"), ("seccomp", "weak"), ("landlock,seccomp", "weak")],
)
def test_the_level_is_what_the_kernel_gives(uid: int, without: str, level: str) -> None:
    runner = Runner(uid, without)
    assert (runner.isolation["level"], runner.isolation["uid"]) == (level, uid)
    assert runner.check("def check_following(response): return 'ran'")["value"] == "ran"
    runner.close()


# Snippets whose aim is to read or that count reading among their aims.
READING = (
    "secret",
    "secret_by_other_doors",
    "secret_by_import",
    "system_files",
    "proc",
    "links_in_proc",
    "memory_of_the_server",
    "folders",
)


@pytest.fixture(scope="module", params=USERS, ids=user_name)
def medium(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """A kernel without Landlock."""
    runner = Runner(request.param, "landlock")
    yield runner
    runner.close()


@pytest.mark.parametrize("name", [name for name in NOT_SLOW if name not in READING])
def test_medium_stops_all_but_reading(medium: Runner, evidence: Evidence, name: str) -> None:
    assert run_hostile(medium, evidence, SNIPPETS[name])["value"] in (False, None)


@pytest.mark.parametrize(
    ("succeeded", "level"),
    [
        ([], "strong"),
        (["read"], "medium"),
        (["proc", "system", "read"], "medium"),
        (["read", "socket"], "weak"),
        (["mode"], "weak"),
        (["memory"], "none"),
        (["environment", "socket"], "none"),
        (["probe"], "none"),
    ],
)
def test_levels(succeeded: list[str], level: str) -> None:
    assert isolation_of(succeeded).level == level


def test_servers_together_are_as_weak_as_what_each_allows() -> None:
    both = weakest([isolation_of(["read"]), isolation_of(["socket"])])
    assert (both.level, set(both.succeeded)) == ("weak", {"read", "socket"})
    assert weakest([]).level == "strong"


def test_every_attempt_has_words() -> None:
    text = Path(attempts.__file__).read_text()
    names = re.findall(r'^        "(\w+)": ', text, re.MULTILINE)
    assert {*names, "probe"} == DEEDS.keys()


def start(minimum: Level) -> Isolation:
    """Start a pool of two servers."""

    async def main() -> Isolation:
        async with CheckerPool(workers=2, minimum=minimum) as pool:
            return pool.isolation

    return asyncio.run(main())


def test_below_the_minimum_no_check_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start("strong").level == "strong"
    monkeypatch.setattr(worker, "isolation_of", lambda _: isolation_of(["read", "socket"]))
    assert start("weak").allows == ("use the network", "read the files of this user")
    with pytest.raises(CheckerError, match="could use the network, read the files") as raised:
        start("medium")
    assert "checkers: {isolation: weak}" in str(raised.value)
    assert Checkers().isolation == "medium"


def test_a_result_says_how_it_was_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> list[Level | None]:
        async with CheckerPool(workers=1, minimum="weak") as pool:
            results = [await pool.check(*check) for check in (("", ""), (source, "x"))]
            results.append(await pool.check(source, "x" * (MAX_REQUEST + 1)))
            return [result.isolation for result in results]

    source = "def check_following(response): return True"
    assert asyncio.run(main()) == ["strong", "strong", None], "one that never ran has none"
    monkeypatch.setattr(worker, "isolation_of", lambda _: isolation_of(["read", "socket"]))
    assert asyncio.run(main()) == ["weak", "weak", None]


def test_a_probe_that_fails_is_no_isolation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "attempts.py"
    broken.write_text("def check_following(response): raise ValueError")
    monkeypatch.setattr(worker, "_ATTEMPTS_FILE", broken)
    with pytest.raises(CheckerError, match="cannot be tried: error ValueError"):
        start("weak")
    assert start("none").allows == (DEEDS["probe"],)


def test_no_place_to_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with pytest.raises(CheckerError, match="TMPDIR"):
        start("weak")


# Libraries: what the loader of shared libraries may need of LD_LIBRARY_PATH

LOADS = """
import ctypes, json, os
def can(deed, *arguments):
    try:
        deed(*arguments)
    except PermissionError:
        return False
    return True
def check_following(response):
    given = json.loads(response)
    assert ctypes.CDLL('libx.so.1').cos
    assert not can(os.listdir, given['folder'])
    return json.dumps([path for path in given['paths'] if can(open, path)])
"""


def test_only_libraries_are_read_where_the_loader_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LD_LIBRARY_PATH may name a home; the Python that needs it starts, and checkers load."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (home, home / "libfolder.so", elsewhere):
        folder.mkdir()
    maps = Path("/proc/self/maps").read_text().split()
    shutil.copy(next(word for word in maps if re.search(r"/libm[.-][^/]*$", word)), home)
    next(home.glob("libm*")).rename(home / "libx.so.1")
    (home / "libx.so").symlink_to("libx.so.1")
    (elsewhere / "liby.so.2.0").write_text("")
    (home / "liby.so.2").symlink_to(elsewhere / "liby.so.2.0")
    secrets = ("secret.txt", "notes.so.txt", "x.sort", "libfolder.so/secret.txt")
    for name in secrets:
        (home / name).write_text("sk-canary")
    (home / "libz.so").symlink_to("secret.txt")
    python = tmp_path / "python"
    exec_ = f"exec env -u PWD -u OLDPWD -u SHLVL -u _ {sys.executable}"  # what a shell adds
    python.write_text(f'#!/bin/sh\n: "${{LD_LIBRARY_PATH:?}}"\n{exec_} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("LD_LIBRARY_PATH", f":/nowhere;{home}:{home}/secret.txt")
    libraries = [str(home / name) for name in ("libx.so", "libx.so.1", "liby.so.2")]
    paths = [*libraries, *(str(home / name) for name in secrets), str(home / "libz.so")]

    async def main() -> None:
        async with CheckerPool(workers=1) as pool:
            assert pool.isolation.level == "strong"
            given = json.dumps({"folder": str(home), "paths": paths})
            result = await pool.check(LOADS, given)
            assert result.value == json.dumps(libraries), result

    asyncio.run(main())


def test_the_loaders_path_costs_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is what is readable anyway allowed file by file."""
    for folder in ("a", "b", "known/below"):
        (tmp_path / folder).mkdir(parents=True)
        for number in range(5):
            (tmp_path / folder / f"lib{number}.so").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", ":".join(f"{tmp_path}/{n}" for n in ("a", "b", "a")))

    def allowed() -> int:
        paths: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(landlock.Landlock, "_allow", lambda _, path, __: paths.append(path))
            os.close(landlock.Landlock()._rules)
        return len([path for path in paths if path.startswith(f"{tmp_path}/")])

    assert allowed() == 10
    monkeypatch.setattr(landlock, "_MOST_ENTRIES", 4)
    assert allowed() == 8
    monkeypatch.setattr(landlock, "_MOST_LIBRARIES", 7)
    assert allowed() == 7
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}/known:{tmp_path}/known/below")
    assert list(landlock._libraries([f"{tmp_path}/known"])) == []


def judged(tmp_path: Path) -> dict[str, Any]:
    """Judge one answer with this project's configuration; return the job's record."""
    checker = "def check_following(response): return True"
    row = {
        "input": [{"role": "user", "content": "Hi"}],
        "constraints": [{"evaluation": [{"type": "code", "exec": checker}]}],
        "output": {"content": "Ho"},
    }
    record: dict[str, Any] = {}
    files = (tmp_path / "journal.jsonl", "judge", tmp_path / "server.log")
    run = run_judging(Judging(load_project(ROOT), None, [row], *files), record)
    assert run.rows[0]["constraints"][0]["score"] is True
    return record


def test_a_judgement_records_its_isolation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path)["isolation"] == {"level": "strong", "allows": []}
    assert "isolation" not in capsys.readouterr().err
    monkeypatch.setattr(worker, "isolation_of", lambda _: isolation_of(["system"]))
    record = judged(tmp_path)["isolation"]
    assert record == {"level": "medium", "allows": ["read files of the system"]}
    (warning,) = isolation_warnings(record)
    assert warning == "checkers run with isolation medium: they can read files of the system"
    assert f"warning: {warning}" in capsys.readouterr().err
    monkeypatch.setattr(worker, "isolation_of", lambda _: isolation_of(["socket"]))
    with pytest.raises(CheckerError, match="isolation weak, at least medium"):
        judged(tmp_path)


# Honest checkers lose nothing

HONEST = {
    "asyncio": "import asyncio\nasync def f(): return 'ok'\nvalue = asyncio.run(f())",
    "numpy": "import numpy\nvalue = str(numpy.linalg.norm([3.0, 4.0]))",
    "pandas": "import pandas\nvalue = str(pandas.Series([1, 2]).sum())",
    "pyarrow": "import pyarrow\nvalue = str(pyarrow.array([7])[0])",
    "regex": "import regex\nvalue = regex.sub(r'\\p{L}+', 'x', '很长 abc')",
    "yaml": "import yaml\nvalue = str(yaml.safe_load('a: 1'))",
    "pydantic": "import pydantic\nvalue = repr(pydantic.create_model('M', a=(int, 1))())",
    "devnull": (
        "import contextlib, os\n"
        "with open(os.devnull, 'w') as f, contextlib.redirect_stdout(f): print('x')\n"
        "value = 'ok'"
    ),
    "zones": (
        "import datetime, zoneinfo\nzone = zoneinfo.ZoneInfo('Europe/Berlin')\n"
        "value = datetime.datetime(2026, 7, 1, tzinfo=zone).tzname()"
    ),
    "sqlite": (
        "import sqlite3\nvalue = str(sqlite3.connect(':memory:').execute('select 1').fetchone())"
    ),
    "alarm": (
        "import signal, time\n"
        "def stop(*a): raise TimeoutError\n"
        "signal.signal(signal.SIGALRM, stop)\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\n"
        "try: time.sleep(60)\nexcept TimeoutError: value = 'alarm'"
    ),
    "own_signal": (
        "import os, signal\nsignal.signal(signal.SIGUSR1, lambda *a: None)\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\nvalue = 'alive'"
    ),
    "limits": "import resource\nvalue = str(len(resource.getrlimit(resource.RLIMIT_FSIZE)))",
    "sources": "import inspect, json\nvalue = inspect.getsource(json.loads)[:9]",
    "encodings": "value = '很长'.encode('gb18030').decode('gb18030')",
    "dataclass": "import dataclasses\nvalue = repr(dataclasses.make_dataclass('A', ['x'])(1))",
    "random": "import random, secrets, uuid\nvalue = str(len(secrets.token_hex(4)))",
    "machine": "import os, platform\nvalue = str(bool(platform.platform()) and os.cpu_count() > 0)",
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_checkers_lose_nothing(runner: Runner, name: str) -> None:
    here: dict[str, object] = {"__name__": "checker"}
    exec(HONEST[name], here)
    result = runner.check(HONEST[name] + "\ndef check_following(response): return value\n")
    assert result["value"] == here["value"], result
