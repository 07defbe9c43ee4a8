"""Threads of pipelines by their ops: how many there are, what they are called, who shares them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from support.dataset_machines import drained, ints, mapped, numbers
from support.dataset_ops import DatasetSteps, refused
from tenfold_kernels.resources.datasets.core import Run
from tenfold_kernels.resources.datasets.threads import LIMIT, Threads

HANDLES = ["ThreadPoolHandle", "ExperimentalThreadPoolHandle"]


@pytest.fixture
def steps() -> DatasetSteps:
    return DatasetSteps()


def noting(names: set[str]) -> Any:
    """A function that gives its element back, and notes the threads that it runs on."""

    def body(n: Any) -> Any:
        names.add(threading.current_thread().name)
        return n

    return body


def threads_of(dataset: Any) -> Any:
    run = Run()
    dataset.iterate(run)
    assert run.threads is not None
    return run.threads


@pytest.mark.parametrize("op", ["PrivateThreadPoolDataset", "ExperimentalPrivateThreadPoolDataset"])
def test_threads_of_one_pipeline(steps: DatasetSteps, op: str) -> None:
    names: set[str] = set()
    source = mapped(numbers(4), noting(names))
    made = steps.dataset(op, source, 1)
    assert drained(made) == [0, 1, 2, 3]
    assert names == {"data_private_threadpool-1"}
    assert made.cardinality() == 4
    assert threads_of(made) is threads_of(made)
    assert threads_of(made) is not threads_of(steps.dataset(op, source, 1))
    assert LIMIT == 64
    for size, most in ((1, 1), (64, 64), (65, 64)):
        assert threads_of(steps.dataset(op, source, size))._limit == most
    for size in (0, -1):
        with refused("^`num_threads` must be >= 1$"):
            steps(op, source, size)
    with refused("num_threads must be a scalar"):
        steps(op, source, ints(1))


@pytest.mark.parametrize("op", HANDLES)
def test_threads_that_pipelines_share(steps: DatasetSteps, op: str) -> None:
    def pool(count: int = 3, display: bytes = b"mine", **attrs: Any) -> Any:
        return steps(op, num_threads=count, display_name=display, **attrs)

    first, second = pool(shared_name=b"x"), pool(shared_name=b"x")
    found = first.item().resource
    assert isinstance(found, Threads)
    assert found is second.item().resource
    assert (found._limit, found._name) == (3, "mine")
    unnamed = pool(1, b"").item().resource
    assert (unnamed._limit, unnamed._name) == (1, "data_threadpool")
    assert [pool(count).item().resource._limit for count in (64, 65)] == [64, 64]
    for count in (0, -1):
        with refused("^`num_threads` must be greater than zero"):
            pool(count)


@pytest.mark.parametrize("op", ["ThreadPoolDataset", "ExperimentalThreadPoolDataset"])
def test_a_pipeline_on_shared_threads(steps: DatasetSteps, op: str) -> None:
    handle = steps("ThreadPoolHandle", num_threads=1, display_name=b"shared")
    names: set[str] = set()
    source = mapped(numbers(3), noting(names))
    first, second = (steps.dataset(op, source, handle) for _ in range(2))
    assert [drained(first), drained(second)] == [[0, 1, 2]] * 2
    assert names == {"shared-1"}
    assert threads_of(first) is threads_of(second) is handle.item().resource
    cache, _ = steps("AnonymousMemoryCache")
    with refused("using the wrong type"):
        steps(op, source, cache)


@pytest.mark.parametrize("op", ["MaxIntraOpParallelismDataset", "ExperimentalMaxIntraOpParallelismDataset"])
def test_how_many_threads_an_op_uses_is_up_to_us(steps: DatasetSteps, op: str) -> None:
    source = numbers(3)
    for most in (0, 1, 100):
        assert steps.dataset(op, source, most) is source
    with refused("^`max_intra_op_parallelism` must be >= 0$"):
        steps(op, source, -1)
    with refused("max_intra_op_parallelism must be a scalar"):
        steps(op, source, ints(1))
