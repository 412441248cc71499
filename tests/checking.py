"""What tests of checkers share: a pool of one server, and checks that tell whether it is well."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from adhere.checkers import CheckerPool, CheckResult

TIMEOUT_S = 2.0
IDENTITY = "def check_following(response):\n    return response\n"
NEIGHBOUR = (
    "import json, re\n"
    "def check_following(response):\n"
    "    return len(response) == 7 and bool(re.search('b+', response)) and json.loads('false')\n"
)
ENDLESS = "def check_following(response):\n    while True:\n        pass\n"

T = TypeVar("T")
Check = Callable[[str, str], CheckResult]


def neighbour_is_right(check: Check) -> bool:
    """Run a checker that is wrong as soon as len, re.search or json.loads are not what they are."""
    return check(NEIGHBOUR, "abbbcde") == CheckResult(False, None, None, False)


class Setup:
    """A pool of one server, and a loop to run it on."""

    def __init__(self, runner: asyncio.Runner, pool: CheckerPool) -> None:
        self.runner = runner
        self.pool = pool

    def check(self, source: str, text: str = "") -> CheckResult:
        return self.runner.run(self.pool.check(source, text))

    def run(self, awaitable: Awaitable[T]) -> T:
        async def main() -> T:
            return await awaitable

        return self.runner.run(main())

    @property
    def server(self) -> psutil.Process:
        (pid,) = self.pool.server_pids
        return psutil.Process(pid)


@contextmanager
def one_server(timeout_s: float) -> Iterator[Setup]:
    """One server, started while a key stands in the environment and a descriptor is inheritable."""
    with (
        pytest.MonkeyPatch.context() as patch,
        asyncio.Runner() as runner,
        Path(os.devnull).open() as leaky,
    ):
        patch.setenv("OPENAI_API_KEY", "sk-canary")
        os.set_inheritable(leaky.fileno(), True)
        pool = runner.run(CheckerPool(workers=1, timeout_s=timeout_s).__aenter__())
        assert "OPENAI_API_KEY" in os.environ
        yield Setup(runner, pool)
        runner.run(pool.__aexit__(None, None, None))


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that only the process table tells."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
