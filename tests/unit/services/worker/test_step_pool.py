"""The threads that run steps: sessions take turns, long kernels give their places up, and are not too many."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import deque
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from support.moments import started
from tenfold_core import errors
from tenfold_services.limits import Limits
from tenfold_services.worker import step_pool
from tenfold_services.worker.step_pool import GraphPool, StepPool

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK = "/job:ps/replica:0/task:0"
#: A test that waits longer than this for an event has failed.
PATIENCE = 30.0


class Kernel:
    """Computes until it is let go."""

    def __init__(self) -> None:
        self.entered, self.released = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.entered.set()
        assert self.released.wait(PATIENCE)
        return "done"


@pytest.fixture
def kernels() -> Iterator[list[Kernel]]:
    """All are let go at the end."""
    made = [Kernel() for _ in range(4)]
    yield made
    for kernel in made:
        kernel.released.set()


@pytest.fixture
def pools() -> Iterator[list[StepPool]]:
    made: list[StepPool] = []
    yield made
    for pool in made:
        pool.close()


def test_results_and_errors_come_back(pools: list[StepPool]) -> None:
    pools.append(pool := StepPool(TASK, Limits(pool_threads=1)))

    def fail() -> None:
        raise KeyError("x")

    assert pool.submit("s", lambda: 7).future.result(PATIENCE) == 7
    with pytest.raises(KeyError):
        pool.submit("s", fail).future.result(PATIENCE)


def test_sessions_take_turns(pools: list[StepPool], kernels: list[Kernel]) -> None:
    pools.append(pool := StepPool(TASK, Limits(pool_threads=1, long_kernel_seconds=1e6)))
    order: list[str] = []
    first = pool.submit("greedy", kernels[0])
    assert kernels[0].entered.wait(PATIENCE)
    jobs = [pool.submit("greedy", lambda: order.append("greedy")) for _ in range(3)]
    jobs.append(pool.submit("other", lambda: order.append("other")))
    kernels[0].released.set()
    for job in (first, *jobs):
        job.future.result(PATIENCE)
    assert order == ["greedy", "other", "greedy", "greedy"]


def test_a_kernel_that_takes_long_gives_its_place_up(pools: list[StepPool], kernels: list[Kernel]) -> None:
    pools.append(pool := StepPool(TASK, Limits(pool_threads=1, long_kernel_seconds=0.01)))
    pool.submit("s", kernels[0])
    assert kernels[0].entered.wait(PATIENCE)
    assert pool.submit("s", lambda: 7).future.result(PATIENCE) == 7
    assert pool.long == 1


def test_a_kernel_whose_step_is_over_gives_its_place_up(pools: list[StepPool], kernels: list[Kernel]) -> None:
    pools.append(pool := StepPool(TASK, Limits(pool_threads=1, long_kernel_seconds=1e6)))
    given_up = pool.submit("s", kernels[0])
    assert kernels[0].entered.wait(PATIENCE)
    waiting = pool.submit("s", kernels[1])
    never = pool.submit("s", kernels[2])
    pool.let_go(never)
    assert never.future.cancelled()
    pool.let_go(given_up)
    assert kernels[1].entered.wait(PATIENCE)
    kernels[0].released.set()
    assert given_up.future.result(PATIENCE) == "done"
    kernels[1].released.set()
    assert waiting.future.result(PATIENCE) == "done"
    assert pool.long == 0
    assert not kernels[2].entered.is_set()


def test_long_kernels_are_bounded_for_each_session_and_for_all(pools: list[StepPool], kernels: list[Kernel]) -> None:
    limits = Limits(pool_threads=2, long_kernels=3, long_kernels_per_session=2, long_kernel_seconds=1e6)
    pools.append(pool := StepPool(TASK, limits))
    for session, kernel in zip("aab", kernels, strict=False):
        job = pool.submit(session, kernel)
        assert kernel.entered.wait(PATIENCE)
        pool.let_go(job)
        if kernel is kernels[1]:
            with pytest.raises(errors.ResourceExhaustedError, match="A session has 2 kernels on /job:ps/"):
                pool.submit("a", kernels[3])
    with pytest.raises(errors.ResourceExhaustedError, match=r"/job:ps/.* has 3 kernels .*; 3 is the limit"):
        pool.submit("c", kernels[3])
    for kernel in kernels:
        kernel.released.set()
    job.future.result(PATIENCE)


def test_a_pool_that_is_closed_takes_nothing_and_drops_what_waits(pools: list[StepPool], kernels: list[Kernel]) -> None:
    pools.append(pool := StepPool(TASK, Limits(pool_threads=1, long_kernel_seconds=1e6)))
    running = pool.submit("s", kernels[0])
    assert kernels[0].entered.wait(PATIENCE)
    waiting = pool.submit("s", kernels[1])
    pool.close()
    assert waiting.future.cancelled()
    with pytest.raises(errors.UnavailableError, match="shutting down"):
        pool.submit("s", kernels[1])
    kernels[0].released.set()
    assert running.future.result(PATIENCE) == "done"


class Queue(StepPool):
    """One without threads: the test takes jobs and ends them. `wanted` is how many threads it would have begun."""

    def __init__(self, **limits: Any) -> None:
        super().__init__(TASK, Limits(**{"long_kernel_seconds": 1e6, **limits}))
        self.wanted = 0

    def _provide(self) -> None:
        self.wanted += 1

    def take(self) -> Any:
        with self._lock:
            return self._take()


def test_so_many_run_and_no_more_and_each_owner_has_its_turn() -> None:
    pool = Queue(pool_threads=2)
    jobs = [pool.submit(owner, lambda: None) for owner in "aab"]

    first, second = pool.take(), pool.take()

    assert (first, second, pool.take()) == (jobs[0], jobs[2], None)
    assert pool.running("a") == [jobs[0].future]
    pool._do(first)
    assert pool.running("a") == []
    assert pool.take() is jobs[1]
    assert not pool._waiting
    assert pool.wanted == 3


def test_what_was_given_up_before_it_began_is_passed_over() -> None:
    pool = Queue(pool_threads=1)
    given_up, other = pool.submit("a", lambda: 1), pool.submit("a", lambda: 2)
    pool.let_go(given_up)

    assert pool.take() is other
    pool._do(other)
    assert other.future.result(0) == 2
    assert pool.take() is None


def test_a_job_counts_as_long_once_and_not_when_it_is_over() -> None:
    pool = Queue(pool_threads=1)
    job = pool.submit("a", lambda: 1)
    pool.take()
    pool.let_go(job)
    pool.let_go(job)
    assert (pool.long, pool._may_run(), job.is_long, pool.wanted) == (1, 2, True, 3)
    pool._do(job)
    assert (pool.long, pool._may_run(), dict(pool._long)) == (0, 1, {})
    pool.let_go(job)
    assert pool.long == 0


@pytest.mark.parametrize(("ran", "is_long"), [(5.0, False), (5.1, True)])
def test_a_job_is_long_after_so_many_seconds(ran: float, is_long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(step_pool, "time", SimpleNamespace(monotonic=lambda: now[0]))
    pool = Queue(pool_threads=1, long_kernel_seconds=5.0)
    pool.submit("a", lambda: None)
    pool.take()
    now[0] += ran

    assert pool.long == is_long
    pool.submit("a", lambda: None)
    assert (pool.take() is not None) == is_long


def test_a_job_that_fails_says_so_and_one_that_was_given_up_meanwhile_is_silent() -> None:
    pool = Queue(pool_threads=3)

    def fails() -> None:
        raise KeyboardInterrupt

    failed, cut_off = pool.submit("a", fails), pool.submit("a", lambda: 1)
    for job in (failed, cut_off):
        assert pool.take() is job
    cut_off.future.set_result("before")
    pool._do(failed)
    pool._do(cut_off)

    assert isinstance(failed.future.exception(0), KeyboardInterrupt)
    assert cut_off.future.result(0) == "before"
    assert pool.running("a") == []


@pytest.mark.parametrize(
    ("limits", "owner", "text"),
    [
        (
            {"long_kernels": 2}, "b",
            f"{TASK} has 2 kernels that have computed for more than 1e+06 s or whose steps are over, and begins no "
            "other step until one ends; 2 is the limit",
        ),
        (
            {"long_kernels_per_session": 2}, "a",
            f"A session has 2 kernels on {TASK} that have computed for more than 1e+06 s or whose steps are over, and "
            "begins no other step until one ends; 2 is the limit",
        ),
    ],
)  # fmt: skip
def test_the_words_of_a_pool_with_too_many_long_kernels(limits: dict[str, int], owner: str, text: str) -> None:
    pool = Queue(pool_threads=4, **limits)
    for _ in range(2):
        pool.submit("a", lambda: None)
        pool.let_go(pool.take())
    if owner == "a":
        pool.submit("b", lambda: None)

    with pytest.raises(errors.ResourceExhaustedError) as raised:
        pool.submit(owner, lambda: None)
    assert raised.value.message.startswith(text)


async def test_a_caller_that_is_cancelled_drops_what_has_not_begun() -> None:
    pool = Queue(pool_threads=1)
    call = await started(pool.run("a", lambda: 1))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert pool.take() is None

    closed = await started(pool.run("a", lambda: 1))
    pool.close()
    with pytest.raises(errors.UnavailableError, match=f"{TASK} is shutting down"):
        await closed


async def test_a_caller_gets_the_result_or_the_error() -> None:
    pool = Queue(pool_threads=2)
    call = await started(pool.run("a", lambda: 7))
    pool._do(pool.take())
    assert await call == 7


def test_graphs_are_never_refused_and_have_few_threads() -> None:
    pool = GraphPool(TASK, Limits(pool_threads=9, long_kernels=1, long_kernels_per_session=1))
    assert pool._may_run() == 2
    pool._long["a"] = 1
    pool._check("a")
    assert pool._may_run() == 3
    pool._long["a"] = 9
    assert pool._may_run() == 4
    pool.close()


def test_graphs_are_worked_on_with_the_collector_held_back(pools: list[StepPool]) -> None:
    pools.append(pool := GraphPool(TASK, Limits()))
    assert gc.isenabled()
    assert pool.submit("a", gc.isenabled).future.result(PATIENCE) is False
    assert gc.isenabled()


def test_a_thread_without_work_goes_after_a_while(monkeypatch: pytest.MonkeyPatch, pools: list[StepPool]) -> None:
    monkeypatch.setattr(step_pool, "_IDLE_SECONDS", 0.0)
    pools.append(pool := StepPool(TASK, Limits(pool_threads=1)))
    names: list[threading.Thread] = []
    pool.submit("a", lambda: names.append(threading.current_thread())).future.result(PATIENCE)
    (thread,) = names
    assert thread.daemon
    assert thread.name == "tenfold-job:ps-replica:0-task:0"
    thread.join(PATIENCE)
    assert (pool._threads, pool._idle) == (0, 0)
    assert pool.submit("a", lambda: 8).future.result(PATIENCE) == 8


def test_a_thread_whose_wait_is_over_takes_what_has_come_meanwhile_and_goes_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = Queue(pool_threads=1)
    pool._threads = 1
    waits: list[tuple[float, int]] = []
    jobs: list[Any] = []

    class Wake:
        """The first wait is over when a job comes, the second is woken in vain, the third is over without anything."""

        def wait(self, seconds: float) -> bool:
            waits.append((seconds, pool._idle))
            if len(waits) == 1:
                job = step_pool.Job("a", lambda: 7)
                pool._waiting["a"] = deque([job])
                jobs.append(job)
            return len(waits) == 2

    monkeypatch.setattr(pool, "_wake", Wake())

    pool._serve()

    assert jobs[0].future.result(0) == 7
    assert waits == [(30.0, 1)] * 3
    assert (pool._threads, pool._idle) == (0, 0)


def test_a_thread_of_a_closed_pool_goes_at_once() -> None:
    pool = Queue(pool_threads=1)
    pool._threads = 1
    pool._closed = True
    pool._serve()
    assert pool._threads == 0
