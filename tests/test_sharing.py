"""Several jobs at one endpoint: what they share, what a killed one leaves, who waits for whom."""

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mock_endpoint import MockConfig, RunningMock, start_mock

from adhere.client import sharing
from adhere.client.sharing import FOLDER_VARIABLE, Membership, Share, allot, folder_of
from adhere.locks import lock

JOB = Path(__file__).with_name("polite_job.py")
WANTS = st.lists(st.integers(0, 100), min_size=1, max_size=12)


# Arithmetic


@given(st.integers(1, 200), WANTS, st.integers(0, 11))
def test_every_slot_is_given_to_somebody(limit: int, wants: list[int], first: int) -> None:
    shares = allot(limit, wants, first % len(wants))
    assert sum(shares) == limit
    assert min(shares) >= (1 if len(wants) <= limit else 0)


@given(st.integers(1, 200), WANTS, st.integers(0, 11))
def test_nobody_lacks_what_another_has_too_much(limit: int, wants: list[int], first: int) -> None:
    shares = allot(limit, wants, first % len(wants))
    for share, want in zip(shares, wants, strict=True):
        if share < want:
            assert max(shares) <= share + 1


@given(st.integers(1, 20), st.lists(st.integers(1, 100), min_size=1, max_size=12))
def test_everybody_has_a_turn(limit: int, wants: list[int]) -> None:
    turns = [allot(limit, wants, first) for first in range(len(wants))]
    assert all(any(shares[n] for shares in turns) for n in range(len(wants)))


@pytest.mark.parametrize(
    ("limit", "wants", "shares"),
    [
        (64, [64], [64]),
        (64, [0], [64]),
        (64, [64, 64], [32, 32]),
        (64, [64, 3], [61, 3]),
        (64, [64, 0], [63, 1]),
        (64, [10, 10], [32, 32]),
        (64, [64, 64, 64], [22, 21, 21]),
        (2, [9, 9, 9], [1, 1, 0]),
        (2, [9, 0, 9], [1, 0, 1]),
    ],
)
def test_shares(limit: int, wants: list[int], shares: list[int]) -> None:
    assert allot(limit, wants) == shares


# Members


