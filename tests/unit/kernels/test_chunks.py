"""Chunks without the GIL: each is done once, whoever takes it; what is learnt about helpers; who may share at all."""

from __future__ import annotations

import ctypes
import itertools
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_kernels import chunks, threads
from tenfold_kernels.chunks import Payoff
from tenfold_kernels.cpu._compiled.chunk_loops import Cell, fetch_add, helper, load, store
from tenfold_kernels.cpu._compiled.objects import compile_callback
from tenfold_kernels.crowd import Crowd

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOST = 256


def count_up(arguments, chunk):  # type: ignore[no-untyped-def]
    """Adds one to the chunk's cell."""
    fetch_add(arguments + 8 * chunk, 1)


def meet(arguments, chunk):  # type: ignore[no-untyped-def]
    """Two chunks that end only once both are begun."""
    fetch_add(arguments, 1)
    while load(arguments) < 2:
        pass
    store(arguments + 8 * (1 + chunk), 1)


CLAIMED, INSIDE, WAITING = 8 * Cell.CLAIMED.value, 8 * Cell.INSIDE.value, 8 * Cell.WAITING.value
WAITS, GONE, IS_ITSELF = 1, 2, 3


def outlast(arguments, chunk):  # type: ignore[no-untyped-def]
    """Two chunks that begin together. The second ends once the caller waits for it, is gone, or has done all others."""
    pool = load(arguments)
    fetch_add(arguments + 8, 1)
    while load(arguments + 8) < 2:
        pass
    while chunk:
        if load(pool + WAITING) or not load(pool + CLAIMED) or not load(pool + INSIDE):
            store(arguments + 16, WAITS if load(pool + WAITING) else IS_ITSELF if load(pool + CLAIMED) else GONE)
            return


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> chunks._Pool:
    """Two helpers, whatever the machine has; they sleep for ever afterwards."""
    monkeypatch.setattr(chunks, "width", lambda: 3)
    starter = chunks._Starter()
    starter.pool = chunks._Pool(2)
    assert starter.pool.helpers == 2
    monkeypatch.setattr(chunks, "_starter", starter)
    monkeypatch.setattr(chunks, "_crowd", Crowd("/proc/no such file"))
    monkeypatch.setattr(starter.pool, "is_worth_it", lambda *_: True)
    return starter.pool


@pytest.mark.parametrize("count", [0, 1, 2, 7, MOST])
def test_each_chunk_is_done_once(count: int, pool: chunks._Pool) -> None:
    function = compile_callback(count_up)
    cells = np.zeros(MOST, np.int64)
    for _ in range(50):
        chunks.run(function, cells, count)
    assert cells.tolist() == [50] * count + [0] * (MOST - count)


def test_a_helper_takes_a_chunk_while_the_caller_is_in_another(pool: chunks._Pool) -> None:
    cells = np.zeros(3, np.int64)
    chunks.run(compile_callback(meet), cells, 2)
    assert cells.tolist() == [2, 1, 1]


def test_the_caller_sleeps_until_a_helper_s_chunk_is_done(pool: chunks._Pool) -> None:
    function, found = compile_callback(outlast), IS_ITSELF
    while found == IS_ITSELF:  # it got the second chunk before a helper came
        cells = np.array([pool.address, 0, 0], np.int64)
        assert pool.share(function, chunks.address_of(cells), 2, 2)
        while not (found := cells[2]):
            pass
    assert found == WAITS


def test_a_second_caller_does_its_chunks_alone(pool: chunks._Pool) -> None:
    function = compile_callback(count_up)
    pool.cells[0] = 1  # CLAIMED: by another caller
    cells = np.zeros(MOST, np.int64)
    chunks.run(function, cells, MOST)
    assert cells.tolist() == [1] * MOST
    assert not pool.share(function, chunks.address_of(cells), MOST, 2)
    assert cells.tolist() == [1] * MOST


