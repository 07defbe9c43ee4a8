"""Functions of the client's program on threads of their own: how many there are, when they end, what is handed over."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tenfold_kernels import host_threads
from tenfold_kernels.host_threads import HostThreads, on_a_thread

SECONDS = 30.0


class Started:
    """Stands for threading.Thread: a thread runs when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[dict[str, Any]] = []
        self.began = 0
        monkeypatch.setattr(host_threads.threading, "Thread", self._make)

    def _make(self, **given: Any) -> Any:
        self.made.append(given)
        return self

    def start(self) -> None:
        self.began += 1


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(monkeypatch)


def test_a_thread_for_each_function_up_to_the_most(started: Started) -> None:
    pool, done = HostThreads(most=2, idle_seconds=0.0), list[str]()
    for name in "abc":
        pool.submit(lambda name=name: done.append(name))  # type: ignore[misc]
    assert [given["name"] for given in started.made] == ["tenfold-host-function"] * 2
    assert all(given["daemon"] for given in started.made)
    assert (started.began, done) == (2, [])

    started.made[0]["target"]()
    assert done == ["a", "b", "c"], "in the order in which they came"
    pool.submit(lambda: done.append("d"))
    assert started.began == 3, "one has ended"
    for given in started.made[1:]:
        given["target"]()
    assert done[3:] == ["d"]
    pool.submit(lambda: None)
    pool.submit(lambda: None)
    assert started.began == 5, "all have ended"


def test_by_default_there_are_many_threads_and_they_stay_a_while() -> None:
    pool = HostThreads()
    assert (pool._most, pool._idle_seconds) == (256, 10.0)


def test_a_thread_that_waits_takes_the_next_function() -> None:
    pool, ran = HostThreads(idle_seconds=SECONDS), list[threading.Thread]()
    waits = threading.Event()
    wait_for = pool._changed.wait_for

    def waiting(predicate: Any, timeout: float | None = None) -> bool:
        assert timeout == SECONDS
        waits.set()
        return wait_for(predicate, timeout)

    pool._changed.wait_for = waiting  # type: ignore[method-assign]

    def run() -> None:
        done = threading.Event()

        def work() -> None:
            ran.append(threading.current_thread())
            done.set()

        pool.submit(work)
        assert done.wait(SECONDS)

    run()
    assert waits.wait(SECONDS)
    with pool._changed:  # it sleeps by now
        waits.clear()
    run()
    assert waits.wait(SECONDS)
    with pool._changed:
        assert (pool._count, pool._idle) == (1, 1)
    assert len(set(ran)) == 1
    both = threading.Barrier(3, timeout=SECONDS)
    for _ in range(2):
        pool.submit(both.wait)
    both.wait()  # one took the thread that waited, the other has a new one


def test_a_function_gets_copies_of_its_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    works: list[Any] = []
    monkeypatch.setattr(host_threads, "_threads", type("Pool", (), {"submit": staticmethod(works.append)}))
    found: list[Any] = []

    def kernel(x: Any, y: Any) -> Any:
        if x.sum() == 0:
            raise ValueError("nothing")
        return x + y

    x, y = np.array([1, 2]), np.array([10, 20])
    sums, fails, late = (on_a_thread(kernel)(*given) for given in ((x, y), (0 * x, y), (x, y)))
    x[:] = 7
    for waiting in (sums, fails):
        waiting.listen(lambda outputs, error: found.append((outputs, error)))
    late.cancel()
    for work in works:
        work()
    (outputs, none), (nothing, error) = found
    assert (outputs.tolist(), none) == ([11, 22], None)
    assert nothing is None
    assert isinstance(error, ValueError)


def test_what_nobody_waits_for_any_more_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    works: list[Any] = []
    calls: list[str] = []
    monkeypatch.setattr(host_threads, "_threads", type("Pool", (), {"submit": staticmethod(works.append)}))
    waiting = on_a_thread(lambda: calls.append("called"))()
    waiting.cancel()
    works.pop()()
    assert calls == []
