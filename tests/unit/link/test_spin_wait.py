"""Spinning: for how long, what it learns, and that a server's event loop still sleeps when nothing comes."""

from __future__ import annotations

import os
import selectors
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tenfold_link import spin_wait
from tenfold_link.spin_wait import SPIN_SECONDS, SpinWait, poll_again
from tenfold_services.background import SpinningSelector, new_event_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Clock:
    """Time that passes with each look and each time that the core is given away, for the thread of the test.

    A server that an earlier test left in this process spins too, by its own time.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.away = SPIN_SECONDS / 50
        self.looks = self.yields = 0
        self._thread = threading.get_ident()
        self._sched_yield = os.sched_yield
        monkeypatch.setattr(spin_wait, "perf_counter", self._perf_counter)
        monkeypatch.setattr(spin_wait.os, "sched_yield", self._yield)

    def _perf_counter(self) -> float:
        return self.now if threading.get_ident() == self._thread else time.perf_counter()

    def _yield(self) -> None:
        if threading.get_ident() != self._thread:
            self._sched_yield()
            return
        self.yields += 1
        self.now += self.away

    def after(self, looks: int) -> Callable[[], str]:
        """Finds something at the so-manieth look."""
        seen = 0

        def look() -> str:
            nonlocal seen
            seen += 1
            self.looks += 1
            self.now += SPIN_SECONDS / 50
            return "there" if seen >= looks else ""

        return look


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_it_finds_what_comes_soon_and_yields_between_two_polls(clock: Clock) -> None:
    waiter = SpinWait()
    for _ in range(100):
        assert waiter.wait(clock.after(3)) == "there"
    assert (clock.looks, clock.yields) == (300, 200)


def test_it_spins_for_a_bounded_time(clock: Clock) -> None:
    assert not SpinWait().wait(clock.after(10_000))
    assert SPIN_SECONDS <= clock.now < 1.1 * SPIN_SECONDS


def test_what_is_of_no_use_is_tried_less_and_less_often(clock: Clock) -> None:
    waiter = SpinWait()
    for _ in range(2000):
        assert not waiter.wait(clock.after(10_000))
    # attempts after 1, 2, 4, … 128 and then every 256 waits
    assert clock.now / SPIN_SECONDS == pytest.approx(16, abs=3)


def test_a_success_brings_it_back(clock: Clock) -> None:
    waiter = SpinWait()
    for _ in range(40):
        waiter.wait(clock.after(10_000))
    tries = 0
    while not waiter.wait(clock.after(2)):
        tries += 1
    assert tries <= 64
    assert all(waiter.wait(clock.after(2)) for _ in range(50))


def slept(waiter: SpinWait, clock: Clock) -> int:
    """Spins once and finds nothing; how many of the next waits sleep at once."""
    looks = clock.looks
    assert not waiter.wait(clock.after(10_000))
    assert clock.looks > looks
    count, looks = 0, clock.looks
    while waiter.wait(clock.after(1)) is None:
        assert clock.looks == looks
        count += 1
        assert count <= 1000
    return count


def test_a_spin_of_no_use_doubles_what_sleeps_after_the_next_and_one_of_use_halves_it(clock: Clock) -> None:
    waiter = SpinWait()
    for doubled in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        assert not waiter.wait(clock.after(10_000))
        before = clock.looks
        assert [waiter.wait(clock.after(1)) for _ in range(doubled)] == [None] * doubled
        assert clock.looks == before
    # no more than that; a look that finds something ends each count, and halves what the next one will be
    assert [slept(waiter, clock) for _ in range(3)] == [256, 128, 128]
    for _ in range(3):
        assert waiter.wait(clock.after(1)) == "there"
    assert [slept(waiter, clock) for _ in range(2)] == [16, 16]
    for _ in range(20):
        assert waiter.wait(clock.after(1)) == "there"
    assert slept(waiter, clock) == 1, "one at the least"


@pytest.mark.parametrize(("late", "useful"), [(1.9, True), (2.1, False), (2.9, False)])
def test_what_comes_late_is_given_but_of_use_within_twice_the_time(clock: Clock, late: float, useful: bool) -> None:
    def look() -> str:
        clock.now += late * SPIN_SECONDS
        return "there"

    waiter = SpinWait()
    assert waiter.wait(look) == "there"
    assert (waiter.wait(look) == "there") == useful


def test_it_ends_at_its_time(clock: Clock) -> None:
    def look() -> str:
        clock.now = SPIN_SECONDS
        return ""

    assert SpinWait().wait(look) is None
    assert clock.yields == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a core cannot be yielded")
def test_a_large_buffer_is_a_stream_and_a_small_one_is_not() -> None:
    assert 128 << 10 <= spin_wait.STREAMED <= 512 << 10


def test_a_core_that_others_compute_on_counts_as_vain(clock: Clock) -> None:
    clock.away = 30 * SPIN_SECONDS
    waiter = SpinWait()
    assert waiter.wait(clock.after(2)) == "there", "what came is not lost"
    looks = clock.looks
    assert waiter.wait(clock.after(1)) is None
    assert clock.looks == looks, "the next wait sleeps at once"


def test_a_stream_s_reader_spins_for_a_bounded_time(clock: Clock) -> None:
    assert poll_again(clock.now - SPIN_SECONDS / 2)
    assert clock.yields == 1
    assert not poll_again(clock.now - SPIN_SECONDS)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_a_selector_gives_what_is_ready_and_ends_with_its_time(pair: tuple[socket.socket, socket.socket]) -> None:
    one, other = pair
    with SpinningSelector() as selector:
        selector.register(one, selectors.EVENT_READ, "data")
        for timeout in (0, -1, 0.001):
            assert selector.select(timeout) == []
        other.send(b"x")
        for timeout in (0, 0.001, None, None):
            [(key, events)] = selector.select(timeout)
            assert (key.data, events) == ("data", selectors.EVENT_READ)


def test_an_event_loop_of_it_runs_callbacks_timers_and_readers(pair: tuple[socket.socket, socket.socket]) -> None:
    one, other = pair
    one.setblocking(False)
    loop = new_event_loop()
    try:

        async def talk() -> bytes:
            loop.call_later(0.002, other.send, b"hello")
            return await loop.sock_recv(one, 10)

        assert loop.run_until_complete(talk()) == b"hello"
    finally:
        loop.close()
