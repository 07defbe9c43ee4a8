"""Parts from a counter: all are done once, errors come through, and the caller never waits for what nobody began."""

from __future__ import annotations

import contextvars
import threading

import pytest

from tenfold_kernels import parallel


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_width", lambda: 2)


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


def test_a_caller_whose_helper_gets_no_turn_does_all_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    held, release = threading.Event(), threading.Event()
    pool = parallel.ThreadPoolExecutor(1)
    monkeypatch.setattr(parallel, "_pool", pool)

    def hold() -> None:
        held.set()
        release.wait(10)

    pool.submit(hold)
    assert held.wait(10)
    by: list[threading.Thread] = []
    try:
        parallel.in_parts(lambda first, last: by.append(threading.current_thread()), 60, 1)
        assert not release.is_set()
    finally:
        release.set()
        pool.shutdown()
    assert by == [threading.current_thread()] * 6


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
