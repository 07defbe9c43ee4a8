"""The ops of barriers: shared ones are made alike, components and their types, numbers of keys, what a close leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.kernel_runs import Steps
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.barriers import Barrier

INT, S = dtypes.int32, dtypes.string


class Barriers(Steps):
    """Steps of which some make barriers."""

    def barrier(self, types: Any = (INT, S), shapes: Any = ([], [1]), **attrs: Any) -> Any:
        shapes = [TensorShape(shape) for shape in shapes]
        return self("Barrier", component_types=list(types), shapes=shapes, **{"shared_name": b"b", **attrs})


@pytest.fixture
def steps() -> Barriers:
    return Barriers()


def keys(*names: bytes) -> Any:
    array = np.empty(len(names), object)
    array[:] = names
    return array


def test_a_barrier_is_as_its_node_says(steps: Barriers) -> None:
    found = steps.barrier().resource
    assert isinstance(found, Barrier)
    assert (found.name, found.types, [shape.as_list() for shape in found.shapes]) == ("b", (INT, S), [[], [1]])
    assert found.account is not None
    assert steps.barrier().resource is found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shapes": ([],)}, "All of the component shapes must be specified"),
        ({"capacity": 5}, "Barrier only accepts capacity=-1"),
        ({"types": (INT, INT)}, r"types \[int32, string\] but requested component types were \[int32, int32\]"),
        ({"shapes": ([], [2])}, r"shapes \[\[\], \[1\]\] but requested component shapes were \[\[\], \[2\]\]"),
    ],
)
def test_barriers_that_cannot_be(steps: Barriers, options: Any, message: str) -> None:
    steps.barrier()
    with pytest.raises(errors.InvalidArgumentError, match=message):
        steps.barrier(**options)


def inserted(steps: Barriers, component: int) -> None:
    handle = steps.barrier()
    values = np.array([7], np.int32) if component == 0 else np.array([[b"v"]], object)
    steps("BarrierInsertMany", handle, keys(b"k"), values, component_index=component)


def test_components_of_a_key(steps: Barriers) -> None:
    handle = steps.barrier()
    inserted(steps, 0)
    sizes = [steps(f"Barrier{name}Size", handle) for name in ("Ready", "Incomplete")]
    assert [(size.tolist(), size.dtype) for size in sizes] == [(0, np.int32), (1, np.int32)]
    inserted(steps, 1)
    assert [steps(f"Barrier{name}Size", handle).tolist() for name in ("Ready", "Incomplete")] == [1, 0]
    _, names, numbers, texts = steps("BarrierTakeMany", handle, np.int32(1), component_types=[INT, S])
    assert (names.tolist(), numbers.tolist(), texts.tolist()) == ([b"k"], [7], [[b"v"]])


@pytest.mark.parametrize("component", [-1, 2])
def test_there_are_so_many_components(steps: Barriers, component: int) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=rf"out of range {component} > num_components \(= 2\)"):
        steps("BarrierInsertMany", steps.barrier(), keys(b"k"), np.array([7], np.int32), component_index=component)


def test_components_are_of_their_types(steps: Barriers) -> None:
    handle = steps.barrier()
    with pytest.raises(errors.InvalidArgumentError, match=r"have: .*,string,int32-> expected: .*,string,string->"):
        steps("BarrierInsertMany", handle, keys(b"k"), np.array([7], np.int32), component_index=1)
    with pytest.raises(
        errors.InvalidArgumentError, match=r"->int64,string,int32 expected: .*->int64,string,int32,string"
    ):
        steps("BarrierTakeMany", handle, np.int32(1), component_types=[INT])


def test_numbers_of_keys(steps: Barriers) -> None:
    handle = steps.barrier()
    take = {"component_types": [INT, S]}
    with pytest.raises(errors.InvalidArgumentError, match="num_elements must be a scalar"):
        steps("BarrierTakeMany", handle, np.array([1], np.int32), **take)
    with pytest.raises(errors.InvalidArgumentError, match="BarrierTakeMany requested -1 < 0 elements"):
        steps("BarrierTakeMany", handle, np.int32(-1), **take)
    with pytest.raises(errors.InvalidArgumentError, match="Timeout not supported yet"):
        steps("BarrierTakeMany", handle, np.int32(1), timeout_ms=5, **take)
    assert steps("BarrierTakeMany", handle, np.int32(0), **take)[0].shape == (0,)


@pytest.mark.parametrize("cancels", [True, False])
@pytest.mark.parametrize("small", [True, False])
def test_a_close_and_small_batches(steps: Barriers, cancels: bool, small: bool) -> None:
    handle = steps.barrier()
    inserted(steps, 0)
    steps("BarrierClose", handle, cancel_pending_enqueues=cancels)
    assert steps("BarrierIncompleteSize", handle).tolist() == (0 if cancels else 1)
    if cancels:
        return
    inserted(steps, 1)
    take = {"component_types": [INT, S], "allow_small_batch": small}
    if small:
        assert steps("BarrierTakeMany", handle, np.int32(2), **take)[1].tolist() == [b"k"]
    else:
        with pytest.raises(errors.OutOfRangeError, match="requested 2, total size 1"):
            steps("BarrierTakeMany", handle, np.int32(2), **take)