def test_callers_at_the_same_time_get_their_own_results(pool: chunks._Pool) -> None:
    function, all_cells = compile_callback(count_up), np.zeros((4, MOST), np.int64)

    def call(cells: np.ndarray) -> None:
        for _ in range(200):
            chunks.run(function, cells, MOST)

    callers = [threading.Thread(target=call, args=(cells,)) for cells in all_cells]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert (all_cells == 200).all()


def pool_that_looks(look: Callable[[], object]) -> chunks._Pool:
    """One without helpers, where `look` is called in place of giving up the core."""

    def between() -> int:
        look()
        return 0

    pool, callback = chunks._Pool(0), ctypes.CFUNCTYPE(ctypes.c_int)(between)
    chunks._kept.append(callback)
    pool.cells[Cell.YIELD_FN] = ctypes.cast(callback, ctypes.c_void_p).value
    return pool


def test_a_look_at_a_cell_ends_with_a_change_or_after_its_time() -> None:
    cells = np.array([4711, 0], np.int64)
    cell = chunks.address_of(cells)
    pool = pool_that_looks(lambda: cells.put(0, 1))
    assert pool.await_change(pool.address, cell, 4711, 0, cell + 8) == 4711
    assert cells[1] == 1, "it says that it looks"
    assert pool.await_change(pool.address, cell, 4711, 10**15, 0) == 1


def pool_whose_clock_ticks(look: Callable[[], object]) -> chunks._Pool:
    """By 100 ns whenever it is asked; half a microsecond later a second is full."""
    pool, now = pool_that_looks(look), itertools.count(1_999_999_500, 100)

    def clock(_: int, timespec: Any) -> int:
        timespec[0], timespec[1] = divmod(next(now), 10**9)
        return 0

    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int64))(clock)
    chunks._kept.append(callback)
    pool.cells[Cell.CLOCK_FN] = ctypes.cast(callback, ctypes.c_void_p).value
    return pool


def test_a_look_at_a_cell_takes_as_long_as_the_clock_says() -> None:
    cells = np.zeros(1, np.int64)
    for nanoseconds, looks in ((1000, 9), (1001, 10), (1100, 10)):
        seen: list[None] = []
        pool = pool_whose_clock_ticks(lambda seen=seen: seen.append(None))  # type: ignore[misc]
        pool.await_change(pool.address, chunks.address_of(cells), 0, nanoseconds, 0)
        assert len(seen) == looks, nanoseconds


def test_how_long_a_caller_worked_and_waited() -> None:
    pool, cells = pool_whose_clock_ticks(bool), np.zeros(3, np.int64)
    assert pool.share(compile_callback(count_up), chunks.address_of(cells), 3, 0)
    assert pool.cells[[Cell.OWN, Cell.WORKED, Cell.WAITED]].tolist() == [3, 100, 100]


def test_a_helper_looks_for_a_job_before_it_sleeps_and_takes_none_beyond_the_bound() -> None:
    looks, second, by = threading.Event(), threading.Event(), set[int]()
    pool = pool_that_looks(looks.set)
    pool.cells[Cell.HELPER_SPINS] = 10**15
    life = ctypes.c_void_p(compile_callback(helper, "void(int64)"))
    assert not ctypes.CDLL(None).pthread_create(
        ctypes.byref(ctypes.c_size_t()), None, life, ctypes.c_void_p(pool.address)
    )
    assert looks.wait(10)

    def do(most: int, chunk: int) -> None:
        by.add(threading.get_ident())
        if chunk:
            second.set()
        elif most:
            second.wait(10)
        else:
            for _ in range(2):  # one look may be of the time before this job: with another it was turned away
                looks.clear()
                looks.wait(10)

    callback = chunks._PLAIN(do)  # type: ignore[arg-type]
    function = ctypes.cast(callback, ctypes.c_void_p).value
    assert function is not None
    for most in (0, 1):
        by.clear()
        second.clear()
        assert pool.share(function, most, 2, most)
        assert len(by) == 1 + most
    pool.cells[Cell.HELPER_SPINS] = 0
    pool.cells[Cell.JOB] += 1  # there is nothing to do: it sleeps from now on


