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
