"""Ops of iterators over several devices of a task. The machine is datasets/devices.py.

Follows multi_device_iterator_ops.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import scalar_object
from tenfold_kernels.cpu.dataset_iterator import as_outputs, handle_of_text
from tenfold_kernels.cpu.dataset_sources import number
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.datasets.core import dataset_of
from tenfold_kernels.resources.datasets.devices import MultiDeviceIterator
from tenfold_kernels.resources.datasets.iterators import verify
from tenfold_kernels.resources.handles import LocalHandle, resource_of, shared_resource

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array


def _new(node: KernelNode) -> MultiDeviceIterator:
    return MultiDeviceIterator(node.attrs["output_types"], node.attrs["output_shapes"], len(node.attrs["devices"]))


@kernel("MultiDeviceIterator")
def build_iterator(node: KernelNode) -> Compute:
    def check(iterator: MultiDeviceIterator) -> None:
        verify(iterator.types, iterator.shapes, node.attrs["output_types"], node.attrs["output_shapes"])

    return shared_resource(node, MultiDeviceIterator, lambda name: _new(node), check)


@kernel("AnonymousMultiDeviceIterator", "AnonymousMultiDeviceIteratorV3")
def build_anonymous(node: KernelNode) -> Compute:
    has_deleter = len(node.output_types) == 2

    def compute() -> Any:
        made = _new(node)
        handle = LocalHandle(node.device, "", node.name, 0, MultiDeviceIterator.__name__, made).as_array()
        return (handle, np.empty((), object)) if has_deleter else handle

    return compute


@kernel("DeleteMultiDeviceIterator")
def build_delete(node: KernelNode) -> Compute:
    """Ends what is being made for it; its memory goes with the last use of its handle."""

    def compute(handle: Any, *rest: Any) -> None:
        resource_of(node, handle, MultiDeviceIterator).close()

    return compute


@kernel("MultiDeviceIteratorInit")
def build_init(node: KernelNode) -> Compute:
    def compute(dataset: Array, handle: Any, most: Array) -> Any:
        iterator = resource_of(node, handle, MultiDeviceIterator)
        return np.array(iterator.start(dataset_of(dataset), number(most, "max_buffer_size")), np.int64)

    return compute


@kernel("MultiDeviceIteratorGetNextFromShard", blocking=True)
def build_get_next(node: KernelNode) -> Compute:
    """The components of the shard's next element. Raises OutOfRangeError at the end."""
    finish = as_outputs(node)

    def compute(handle: Any, shard: Array, incarnation: Array) -> Any:
        iterator = resource_of(node, handle, MultiDeviceIterator)
        return iterator.get_next(number(shard, "shard_num"), number(incarnation, "incarnation_id"), finish)

    return compute


@kernel("MultiDeviceIteratorToStringHandle")
def build_to_string(node: KernelNode) -> Compute:
    def compute(handle: Any) -> Any:
        resource_of(node, handle, MultiDeviceIterator)
        return scalar_object(handle[()].to_proto().SerializeToString())

    return compute


@kernel("MultiDeviceIteratorFromStringHandle")
def build_from_string(node: KernelNode) -> Compute:
    """Raises InvalidArgumentError for bytes that are no handle, and for an iterator of other types."""
    types, shapes = node.attrs["output_types"], node.attrs["output_shapes"]

    def compute(text: Array) -> Any:
        found = handle_of_text(text)
        iterator = resource_of(node, found.as_array(), MultiDeviceIterator)
        verify(types, shapes, iterator.types, iterator.shapes)
        return LocalHandle.of(found, iterator).as_array()

    return compute
