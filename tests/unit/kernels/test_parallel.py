"""Parts from a counter: all are done once, errors come through, and the caller never waits for what nobody began."""

from __future__ import annotations

import contextvars
import importlib.util
import os
import threading
from types import SimpleNamespace

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


def test_the_first_bad_place_of_all_parts_is_found() -> None:
    def bad_of(wrong: set[int]) -> int:
        return parallel.first_in_parts(
            lambda first, last: next((i - first for i in range(first, last) if i in wrong), -1), 100, 1
        )

    assert bad_of(set()) == -1
    assert bad_of({0}) == 0
    assert bad_of({98, 51, 77}) == 51


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


class FakeHelper:
    """Takes a job when it is given back, unless `error` says what becomes of it."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error
        self.given: list[object] = []

    def give(self, work: object) -> None:
        self.given.append(work)

    def take_back(self) -> BaseException | None:
        self.given.append("back")
        return self.error


@pytest.fixture
def helpers(monkeypatch: pytest.MonkeyPatch) -> list[FakeHelper]:
    """All that are free: three."""
    free = [FakeHelper() for _ in range(3)]
    monkeypatch.setattr(parallel, "_free", free)
    return free


def parts_of(total: int, least: int, width: int, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    monkeypatch.setattr(parallel, "_width", lambda: width)
    done: list[tuple[int, int]] = []
    parallel.in_parts(lambda first, last: done.append((first, last)), total, least)
    return done


def test_how_much_is_a_part(helpers: list[FakeHelper], monkeypatch: pytest.MonkeyPatch) -> None:
    for total, least, width, expected in (
        (10, 3, 2, [(0, 3), (3, 6), (6, 10)]),
        (8, 3, 2, [(0, 4), (4, 8)]),
        (5, 3, 2, [(0, 5)]),
        (100, 1, 1, [(0, 100)]),
        (7, 0, 1, [(0, 7)]),
        (9, 0, 3, [(i, i + 1) for i in range(9)]),
        (90, 1, 3, [(10 * i, 10 * i + 10) for i in range(9)]),
        (0, 1, 2, []),
        (-1, 1, 2, []),
        (1, 1, 2, [(0, 1)]),
    ):
        assert parts_of(total, least, width, monkeypatch) == expected, (total, least, width)
        assert len(parallel._free or []) == 3, "all are free again"


@pytest.mark.parametrize(
    ("total", "width", "asked"), [(100, 2, 1), (100, 3, 2), (100, 4, 3), (100, 9, 3), (2, 9, 1), (3, 9, 2), (1, 9, 0)]
)
def test_no_more_help_than_parts_or_threads(
    total: int, width: int, asked: int, helpers: list[FakeHelper], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = list(helpers)
    parts_of(total, 1, width, monkeypatch)
    used = [helper for helper in every if helper.given]
    assert len(used) == asked
    assert all(callable(helper.given[0]) and helper.given[1:] == ["back"] for helper in used)
    assert set(helpers) == set(every)


def test_a_first_job_makes_a_helper_for_each_other_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_Helper", FakeHelper)
    for cores, count in ((1, 1), (2, 1), (5, 4), (16, 15), (17, 15)):
        monkeypatch.setattr(parallel, "_free", None)
        monkeypatch.setattr(parallel, "available_cores", lambda cores=cores: cores)
        assert len(parallel._taken(99)) == count, cores
        assert parallel._taken(1) == [], "they are the first caller's"
        assert parallel._free == []
    monkeypatch.setattr(parallel, "_free", [FakeHelper()])
    parallel._forget()
    assert parallel._free is None


def test_the_callers_error_goes_first_and_then_a_helpers(
    helpers: list[FakeHelper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_width", lambda: 3)
    helpers[1].error, helpers[2].error = ValueError("one"), ValueError("other")

    def fail(first: int, last: int) -> None:
        raise KeyError("the caller's")

    with pytest.raises(KeyError, match="the caller's"):
        parallel.in_parts(fail, 60, 1)
    with pytest.raises(ValueError, match=r"^one$"):
        parallel.in_parts(lambda first, last: None, 60, 1)
    assert len(helpers) == 3


def test_a_job_that_nobody_began_is_taken_back_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[object] = []

    class NoThread:
        def __init__(self, **given: object) -> None:
            began.append((given["name"], given["daemon"]))

        def start(self) -> None:
            began.append("started")

    monkeypatch.setattr(parallel.threading, "Thread", NoThread)
    helper = parallel._Helper()
    assert began == [("tenfold-intra-op", True), "started"]
    helper.give(lambda: None)
    assert helper._given[0] == 1
    assert helper.take_back() is None
    assert (helper._turn, helper._work) == ([], parallel._nothing)
    helper._asleep.append(None)
    helper.give(lambda: None)
    assert helper._asleep == []
    assert helper._woken.acquire(blocking=False), "it was woken"
    helper.give(lambda: None)
    assert not helper._woken.acquire(blocking=False), "it does not sleep"
    # begun and over: what its work raised, once
    helper._turn.clear()
    helper._error = ValueError("a part")
    helper._done.release()
    assert str(helper.take_back()) == "a part"
    assert helper._error is None


def test_a_helper_without_work_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks once for another job, and then it waits to be woken: it takes no core from anybody."""
    sleeps, looks = threading.Event(), list[None]()

    class Lock:
        def __init__(self) -> None:
            self.real = threading.Lock()
            self.acquired = 0

        def acquire(self, blocking: bool = True) -> bool:
            self.acquired += 1
            if self.acquired == 2:  # the first is before the thread has begun
                sleeps.set()
            return self.real.acquire(blocking)

        def release(self) -> None:
            self.real.release()

    monkeypatch.setattr(chunks, "await_change", lambda *_: looks.append(None))
    monkeypatch.setattr(parallel, "threading", SimpleNamespace(Lock=Lock, Thread=threading.Thread))
    helper = parallel._Helper()
    assert sleeps.wait(10)
    assert (len(looks), helper._asleep) == (1, [None])
    monkeypatch.undo()
    done = threading.Event()
    helper.give(done.set)
    assert done.wait(10)
    assert helper.take_back() is None


def test_a_forked_process_has_no_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (parallel, chunks):
        in_child: list[object] = []
        monkeypatch.setattr(os, "register_at_fork", lambda in_child=in_child, **given: in_child.append(given))
        assert module.__spec__ is not None
        anew = importlib.util.module_from_spec(module.__spec__)
        assert module.__spec__.loader is not None
        module.__spec__.loader.exec_module(anew)
        assert in_child == [{"after_in_child": anew._forget}]