def test_limits_of_a_process_bound_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "available_cores", lambda: 8)
    monkeypatch.setattr(chunks, "_cores", chunks._Cores())
    monkeypatch.setattr(threads, "_smallest", 4)
    monkeypatch.setattr(threads, "_unlimited", None)
    assert chunks.width() == 4
    monkeypatch.setattr(threads, "_unlimited", 2)  # what OPENBLAS_NUM_THREADS said
    assert chunks.width() == 2


def test_the_cores_are_looked_at_again_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter((8, 2))
    monkeypatch.setattr(chunks, "available_cores", lambda: next(found))
    cores, moment = chunks._Cores(), chunks._CORES_HOLD
    assert [cores.count(now) for now in (1.0, 1.0 + 0.5 * moment, 1.0 + 2 * moment)] == [8, 8, 2]


def test_what_is_asked_for_is_loaded_after_the_pool_and_an_error_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(chunks, "_CALM_SECONDS", 0.0)
    done: list[str] = []
    starter = chunks._Starter()
    monkeypatch.setattr(starter, "_works", [lambda: done.append("pool")])

    def fail() -> None:
        raise ValueError("no machine code")

    for work in (fail, lambda: done.append("gemm")):
        starter.begin(work)
        starter.join(10)
    assert done == ["pool", "gemm"]
    assert "callers go on alone" in caplog.text

    starter.close()
    starter.begin(lambda: done.append("too late"))
    starter.join(10)
    assert done == ["pool", "gemm"]


