"""Closing apart: who calls does not wait, threads end by themselves, and an error of one close stops no other.

What is bounded, and a real descriptor that takes long, are in tests/cluster/test_link_descriptors.py.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tenfold_link.wire import apart as apart_module
from tenfold_link.wire.apart import Apart

if TYPE_CHECKING:
    import pytest


def test_each_is_closed_and_an_error_stops_no_other() -> None:
    apart, done = Apart(threads=1), threading.Semaphore(0)

    def fails() -> None:
        done.release()
        raise OSError

    for closing in (fails, done.release, fails, done.release):
        apart.close(closing)
    for _ in range(4):
        assert done.acquire(timeout=20)


def test_who_calls_does_not_wait_and_one_thread_serves_many() -> None:
    apart, gate, inside, names = Apart(threads=1), threading.Event(), threading.Semaphore(0), set()

    def close() -> None:
        names.add(threading.current_thread())
        inside.release()
        assert gate.wait(20)

    for _ in range(3):
        apart.close(close)
    assert inside.acquire(timeout=20)
    assert apart._threads == 1
    (thread,) = names
    assert thread.daemon
    assert thread.name == "close-apart"
    gate.set()
    thread.join(20)
    assert not thread.is_alive()
    assert names == {thread}
    assert (apart._threads, apart._closing, len(apart._waiting)) == (0, 0, 0)


def test_another_thread_comes_only_where_all_are_inside_a_close() -> None:
    apart, gate, inside = Apart(threads=2), threading.Event(), threading.Semaphore(0)

    def close() -> None:
        inside.release()
        assert gate.wait(20)

    apart.close(close)
    assert inside.acquire(timeout=20)
    apart.close(close)
    assert inside.acquire(timeout=20)
    assert (apart._threads, apart._closing) == (2, 2)
    apart.close(close)
    assert (apart._threads, len(apart._waiting)) == (2, 1)
    gate.set()
    assert inside.acquire(timeout=20)


def test_threads_and_what_waits_for_them_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []

    class Thread:
        """Runs where the test says."""

        def __init__(self, target: Any, name: str, daemon: bool) -> None:
            self.start = lambda: started.append(target)

    monkeypatch.setattr(apart_module.threading, "Thread", Thread)
    bounded, done = Apart(threads=3, waiting=2), []
    for number, has_room in ((1, True), (2, False), (3, False), (4, False)):
        bounded.close(lambda number=number: done.append((number, bounded._closing)))  # type: ignore[misc]
        assert (bounded.has_room, len(started)) == (has_room, min(number, 3))
    started[0]()
    assert done == [(1, 1), (2, 1), (3, 1), (4, 1)], "one serves all that wait, and ends"
    assert (bounded._threads, bounded._closing, bounded.has_room) == (2, 0, True)
    for _ in range(2):
        bounded.close(lambda: done.append((5, 0)))
        assert len(started) == 3, "there is a thread that has not begun for each"
    bounded.close(lambda: done.append((6, 0)))
    assert len(started) == 4
    for work in started[1:]:
        work()
    assert (bounded._threads, len(done)) == (0, 7)