class Client:
    """A membership with requests in flight that only the test starts and ends."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.membership = Membership(folder, limit)
        self.share = Share(0, 0.0)
        self.taken = 0

    def look(self, wanted: int) -> int:
        share = self.membership.exchange(self.taken, wanted)
        assert share is not None
        self.share = share
        return share.slots


@contextmanager
def clients(folder: Path, *limits: int) -> Iterator[list[Client]]:
    made = [Client(folder, limit) for limit in limits]
    try:
        yield made
    finally:
        for client in made:
            client.membership.leave()


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=4),
    st.lists(
        st.tuples(
            st.integers(0, 3), st.sampled_from(("look", "start", "end", "leave")), st.integers(0, 9)
        ),
        max_size=40,
    ),
)
def test_never_more_in_flight_than_the_limit(
    limits: list[int], events: list[tuple[int, str, int]]
) -> None:
    """Whatever clients do in whatever order, no more is in flight than the largest limit."""
    with tempfile.TemporaryDirectory() as folder, clients(Path(folder), *limits) as made:
        for number, event, wanted in events:
            client = made[number % len(made)]
            if event == "look":
                client.look(wanted)
            elif event == "start":
                client.taken += client.taken < client.share.slots
            elif event == "end":
                client.taken -= client.taken > 0
            else:
                client.membership.leave()
                client.taken, client.share = 0, Share(0, 0.0)
            assert sum(each.taken for each in made) <= max(limits)
            assert client.share.slots <= client.membership._limit


def test_a_newcomer_gets_what_comes_home(tmp_path: Path) -> None:
    with clients(tmp_path, 4, 4) as (old, new):
        assert old.look(4) == 4
        old.taken = 4
        assert new.look(4) == 0
        assert old.look(4) == 2  # it starts nothing any more, but four are still on their way
        assert new.look(4) == 0
        old.taken = 2
        assert old.look(4) == 2
        assert new.look(4) == 2
        assert (old.share.part, new.share.part) == (0.5, 0.5)


def test_one_that_is_nearly_done_keeps_no_idle_slots(tmp_path: Path) -> None:
    with clients(tmp_path, 64, 64) as (done, busy):
        done.look(64)
        busy.look(64)
        assert done.look(2) == 2
        assert busy.look(64) == 62


def test_what_a_client_leaves_goes_to_the_others(tmp_path: Path) -> None:
    with clients(tmp_path, 8, 8) as (leaving, staying):
        leaving.look(8)
        assert staying.look(8) == 0
        leaving.membership.leave()
        assert staying.look(8) == 8


def test_more_clients_than_slots_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with clients(tmp_path, 1, 1, 1) as made:
        served = set()
        for turn in range(3):
            monkeypatch.setattr("time.time", functools.partial(float, turn * sharing._TURN_S))
            for _ in range(2):  # whoever had the slot gives it back, then another finds it
                found = [client.look(1) for client in made]
            assert sum(found) == 1
            served.add(found.index(1))
    assert served == {0, 1, 2}


def test_a_smaller_limit_holds_for_its_own_requests_only(tmp_path: Path) -> None:
    with clients(tmp_path, 4, 64) as (small, large):
        assert small.look(4) == 4
        assert large.look(64) == 60


def test_a_files_remains_are_no_client(tmp_path: Path) -> None:
    (tmp_path / "0123").write_bytes(b"%10d %10d %10d\n" % (8, 8, 8))
    with clients(tmp_path, 8) as (only,):
        assert only.look(8) == 8
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_whoever_looks_never_waits_for_another(tmp_path: Path) -> None:
    with clients(tmp_path, 8) as (only,):
        only.look(8)
        handle = os.open(tmp_path / "lock", os.O_RDWR)
        lock(handle, wait=False)
        assert only.membership.exchange(0, 8) is None
        os.close(handle)
        assert only.look(8) == 8


def test_a_folder_that_was_cleared_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    with clients(folder, 8, 8) as (one, two):
        one.look(8)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        assert one.look(8) == 8
        assert two.look(8) == 0


def test_the_folder_tells_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    folders = {
        folder_of(url, key)
        for url in ("http://a/v1", "http://a/v1/", "http://b/v1")
        for key in (None, "sk-canary", "sk-other")
    }
    assert len(folders) == 6
    assert all(folder.parent == tmp_path for folder in folders)
    assert not any("canary" in str(folder) for folder in folders)


# Processes


class Job:
    """One run of ``polite_job.py``."""

    def __init__(self, mock: RunningMock, folder: Path, questions: int, **fields: Any) -> None:
        name = f"job {id(self)}"
        arguments = [mock.base_url, str(questions), name, json.dumps({"concurrency": 64, **fields})]
        self.process = subprocess.Popen(
            [sys.executable, str(JOB), *arguments],
            env={
                **os.environ,
                FOLDER_VARIABLE: str(folder / "shares"),
                "PYTHONPATH": str(JOB.parents[1]),
            },
            stdout=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def counts(self) -> Any:
        """Wait for the end and return what the client counted."""
        out, _ = self.process.communicate(timeout=90)
        assert self.process.returncode == 0
        return json.loads(out.splitlines()[-1])


@contextmanager
def jobs(*made: Job) -> Iterator[tuple[Job, ...]]:
    try:
        yield made
    finally:
        for job in made:
            job.process.kill()
            job.process.communicate()


def test_three_jobs_together_stay_within_the_limit(tmp_path: Path) -> None:
    limits = MockConfig(latency_s=0.1, most_in_flight=64)
    with start_mock(tmp_path, limits) as mock:
        with jobs(*(Job(mock, tmp_path, 500) for _ in range(3))) as made:
            counted = [job.counts() for job in made]
        stats = mock.stats()
    assert stats.statuses == {200: 1500}
    # All slots were used, and by all of them at once.
    assert stats.max_in_flight == 64
    assert [each["answered"] for each in counted] == [500] * 3
    assert sum(each["throttled"] for each in counted) == 0


def test_a_killed_job_leaves_its_share_to_the_other(tmp_path: Path) -> None:
    with start_mock(tmp_path, MockConfig(latency_s=3600)) as mock:
        killed = Job(mock, tmp_path, 100, concurrency=8)
        with jobs(killed) as _:
            mock.until(in_flight=8)
            with jobs(Job(mock, tmp_path, 100, concurrency=8)) as (other,):
                assert other.line() == "begun\n"
                assert mock.stats().requests == 8
                killed.process.kill()
                # The other's requests arrive, all of them.
                stats = mock.until(requests=16)
    assert stats.max_in_flight <= 8


def test_two_jobs_share_a_rate(tmp_path: Path) -> None:
    """Of 20 a second, two seconds see 62: a second's burst more, and one more a job.

    Each keeping that rate for itself would come to twice as many. Requests that a busy machine
    delays arrive together, hence the room.
    """
    limits = MockConfig(most_in_window=70, window_s=2.0)
    with start_mock(tmp_path, limits) as mock:
        fields = {"requests_per_minute": 1200}
        with jobs(*(Job(mock, tmp_path, 50, **fields) for _ in range(2))) as made:
            counted = [job.counts() for job in made]
        assert mock.stats().statuses == {200: 100}
    assert sum(each["throttled"] for each in counted) == 0


def test_a_provider_that_takes_fewer_than_configured_is_not_hammered(tmp_path: Path) -> None:
    with start_mock(tmp_path, MockConfig(latency_s=0.05, most_in_flight=16)) as mock:
        # Patience enough that a busy machine does not decide who is answered.
        retry = {"attempts": 30, "first_wait_s": 0.05, "max_wait_s": 1.0}
        script = Job(mock, tmp_path, 600, retry=retry)
        with jobs(script) as (job,):
            counts = job.counts()
        statuses = mock.stats().statuses
    assert counts["answered"] == 600
    assert counts["least_concurrency"] <= 32
    assert counts["throttled"] == statuses[429]
    # Without back-off three of four requests would be refused for as long as there is work.
    assert statuses[429] < 300
