"""Iterators over several devices by their ops. The machine's tests are tests/unit/kernels/resources/datasets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dataset_machines import INT, SCALAR, ints, numbers
from support.dataset_ops import DatasetSteps, refused
from support.kernel_runs import DEVICE
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.datasets.devices import MultiDeviceIterator
from tenfold_kernels.resources.datasets.transforms import Zip
from tenfold_kernels.resources.state import ResourceHandle

TWO: dict[str, Any] = {"devices": [b"/cpu:0", b"/cpu:1"]}
NAMED: dict[str, Any] = {**TWO, "shared_name": b"it", "container": b""}
STRING: dict[str, Any] = {"output_types": [dtypes.string]}


@pytest.fixture
def steps() -> DatasetSteps:
    return DatasetSteps()


def shard(number: int) -> Any:
    return np.array(number, np.int32)


def test_an_iterator_is_shared_by_its_name(steps: DatasetSteps) -> None:
    first, second = (steps("MultiDeviceIterator", name=name, **NAMED) for name in "ab")
    found = first.item().resource
    assert isinstance(found, MultiDeviceIterator)
    assert found is second.item().resource
    assert (found.types, found.shapes, found._devices) == (INT, SCALAR, 2)
    with refused("Data type mismatch at component 0"):
        steps("MultiDeviceIterator", **NAMED, **STRING)
    with refused("Incompatible shapes at component 0"):
        steps("MultiDeviceIterator", **NAMED, output_shapes=[TensorShape([2])])


@pytest.mark.parametrize("op", ["AnonymousMultiDeviceIterator", "AnonymousMultiDeviceIteratorV3"])
def test_an_anonymous_iterator_is_known_to_its_handle_alone(steps: DatasetSteps, op: str) -> None:
    compute, _ = steps.build(op, name="mine", **TWO)
    made = [compute(), compute()]
    if not op.endswith("V3"):
        assert all((deleter.shape, deleter.dtype) == ((), object) for _, deleter in made)
        made = [handle for handle, _ in made]
    first, second = (handle.item() for handle in made)
    assert (first.device, first.container, first.name, first.hash_code, first.type_name) == (
        DEVICE, "", "mine", 0, "MultiDeviceIterator",
    )  # fmt: skip
    assert first.resource is not second.resource
    assert first.resource._devices == 2


def test_elements_go_round(steps: DatasetSteps) -> None:
    handle = steps("MultiDeviceIterator", **NAMED)
    first = steps("MultiDeviceIteratorInit", numbers(5), handle, 2)
    assert (first.dtype, first.shape, int(first)) == (np.int64, (), 1)

    def taken(number: int, incarnation: Any = first) -> int:
        return int(steps("MultiDeviceIteratorGetNextFromShard", handle, shard(number), incarnation))

    assert [taken(number) for number in (0, 1, 1, 0, 0)] == [0, 1, 3, 2, 4]
    with pytest.raises(errors.OutOfRangeError, match="End of sequence"):
        taken(1)
    second = steps("MultiDeviceIteratorInit", numbers(5), handle, 2)
    assert int(second) == 2
    assert taken(1, second) == 1
    with refused("Invalid incarnation id. Provided: 1; Expected: 2"):
        taken(0)
    with refused("Invalid shard number 2: the iterator has 2 devices"):
        taken(2, second)
    with refused("Invalid shard number -1"):
        taken(-1, second)


def test_components_of_elements(steps: DatasetSteps) -> None:
    pairs: dict[str, Any] = {"output_types": list(INT * 2), "output_shapes": list(SCALAR * 2)}
    handle = steps("MultiDeviceIterator", **NAMED, **pairs)
    first = steps("MultiDeviceIteratorInit", Zip(INT * 2, SCALAR * 2, numbers(2), numbers(2)), handle, 2)
    found = steps("MultiDeviceIteratorGetNextFromShard", handle, shard(1), first, **pairs)
    assert [part.tolist() for part in found] == [1, 1]
    with refused("^The dataset gave 2 components, and 1 were expected"):
        steps("MultiDeviceIteratorGetNextFromShard", handle, shard(0), first)


def test_numbers_are_scalars(steps: DatasetSteps) -> None:
    handle = steps("MultiDeviceIterator", **NAMED)
    with refused("max_buffer_size must be a scalar"):
        steps("MultiDeviceIteratorInit", numbers(5), handle, ints(2))
    with refused("shard_num must be a scalar"):
        steps("MultiDeviceIteratorGetNextFromShard", handle, np.zeros(1, np.int32), 1)
    with refused("incarnation_id must be a scalar"):
        steps("MultiDeviceIteratorGetNextFromShard", handle, shard(0), ints(1))


def test_a_deleted_iterator_is_over(steps: DatasetSteps) -> None:
    handle, deleter = steps("AnonymousMultiDeviceIterator", **TWO)
    first = steps("MultiDeviceIteratorInit", numbers(5), handle, 2)
    assert steps("DeleteMultiDeviceIterator", handle, deleter, N=0) is None
    with refused("Invalid incarnation id. Provided: 1; Expected: 1"):
        steps("MultiDeviceIteratorGetNextFromShard", handle, shard(0), first)


def test_a_handle_travels_as_text(steps: DatasetSteps) -> None:
    handle = steps("MultiDeviceIterator", **NAMED)
    text = steps("MultiDeviceIteratorToStringHandle", handle)
    assert (text.shape, type(text.item())) == ((), bytes)
    found = steps("MultiDeviceIteratorFromStringHandle", text)
    assert found.item() == handle.item()
    assert found.item().resource is handle.item().resource
    with refused("expected string but got int64"):
        steps("MultiDeviceIteratorFromStringHandle", text, **STRING)
    with refused("Incompatible shapes at component 0"):
        steps("MultiDeviceIteratorFromStringHandle", text, output_shapes=[TensorShape([2])])
    with refused("Could not parse string_handle"):
        steps("MultiDeviceIteratorFromStringHandle", b"\xff\xff")
    elsewhere = ResourceHandle("/device:CPU:7", "", "it").to_proto().SerializeToString()
    with refused("located in device /device:CPU:7"):
        steps("MultiDeviceIteratorFromStringHandle", elsewhere)


@pytest.mark.parametrize(
    ("op", "rest"),
    [
        ("MultiDeviceIteratorToStringHandle", ()),
        ("MultiDeviceIteratorGetNextFromShard", (np.array(0, np.int32), 1)),
        ("DeleteMultiDeviceIterator", (np.empty((), object),)),
    ],
)
def test_a_handle_of_something_else(steps: DatasetSteps, op: str, rest: Any) -> None:
    cache, _ = steps("AnonymousMemoryCache")
    with refused("using the wrong type"):
        steps(op, cache, *rest, **({"N": 0} if op.startswith("Delete") else {}))
