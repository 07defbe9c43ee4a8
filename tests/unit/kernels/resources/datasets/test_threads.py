"""A pipeline's own threads: its functions run on them, and a body that waits holds none."""

from __future__ import annotations

import threading
import time
from queue import Queue
from typing import TYPE_CHECKING, Any

import pytest

from support.dataset_machines import ANY, INT, SCALAR, SOON_S, AtOnce, Called, drained, ints, mapped, numbers, result
from tenfold_core import errors
from tenfold_kernels.cpu.dataset_threads import on_threads
from tenfold_kernels.resources.datasets import parallel
from tenfold_kernels.resources.datasets import threads as dataset_threads
from tenfold_kernels.resources.datasets.batches import Batch
from tenfold_kernels.resources.datasets.core import Dataset, Run
from tenfold_kernels.resources.datasets.functional import Map
from tenfold_kernels.resources.datasets.iterators import DatasetIterator
from tenfold_kernels.resources.datasets.parallel import ParallelMap
from tenfold_kernels.resources.datasets.threads import Threads
from tenfold_kernels.resources.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable


class Seen:
    """A function that gives its element back, and remembers on which threads it ran."""

    def __init__(self) -> None:
        self.threads: set[str] = set()

    def __call__(self, n: Any) -> Any:
        self.threads.add(threading.current_thread().name)
        return n


def on_own(dataset: Dataset, size: int) -> Dataset:
    return on_threads(dataset, Threads(size, "own"))


