"""Mutexes: one holder at a time, in the order of those who ask, whoever lets go how."""

from __future__ import annotations

import gc
from typing import Any

from tenfold_kernels.resources.mutexes import Mutex
from tenfold_kernels.resources.waiting import Waiting


def told(waiting: Any) -> list[Any]:
    assert isinstance(waiting, Waiting)
    found: list[Any] = []
    waiting.listen(lambda outputs, error: found.append(outputs))
    return found


def test_a_mutex_goes_to_those_who_ask_in_order() -> None:
    mutex = Mutex()
    first = told(mutex.ask())
    second, third = told(mutex.ask()), told(mutex.ask())

    first[0].item().release()
    first[0].item().release()
    assert (len(second), len(third)) == (1, 0), "given back twice is given back once"
    second[0].item().release()
    assert len(third) == 1


def test_a_lock_that_is_let_go_of_is_given_back() -> None:
    mutex = Mutex()
    held = told(mutex.ask())
    waiting = told(mutex.ask())
    held.clear()
    gc.collect()
    assert len(waiting) == 1


def test_a_step_that_has_ended_is_passed_over() -> None:
    mutex = Mutex()
    held = told(mutex.ask())
    gone = mutex.ask()
    left = told(mutex.ask())
    gone.cancel()
    held[0].item().release()
    assert len(left) == 1


def test_a_step_that_fails_gives_back_what_it_was_given() -> None:
    mutex = Mutex()
    failed = mutex.ask()
    kept = told(failed)
    following = mutex.ask()
    left = told(following)

    failed.cancel()
    assert len(left) == 1, f"while something still has {kept}"
    failed.cancel()
    last = told(mutex.ask())
    assert not last, "cancelled twice is given back once"
    following.cancel()
    assert len(last) == 1


def test_a_lock_that_nobody_took_is_given_back() -> None:
    mutex = Mutex()
    mutex.ask().cancel()

    assert len(told(mutex.ask())) == 1


def test_a_step_that_has_ended_is_forgotten() -> None:
    mutex = Mutex()
    held = told(mutex.ask())
    gone = mutex.ask()
    stays = told(mutex.ask())
    for _ in range(2):
        gone.cancel()
        assert len(mutex._line) == 1
    held[0].item().release()
    assert len(stays) == 1
