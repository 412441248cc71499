"""The filters themselves, read as the kernel reads them, for both architectures."""

import os
import re
import struct
from pathlib import Path

import pytest

from adhere.checkers import bpf, seccomp, syscalls
from adhere.checkers.bpf import ALLOW, DENY, UNKNOWN, Filter

KILL = 0x80000000
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


@pytest.mark.parametrize("machine", HEADERS)
def test_numbers_of_system_calls(machine: str) -> None:
    """The table agrees with the kernel's headers."""
    if not HEADERS[machine].exists():
        pytest.skip(f"not on this machine: {HEADERS[machine]}")
    text = HEADERS[machine].read_text()
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\s", text)
    numbers = {name: int(number) for name, number in found}
    if machine == "aarch64":
        numbers["newfstatat"] = numbers["fstatat"]
    # Headers may be older than the newest calls, never different.
    table = syscalls.table(machine)
    assert len(table.keys() & numbers.keys()) > 100
    assert [name for name in table if numbers.get(name, table[name]) != table[name]] == []


def test_what_one_architecture_lacks() -> None:
    x86, arm = syscalls.table("x86_64"), syscalls.table("aarch64")
    old = "dup2 pipe poll select epoll_create epoll_wait open access stat lstat readlink getpgrp"
    assert x86.keys() - arm.keys() == {*old.split(), "time", "alarm", "pause", "fork"}
    assert arm.keys() <= x86.keys()


def verdict(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """Interpret a filter."""
    values = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, arch, 0, *values)
    code = list(struct.iter_unpack("=HBBI", program))
    place = accumulator = 0
    while True:
        operation, jump_true, jump_false, operand = code[place]
        place += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, operand)
            case 0x54:
                accumulator &= operand
            case 0x15:
                place += jump_true if accumulator == operand else jump_false
            case 0x06:
                return int(operand)
            case _:
                raise AssertionError(operation)


class Filters:
    """Both filters of one architecture; the check's process is 4321."""

    def __init__(self, machine: str) -> None:
        self.arch = ARCHES[machine]
        self.numbers = syscalls.table(machine)
        self.programs = {
            writing: seccomp.base(machine, writing=writing) for writing in (True, False)
        }
        self.second = seccomp.check(machine, 4321)

    def base(self, name: str, *arguments: int) -> int:
        return verdict(self.programs[False], self.arch, self.numbers[name], *arguments)

    def check(self, name: str, *arguments: int) -> int:
        return verdict(self.second, self.arch, self.numbers[name], *arguments)


@pytest.fixture(params=ARCHES)
def filters(request: pytest.FixtureRequest) -> Filters:
    return Filters(request.param)


def test_other_call_tables_end_the_process(filters: Filters) -> None:
    for program in (*filters.programs.values(), filters.second):
        assert verdict(program, 0x40000003, 1) == KILL
        assert len(program) // 8 < 4096  # what the kernel takes


def test_what_is_not_listed_is_refused(filters: Filters) -> None:
    known = set(filters.numbers.values())
    strangers = [number for number in range(1024) if number not in known]
    strangers += [0x40000000 + number for number in range(1024)]  # x32
    for program in filters.programs.values():
        assert {verdict(program, filters.arch, number) for number in strangers} == {DENY}
    for name in ("socket", "seccomp", "landlock_create_ruleset", "landlock_add_rule"):
        assert filters.base(name) == DENY
    assert filters.base("clone3") == UNKNOWN


def test_a_check_loses_what_its_server_needs(filters: Filters) -> None:
    for name in ("clone", "setsid", "landlock_restrict_self"):
        assert filters.base(name) == ALLOW
        assert filters.check(name) == DENY
    for name in ("read", "write", "openat", "mmap", "wait4", "exit_group"):
        assert filters.base(name) == filters.check(name) == ALLOW


def test_opening_without_landlock(filters: Filters) -> None:
    assert filters.base("openat", 5, 0, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY) == ALLOW
    for flag in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_TMPFILE | os.O_RDWR):
        assert filters.base("openat", 5, 0, flag) == DENY
        number = filters.numbers["openat"]
        assert verdict(filters.programs[True], filters.arch, number, 5, 0, flag) == ALLOW


def test_arguments_for_all(filters: Filters) -> None:
    assert filters.base("fcntl", 1, 3) == ALLOW  # F_GETFL
    assert filters.base("fcntl", 1, 1031) == DENY  # F_SETPIPE_SZ
    assert filters.base("fcntl", 1, 8) == DENY  # F_SETOWN
    assert filters.base("ioctl", 1, 0x5401) == ALLOW  # TCGETS
    assert filters.base("ioctl", 1, 0x5412) == DENY  # TIOCSTI
    assert filters.base("socketpair", 1, 1) == ALLOW
    assert filters.base("socketpair", 2, 1) == filters.base("socketpair", 10, 1) == DENY


def test_arguments_of_a_check(filters: Filters) -> None:
    assert filters.check("kill", 4321, 9) == filters.check("tgkill", 4321, 4321, 9) == ALLOW
    for pid in (0, 1, 4320, 0xFFFFFFFF, 2**32 - 4321, 2**64 - 4321):
        for name in ("kill", "tgkill", "tkill"):
            assert filters.check(name, pid, 9) == DENY
    assert filters.check("prlimit64", 0, 7, 0, 1 << 40) == ALLOW
    assert filters.check("prlimit64", 0, 7, 1 << 40) == DENY
    assert filters.check("prlimit64", 0, 7, 1 << 3) == DENY
    assert filters.check("prlimit64", 1, 7, 0, 1) == DENY
    assert filters.check("prctl", 15) == ALLOW  # PR_SET_NAME
    for operation in (1, 4, 22, 36, 38):
        assert filters.check("prctl", operation, 1) == DENY


def test_a_prepared_filter_is_filled_in() -> None:
    """What a forked process installs is what ``check`` makes for that process."""
    prepared = Filter(seccomp.check("x86_64", 0xFFFFFFF1))
    installed: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bpf, "prctl", lambda *arguments: installed.append(len(arguments)) or 0)
        patch.setattr(bpf, "getpid", lambda: 4321)
        prepared.step(0xFFFFFFF1)()
    assert installed == [5]
    assert bytes(prepared._words) == seccomp.check("x86_64", 4321)
