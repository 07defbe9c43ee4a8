"""The threads that run steps: sessions take turns, long kernels give their places up, and are not too many."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from tenfold_core import errors
from tenfold_services.limits import Limits
from tenfold_services.worker.step_pool import StepPool

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
