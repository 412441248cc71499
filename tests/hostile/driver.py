"""Run checkers as a given user, on a machine that may lack something: ``python -m …driver``.

Takes a user id and a comma-separated list of what to do without ("landlock", "seccomp"), starts a
pool of one server, says what its isolation is, then answers one request a line, all in JSON.
"""

import asyncio
import ctypes
import json
import os
import sys
from typing import Any

import psutil

from adhere.checkers import CheckerPool, CheckResult
from adhere.checkers.bpf import ALLOW, DENY, UNKNOWN, Filter, Rule, argument, assemble
from adhere.checkers.syscalls import machine

TIMEOUT_S = 2.0
NEIGHBOUR = (
    "import json, re\n"
    "def check_following(response):\n"
    "    return len(response) == 7 and bool(re.search('b+', response)) and json.loads('false')\n"
)
_RIGHT = CheckResult(False, None, None, False)
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2
# All operations of prctl that the pool and its servers use, but not PR_SET_SECCOMP.
_PRCTL = (1, 3, 4, 8, 15, 16, 36, 38, 47)
_libc = ctypes.CDLL(None, use_errno=True)


def main(uid: int, without: list[str]) -> None:
    """Become the user, and serve until standard input ends."""
    if os.getuid() != uid:
        become(uid)
    do_without(without)
    with asyncio.Runner() as runner:
        pool = CheckerPool(workers=1, timeout_s=TIMEOUT_S, minimum="none")
        runner.run(pool.__aenter__())
        isolation = pool.isolation
        say({"level": isolation.level, "succeeded": isolation.succeeded, "uid": os.getuid()})
        for line in sys.stdin:
            say(answer(runner, pool, json.loads(line)))
        runner.run(pool.__aexit__(None, None, None))


def answer(runner: asyncio.Runner, pool: CheckerPool, source: str) -> dict[str, Any]:
    """Run one checker; say what came of it and whether anything else was harmed."""
    (server,) = pool.server_pids
    result = runner.run(pool.check(source, "response"))
    return {
        "value": result.value,
        "reason": result.reason,
        "detail": result.detail,
        "same_server": pool.server_pids == [server],
        "left": [process.name() for process in psutil.Process(server).children(recursive=True)],
        "neighbour": runner.run(pool.check(NEIGHBOUR, "abbbcde")) == _RIGHT,
    }


def say(message: dict[str, Any]) -> None:
    """Write one line."""
    print(json.dumps(message), flush=True)


def become(uid: int) -> None:
    """Become an ordinary user for good.

    Where the interpreter lies in a folder that this user may not enter, one capability is kept
    that lets it read: more than an ordinary user has, so nothing is made easier.
    """
    needed = [*sys.path, os.path.realpath(sys.executable), os.__file__]
    _libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS, of what is permitted only
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    _libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE, as it is for who has always been this user
    readable = all(os.access(path, os.R_OK) for path in needed if not path.endswith(".zip"))
    _keep(0 if readable else 1 << _DAC_READ_SEARCH)


def _keep(capabilities: int) -> None:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    now = (ctypes.c_uint32 * 6)()
    _libc.capget(header, now)
    if capabilities & ~now[1]:  # a container's root may lack the first and have the second
        capabilities = 1 << _DAC_OVERRIDE
    sets = (ctypes.c_uint32 * 6)(capabilities, capabilities, capabilities)
    if _libc.capset(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capset")
    for number in (_DAC_OVERRIDE, _DAC_READ_SEARCH):
        if capabilities >> number & 1:
            _libc.prctl(47, 2, number, 0, 0)  # PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE


def do_without(names: list[str]) -> None:
    """Make this process, and all below it, find a kernel that lacks something."""
    name = machine()
    if not names or name is None:
        return
    rules: dict[str, Rule] = {}
    if "landlock" in names:
        rules["landlock_create_ruleset"] = UNKNOWN
    if "seccomp" in names:
        rules |= {"seccomp": DENY, "prctl": (argument(0, *_PRCTL),)}
    _libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    Filter(assemble(name, rules, ALLOW)).install()


if __name__ == "__main__":
    main(int(sys.argv[1]), list(filter(None, sys.argv[2].split(","))))
