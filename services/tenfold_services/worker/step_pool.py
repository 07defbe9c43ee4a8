"""The threads that run long programs and compile graphs, shared fairly: no peer's kernels keep the others out.

A kernel that computes cannot be stopped from outside. So one that has run for long, or whose step is over, does not
count any more: another thread takes its place, and the system shares the cores out. How many may go on like that is
bounded; beyond that, steps are refused and the error says why. Sessions take turns. The threads are daemons, so a
process ends though a kernel does not. Used by graph_run.py and worker.py, and for graphs by the master.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter, deque
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tenfold_core import collector, errors

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from ..limits import Limits

T = TypeVar("T")

#: Threads that work on large graphs: but for those that take long, and at most.
_GRAPH_THREADS, _MOST_GRAPH_THREADS = 2, 4
#: Seconds that a thread without work stays.
_IDLE_SECONDS = 30.0


@dataclass(slots=True, eq=False)
class Job:
    """Something to run, and its owner."""

    owner: Hashable
    work: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)
    #: `time.monotonic()` when a thread took it.
    began: float = 0.0
    #: It does not count among the pool's own threads any more.
    is_long: bool = False


class StepPool:
    """Threads by need: so many as the limits say, and one more for each job that is long. Any thread may call."""

    def __init__(self, task: str, limits: Limits) -> None:
        self._task, self._limits = task, limits
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        #: Owner → what it has handed in and no thread has taken. No owner without work. The first one is next.
        self._waiting: dict[Hashable, deque[Job]] = {}
        self._running: set[Job] = set()
        #: Jobs of `_running` that are long, by owner.
        self._long: Counter[Hashable] = Counter()
        #: Threads that wait for work, and all there are.
        self._idle = self._threads = 0
        #: Looks from time to time which jobs have become long; there while something waits.
        self._watch: threading.Timer | None = None
        self._closed = False

    def submit(self, owner: Hashable, work: Callable[[], Any]) -> Job:
        """Runs `work` on one of the threads; its `future` has the result.

        Raises ResourceExhaustedError when long kernels, the owner's or all together, are as many as may be.
        """
        job = Job(owner, work)
        with self._lock:
            if self._closed:
                raise errors.unavailable(f"{self._task} is shutting down.")
            self._find_long()
            self._check(owner)
            self._waiting.setdefault(owner, deque()).append(job)
            self._provide()
        return job

    async def run(self, owner: Hashable, work: Callable[[], T]) -> T:
        """The result of `work`. Cancelling the caller drops what has not begun; what has begun goes on, unused.

        Raises what `work` raises, and UnavailableError once the pool is closed; else as `submit`.
        """
        job = self.submit(owner, work)
        try:
            result: T = await asyncio.wrap_future(job.future)
        except asyncio.CancelledError:
            if self._closed:
                raise errors.unavailable(f"{self._task} is shutting down.") from None
            raise
        return result

    def let_go(self, job: Job) -> None:
        """The job's result is not needed any more: it is dropped if no thread has taken it, else it counts as long."""
        if job.future.cancel() or job.future.done():
            return
        with self._lock:
            if job in self._running:
                self._make_long(job)
                self._provide()

    def close(self) -> None:
        """Drops what waits. Threads end with what they run and are not waited for."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, {}
            if self._watch is not None:
                self._watch.cancel()
            self._wake.notify_all()
        for jobs in waiting.values():
            for job in jobs:
                job.future.cancel()

    def running(self, owner: Hashable) -> list[Future[Any]]:
        """What threads do for an owner now, also that of which nobody needs the result."""
        with self._lock:
            return [job.future for job in self._running if job.owner == owner]

    @property
    def long(self) -> int:
        """Jobs that have run for long, or whose results are not needed."""
        with self._lock:
            self._find_long()
            return self._long.total()

    # -- with the lock -----------------------------------------------------------------------------------------------

    def _check(self, owner: Hashable) -> None:
        limits, total, of_one = self._limits, self._long.total(), self._long[owner]
        for limit, count, whose in (
            ("long_kernels", total, f"{self._task} has {total} kernels that"),
            ("long_kernels_per_session", of_one, f"A session has {of_one} kernels on {self._task} that"),
        ):
            if count >= getattr(limits, limit):
                text = f"{whose} have computed for more than {limits.long_kernel_seconds:g} s or whose steps are over"
                raise limits.reached(limit, f"{text}, and begins no other step until one ends")

    def _may_run(self) -> int:
        return self._limits.pool_threads + self._long.total()

    def _find_long(self) -> None:
        latest = time.monotonic() - self._limits.long_kernel_seconds
        for job in self._running:
            if job.began < latest:
                self._make_long(job)

    def _make_long(self, job: Job) -> None:
        if not job.is_long:
            job.is_long = True
            self._long[job.owner] += 1

    def _provide(self) -> None:
        """Sees to it that what waits is taken: by a thread that has nothing to do, or by another one."""
        waiting = sum(map(len, self._waiting.values()))
        may_run = self._may_run()
        # these look for work before they sleep, or do so now
        spare = self._threads - len(self._running)
        for _ in range(min(waiting - spare, may_run - self._threads)):
            self._threads += 1
            threading.Thread(target=self._serve, name=f"tenfold{self._task.replace('/', '-')}", daemon=True).start()
        if waiting and self._idle:
            self._wake.notify(waiting)
        if waiting > may_run - len(self._running) and self._watch is None and not self._closed:
            self._watch = threading.Timer(self._limits.long_kernel_seconds, self._look)
            self._watch.daemon = True
            self._watch.start()

    def _take(self) -> Job | None:
        """What is next, if another job may begin."""
        if len(self._running) >= self._may_run():
            return None
        while (owner := self._next_owner()) is not None:
            jobs = self._waiting.pop(owner)
            job = jobs.popleft()
            if jobs:
                self._waiting[owner] = jobs  # at the end: others first
            if job.future.set_running_or_notify_cancel():
                job.began = time.monotonic()
                self._running.add(job)
                return job
        return None

    def _next_owner(self) -> Hashable | None:
        """Whose turn it is, of those whose work waits."""
        return next(iter(self._waiting), None)

    def _over(self, job: Job) -> None:
        """A job has ended."""
        self._running.discard(job)
        if job.is_long:
            self._long -= Counter((job.owner,))  # and forgets an owner who has no other

    # -- threads -----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        with self._lock:
            self._watch = None
            self._find_long()
            self._provide()

    def _serve(self) -> None:
        while True:
            with self._lock:
                job = self._take()
                while job is None:
                    if self._closed:
                        self._threads -= 1
                        return
                    self._idle += 1
                    woken = self._wake.wait(_IDLE_SECONDS)
                    self._idle -= 1
                    job = self._take()
                    if job is None and not woken:
                        self._threads -= 1
                        return
            self._do(job)
            # nothing of the step stays while this thread waits for the next one
            del job

    def _do(self, job: Job) -> None:
        """Runs a job that was taken, and says how it went. Raises nothing."""
        settle: Callable[[], None]
        try:
            settle = partial(job.future.set_result, job.work())
        except BaseException as failure:
            settle = partial(job.future.set_exception, failure)
        with self._lock:
            self._over(job)
        with contextlib.suppress(InvalidStateError):
            settle()


class GraphPool(StepPool):
    """Works on large graphs. They end, other than kernels: none is refused, all take turns on very few threads, as each
    is Python from beginning to end, which the event loop takes turns with (decision 0025).
    """

    def __init__(self, task: str, limits: Limits) -> None:
        super().__init__(task, replace(limits, pool_threads=_GRAPH_THREADS))

    def submit(self, owner: Hashable, work: Callable[[], Any]) -> Job:
        """Runs `work` with the garbage collector held back: what it makes stays."""

        def without_collections() -> Any:
            with collector.held_back():
                return work()

        return super().submit(owner, without_collections)

    def _check(self, owner: Hashable) -> None:
        """No owner is refused."""

    def _may_run(self) -> int:
        return min(super()._may_run(), _MOST_GRAPH_THREADS)
