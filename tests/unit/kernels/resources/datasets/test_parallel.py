"""Parallel maps: order, errors, calls that meet, and steps that give up."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from support.dataset_machines import ANY, INT, SCALAR, SOON_S, AtOnce, Called, drained, numbers, result
from tenfold_core import errors
from tenfold_kernels.resources.datasets import parallel
from tenfold_kernels.resources.datasets.batches import Batch
from tenfold_kernels.resources.datasets.core import Run
from tenfold_kernels.resources.datasets.iterators import DatasetIterator
from tenfold_kernels.resources.datasets.parallel import ParallelMap


@pytest.fixture(autouse=True)
def every_call_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_LONG", 0.0)


def mapped(count: int, body: Any, calls: int = 3, in_order: bool = True) -> ParallelMap:
    return ParallelMap(INT, ANY, numbers(count), Called(body), (), True, calls, in_order)


def test_calls_run_side_by_side_and_come_out_in_order() -> None:
    meeting = threading.Barrier(3)

    def body(n: Any) -> Any:
        if n < 3:
            meeting.wait(SOON_S)
        return n * 10

    assert drained(mapped(20, body)) == [n * 10 for n in range(20)]


def test_every_element_comes_where_order_does_not_matter() -> None:
    gate = threading.Event()

    def body(n: Any) -> Any:
        if n == 0:
            assert gate.wait(SOON_S)
        elif n == 1:
            gate.set()
        return n

    assert sorted(drained(mapped(9, body, calls=2, in_order=False))) == list(range(9))


def test_an_error_stands_where_its_element_would() -> None:
    def body(n: Any) -> Any:
        if n == 2:
            raise errors.InvalidArgumentError(None, None, "two")
        return n

    machine = mapped(5, body).iterate(Run())
    assert [machine()[0].item() for _ in range(2)] == [0, 1]  # type: ignore[index]
    with pytest.raises(errors.InvalidArgumentError, match="two"):
        machine()
    assert drained(machine) == [3, 4]


def test_a_step_that_gives_up_loses_no_element() -> None:
    gate, entered = threading.Event(), threading.Event()

    def body(n: Any) -> Any:
        if n == 1:
            entered.set()
            assert gate.wait(SOON_S)
        return n

    iterator = DatasetIterator(INT, ANY)
    iterator.start(mapped(4, body))
    assert result(iterator.get_next(lambda e: e[0].item())) == 0
    step = iterator.get_next(lambda e: e[0].item())
    assert entered.wait(SOON_S)
    step.cancel()
    gate.set()

    assert [result(iterator.get_next(lambda e: e[0].item())) for _ in range(3)] == [1, 2, 3]


def test_blocks_and_elements_are_of_one_pass() -> None:
    doubled = AtOnce(lambda n: n * 2, lambda n: n * 2)
    dataset = ParallelMap(INT, SCALAR, numbers(10), doubled, (), True, 3, True)
    assert drained(Batch(INT, ANY, dataset, 4, False)) == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18]]
    machine = dataset.iterate(Run())
    assert machine.following() is not None
    assert machine.block is not None
    assert machine.block(3) is None, "elements are being made already"


def test_a_number_of_calls_that_is_none() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="num_parallel_calls must be greater than zero"):
        mapped(3, lambda n: n, calls=0)


def test_options_that_ask_for_no_order_hold_for_maps() -> None:
    """A first call that waits for the second does not hold it up, though calls were short before."""
    second = threading.Event()

    def body(n: Any) -> Any:
        if n == 0:
            assert second.wait(SOON_S)
        second.set()
        return n

    run = Run()
    run.is_sloppy = True
    machine = mapped(2, body, calls=2).iterate(run)

    assert sorted(drained(machine)) == [0, 1]