def test_nobody_shares_in_a_crowd(pool: chunks._Pool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    load = tmp_path / "loadavg"
    load.write_text("0.10 0.20 0.30 3/99 4711\n")
    monkeypatch.setattr(chunks, "_crowd", Crowd(str(load), cores=2))
    assert chunks.shared_pool(1, 2) is None
    monkeypatch.setattr(chunks, "_crowd", Crowd(str(load), cores=3))
    assert chunks.shared_pool(1, 2) is pool


def test_helpers_that_pay_are_asked_each_time() -> None:
    payoff = Payoff()
    for _ in range(100):
        assert payoff.is_worth_it()
        payoff.note(own=2, helped=2, worked=200_000, waited=20_000)


def test_small_jobs_that_cost_say_nothing_of_large_ones() -> None:
    pool = chunks._Pool(1)
    for _ in range(100):
        if pool.is_worth_it(1, 2):
            pool._payoffs[1, (2).bit_length()].note(own=1, helped=1, worked=30_000, waited=90_000)
        assert pool.is_worth_it(1, 16)
        assert pool.is_worth_it(2, 2)
    assert not all(pool.is_worth_it(1, 3) for _ in range(100))


def test_helpers_that_cost_are_asked_less_and_less_often_and_come_back() -> None:
    payoff = Payoff()
    asked = 0
    for _ in range(2000):
        if payoff.is_worth_it():
            asked += 1
            payoff.note(own=3, helped=1, worked=300_000, waited=4_000_000)
    assert 8 <= asked <= 20

    for _ in range(5000):
        if payoff.is_worth_it():
            payoff.note(own=2, helped=2, worked=200_000, waited=0)
    assert all(payoff.is_worth_it() for _ in range(10))


def test_one_long_wait_after_many_gains_is_forgiven() -> None:
    payoff = Payoff()
    for _ in range(20):
        payoff.note(own=2, helped=2, worked=200_000, waited=0)
    payoff.note(own=2, helped=2, worked=200_000, waited=300_000)
    assert payoff.is_worth_it()


def test_what_helpers_saved_is_what_the_caller_would_have_worked_longer() -> None:
    """A chunk took the caller 10 µs: two done by helpers save 20, less the waiting and the 5 that it costs to wake."""
    for waited, pays in ((15_000, True), (15_001, False)):
        payoff = Payoff()
        payoff.note(own=4, helped=2, worked=40_000, waited=waited)
        assert payoff.is_worth_it() is pays
    for waited, pays in ((35_000, True), (35_001, False)):  # never more than the caller worked itself
        payoff = Payoff()
        payoff.note(own=4, helped=9, worked=40_000, waited=waited)
        assert payoff.is_worth_it() is pays


def test_a_caller_that_got_no_chunk_has_saved_nothing_by_them() -> None:
    payoff = Payoff()
    payoff.note(own=0, helped=8, worked=0, waited=0)
    assert not payoff.is_worth_it()


def test_each_loss_doubles_what_is_done_alone_and_each_gain_halves_it() -> None:
    payoff = Payoff()

    def alone_after(waited: int) -> int:
        """How many jobs are done alone after one that helpers had a part in."""
        payoff.note(own=1, helped=1, worked=100_000, waited=waited)
        count = 0
        while not payoff.is_worth_it():
            count += 1
        return count

    assert [alone_after(200_000) for _ in range(11)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 256]
    assert [alone_after(0) for _ in range(3)] == [0, 0, 0]
    assert alone_after(1_000_000) == 32, "halved three times"


def test_nothing_is_begun_twice_nor_without_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_CALM_SECONDS", 0.0)
    began: list[str] = []
    gate, entered = threading.Event(), threading.Event()
    starter = chunks._Starter()
    monkeypatch.setattr(starter, "_works", [])
    starter.begin()
    assert starter._thread is None, "no work, no thread"

    def first() -> None:
        began.append("first")
        entered.set()
        gate.wait(10)

    starter.begin(first)
    thread = starter._thread
    assert entered.wait(10)
    starter.begin(lambda: began.append("second"))
    assert starter._thread is thread, "the one that runs does it"
    gate.set()
    starter.join(10)
    assert began == ["first", "second"]
    starter.close()


def test_the_cores_hold_for_just_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter((8, 2))
    monkeypatch.setattr(chunks, "available_cores", lambda: next(found))
    cores, moment = chunks._Cores(), chunks._CORES_HOLD
    assert [cores.count(now) for now in (0.0, moment)] == [8, 2]


class FakePool:
    """Two helpers that take everything, or nothing; remembers what was asked of it."""

    def __init__(self, takes: bool = True, helpers: int = 2, pays: bool = True) -> None:
        self.takes, self.helpers, self.pays = takes, helpers, pays
        self.asked: list[tuple[object, ...]] = []

    def is_worth_it(self, function: int, count: int) -> bool:
        return self.pays

    def share(self, *given: object) -> bool:
        self.asked.append(given)
        return self.takes


@pytest.mark.parametrize("takes", [True, False])
def test_what_nobody_takes_the_caller_does_chunk_by_chunk(takes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[int, int]] = []
    callback = chunks._PLAIN(lambda arguments, chunk: done.append((arguments, chunk)))  # type: ignore[arg-type]
    function = ctypes.cast(callback, ctypes.c_void_p).value
    assert function is not None
    pool = FakePool(takes)
    monkeypatch.setattr(chunks, "width", lambda: 3)
    monkeypatch.setattr(chunks, "shared_pool", lambda *given: pool)
    cells = np.zeros(4, np.int64)
    address = cells.ctypes.data
    chunks.run(function, cells, 2)
    assert pool.asked == [(function, address, 2, 2)]
    assert done == ([] if takes else [(address, 0), (address, 1)])
    done.clear()
    chunks.run(function, cells, 1)
    assert (len(pool.asked), done) == (1, [(address, 0)]), "one chunk is nobody else's"


def test_who_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[None] = []
    starter = chunks._Starter()
    monkeypatch.setattr(starter, "begin", lambda: began.append(None))
    monkeypatch.setattr(chunks, "_starter", starter)
    monkeypatch.setattr(chunks, "is_crowded", lambda: False)
    assert (chunks.shared_pool(1, 2), len(began)) == (None, 1), "it is started for the next"
    chunks.await_change(0, 0, 10**12)
    for helpers, width, pays, shares in (
        (2, 2, True, True),
        (1, 3, True, True),
        (0, 3, True, False),
        (2, 1, True, False),
        (2, 3, False, False),
    ):
        pool = FakePool(helpers=helpers, pays=pays)
        monkeypatch.setattr(starter, "pool", pool)
        monkeypatch.setattr(chunks, "width", lambda width=width: width)
        assert chunks.shared_pool(1, 2) is (pool if shares else None), (helpers, width, pays)
    assert len(began) == 1
    pool.address, pool.await_change = 4711, lambda *given: pool.asked.append(given)  # type: ignore[attr-defined]
    chunks.await_change(1, 2, 3)
    chunks.await_change(1, 2, 3, 4)
    assert pool.asked == [(4711, 1, 2, 3, 0), (4711, 1, 2, 3, 4)]


def test_the_width_is_what_all_limits_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked, loaded, cores, expected in (
        (0, 0, 4, 4),
        (3, 0, 4, 3),
        (0, 2, 4, 2),
        (5, 6, 4, 4),
        (0, 0, 99, 16),
        (40, 50, 99, 16),
    ):
        monkeypatch.setattr(threads, "intra_op_limit", lambda asked=asked: asked)
        monkeypatch.setattr(threads, "loaded_with", lambda loaded=loaded: loaded)
        monkeypatch.setattr(chunks, "available_cores", lambda cores=cores: cores)
        monkeypatch.setattr(chunks, "_cores", chunks._Cores())
        assert chunks.width() == expected, (asked, loaded, cores)


@pytest.mark.parametrize(("cores", "helpers"), [(1, None), (2, 1), (16, 15), (17, 15), (99, 15)])
def test_a_helper_for_each_other_core(cores: int, helpers: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "available_cores", lambda: cores)
    monkeypatch.setattr(chunks, "_Pool", lambda count: count)
    starter = chunks._Starter()
    starter._start()
    assert starter.pool == helpers  # type: ignore[comparison-overlap]
    monkeypatch.setattr(chunks.os, "name", "nt")
    other = chunks._Starter()
    other._start()
    assert other.pool is None


def test_a_starter_waits_a_moment_and_ends_with_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    at_exit: list[object] = []
    monkeypatch.setattr(chunks.atexit, "register", at_exit.append)
    starter, done = chunks._Starter(), list[str]()
    closes = threading.Event()
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return closes.wait(10)

    monkeypatch.setattr(starter._closed, "wait", wait)
    monkeypatch.setattr(starter, "_start", lambda: done.append("pool"))
    starter._works = [starter._start]
    starter.begin()
    thread = starter._thread
    assert thread is not None
    assert (thread.daemon, thread.name) == (True, "tenfold-chunks")
    starter.begin()
    starter.begin(lambda: done.append("more"))
    assert starter._thread is thread
    closes.set()
    starter.join(10)
    assert (waits, done) == ([0.5], ["pool", "more"])
    assert at_exit == [starter.close]
    starter.begin(lambda: done.append("again"))
    starter.join(10)
    assert (len(at_exit), done[2:]) == (1, ["again"])


def test_a_forked_process_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    starter = chunks._starter
    monkeypatch.setattr(chunks, "_starter", starter)
    chunks._forget()
    assert chunks._starter is not starter
    assert chunks._starter.pool is None
    asked: list[object] = []
    monkeypatch.setattr(chunks._starter, "begin", asked.append)
    chunks.begin_loading(asked.clear)
    assert asked == [asked.clear]
