"""The GPU pool, its names and its leases: a fake driver, real lock files, real processes."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest
from fake_nvml import FakeGpu, FakeNvml

from adhere import gpus
from adhere.config import Local, ModelConfig
from adhere.config.load import parse
from adhere.errors import AdhereError, ConfigError
from adhere.gpus import Device, Request, Sharing, devices, grant, granted, leases, nvml, visible

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT_S = 30.0

TWO = (FakeGpu("GPU-aaaa-1111"), FakeGpu("GPU-bbbb-2222", instances=()))
MIG = (FakeGpu("GPU-cccc", instances=[FakeGpu("MIG-one"), FakeGpu("MIG-two")]),)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lease folder of the test's own, and no variable of the caller's."""
    place = tmp_path / "leases"
    monkeypatch.setenv(leases.FOLDER_VARIABLE, str(place))
    for name in (devices.VISIBLE, grant._ALLOCATED):
        monkeypatch.delenv(name, raising=False)
    return place


def pool(
    configured: Any, fake: Sequence[FakeGpu] | None, caller: str | None = None
) -> list[tuple[str, str]]:
    """Return (name, key) of every device of a pool."""
    environ = {} if caller is None else {devices.VISIBLE: caller}
    with nvml.driver(FakeNvml(fake)) as driver:
        found = gpus.local_pool(configured, environ, driver)
    return [(device.name, device.key) for device in found.devices]


A, B = ("0", "GPU-aaaa-1111"), ("1", "GPU-bbbb-2222")


@pytest.mark.parametrize(
    ("configured", "fake", "caller", "expected"),
    [
        ("auto", TWO, None, [A, B]),
        ("auto", TWO, "1", [B]),
        ("auto", TWO, "GPU-bbbb-2222,0", [("GPU-bbbb-2222", B[1]), A]),
        ("auto", TWO, "GPU-bb", [("GPU-bb", B[1])]),
        ("auto", TWO, "0,GPU-aaaa-1111", [A]),
        ("auto", TWO, "", []),
        ("auto", TWO, "1,-1,0", [B]),
        ("auto", TWO, "NoDevFiles", []),
        ("auto", None, None, []),
        ("auto", None, "3,MIG-x", [("3", "3"), ("MIG-x", "MIG-x")]),
        ("auto", (), None, []),
        ("auto", MIG, None, [("MIG-one", "MIG-one"), ("MIG-two", "MIG-two")]),
        ("auto", (*MIG, TWO[0]), None, [("MIG-one",) * 2, ("MIG-two",) * 2, ("1", A[1])]),
        (("1", "GPU-aaaa-1111"), TWO, None, [B, ("GPU-aaaa-1111", A[1])]),
        (("1", "GPU-bbbb-2222"), TWO, None, [B]),
        (("1", "0"), TWO, "GPU-aaaa-1111", [A]),
        (("x/../y", "0"), None, None, [("x/../y",) * 2, ("0", "0")]),
        (("fake-0", "fake-1"), TWO, None, [("fake-0",) * 2, ("fake-1",) * 2]),
        (("fake-0", "fake-1"), None, "fake-1", [("fake-1",) * 2]),
    ],
)
def test_pool(
    configured: Any,
    fake: Sequence[FakeGpu] | None,
    caller: str | None,
    expected: list[tuple[str, str]],
) -> None:
    assert pool(configured, fake, caller) == expected


@pytest.mark.parametrize("name", ["2", "GPU-zzzz", "MIG-three"])
def test_a_device_that_the_machine_lacks_is_refused(name: str) -> None:
    with pytest.raises(
        ConfigError,
        match=rf"gpus: {name} is not on this machine \(there are: 0 = GPU-aaaa-1111, 1 = GPU-bbbb",
    ):
        pool((name,), TWO)


def test_driver_is_let_go_and_a_broken_one_is_none() -> None:
    fake = FakeNvml(TWO)
    with nvml.driver(fake) as driver:
        assert driver is not None and driver.version == "580.0-fake" and fake.open == 1
        assert driver.gpus[0] == nvml.Gpu("GPU-aaaa-1111", "Fake GPU 80GB", 81920, 0)
        assert driver.used_mib("GPU-none") is None
    assert fake.open == 0

    class Broken(FakeNvml):
        def nvmlDeviceGetCount(self) -> int:  # noqa: N802
            raise self.NVMLError("GPU is lost")

    broken = Broken(TWO)
    with nvml.driver(broken) as driver:
        assert driver is None
    assert broken.open == 0


