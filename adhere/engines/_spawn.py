"""The guardian of one server process: ``python -m adhere.engines._spawn OWNER GRACE COMMAND…``.

It starts COMMAND in a process group of its own and ends it, with everything below it, as soon as
the owner lets go: closes the pipe that is this process's stdin, dies in whatever way, or sends
SIGTERM. Ending is SIGTERM to the group, GRACE seconds, SIGKILL. Should the guardian itself be
killed, the kernel kills the server (PR_SET_PDEATHSIG; this process has one thread only).

When nothing is left it writes the server's return code (negative for a signal) to stdout and
exits; nothing else is written there, so its end of file says that the server is gone. stderr is
the server's log.
"""

import contextlib
import functools
import os
import select
import signal
import subprocess
import sys
import time
from types import FrameType

import psutil

from adhere.lifeline import adopt_orphans, die_with_parent

# How often the parent's pid is compared: covers a pipe kept open by somebody who inherited it.
_POLL_S = 1.0
# Killed processes that are still there after this long (s) are stuck in the kernel.
_KILL_TIMEOUT_S = 10.0


def main(arguments: list[str]) -> int:
    """Run the command until it ends or the owner lets go; return its exit status."""
    owner, grace_s, command = int(arguments[0]), float(arguments[1]), arguments[2:]
    wake = _wake_on_signals()
    adopt_orphans()
    try:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            stderr=sys.stderr.fileno(),
            process_group=0,
            preexec_fn=functools.partial(die_with_parent, os.getpid()),
        )
    except OSError as error:
        print(f"{command[0]}: cannot be started: {error.strerror}", file=sys.stderr)
        os.write(sys.stdout.fileno(), b"127")
        return 127
    if _wait(server, owner, wake):
        _stop(server, grace_s)
    _kill_descendants()
    os.write(sys.stdout.fileno(), str(server.returncode).encode())
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def _wake_on_signals() -> int:
    """Return a descriptor from which the number of each arriving signal can be read."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def note(_signum: int, _frame: FrameType | None) -> None:
        """The descriptor carries the news. (A handler, unlike SIG_IGN, is undone by exec.)"""

    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(signum, note)
    return reader


def _wait(server: subprocess.Popen[bytes], owner: int, wake: int) -> bool:
    """Wait until the server has ended (False) or is no longer wanted (True)."""
    pipe = sys.stdin.fileno()
    while server.poll() is None:
        readable, _, _ = select.select([pipe, wake], [], [], _POLL_S)
        if wake in readable and set(os.read(wake, 4096)) - {signal.SIGCHLD}:
            return True
        if (pipe in readable and not os.read(pipe, 4096)) or os.getppid() != owner:
            return True
    return False


def _stop(server: subprocess.Popen[bytes], grace_s: float) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(grace_s)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _kill_descendants() -> None:
    """Kill and reap whatever the server left behind, other process groups and sessions too."""
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    this = psutil.Process()
    while (left := this.children(recursive=True)) and time.monotonic() < deadline:
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=0.5)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
