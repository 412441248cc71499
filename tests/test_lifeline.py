"""Jobs end with their workflow and clean up at a signal: real processes, real signals."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from adhere import lifeline
from adhere.locks import claim

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT_S = 20.0

Script = subprocess.Popen[str]


@contextmanager
def python(code: str, **env: str) -> Iterator[Script]:
    """Run Python code in a process of its own, which is killed at the end whatever happened."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: Script) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def rest(process: Script) -> str:
    """Wait for the end; return the rest of stdout. Nothing may have been said on stderr."""
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert err == ""
    return out


@pytest.fixture
def workflow() -> Iterator[tuple[Script, str]]:
    """A process that exported itself as the workflow, and the variable it would hand to jobs."""
    code = """
        import os, sys
        from adhere import lifeline
        lifeline.export_workflow_pid()
        print(os.environ["ADHERE_WORKFLOW"], flush=True)
        sys.stdin.read()
    """
    with python(code) as process:
        yield process, first_line(process)


JOB = """
    import signal
    from adhere import lifeline
    {before}
    lifeline.watch_workflow({arguments})
    print("ready", flush=True)
    while True:
        signal.pause()
"""


@contextmanager
def job(variable: str, *, before: str = "", arguments: str = "poll_s=0.05") -> Iterator[Script]:
    code = textwrap.dedent(JOB).format(before=before, arguments=arguments)
    with python(code, ADHERE_WORKFLOW=variable) as process:
        assert first_line(process) == "ready"
        yield process


def test_exported_variable_names_host_pid_and_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADHERE_WORKFLOW", "")
    lifeline.export_workflow_pid()
    host, pid, start = os.environ["ADHERE_WORKFLOW"].split(":")
    assert host and int(pid) == os.getpid() and float(start) > 0


def test_job_ends_when_the_workflow_is_killed(workflow: tuple[Script, str]) -> None:
    snakemake, variable = workflow
    with job(variable) as process:
        # Not reaped before the job's end: a zombie workflow is gone, too.
        snakemake.kill()
        assert process.wait(TIMEOUT_S) == -signal.SIGTERM


NODE_JOB = """
    import signal, sys
    from pathlib import Path
    from adhere import lifeline
    lifeline.watch_claim(Path({claim!r}), poll_s=0.02)
    print("ready", flush=True)
    while True:
        signal.pause()
"""


