"""`StagingArea` and `RecordInput` of TensorFlow's data_flow_ops: tensors put by for a later step, records read ahead.

`tf.contrib.staging` and `tensorflow.python.ops.data_flow_ops` have them. The kernels of a staging area are
kernels/cpu/data_flow_stage.py. Follows TF 1.15's ops/data_flow_ops.py: the area lies where it was built, what is taken
out lies where `get` was called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph import colocate_with, convert_to_tensor, get_default_graph, name_scope
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array, slicing
from tenfold.ops.control_flow import no_op
from tenfold_core.dtypes import as_dtype
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor

__all__ = ["RecordInput", "StagingArea"]


class StagingArea:
    """A buffer on a task of tuples of tensors with these types; what is put in comes out once, in order.

    `shapes` constrain them, with `names` values are dictionaries. A `capacity` in elements and a `memory_limit` in
    bytes bound it, 0 does not. Raises ValueError for lists of different lengths.
    """

    def __init__(
        self,
        dtypes: Sequence[Any],
        shapes: Sequence[Any] | None = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        if shared_name is not None and not isinstance(shared_name, str):
            raise ValueError("shared_name must be a string")
        for what, given in (("shapes", shapes), ("names", names)):
            if given is not None and len(given) != len(dtypes):
                raise ValueError(f"StagingArea {what} must be the same length as dtypes")
        self._name = get_default_graph().unique_name(type(self).__name__) if shared_name is None else shared_name
        self._dtypes = [as_dtype(dtype) for dtype in dtypes]
        self._shapes = [TensorShape(shape) for shape in shapes or [None] * len(dtypes)]
        self._names = None if names is None else list(names)
        self._limits = {"capacity": capacity, "memory_limit": memory_limit}
        with name_scope(f"{self._name}_root"):
            self._place = no_op()

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtypes(self) -> list[Any]:
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        return self._names

    @property
    def capacity(self) -> int:
        return self._limits["capacity"]

    @property
    def memory_limit(self) -> int:
        return self._limits["memory_limit"]

    def put(self, values: Any, name: str | None = None) -> Operation:
        """The operation that puts a tensor, a list or a dictionary in; it waits while the area is full.

        Raises ValueError unless names, number, types and shapes are those of the area.
        """
        given = values if isinstance(values, (list, tuple, dict)) else [values]
        listed = list(given.values()) if isinstance(given, dict) else list(given)
        with name_scope(name, f"{self._name}_put", listed) as scope:
            tensors = self._checked(given)
            with colocate_with(self._place):
                op: Operation = apply_op("Stage", scope, values=tensors, shared_name=self._name, **self._limits)
        return op

    def get(self, name: str | None = None) -> Any:
        """The oldest element, taken out: a list, or a dictionary with `names`. It waits while the area is empty."""
        return self._out("get", "Unstage", name)

    def peek(self, index: Any, name: str | None = None) -> Any:
        """The element number `index`, which stays. It waits until there is one."""
        return self._out("peek", "StagePeek", name, index=index)

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, int32."""
        size: Tensor = self._ask("size", "StageSize", name)
        return size

    def clear(self, name: str | None = None) -> Operation:
        """The operation that removes all elements."""
        op: Operation = self._ask("clear", "StageClear", name)
        return op

    def _ask(self, verb: str, op_type: str, name: str | None, **inputs: Any) -> Any:
        with colocate_with(self._place):
            return apply_op(
                op_type,
                f"{self._name}_{verb}" if name is None else name,
                shared_name=self._name,
                dtypes=self._dtypes,
                **inputs,
                **self._limits,
            )

    def _out(self, verb: str, op_type: str, name: str | None, **inputs: Any) -> Any:
        taken = self._ask(verb, op_type, name, **inputs)
        tensors = list(taken) if isinstance(taken, (list, tuple)) else [taken]
        if no_op().device != self._place.device:
            tensors = [array.identity(tensor) for tensor in tensors]
        for tensor, shape in zip(tensors, self._shapes, strict=True):
            tensor.set_shape(shape)
        return dict(zip(self._names, tensors, strict=True)) if self._names else tensors

    def _checked(self, given: Mapping[str, Any] | Sequence[Any]) -> list[Tensor]:
        if isinstance(given, dict):
            if not self._names:
                raise ValueError("Staging areas must have names to enqueue a dictionary")
            if set(given) != set(self._names):
                raise ValueError(
                    "Keys in dictionary to put do not match names of staging area. "
                    f"Dictionary: ({sorted(given)}), Queue: ({sorted(self._names)})"
                )
            values = [given[name] for name in self._names]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a staging area with names")
        else:
            values = list(given)
        if len(values) != len(self._dtypes):
            raise ValueError(f"Unexpected number of inputs '{len(values)}' vs '{len(self._dtypes)}'")
        tensors = []
        for index, (value, dtype, shape) in enumerate(zip(values, self._dtypes, self._shapes, strict=True)):
            tensor = convert_to_tensor(value, name=f"component_{index}")
            if tensor.dtype.base_dtype != dtype.base_dtype:
                raise ValueError(f"Datatypes do not match. '{tensor.dtype}' != '{dtype}'")
            tensor.get_shape().assert_is_compatible_with(shape)
            tensors.append(tensor)
        return tensors


class RecordInput:
    """Records of TFRecord files, read ahead at random by a task. `batches` makes `get_yield_op` give as many lists."""

    def __init__(
        self,
        file_pattern: str,
        batch_size: int = 1,
        buffer_size: int = 1,
        parallelism: int = 1,
        shift_ratio: float = 0,
        seed: int = 0,
        name: str | None = None,
        batches: int | None = None,
        compression_type: Any = None,
    ) -> None:
        from tenfold.python_io import TFRecordCompressionType, TFRecordOptions

        kind = TFRecordCompressionType.NONE if compression_type is None else compression_type
        self._name, self._batches = name, batches
        self._attributes = {
            "file_pattern": file_pattern,
            "file_buffer_size": buffer_size,
            "file_parallelism": parallelism,
            "file_shuffle_shift_ratio": shift_ratio,
            "batch_size": batch_size * (1 if batches is None else batches),
            "file_random_seed": seed,
            "compression_type": TFRecordOptions.get_compression_type_string(TFRecordOptions(kind)),
        }

    def get_yield_op(self) -> Any:
        """A string tensor with a batch of records, a different one each step; a list of lists of scalars by batch."""
        records: Tensor = apply_op("RecordInput", self._name, **self._attributes)
        if self._batches is None:
            return records
        with name_scope(self._name):
            scalars = [array.reshape(each, []) for each in slicing.split(records, self._attributes["batch_size"], 0)]
        return [scalars[first :: self._batches] for first in range(self._batches)]