MADE: dict[str, Callable[[Seen], Dataset]] = {
    "map": lambda seen: mapped(numbers(9), seen),
    "parallel map": lambda seen: ParallelMap(INT, ANY, numbers(9), Called(seen), (), True, 4, True),
    "blocks": lambda seen: Batch(INT, ANY, Map(INT, SCALAR, numbers(9), AtOnce(seen, seen), ()), 3, False),
}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("size", [1, 2])
def test_functions_run_on_the_pipelines_own_threads(kind: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_LONG", 0.0)
    seen, elsewhere = Seen(), Seen()
    expected = drained(MADE[kind](elsewhere))

    assert drained(on_own(MADE[kind](seen), size)) == expected

    assert seen.threads <= {f"own-{number + 1}" for number in range(size)}
    assert seen.threads
    assert not elsewhere.threads & seen.threads


def test_what_a_function_raises_reaches_the_step() -> None:
    def body(n: Any) -> Any:
        raise (errors.DataLossError(None, None, "gone") if n == 0 else ZeroDivisionError("by zero"))

    machine = on_own(mapped(numbers(3), body), 1).iterate(Run())
    with pytest.raises(errors.DataLossError, match="gone"):
        machine()
    with pytest.raises(errors.InternalError, match="ZeroDivisionError: by zero"):
        machine()


def test_a_body_that_waits_holds_no_thread() -> None:
    queue = Waiting()

    def body(n: Any) -> Any:
        if n == 0:
            return queue
        queue.complete([ints(7)])
        return n

    threads = Threads(1, "own")
    waits, other = DatasetIterator(INT, ANY), DatasetIterator(INT, ANY)
    waits.start(on_threads(mapped(numbers(1), body), threads))
    other.start(on_threads(mapped(numbers(1), lambda n: body(1)), threads))
    step = waits.get_next(lambda element: element[0].tolist())

    assert result(other.get_next(lambda element: int(element[0]))) == 1
    assert result(step) == [7]


def test_a_step_that_gives_up_cancels_what_its_function_waits_for() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    def body(n: Any) -> Any:
        begun.set()
        return Waiting(cancelled.set)

    iterator = DatasetIterator(INT, ANY)
    iterator.start(on_own(mapped(numbers(3), body), 1))
    step = iterator.get_next(lambda element: element[0].item())
    assert begun.wait(SOON_S)

    step.cancel()
    iterator.end_work()

    assert cancelled.wait(SOON_S)


def test_a_thread_that_is_woken_for_nothing_goes_on_waiting() -> None:
    threads, ran_on = Threads(1, "own"), Queue[threading.Thread]()
    threads.submit(lambda: ran_on.put(threading.current_thread()))
    thread = ran_on.get(timeout=SOON_S)
    end = time.monotonic() + SOON_S
    is_waiting = False
    while not is_waiting and time.monotonic() < end:
        with threads._news:
            is_waiting = threads._idle == 1
            threads._news.notify_all()

    thread.join(0.1)

    assert is_waiting
    assert thread.is_alive()


# -- the threads themselves --------------------------------------------------------------------------------------------


class Gate:
    """Work that is held until it is let go."""

    def __init__(self) -> None:
        self.entered, self.open = threading.Event(), threading.Event()
        self.thread = ""

    def __call__(self) -> None:
        self.thread = threading.current_thread().name
        self.entered.set()
        assert self.open.wait(SOON_S)


def test_a_thread_for_each_work_up_to_the_limit() -> None:
    threads = Threads(2, "own")
    gates = [Gate() for _ in range(3)]
    for gate in gates:
        threads.submit(gate)
    assert all(gate.entered.wait(SOON_S) for gate in gates[:2])
    assert sorted(gate.thread for gate in gates[:2]) == ["own-1", "own-2"]
    assert threads._count == 2
    assert not gates[2].entered.is_set()
    gates[0].open.set()
    assert gates[2].entered.wait(SOON_S), "the first that is free takes what waits"
    assert gates[2].thread == gates[0].thread
    for gate in gates:
        gate.open.set()


class Announced(threading.Condition):
    """Says when a thread begins to be idle."""

    def __init__(self) -> None:
        super().__init__()
        self.idle = threading.Semaphore(0)

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        self.idle.release()
        return super().wait_for(predicate, timeout)


def test_an_idle_thread_takes_what_comes() -> None:
    threads, first = Threads(5, "own"), Gate()
    threads._news = news = Announced()
    first.open.set()
    threads.submit(first)
    assert news.idle.acquire(timeout=SOON_S)
    second = Gate()
    threads.submit(second)
    assert second.entered.wait(SOON_S)
    assert (second.thread, threads._count) == ("own-1", 1)
    third = Gate()
    threads.submit(third)
    assert third.entered.wait(SOON_S), "the first one is at work"
    assert (third.thread, threads._count) == ("own-2", 2)
    for gate in (second, third):
        gate.open.set()
        assert news.idle.acquire(timeout=SOON_S)
    with news:
        assert threads._idle == 2


def test_an_idle_thread_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dataset_threads.IDLE_S == 5
    monkeypatch.setattr(dataset_threads, "IDLE_S", 0.001)
    threads, work = Threads(5, "idle"), Gate()
    work.open.set()
    threads.submit(work)
    assert work.entered.wait(SOON_S)
    for thread in threading.enumerate():
        if thread.name == "idle-1":
            thread.join(SOON_S)
    assert (threads._count, threads._idle, len(threads._work)) == (0, 0, 0)
    again = Gate()
    again.open.set()
    threads.submit(again)
    assert again.entered.wait(SOON_S)


def test_the_shared_threads_are_daemons_of_a_name() -> None:
    assert dataset_threads.LIMIT == 64
    assert (dataset_threads.pool._limit, dataset_threads.pool._name) == (64, "tenfold-dataset")
    found: list[bool] = []
    over = threading.Event()

    def look() -> None:
        found.append(threading.current_thread().daemon)
        over.set()

    Threads().submit(look)
    assert over.wait(SOON_S)
    assert found == [True]


def test_a_pipeline_s_threads_are_of_each_element_s_run_too() -> None:
    threads, run = Threads(1, "own"), Run()
    dataset = on_threads(numbers(3), threads)
    assert dataset.at(2, run)[0] == 2
    assert run.threads is threads
    assert dataset.cardinality() == 3
