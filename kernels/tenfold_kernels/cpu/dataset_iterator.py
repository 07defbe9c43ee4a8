"""Ops of iterators: what steps start, ask for elements and pass around. The machine is datasets/iterators.py.

A one-shot iterator makes its dataset by a function when it is first asked. Follows iterator_ops.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf.message import DecodeError

from tenfold_core import errors
from tenfold_kernels.arrays import Array, invalid, scalar_object
from tenfold_kernels.cpu.dataset_sources import function_of
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.datasets.core import Element, dataset_of
from tenfold_kernels.resources.datasets.iterators import DatasetIterator, verify
from tenfold_kernels.resources.datasets.states import IteratorState
from tenfold_kernels.resources.handles import LocalHandle, resource_of, shared_resource
from tenfold_kernels.resources.optionals import Optional
from tenfold_kernels.resources.state import ResourceHandle
from tenfold_kernels.resources.waiting import Waiting
from tenfold_protos import resource_handle_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

#: The `external_state_policy` by which an iterator is not saved whose functions have a state of their own.
_FAIL = 2


def _new(node: KernelNode) -> DatasetIterator:
    return DatasetIterator(node.attrs["output_types"], node.attrs["output_shapes"])


@kernel("Iterator", "IteratorV2")
def build_iterator(node: KernelNode) -> Compute:
    def check(iterator: DatasetIterator) -> None:
        verify(iterator.types, iterator.shapes, node.attrs["output_types"], node.attrs["output_shapes"])

    return shared_resource(node, DatasetIterator, lambda name: _new(node), check)


@kernel("AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3")
def build_anonymous(node: KernelNode) -> Compute:
    """An iterator that only its handle knows."""
    has_deleter = len(node.output_types) == 2

    def compute() -> Any:
        handle = LocalHandle(node.device, "", f"{node.name}", 0, DatasetIterator.__name__, _new(node)).as_array()
        return (handle, np.empty((), object)) if has_deleter else handle

    return compute


@kernel("DeleteIterator")
def build_delete(node: KernelNode) -> Compute:
    """An anonymous iterator goes with the last use of its handle."""
    return lambda handle, deleter: None


@kernel("MakeIterator")
def build_make(node: KernelNode) -> Compute:
    def compute(dataset: Array, iterator: Any) -> None:
        resource_of(node, iterator, DatasetIterator).start(dataset_of(dataset))

    return compute


@kernel("OneShotIterator", blocking=True)
def build_one_shot(node: KernelNode) -> Compute:
    """The iterator, started the first time; a function that fails is asked again by the next step."""
    function = function_of(node, "dataset_factory")
    find = shared_resource(node, DatasetIterator, lambda name: _new(node))

    def compute() -> Any:
        handle = find()
        iterator = resource_of(node, handle, DatasetIterator)
        if iterator.is_started:
            return handle
        made = function.start([])
        if type(made) is not Waiting:
            iterator.start_once(dataset_of(made[0]))  # type: ignore[index]
            return handle
        answer = Waiting(made.cancel)

        def done(outputs: Any, error: errors.OpError | None) -> None:
            if error is None:
                try:
                    iterator.start_once(dataset_of(outputs[0]))
                except errors.OpError as failure:
                    error = failure
            if error is None:
                answer.complete(handle)
            else:
                answer.fail(error)

        made.listen(done)
        return answer

    return compute


def _get_next(node: KernelNode, finish: Callable[[Element | None], Any]) -> Compute:
    types, shapes = node.attrs["output_types"], node.attrs["output_shapes"]

    def compute(handle: Any) -> Any:
        iterator = resource_of(node, handle, DatasetIterator)
        if iterator.types != tuple(types):
            verify(types, shapes, iterator.types, iterator.shapes)
        return iterator.get_next(finish)

    return compute


@kernel("IteratorGetNext", "IteratorGetNextSync", blocking=True)
def build_get_next(node: KernelNode) -> Compute:
    """The components of the next element. Raises OutOfRangeError at the end."""
    return _get_next(node, as_outputs(node))


def as_outputs(node: KernelNode) -> Callable[[Element | None], Any]:
    """What gives an element's components, and raises OutOfRangeError at the end."""
    count = len(node.attrs["output_types"])

    def finish(element: Element | None) -> Any:
        if element is None:
            raise errors.out_of_range("End of sequence")
        if len(element) != count:
            raise invalid(f"The dataset gave {len(element)} components, and {count} were expected.")
        return element[0] if count == 1 else element

    return finish


@kernel("IteratorGetNextAsOptional", blocking=True)
def build_get_next_as_optional(node: KernelNode) -> Compute:
    return _get_next(node, lambda element: Optional(element).as_array())


@kernel("SerializeIterator", blocking=True)
def build_serialize(node: KernelNode) -> Compute:
    """What the iterator remembers, as a variant that can be saved; it is not moved."""
    is_all = int(node.attrs["external_state_policy"]) == _FAIL

    def compute(handle: Any) -> Any:
        iterator = resource_of(node, handle, DatasetIterator)
        return iterator.save(lambda state: IteratorState(state).as_array(), is_all)

    return compute


@kernel("DeserializeIterator")
def build_deserialize(node: KernelNode) -> Compute:
    """Sets an iterator to what was saved. Raises InvalidArgumentError for another kind of variant."""

    def compute(handle: Any, serialized: Array) -> None:
        found = serialized.item() if serialized.ndim == 0 else None
        if not isinstance(found, IteratorState):
            raise invalid("DeserializeIterator needs one variant that SerializeIterator has given.")
        resource_of(node, handle, DatasetIterator).restore(found.state)

    return compute


@kernel("IteratorGetDevice", "ExperimentalIteratorGetDevice")
def build_get_device(node: KernelNode) -> Compute:
    """The full name of the device that the iterator is on."""

    def compute(handle: Any) -> Any:
        resource_of(node, handle, DatasetIterator)
        return scalar_object(node.device.encode())

    return compute


@kernel("IteratorToStringHandle")
def build_to_string(node: KernelNode) -> Compute:
    """The handle as bytes, to be fed to IteratorFromStringHandle."""

    def compute(handle: Any) -> Any:
        resource_of(node, handle, DatasetIterator)
        value = handle[()]
        return scalar_object(value.to_proto().SerializeToString())

    return compute


def handle_of_text(text: Array) -> ResourceHandle:
    """The handle that a scalar string stands for. Raises InvalidArgumentError for another shape or other bytes."""
    if text.ndim:
        raise invalid("string_handle must be a scalar")
    proto = resource_handle_pb2.ResourceHandleProto()
    try:
        proto.ParseFromString(bytes(text[()]))
    except DecodeError:
        raise invalid("Could not parse string_handle as a valid ResourceHandle") from None
    return ResourceHandle.from_proto(proto)


@kernel("IteratorFromStringHandle", "IteratorFromStringHandleV2")
def build_from_string(node: KernelNode) -> Compute:
    """Raises InvalidArgumentError for bytes that are no handle, or of an iterator of other types or elsewhere."""
    types, shapes = node.attrs["output_types"], node.attrs["output_shapes"]

    def compute(text: Array) -> Any:
        found = handle_of_text(text)
        if found.device != node.device:
            raise invalid(
                f'Attempted create an iterator on device "{node.device}" from handle defined on device "{found.device}"'
            )
        iterator = resource_of(node, found.as_array(), DatasetIterator)
        verify(types, shapes, iterator.types, iterator.shapes)
        return LocalHandle.of(found, iterator).as_array()

    return compute