def test_job_on_a_node_ends_when_a_later_call_claims_its_results(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    first, second = "login/1:10:100", "login/1:20:200"
    handles = [claim(path, "", owner=first)]
    with python(NODE_JOB.format(claim=str(path)), ADHERE_WORKFLOW=first) as process:
        assert first_line(process) == "ready"
        # The workflow itself cannot be seen from here, and a claim in the making says nothing.
        path.write_text("")
        assert process.poll() is None
        os.truncate(path, 0)
        for handle in handles:
            assert handle is not None
            os.close(handle)
        handles = [claim(path, "", owner=second)]
        assert process.wait(timeout=TIMEOUT_S) == -signal.SIGTERM
        assert process.stderr is not None
        assert "a later call has taken over" in process.stderr.read()


def test_jobs_beside_their_workflow_ask_for_no_claim(
    tmp_path: Path, workflow: tuple[Script, str]
) -> None:
    variable = workflow[1]
    assert claim(tmp_path / ".lock", "", owner="login/1:20:200") is not None
    for value in (variable, ""):
        code = NODE_JOB.format(claim=str(tmp_path / ".lock")).replace(
            "while True:",
            "import threading; print(threading.active_count(), flush=True)\n    while True:",
        )
        with python(code, ADHERE_WORKFLOW=value) as process:
            assert [first_line(process), first_line(process)] == ["ready", "1"]


def test_job_lives_while_the_workflow_lives(workflow: tuple[Script, str]) -> None:
    snakemake, variable = workflow
    # The first looks were taken before "ready" of a second job: neither ended anything.
    with job(variable, arguments="poll_s=0.001") as process, job(variable):
        assert process.poll() is None
        snakemake.terminate()
        assert process.wait(TIMEOUT_S) == -signal.SIGTERM


def test_callback_runs_before_the_signal(workflow: tuple[Script, str]) -> None:
    snakemake, variable = workflow
    arguments = "lambda: print('workflow gone', flush=True), poll_s=0.05"
    with job(variable, arguments=arguments) as process:
        snakemake.kill()
        assert rest(process) == "workflow gone\n"


def test_job_that_ignores_sigterm_is_killed_after_the_grace(workflow: tuple[Script, str]) -> None:
    snakemake, variable = workflow
    before = "signal.signal(signal.SIGTERM, lambda *_: print('no', flush=True))"
    with job(variable, before=before, arguments="poll_s=0.05, grace_s=0.2") as process:
        snakemake.kill()
        assert process.wait(TIMEOUT_S) == -signal.SIGKILL
        assert rest(process) == "no\n"


def test_another_process_under_the_same_pid_is_not_the_workflow(
    workflow: tuple[Script, str],
) -> None:
    _, variable = workflow
    code = """
        import signal
        from adhere import lifeline
        lifeline.watch_workflow()
        signal.pause()
    """
    with python(code, ADHERE_WORKFLOW=f"{variable}1") as process:
        assert process.wait(TIMEOUT_S) == -signal.SIGTERM


@pytest.mark.parametrize("variable", ["", "elsewhere:1:1", "nonsense"])
def test_nothing_is_watched_on_another_host(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv("ADHERE_WORKFLOW", variable)
    before = threading.active_count()
    lifeline.watch_workflow(poll_s=0.001)
    assert threading.active_count() == before


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_child_dies_with_its_parent() -> None:
    child = """
import os, signal, sys
from adhere import lifeline
lifeline.die_with_parent(int(sys.argv[1]))
print(os.getpid(), flush=True)
signal.pause()
"""
    parent = f"""
        import os, subprocess, sys
        subprocess.run([sys.executable, "-c", {child!r}, str(os.getpid())])
    """
    with python(parent) as process:
        orphan = psutil.Process(int(first_line(process)))
        process.kill()
        gone, _ = psutil.wait_procs([orphan], timeout=TIMEOUT_S)
        assert gone == [orphan]


def test_child_whose_parent_is_gone_already_ends_at_once() -> None:
    code = "from adhere import lifeline; lifeline.die_with_parent(1, 15)"
    with python(code) as process:
        assert process.wait(TIMEOUT_S) == (-15 if sys.platform == "linux" else 0)


SYNC = """
    import signal
    from contextlib import contextmanager
    from adhere import lifeline

    @contextmanager
    def resource():
        try:
            yield
        finally:
            print("released", flush=True)

    with lifeline.raise_on_signals(), resource():
        print("ready", flush=True)
        signal.pause()
        print("never")
"""


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_releases_what_with_blocks_hold(signum: signal.Signals) -> None:
    with python(SYNC) as process:
        assert first_line(process) == "ready"
        process.send_signal(signum)
        assert rest(process) == "released\n"
        assert process.returncode == 128 + signum


ASYNC = """
    import asyncio
    from adhere import lifeline

    async def worker(name):
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            print(name, "released", flush=True)

    async def main():
        asyncio.create_task(worker("a background task"))
        print("ready", flush=True)
        await worker("the main task")

    with lifeline.raise_on_signals():
        asyncio.run(main())
"""


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_signal_cancels_every_task_of_a_running_loop(signum: signal.Signals) -> None:
    with python(ASYNC) as process:
        assert first_line(process) == "ready"
        process.send_signal(signum)
        lines = sorted(rest(process).splitlines())
        assert lines == ["a background task released", "the main task released"]
        assert process.returncode == 128 + signum


def test_signal_does_not_strike_inside_a_task() -> None:
    """A task that is running when the signal comes reaches its next await unharmed."""
    code = """
        import asyncio, os, signal
        from adhere import lifeline

        async def main():
            os.kill(os.getpid(), signal.SIGTERM)
            print("unharmed", flush=True)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                print("cancelled", flush=True)
                raise

        with lifeline.raise_on_signals():
            asyncio.run(main())
    """
    with python(code) as process:
        assert rest(process) == "unharmed\ncancelled\n"
        assert process.returncode == 128 + signal.SIGTERM


def test_signal_in_the_last_moment_of_a_loop_is_not_lost() -> None:
    code = """
        import asyncio, os, signal
        from adhere import lifeline

        async def main():
            os.kill(os.getpid(), signal.SIGTERM)

        with lifeline.raise_on_signals():
            asyncio.run(main())
    """
    with python(code) as process:
        assert rest(process) == ""
        assert process.returncode == 128 + signal.SIGTERM


def test_further_signals_do_not_interrupt_the_cleaning_up() -> None:
    code = """
        import os, signal
        from adhere import lifeline

        with lifeline.raise_on_signals():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                signal.pause()
            finally:
                os.kill(os.getpid(), signal.SIGINT)
                print("cleaned", flush=True)
    """
    with python(code) as process:
        assert rest(process) == "cleaned\n"
        assert process.returncode == 128 + signal.SIGTERM


def test_error_while_cleaning_up_does_not_hide_the_signal() -> None:
    with pytest.raises(lifeline.Terminated) as caught, ExitStack() as stack:
        stack.enter_context(lifeline.raise_on_signals())
        stack.callback(int, "no number")
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    assert caught.value.signum == signal.SIGTERM
    assert caught.value.code == 128 + signal.SIGTERM


def test_hangup_stays_ignored_where_it_was() -> None:
    code = """
        import os, signal
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        from adhere import lifeline
        with lifeline.raise_on_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            print("still here")
    """
    with python(code) as process:
        assert rest(process) == "still here\n"
        assert process.returncode == 0


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
    with lifeline.raise_on_signals():
        assert signal.getsignal(signal.SIGTERM) is not before[0]
    assert [signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)] == before
