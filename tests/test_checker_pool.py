"""The pool's servers: started, cancelled, killed, closed."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from checking import (
    ENDLESS,
    IDENTITY,
    NEIGHBOUR,
    TIMEOUT_S,
    Setup,
    gone,
    neighbour_is_right,
    one_server,
    until,
)

from adhere.checkers import CheckerPool, CheckResult, worker
from adhere.config import Checkers
from adhere.errors import CheckerError

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def setup() -> Iterator[Setup]:
    with one_server(TIMEOUT_S) as setup:
        yield setup


@pytest.fixture(scope="module")
def patient() -> Iterator[Setup]:
    """A server that ends no check by itself."""
    with one_server(600) as setup:
        yield setup


@asynccontextmanager
async def running(setup: Setup, source: str) -> AsyncIterator[asyncio.Task[CheckResult]]:
    """A check that is known to run in its process."""
    server = setup.server
    task = asyncio.create_task(setup.pool.check(source, ""))
    await until(lambda: bool(server.children()))
    yield task
    if not task.done():
        await task


def test_cancelling_a_check_ends_it_and_leaves_the_pool_usable(patient: Setup) -> None:
    server = patient.server

    async def main() -> CheckResult:
        async with running(patient, ENDLESS) as task:
            (process,) = server.children()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            after = await patient.pool.check(IDENTITY, "next")
            assert gone(process.pid)
            return after

    assert patient.run(main()).value == "next"
    assert patient.server == server


def test_a_cancelled_check_that_has_not_begun(patient: Setup) -> None:
    async def main() -> CheckResult:
        async with running(patient, ENDLESS) as first:
            second = asyncio.create_task(patient.pool.check(IDENTITY, "second"))
            await asyncio.sleep(0)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
        return await patient.pool.check(IDENTITY, "third")

    assert patient.run(main()).value == "third"


def test_a_check_cancelled_while_its_server_starts(patient: Setup) -> None:
    async def main() -> CheckResult:
        killed = patient.server
        killed.kill()
        task = asyncio.create_task(patient.pool.check(IDENTITY, "first"))
        await until(lambda: patient.pool.server_pids not in ([], [killed.pid]))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await patient.pool.check(IDENTITY, "second")

    assert patient.run(main()).value == "second"
    assert patient.pool.isolation.level == "strong"


def test_a_server_killed_while_idle_harms_no_check(patient: Setup) -> None:
    killed = patient.server
    killed.kill()
    assert neighbour_is_right(patient.check)
    assert patient.server != killed


STOPS = (
    "import os, signal\n"
    "def check_following(response):\n"
    "    os.kill(os.getpid(), signal.SIGSTOP)\n"
    "    return response\n"
)


def stopped(setup: Setup, *before: psutil.Process) -> list[psutil.Process]:
    """The check that has stopped itself on a server that is none of those before."""
    try:
        children = [c for p in setup.pool.server_pids for c in psutil.Process(p).children()]
        return [
            child
            for child in children
            if child.status() == psutil.STATUS_STOPPED
            and child.ppid() not in [server.pid for server in before]
        ]
    except psutil.NoSuchProcess:
        return []


def test_a_check_whose_server_is_killed_at_work_runs_once_more(patient: Setup) -> None:
    async def main() -> CheckResult:
        killed = patient.server
        task = asyncio.create_task(patient.pool.check(STOPS, "text"))
        await until(lambda: bool(stopped(patient)))
        (first,) = stopped(patient)
        killed.kill()
        await until(lambda: bool(stopped(patient, killed)))
        (second,) = stopped(patient, killed)
        assert gone(first.pid)
        second.resume()
        return await task

    assert patient.run(main()) == CheckResult("text", None, None, False)


def test_a_check_whose_second_server_is_killed_is_lost_alone(patient: Setup) -> None:
    async def main() -> CheckResult:
        killed: list[psutil.Process] = []
        task = asyncio.create_task(patient.pool.check(STOPS, "text"))
        for _ in range(2):
            await until(lambda: bool(stopped(patient, *killed)))
            (process,) = stopped(patient, *killed)
            killed.append(patient.server)
            patient.server.kill()
        result = await task
        await until(lambda: gone(process.pid))
        return result

    died = "the server that ran it died, twice"
    assert patient.run(main()) == CheckResult(None, "checker_killed", died, False)
    assert neighbour_is_right(patient.check)


def test_a_stopped_server_is_replaced(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_GRACE_S", -TIMEOUT_S + 0.5)
    stopped = setup.server
    stopped.suspend()
    assert setup.check(NEIGHBOUR, "").reason == "checker_killed"
    monkeypatch.undo()
    assert gone(stopped.pid)
    assert neighbour_is_right(setup.check)


def test_nothing_outlives_a_judging_process_that_was_killed() -> None:
    script = (
        "import asyncio, os, sys\n"
        "from adhere.checkers import CheckerPool\n"
        "async def main():\n"
        "    async with CheckerPool(workers=1, timeout_s=600) as pool:\n"
        "        print(*pool.server_pids, flush=True)\n"
        f"        await pool.check({ENDLESS!r}, '')\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as judge:
        assert judge.stdout is not None
        server = psutil.Process(int(judge.stdout.readline()))
        asyncio.run(until(lambda: bool(server.children())))
        (process,) = server.children()
        judge.kill()
    asyncio.run(until(lambda: gone(server.pid) and gone(process.pid)))


def test_closing_a_pool_ends_what_runs() -> None:
    async def main() -> tuple[CheckResult, list[int], list[int]]:
        async with CheckerPool(workers=1, timeout_s=600) as pool:
            pids = pool.server_pids
            task = asyncio.create_task(pool.check(ENDLESS, ""))
            waiting = asyncio.create_task(pool.check(IDENTITY, ""))
            server = psutil.Process(pids[0])
            await until(lambda: bool(server.children()))
            pids += [process.pid for process in server.children()]
        with pytest.raises(RuntimeError):
            await waiting
        with pytest.raises(RuntimeError):
            await pool.check(IDENTITY, "")
        return await task, pids, pool.server_pids

    result, pids, left = asyncio.run(main())
    assert result.reason == "checker_killed"
    assert all(map(gone, pids))
    assert left == []


def test_many_checks_at_once_keep_their_results() -> None:
    async def main() -> list[CheckResult]:
        async with CheckerPool(workers=2) as pool:
            return await asyncio.gather(*(pool.check(IDENTITY, str(n)) for n in range(100)))

    assert [result.value for result in asyncio.run(main())] == [str(n) for n in range(100)]


def test_a_server_starts_when_none_is_free() -> None:
    async def main() -> list[int]:
        counts = []
        async with CheckerPool(workers=3) as pool:
            for _ in range(2):
                await pool.check(IDENTITY, "")
            counts.append(len(pool.server_pids))
            for checks in (2, 10):
                await asyncio.gather(*(pool.check(IDENTITY, "") for _ in range(checks)))
                counts.append(len(pool.server_pids))
            return counts

    assert asyncio.run(main()) == [1, 2, 3]


@pytest.mark.parametrize(
    ("cores", "workers", "servers"), [(1, 0, 1), (2, 0, 2), (128, 0, 8), (1, 3, 3)]
)
def test_a_job_has_a_server_for_each_core_it_may_use(
    monkeypatch: pytest.MonkeyPatch, cores: int, workers: int, servers: int
) -> None:
    async def main() -> int:
        async with CheckerPool.configured(Checkers(workers=workers)) as pool:
            await asyncio.gather(*(pool.check(IDENTITY, "") for _ in range(10)))
            return len(pool.server_pids)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert asyncio.run(main()) == servers


def test_an_interpreter_that_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with CheckerPool(workers=2):
            pass

    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no such library >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(CheckerError, match="no such library"):
        asyncio.run(main())
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    with pytest.raises(CheckerError, match="missing"):
        asyncio.run(main())


def test_parameters_are_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        CheckerPool(workers=0)
    with pytest.raises(ValueError, match="positive"):
        CheckerPool(workers=1, timeout_s=0)


def test_a_pool_may_be_opened_again_in_another_loop() -> None:
    pool = CheckerPool(workers=2)

    async def main() -> list[object]:
        async with pool:
            results = await asyncio.gather(*(pool.check(IDENTITY, str(n)) for n in range(4)))
        return [result.value for result in results]

    for _ in range(3):
        assert asyncio.run(asyncio.wait_for(main(), 60)) == ["0", "1", "2", "3"]
        assert pool.server_pids == []


def test_a_pool_whose_closing_was_cancelled_may_be_opened_again() -> None:
    pool = CheckerPool(workers=1, timeout_s=600)

    async def main() -> None:
        await pool.__aenter__()
        server = psutil.Process(pool.server_pids[0])
        task = asyncio.create_task(pool.check(ENDLESS, ""))
        await until(lambda: bool(server.children()))
        server.suspend()
        closing = asyncio.create_task(pool.__aexit__(None, None, None))
        await asyncio.sleep(0)
        closing.cancel()
        server.resume()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert gone(server.pid) and pool.server_pids == []
        assert (await task).reason == "checker_killed"
        async with pool:
            assert (await pool.check(IDENTITY, "again")).value == "again"

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_check_whose_server_is_given_up_is_not_waited_for() -> None:
    async def main() -> None:
        async with CheckerPool(workers=1, timeout_s=600) as pool:
            server = psutil.Process(pool.server_pids[0])
            task = asyncio.create_task(pool.check(ENDLESS, ""))
            await until(lambda: bool(server.children()))
            (serving,) = pool._serving.values()
            serving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert gone(server.pid)

    asyncio.run(asyncio.wait_for(main(), 60))
