"""Parts from a counter: all are done once, errors come through, and the caller never waits for what nobody began."""

from __future__ import annotations

import contextvars
import threading

import pytest

from tenfold_kernels import chunks, parallel


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_width", lambda: 2)
    monkeypatch.setattr(chunks, "is_crowded", lambda: False)


def test_parts_cover_the_whole_once() -> None:
    done: list[tuple[int, int]] = []
    parallel.in_parts(lambda first, last: done.append((first, last)), 100, 1)
    assert [i for part in sorted(done) for i in range(*part)] == list(range(100))
    assert len(done) == 6


def test_small_work_is_one_part_and_no_work_is_none() -> None:
    done: list[tuple[int, int]] = []
    parallel.in_parts(lambda first, last: done.append((first, last)), 7, 4)
    parallel.in_parts(lambda first, last: done.append((first, last)), 0, 4)
    assert done == [(0, 7)]


def test_a_caller_whose_helper_gets_no_turn_does_all_itself() -> None:
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        release.wait(10)

    parallel.in_parts(lambda first, last: None, 60, 1)
    taken = parallel._taken(16)
    assert taken
    for helper in taken:
        helper.give(hold)
    assert held.wait(10)
    by: list[threading.Thread] = []
    try:
        parallel.in_parts(lambda first, last: by.append(threading.current_thread()), 60, 1)
        assert not release.is_set()
    finally:
        release.set()
        give_back(taken)
    assert by == [threading.current_thread()] * 6


def give_back(helpers: list[parallel._Helper]) -> None:
    for helper in helpers:
        assert helper.take_back() is None
    assert parallel._free is not None
    parallel._free.extend(helpers)


def test_nobody_helps_in_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "is_crowded", lambda: True)
    by: list[threading.Thread] = []
    parallel.in_parts(lambda first, last: by.append(threading.current_thread()), 60, 1)
    assert by == [threading.current_thread()] * 6


@pytest.mark.parametrize("is_loaded", [False, True])
def test_each_job_is_done_once_awake_or_asleep(is_loaded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_loaded:
        monkeypatch.setattr(chunks, "await_change", lambda *_: None)
    elif chunks._starter.pool is None:
        chunks._starter.begin()
        chunks._starter.join(60)
        assert chunks._starter.pool is not None
    done = [0] * 6
    for _ in range(500):
        parallel.in_parts(lambda first, last: done.__setitem__(first, done[first] + 1), 6, 1)
    assert done == [500] * 6


def test_callers_beside_each_other_share_the_helpers() -> None:
    found: list[int] = []

    def call() -> None:
        for _ in range(200):
            done: list[int] = []
            parallel.in_parts(lambda first, last, done=done: done.append(first), 6, 1)  # type: ignore[misc]
            found.append(sum(done))

    callers = [threading.Thread(target=call) for _ in range(4)]
    for each in callers:
        each.start()
    for each in callers:
        each.join(60)
    assert found == [15] * 800


def test_an_error_of_a_part_is_raised_once_the_others_ended() -> None:
    def work(first: int, last: int) -> None:
        if first == 0:
            raise ValueError("the first part")

    with pytest.raises(ValueError, match="the first part"):
        parallel.in_parts(work, 60, 1)


def test_an_error_of_a_helper_is_raised() -> None:
    caller, both = threading.current_thread(), threading.Barrier(2, timeout=10)
    met = threading.local()

    def work(first: int, last: int) -> None:
        if not hasattr(met, "once"):
            met.once = True
            both.wait()
        if threading.current_thread() is not caller:
            raise ValueError("a helper's part")

    with pytest.raises(ValueError, match="a helper's part"):
        parallel.in_parts(work, 60, 1)


def test_helpers_work_in_the_callers_context() -> None:
    told: contextvars.ContextVar[str] = contextvars.ContextVar("told", default="nothing")
    begun = threading.Barrier(2, timeout=10)
    seen: dict[int, str] = {}

    def work(first: int, last: int) -> None:
        if threading.get_ident() not in seen:
            seen[threading.get_ident()] = told.get()
            begun.wait()

    told.set("by the caller")
    parallel.in_parts(work, 100, 1)

    assert list(seen.values()) == ["by the caller"] * 2
