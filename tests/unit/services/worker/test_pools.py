"""A task's pools: those that it is given are used for all its work, also under other names.

Threads for files: none of one session takes more than half, nobody is refused, and a step that ends lets go.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest

from support.moments import PATIENCE
from tenfold_core import errors
from tenfold_kernels.resources.waiting import Waiting
from tenfold_protos.cluster_pb2 import ClusterDef
from tenfold_services.limits import Limits
from tenfold_services.worker.pools import FilePool, Pools, beside, on_callers_thread, pools_of
from tenfold_services.worker.step_pool import GraphPool, StepPool
from tenfold_services.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK = "/job:ps/replica:0/task:0"


class AtOnce(StepPool):
    """Runs what it is given where it is given, as a pool without threads may."""

    def _provide(self) -> None:
        while (job := self._take()) is not None:
            with contextlib.ExitStack() as unlocked:
                self._lock.release()
                unlocked.callback(self._lock.acquire)
                self._do(job)


class GraphsAtOnce(AtOnce, GraphPool):
    """The same for graphs."""


class FilesAtOnce(AtOnce, FilePool):
    """… and for files."""


def at_once(task: str, limits: Limits) -> Pools:
    return Pools(AtOnce(task, limits), GraphsAtOnce(task, limits), FilesAtOnce(task, limits))


def test_a_worker_has_threads_unless_told_otherwise() -> None:
    worker = Worker(TASK)

    assert [type(pool) for pool in worker.pools] == [type(pool) for pool in pools_of(TASK, worker.limits)]
    worker.close()


async def test_a_worker_takes_the_pools_that_it_is_given() -> None:
    ran_on: list[int] = []
    worker = Worker(TASK, pools=at_once)

    for pool in worker.pools:
        await pool.run("s", lambda: ran_on.append(threading.get_ident()))

    assert ran_on == [threading.get_ident()] * 3
    guest = worker.join(ClusterDef(), "/job:ps/replica:0/task:1")[0]
    assert guest.pools is worker.pools
    worker.close()


class Disk:
    """A kernel that reads once it may."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.released = threading.Event()

    def __call__(self, name: str) -> str:
        self.begun.release()
        assert self.released.wait(PATIENCE)
        return f"contents of {name}"


class Outcome:
    """What a Waiting comes to."""

    def __init__(self, waiting: Waiting) -> None:
        self._over = threading.Event()
        self._found: tuple[Any, Any] = (None, None)
        waiting.listen(self._done)

    def _done(self, outputs: Any, error: Any) -> None:
        self._found = outputs, error
        self._over.set()

    def __call__(self) -> Any:
        assert self._over.wait(PATIENCE)
        outputs, error = self._found
        if error is not None:
            raise error
        return outputs


@pytest.fixture
def pool() -> Iterator[FilePool]:
    made = FilePool("/job:ps/replica:0/task:0", Limits(file_threads=4))
    yield made
    made.close()


def test_a_session_has_half_of_the_threads(pool: FilePool) -> None:
    slow, quick = Disk(), Disk()
    quick.released.set()
    read = beside(slow, pool, "one")
    waiting = [Outcome(read(f"{number}")) for number in range(6)]
    for _ in range(2):
        assert slow.begun.acquire(timeout=PATIENCE)
    for _ in range(6):
        assert Outcome(beside(quick, pool, "other")("x"))() == "contents of x"
    assert not slow.begun.acquire(blocking=False)
    slow.released.set()
    assert [outcome() for outcome in waiting] == [f"contents of {number}" for number in range(6)]


def test_what_has_not_begun_is_dropped_with_its_step(pool: FilePool) -> None:
    slow = Disk()
    read = beside(slow, pool, "one")
    first = [Outcome(read("a")), Outcome(read("b"))]
    dropped = read("c")
    for _ in range(2):
        assert slow.begun.acquire(timeout=PATIENCE)
    dropped.cancel()
    slow.released.set()
    assert [outcome() for outcome in first] == ["contents of a", "contents of b"]
    assert Outcome(read("d"))() == "contents of d"
    assert slow.begun.acquire(timeout=PATIENCE)
    assert not slow.begun.acquire(blocking=False)


def test_a_kernel_that_waits_itself_and_one_that_fails(pool: FilePool) -> None:
    inner = Waiting()
    begun = threading.Event()

    def reader() -> Waiting:
        begun.set()
        return inner

    outer = Outcome(beside(reader, pool, "one")())
    assert begun.wait(PATIENCE)
    inner.complete("a record")
    assert outer() == "a record"

    def fails() -> None:
        raise errors.NotFoundError(None, None, "no such file")

    with pytest.raises(errors.NotFoundError, match="no such file"):
        Outcome(beside(fails, pool, "one")())()


def test_the_step_s_end_reaches_what_a_kernel_waits_for(pool: FilePool) -> None:
    left = threading.Event()
    begun = threading.Event()

    def reader() -> Waiting:
        begun.set()
        return Waiting(left.set)

    outer = beside(reader, pool, "one")()
    assert begun.wait(PATIENCE)
    outer.cancel()
    assert left.wait(PATIENCE)


def test_files_are_never_refused_and_none_has_more_than_half_of_the_threads() -> None:
    for threads, of_one in ((1, 1), (3, 1), (4, 2)):
        pool = FilePool("/job:ps/replica:0/task:0", Limits(file_threads=threads, pool_threads=99, long_kernels=1))
        assert pool._may_run() == threads
        assert pool._most_of_one == of_one
        pool._long["a"] = 9
        pool._check("a")
        assert pool._may_run() == threads
        pool.close()


def test_a_step_on_its_callers_thread_reads_there(pool: FilePool) -> None:
    read = beside(threading.get_ident, pool, "one")
    with on_callers_thread():
        assert read() == threading.get_ident()
        with pytest.raises(KeyError), on_callers_thread():
            raise KeyError
    assert Outcome(read())() != threading.get_ident()


def test_a_kernel_that_breaks_and_a_wait_that_fails_fail_the_step(pool: FilePool) -> None:
    def breaks() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        Outcome(beside(breaks, pool, "one")())()
    inner = Waiting()
    outer = Outcome(beside(lambda: inner, pool, "one")())
    inner.fail(errors.cancelled("the queue is closed"))
    with pytest.raises(errors.CancelledError, match="the queue is closed"):
        outer()


def test_a_step_that_ends_before_its_kernel_begins_or_while_it_asks_waits_for_nothing() -> None:
    jobs: list[Any] = []

    class Held(FilePool):
        def submit(self, owner: Any, work: Any) -> Any:
            jobs.append(work)
            return super().submit(owner, lambda: None)

    held = Held("/job:ps/replica:0/task:0", Limits())
    ran: list[str] = []
    cancelled: list[str] = []
    first = beside(lambda: ran.append("first"), held, "one")()
    first.cancel()
    jobs.pop()()
    assert ran == []

    def asks() -> Waiting:
        second.cancel()
        return Waiting(lambda: cancelled.append("inner"))

    second = beside(asks, held, "one")()
    jobs.pop()()
    assert cancelled == ["inner"]
    held.close()