def test_real_module_has_every_name_that_is_used() -> None:
    import pynvml

    for name in vars(FakeNvml):
        assert name.startswith("__") or hasattr(pynvml, name), name
    with nvml.driver() as driver:  # whatever this machine has, it is no error
        assert driver is None or driver.version


def test_what_a_server_sees() -> None:
    assert visible(()) == {"CUDA_VISIBLE_DEVICES": ""}
    assert visible((Device("GPU-a"), Device("MIG-b"))) == {"CUDA_VISIBLE_DEVICES": "GPU-a,MIG-b"}
    indices = {"CUDA_VISIBLE_DEVICES": "3,1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert visible((Device("3"), Device("1"))) == indices


def local(**fields: Any) -> ModelConfig:
    content = {"model_path": "/m", "max_model_len": 64, "modes": {"m": None}, **fields}
    return parse(ModelConfig, content, "configs/m.yaml")


FOUR = tuple(Device(f"fake-{n}") for n in range(4))


@pytest.mark.parametrize(
    ("fields", "stated", "servers"),
    [
        ({}, None, 1),
        ({"replicas": 3}, None, 3),
        ({"replicas": 9}, None, 4),
        ({"replicas": 9, "num_gpus": 3}, None, 1),
        ({"replicas": 2, "tensor_parallel_size": 2}, None, 2),
        ({"replicas": 2, "tensor_parallel_size": 2}, 3, 1),
        ({"replicas": 2, "gpus": ["fake-0", "fake-1", "fake-2"], "num_gpus": 1}, None, 2),
        ({"replicas": 5, "num_gpus": 0}, 0, 5),
    ],
)
def test_servers_that_find_room(fields: dict[str, Any], stated: int | None, servers: int) -> None:
    config = local(**fields)
    sharing = Sharing(gpus.Pool(FOUR, "configs/global.yaml"), stated)
    assert sharing.servers(config, config.replicas, "configs/m.yaml") == servers


@pytest.mark.parametrize(
    ("fields", "stated", "message"),
    [
        (
            {"num_gpus": 5},
            None,
            r"m\.yaml: takes 5 GPUs, and there are 4: the GPUs of configs/glob",
        ),
        ({"num_gpus": 2}, 1, r"takes 2 GPUs, and there are 1: .*, --resources gpu=1\. Run it"),
        ({"gpus": ["fake-1"], "num_gpus": 2}, None, r"there are 1: .*its own `gpus` \(fake-1\)"),
        (
            {"gpus": ["fake-9"]},
            None,
            r"m\.yaml: gpus: fake-9 is not among the GPUs of configs/glob",
        ),
    ],
)
def test_models_that_find_no_room(fields: dict[str, Any], stated: int | None, message: str) -> None:
    sharing = Sharing(gpus.Pool(FOUR, "configs/global.yaml"), stated)
    with pytest.raises(ConfigError, match=message):
        sharing.servers(local(**fields), 1, "configs/m.yaml")


def test_a_fixed_port_has_no_replicas() -> None:
    with pytest.raises(ConfigError, match="has both `port` and `replicas`"):
        local(port=8000, replicas=2)
    assert "replicas" not in Local.model_fields  # a judge has none


# What a job gets


def request(each: int, replicas: int = 1, **fields: Any) -> Request:
    return Request("configs/m.yaml", each, replicas, **fields)


def test_grant_on_this_machine() -> None:
    names = ("fake-0", "fake-1", "2", "fake-3", "fake-4")
    with granted(request(2, 3, pool=names)) as given:
        assert [[d.name for d in share.devices] for share in given.shares] == [
            ["fake-0", "fake-1"],
            ["2", "fake-3"],
        ]
        assert given.shares[1].env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
        assert all(len(share.held) == 2 for share in given.shares)
        assert given.record["from"] == "lease"
        # What is optional is not waited for: one replica starts where one finds room.
        with granted(request(1, 4, pool=names)) as other:
            assert [share.env for share in other.shares] == [{"CUDA_VISIBLE_DEVICES": "fake-4"}]
    with pytest.raises(ConfigError, match=r"takes 3 of the GPUs of configs/global\.yaml \(a, b\)"):
        granted(request(3, pool=("a", "b"))).__enter__()


def test_grant_without_gpus_shows_none() -> None:
    with granted(request(0, 2)) as given:
        assert [share.env for share in given.shares] == [{"CUDA_VISIBLE_DEVICES": ""}] * 2


@pytest.mark.parametrize(
    ("caller", "each", "replicas", "expected"),
    [
        # One server has it all: the batch system's variables stay as they are.
        ("GPU-7f,MIG-1/2/3", 2, 1, [({}, ["GPU-7f", "MIG-1/2/3"])]),
        ("3,2,1,0", 2, 2, [({"V": "3,2"}, ["3", "2"]), ({"V": "1,0"}, ["1", "0"])]),
        ("3,2,1", 1, 2, [({"V": "3"}, ["3"]), ({"V": "2"}, ["2"])]),
        (None, 2, 2, [({}, [])]),
    ],
)
def test_grant_inside_an_allocation(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    caller: str | None,
    each: int,
    replicas: int,
    expected: list[tuple[dict[str, str], list[str]]],
) -> None:
    gpus.mark_allocation(True)
    if caller is not None:
        monkeypatch.setenv(devices.VISIBLE, caller)
    try:
        with granted(request(each, replicas, pool=("not", "mine"))) as given:
            got = [(share.env, [d.name for d in share.devices]) for share in given.shares]
        assert got == [
            ({devices.VISIBLE: env["V"]} if env else {}, names) for env, names in expected
        ]
        assert given.record["from"] == "allocation"
    finally:
        gpus.mark_allocation(False)
    assert not folder.exists()


def test_too_few_in_an_allocation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(grant._ALLOCATED, "1")
    monkeypatch.setenv(devices.VISIBLE, "0")
    with pytest.raises(ConfigError, match=r"takes 2 GPUs, and the batch system gave this job 1"):
        granted(request(2)).__enter__()


def test_record_and_memory_that_comes_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lease outlasts the server until the driver has its memory back, or patience ends."""
    fake = FakeNvml([FakeGpu("GPU-aaaa", used_mib=100)])
    gpu = (fake.gpus or ())[0]
    monkeypatch.setattr(grant, "driver", lambda: nvml.driver(fake))
    looks: list[bool] = []

    def sleep(_seconds: float) -> None:
        looks.append(is_free(gpu.uuid))
        gpu.used_mib = 300 if len(looks) == 3 else gpu.used_mib

    monkeypatch.setattr(grant.time, "sleep", sleep)
    with granted(request(1)) as given:
        gpu.used_mib = 70_000
    facts = {"name": "0", "uuid": "GPU-aaaa", "product": "Fake GPU 80GB", "memory_mib": 81920}
    assert given.record == {"from": "lease", "driver": "580.0-fake", "devices": [facts]}
    assert looks == [False] * 3 and is_free(gpu.uuid) and capsys.readouterr().err == ""

    monkeypatch.setattr(grant, "_RELEASE_TIMEOUT_S", 0.0)
    with granted(request(1)):
        gpu.used_mib = 70_000
    assert "GPU GPU-aaaa still has 70000 MiB in use (300 MiB before" in capsys.readouterr().err
    assert is_free(gpu.uuid) and fake.open == 0


def test_two_names_of_one_device_are_one_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grant, "driver", lambda: nvml.driver(FakeNvml(TWO)))
    with granted(request(1, pool=("0",))):
        assert not is_free("GPU-aaaa-1111")
        with granted(request(1, pool=("GPU-bbbb-2222",))):
            assert not is_free("GPU-bbbb-2222")


# Leases


def is_free(key: str) -> bool:
    """Whether a device could be leased now."""
    lease, _ = leases._attempt(leases._folder(), leases.Wish((Device(key),), 1, 1, "a look"))
    if lease is not None:
        lease.release()
    return lease is not None


HOLDER = """
    import os, sys
    from adhere.gpus import Request, granted
    if "AS_USER" in os.environ:  # only now: the project may lie where that user cannot read it
        os.setgroups([])
        os.setgid(int(os.environ["AS_USER"]))
        os.setuid(int(os.environ["AS_USER"]))
    names, each = tuple(sys.argv[1].split(",")), int(sys.argv[2])
    with granted(Request(sys.argv[3], each, 1, None, names)) as given:
        print(",".join(d.name for d in given.shares[0].devices), flush=True)
        sys.stdin.read()
"""


@contextmanager
def holder(
    names: str, each: int, owner: str = "configs/h.yaml", user: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a process that leases devices, prints their names and holds them until stdin ends."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER), names, str(each), owner],
        env={
            **{k: v for k, v in os.environ.items() if k not in ("USER", "LOGNAME")},
            "PYTHONPATH": str(ROOT),
            **({} if user is None else {"AS_USER": str(user)}),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(stream: Any) -> str:
    text: str = stream.readline()
    return text.strip()


def test_a_killed_holder_frees_its_device_and_the_waiting_one_goes_on() -> None:
    with holder("a", 1, "configs/first.yaml") as first:
        assert line(first.stdout) == "a"
        with holder("a", 1, "configs/second.yaml") as second:
            assert line(second.stderr) == (
                "configs/second.yaml: waits for 1 of the GPUs a; in use: a by process "
                f"{first.pid} of {leases._user()} (configs/first.yaml)"
            )
            first.kill()
            assert line(second.stdout) == "a"
            assert line(second.stderr) == "configs/second.yaml: has its GPUs now: a"
            assert not is_free("a")
            assert second.communicate("", timeout=TIMEOUT_S) and second.returncode == 0
    assert is_free("a")


def test_all_or_nothing() -> None:
    """A job that waits holds nothing: those that need less go on."""
    with holder("a,b,c", 1) as one:
        assert line(one.stdout) == "a"
        with holder("a,b,c", 3) as three:
            assert "waits for 3 of the GPUs a, b, c; in use: a by process" in line(three.stderr)
            with holder("a,b,c", 2) as two:
                assert line(two.stdout) == "b,c"
                two.communicate("", timeout=TIMEOUT_S)
            one.communicate("", timeout=TIMEOUT_S)
            assert line(three.stdout) == "a,b,c"


def test_many_that_each_need_two_of_two_all_get_them() -> None:
    """No deadlock: each of them would wait for ever if one could hold a single device."""
    with ExitStack() as stack:
        processes = [stack.enter_context(holder("a,b", 2)) for _ in range(5)]
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in processes:
            assert process.wait(TIMEOUT_S) == 0
            assert line(process.stdout) == "a,b"


def test_no_device_is_leased_twice() -> None:
    with ExitStack() as stack:
        processes = [stack.enter_context(holder("a,b,c,d", 1)) for _ in range(4)]
        assert sorted(line(process.stdout) for process in processes) == ["a", "b", "c", "d"]


@pytest.mark.skipif(os.getuid() != 0, reason="not on this machine: the rights of root")
def test_users_share_one_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory() as parent:
        Path(parent).chmod(0o1777)
        folder = Path(parent) / "leases"
        monkeypatch.setenv(leases.FOLDER_VARIABLE, str(folder))
        _share(folder)


def _share(folder: Path) -> None:
    """Have root and nobody lease devices of one pool side by side."""
    with holder("a,b", 1) as mine:
        assert line(mine.stdout) == "a"
        assert folder.stat().st_mode & 0o7777 == 0o1777
        with holder("a,b", 1, user=65534) as theirs:
            assert line(theirs.stdout) == "b"
            with holder("b", 1) as third:
                assert f"b by process {theirs.pid} of nobody" in line(third.stderr)
                theirs.kill()
                assert line(third.stdout) == "b"
        with holder("b", 1, user=65534) as again:
            assert line(again.stdout) == "b"  # a file that another user made and wrote to


def test_lock_files_are_never_reached_through_links(folder: Path, tmp_path: Path) -> None:
    treasure = tmp_path / "treasure"
    treasure.write_text("gold")
    assert is_free("x")  # makes the folder
    device = Device("a")
    for make in (Path.symlink_to, Path.hardlink_to):
        place = folder / leases._file_name(device)
        make(place, treasure)
        with pytest.raises(AdhereError, match="is no lock file"):
            granted(request(1, pool=("a",))).__enter__()
        place.unlink()
    assert treasure.read_text() == "gold"


def test_a_folder_that_is_no_shared_one_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AdhereError, match=r"must be a folder .* \(chmod 1777\)"):
        granted(request(1, pool=("a",))).__enter__()
    folder.unlink()
    folder.write_text("")
    with pytest.raises(AdhereError, match="must be a folder"):
        granted(request(1, pool=("a",))).__enter__()
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("name", ["../../etc/x", "a/b", "GPU-" + "f" * 400, "", "ß☃", "a b\nc"])
def test_file_names_of_devices(name: str) -> None:
    file = leases._file_name(Device(name))
    assert file.isascii() and "/" not in file and len(file) < 70
    assert file != leases._file_name(Device(name + "x"))


# A lease lasts as long as anything of the server does

OWNER = """
    import json, os, signal, sys
    from pathlib import Path
    from adhere.engines import LocalServer, ReadyProbe
    from adhere.gpus import Request, granted
    from adhere.lifeline import raise_on_signals
    command = json.loads(sys.argv[1])
    with (
        raise_on_signals(),
        granted(Request("m", 1, 1, None, ("a",))) as given,
        LocalServer(
            lambda port: [*command, str(port)],
            env={**os.environ, **given.shares[0].env}, log=Path(sys.argv[2]),
            ready=ReadyProbe("m", lambda root: {}), grace_s=2.0, held=given.shares[0].held,
        ) as server,
    ):
        print(json.dumps(server.pids), flush=True)
        signal.pause()
"""
# Tells what it inherited, serves, and takes its time to end.
SERVER = """
import http.server, json, os, signal, sys
targets = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
           if os.path.lexists(f"/proc/self/fd/{fd}")]
