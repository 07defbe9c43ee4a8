"""`tensorflow.python.data.ops.multi_device_iterator_ops`: one dataset, whose elements go to several devices in turn.

The iterator is on the source device; an element goes over when its device asks for it. Programs with a tower on each
device use it. Follows TensorFlow 1.15's MultiDeviceIterator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data import structure
from tenfold.data.applied import with_applied_options
from tenfold.data.iterators import Iterator, OfElements, make_initializable_iterator
from tenfold.data.optionals import Optional, get_next_as_optional
from tenfold.data.sources import generator_dataset
from tenfold.graph.default_scopes import device as on_device
from tenfold.graph.op_builder import apply_op, create, tensor_op
from tenfold.ops import array
from tenfold.ops.control_flow import group
from tenfold.ops.resource_variables import ResourceVariable
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.data.dataset import Dataset
    from tenfold.data.node import DatasetNode
    from tenfold.graph.operation import Operation

__all__ = ["MultiDeviceIterator"]


class MultiDeviceIterator(OfElements):
    """An iterator whose element n goes to device n modulo their number. `initializer` starts it anew.

    At most `max_buffer_size` elements wait for each device, or `prefetch_buffer_size` if that is more.
    """

    def __init__(
        self,
        dataset: Dataset,
        devices: Sequence[str],
        max_buffer_size: int = 1,
        prefetch_buffer_size: int = 1,
        source_device: str = "/cpu:0",
    ) -> None:
        self._devices = list(devices)
        self._source_device = source_device
        self._element_spec = dataset.element_spec
        with on_device(source_device):
            applied = with_applied_options(dataset)
            self._resource = tensor_op(
                "MultiDeviceIterator",
                devices=self._devices,
                shared_name="",
                container="",
                **structure.flat_attrs(self._element_spec),
            )
            started = tensor_op(
                "MultiDeviceIteratorInit",
                dataset=applied._variant_tensor,
                multi_device_iterator=self._resource,
                max_buffer_size=max(max_buffer_size, prefetch_buffer_size),
            )
            # What a start gave belongs to every later step.
            self._start = ResourceVariable(
                0, dtype=dtypes.int64, trainable=False, collections=[], name="multi_device_start"
            )
            self._initializer: Operation = apply_op("AssignVariableOp", resource=self._start.handle, value=started)
        #: An iterator over the elements of each device, once something asks for optionals.
        self._shards: list[Iterator] = []

    def get_next(self, device: str | None = None) -> Any:
        """The next element for `device`, or a list of those for all. OutOfRangeError at the end, when run."""
        if device is not None:
            return self._next(self._devices.index(device))
        return [self._next(number) for number in range(len(self._devices))]

    def get_next_as_optional(self) -> list[Optional]:
        """The next element for each device, or none at the end, where `get_next` raises.

        Ask for it before `initializer`, which starts what this needs, too.
        """
        with on_device(self._source_device):
            if not self._shards:
                self._shards = [make_initializable_iterator(self._shard(n)) for n in range(len(self._devices))]
                self._initializer = group(self._initializer, *(each.initializer for each in self._shards))
            return [get_next_as_optional(each) for each in self._shards]

    def _shard(self, number: int) -> DatasetNode:
        """The elements of one device, from the latest start on."""

        def following(_: Any) -> Any:
            return structure.from_tensor_list(self._element_spec, list(self._from_shard(number).outputs))

        return generator_dataset(array.constant(0), lambda state: state, following, lambda state: state)

    def _from_shard(self, number: int) -> Operation:
        return create(
            "MultiDeviceIteratorGetNextFromShard",
            None,
            {
                "multi_device_iterator": self._resource,
                "shard_num": number,
                "incarnation_id": self._start.value(),
                **structure.flat_attrs(self._element_spec),
            },
        )

    def _next(self, number: int) -> Any:
        with on_device(self._source_device):
            op = self._from_shard(number)
        with on_device(self._devices[number]):
            components = [array.identity(each) for each in op.outputs]
        return structure.from_tensor_list(self._element_spec, components)

    @property
    def initializer(self) -> Operation:
        """The operation that starts the dataset."""
        return self._initializer
