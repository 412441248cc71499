"""CheckerPool: what the judge uses to run checkers."""

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from adhere.checkers.frames import MAX_REQUEST, Kind, decode, encode
from adhere.checkers.isolation import Isolation, Level, weakest
from adhere.checkers.link import Reply
from adhere.checkers.result import CheckResult, Reason
from adhere.checkers.source import repair
from adhere.checkers.worker import Worker
from adhere.escapes import escaped
from adhere.jsonio import clean_text

if TYPE_CHECKING:
    from adhere.config import Checkers

# One judging process cannot keep more servers busy: what it does for a check takes a tenth of what
# a server does (docs/benchmarks.md), and a machine of many cores has many judging processes.
_MOST_SERVERS: Final = 8

_REASONS: Final[dict[Kind, Reason]] = {
    Kind.ERROR: "checker_error",
    Kind.NOT_DEFINED: "not_defined",
    Kind.TIMEOUT: "checker_timeout",
    Kind.KILLED: "checker_killed",
    Kind.CANCELLED: "checker_killed",
    Kind.PROTOCOL: "checker_protocol",
}
_VERDICTS: Final[dict[Kind, bool | None]] = {
    Kind.TRUE: True,
    Kind.FALSE: False,
    Kind.NONE: None,
}


# With how the server that gave it was isolated.
_Answer = tuple[Reply, Isolation | None]


class _Job(NamedTuple):
    """A check that waits for a server, or runs: what to run, and where its answer goes."""

    source: bytes
    text: bytes
    answer: asyncio.Future[_Answer]


class CheckerPool:
    """Servers that run checkers, one check at a time each, one process per check.

    Use as ``async with CheckerPool(workers=2) as pool: result = await pool.check(source, text)``.
    Any number of checks may be awaited at once; they wait for a free server. Cancelling one ends
    its process and frees its server. One server starts with the pool, another when a check finds
    none free. ``isolation`` says what those that have started found.
    """

    def __init__(
        self,
        *,
        workers: int,
        timeout_s: float = 10.0,
        memory_mb: int = 1024,
        minimum: Level = "medium",
    ) -> None:
        """Set the most servers, and seconds and MiB of address space per check.

        No check runs where isolation is below ``minimum``.
        """
        if workers < 1 or timeout_s <= 0 or memory_mb < 1:
            raise ValueError("workers, timeout_s and memory_mb must be positive")
        self._timeout_s = timeout_s
        self._workers = [Worker(timeout_s, memory_mb, minimum) for _ in range(workers)]
        self._serving: dict[Worker, asyncio.Task[None]] = {}
        # None tells a worker that it is over.
        self._jobs: asyncio.Queue[_Job | None] = asyncio.Queue()
        self._running: dict[asyncio.Future[_Answer], Worker] = {}
        self._open = False

    @classmethod
    def configured(cls, settings: "Checkers") -> Self:
        """Make the pool that a configuration asks for; one server a core where it leaves it open.

        Cores are those that this process may use, which a scheduler or taskset may have limited.
        """
        # Elsewhere none starts, and says so.
        cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
        return cls(
            workers=settings.workers or min(cores, _MOST_SERVERS),
            timeout_s=settings.timeout_s,
            memory_mb=settings.memory_mb,
            minimum=settings.isolation,
        )

    async def __aenter__(self) -> Self:
        """Start the first server.

        Raises CheckerError when it does not start, or confines its checks too little.
        """
        await self._workers[0].start()
        # A queue belongs to the loop that it was first used in.
        self._jobs = asyncio.Queue()
        self._open = True
        self._serve_with_another()
        return self

    async def __aexit__(self, *_error: object) -> None:
        """End the checks that still run, and all servers."""
        self._open = False
        while not self._jobs.empty():
            if (job := self._jobs.get_nowait()) and not job.answer.done():
                job.answer.set_exception(_closed())
        for worker in self._running.values():
            worker.cancel()
        for _ in self._serving:
            self._jobs.put_nowait(None)
        try:
            await asyncio.wait(self._serving.values())
        finally:
            self._serving.clear()
            await asyncio.gather(*(worker.stop() for worker in self._workers))

    @property
    def workers(self) -> int:
        """The most servers there can be."""
        return len(self._workers)

    @property
    def server_pids(self) -> list[int]:
        """The process ids of the servers that run now."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    @property
    def isolation(self) -> Isolation:
        """What confines the checks of all servers together; "strong" where none has started."""
        return weakest(worker.isolation for worker in self._workers if worker.isolation)

    async def check(self, source: str, text: str) -> CheckResult:
        """Run ``source`` and call its ``check_following(text)``, in a process of its own.

        What a checker does wrong is in the result, never raised. Raises CheckerError when no server
        can be started that confines it, RuntimeError outside ``async with``.
        """
        fixed, repaired = repair(source)
        request = encode(fixed), encode(text)
        if max(map(len, request)) > MAX_REQUEST:
            too_long = f"source or text is longer than {MAX_REQUEST >> 20} MiB"
            return CheckResult(None, "checker_error", too_long, repaired)
        reply, isolation = await self._run(*request)
        value, reason, detail = self._read(reply)
        level = isolation.level if isolation else None
        return CheckResult(value, reason, detail, repaired, level)

    async def _run(self, source: bytes, text: bytes) -> _Answer:
        """Run one check on the next free server; return its answer, and how it was isolated."""
        if not self._open:
            raise _closed()
        job = _Job(source, text, asyncio.get_running_loop().create_future())
        self._jobs.put_nowait(job)
        free = len(self._serving) - len(self._running)
        if self._jobs.qsize() > free and len(self._serving) < len(self._workers):
            self._serve_with_another()
        try:
            return await job.answer
        except asyncio.CancelledError:
            if worker := self._running.get(job.answer):
                worker.cancel()
            raise

    def _serve_with_another(self) -> None:
        worker = next(each for each in self._workers if each not in self._serving)
        self._serving[worker] = asyncio.create_task(self._serve(worker))

    async def _serve(self, worker: Worker) -> None:
        """Run one job after the other on a worker until there is None."""
        while job := await self._jobs.get():
            if job.answer.done():
                continue
            self._running[job.answer] = worker
            try:
                reply = await worker.check(job.source, job.text)
            except Exception as error:  # noqa: BLE001 - whoever waits for the answer gets it
                if not job.answer.done():
                    job.answer.set_exception(error)
            else:
                if not job.answer.done():
                    job.answer.set_result((reply, worker.isolation))
            finally:
                del self._running[job.answer]
                job.answer.cancel()  # Where this task is cancelled; else it is done.

    def _read(self, reply: Reply) -> tuple[bool | str | None, Reason | None, str | None]:
        """Read an answer: value, reason and detail; what of it will be written or shown can be."""
        kind, payload = reply
        if kind in _VERDICTS:
            return _VERDICTS[kind], None, None
        try:
            text = clean_text(decode(payload))
        except UnicodeDecodeError:
            return None, "checker_protocol", "wrote text that is no UTF-8"
        if kind is Kind.TEXT:
            return text, None, None
        if kind is Kind.TIMEOUT:
            text = f"ran longer than {self._timeout_s:g} s"
        elif kind is Kind.CANCELLED:
            text = "cancelled"
        return None, _REASONS[kind], escaped(text)


def _closed() -> RuntimeError:
    return RuntimeError("a CheckerPool runs checks inside 'async with' only")