assert not any(target.endswith(".lock") for target in targets), targets
assert os.environ["CUDA_VISIBLE_DEVICES"] == "a"
signal.signal(signal.SIGTERM, signal.SIG_IGN)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"data": [{"id": "m"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@contextmanager
def owner(log: Path) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """Run a process that leases device a and owns a server; yields it and the server's processes,
    the guardian first."""
    command = json.dumps([sys.executable, "-c", SERVER])
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(OWNER), command, str(log)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            pids: list[int] = json.loads(line(process.stdout))
            found = [psutil.Process(pid) for pid in pids]
            yield process, sorted(found, key=lambda p: p.ppid() != process.pid)
        finally:
            process.kill()


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_device_is_free_only_when_the_server_is_gone(
    tmp_path: Path, signum: signal.Signals
) -> None:
    with owner(tmp_path / "log") as (process, (guardian, server)):
        assert not is_free("a")
        process.send_signal(signum)
        # The server ignores SIGTERM for its grace period: the device stays leased all the while.
        seen = 0
        while not is_free("a"):
            seen += 1
            guardian.is_running() and psutil.wait_procs([guardian], timeout=0.05)
        assert seen and not lives(server)
        psutil.wait_procs([guardian], timeout=TIMEOUT_S)
        assert not lives(guardian)


def test_device_stays_with_the_job_when_the_guardian_is_killed(tmp_path: Path) -> None:
    with owner(tmp_path / "log") as (process, (guardian, server)):
        guardian.kill()
        psutil.wait_procs([server], timeout=TIMEOUT_S)
        assert not lives(server) and not is_free("a")
        process.kill()
        process.wait(TIMEOUT_S)
        assert is_free("a")


# Several servers start side by side

STARTER = """
    import json, os, sys
    from pathlib import Path
    from adhere.engines import LocalServer, ReadyProbe
    from adhere.jobs.serving import _start, _stopping, _Clock
    from adhere.lifeline import raise_on_signals
    made, record = [], {"servers": []}
    for number, code in enumerate(sys.argv[2:]):
        made.append(LocalServer(
            lambda port, code=code: [sys.executable, "-c", code], env=dict(os.environ),
            log=Path(sys.argv[1]) / str(number), ready=ReadyProbe("m", lambda root: {}), grace_s=1,
        ))
        record["servers"].append({})
    with raise_on_signals(), _stopping(made, record, _Clock(record)):
        _start(made)
"""
WAITS = "import os, signal; print(os.getpid(), flush=True); signal.pause()"


@contextmanager
def starter(logs: Path, *codes: str) -> Iterator[subprocess.Popen[str]]:
    logs.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(STARTER), str(logs), *codes],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def started(log: Path) -> psutil.Process:
    """Wait until a server has written its pid."""
    for _ in range(int(TIMEOUT_S / 0.05)):
        if log.exists() and log.read_text().endswith("\n"):
            return psutil.Process(int(log.read_text()))
        time.sleep(0.05)
    raise AssertionError("the server does not start")


def test_one_server_that_fails_to_start_ends_the_others(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "0"
    # Fails only once the other one is there.
    fails = f"""
import sys, time
from pathlib import Path
while not Path({str(path)!r}).exists() or not Path({str(path)!r}).read_text(): time.sleep(0.02)
sys.exit("no GPU")
"""
    with starter(path.parent, WAITS, fails) as process:
        other = started(path)
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 1 and not lives(other)
        assert "EngineError: the server of model 'm' does not start: it exited with status 1" in err


def test_a_signal_while_servers_start_ends_them_all(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    with starter(logs, WAITS, WAITS) as process:
        servers = [started(logs / "0"), started(logs / "1")]
        process.terminate()
        assert process.wait(TIMEOUT_S) == 128 + signal.SIGTERM
        assert not any(map(lives, servers))
