"""Closing apart: who calls does not wait, threads end by themselves, and an error of one close stops no other.

What is bounded, and a real descriptor that takes long, are in tests/cluster/test_link_descriptors.py.
"""

from __future__ import annotations

import threading

from tenfold_link.wire.apart import Apart


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
