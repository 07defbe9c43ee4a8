"""Conditional accumulators and barriers: sums of a required number of gradients; tuples assembled by key.

SyncReplicasOptimizer uses them. Like queues (queues.py) they are on one task; a take waits on the server.
Follows TF 1.15's ops/data_flow_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph import IndexedSlices, convert_to_tensor, known_value
from tenfold.graph.op_builder import apply_op
from tenfold.ops import math
from tenfold.ops.queues import shape_list
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype
from tenfold_core.tensor_shape import TensorShape, as_shape, unknown_shape

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold_core.dtypes import DType


class ConditionalAccumulatorBase:
    """What both accumulators share. A gradient whose step is older than the accumulator's is dropped silently."""

    #: Prefix of the op names.
    _family = ""

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Any) -> None:
        self._dtype = as_dtype(dtype)
        self._shape = unknown_shape() if shape is None else as_shape(shape)
        self._accumulator_ref = accumulator_ref
        self._name = accumulator_ref.op.name.rpartition("/")[2]

    @property
    def accumulator_ref(self) -> Any:
        """The handle of the accumulator."""
        return self._accumulator_ref

    @property
    def name(self) -> str:
        return str(self._name)

    @property
    def dtype(self) -> DType:
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Any:
        """The number of gradients added since the last take, an int32 scalar."""
        return apply_op(
            f"{self._family}AccumulatorNumAccumulated",
            handle=self._accumulator_ref,
            name=name or f"{self._name}_NumAccumulated",
        )

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """An op that sets the accumulator's own step, an int64 scalar."""
        operation: Operation = apply_op(
            f"{self._family}AccumulatorSetGlobalStep",
            handle=self._accumulator_ref,
            new_global_step=_step(new_global_step),
            name=name,
        )
        return operation


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Sums dense gradients of one shape; `reduction_type` "MEAN" or "SUM" says what a take gives."""

    _family = "Resource"

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        ref = apply_op(
            "ResourceConditionalAccumulator",
            dtype=as_dtype(dtype),
            shape=unknown_shape() if shape is None else as_shape(shape),
            shared_name=shared_name or "",
            reduction_type=reduction_type,
            name=name,
        )
        super().__init__(dtype, shape, ref)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """An op that adds `grad`, computed at `local_step`. Raises ValueError for a shape that does not fit."""
        grad = convert_to_tensor(grad, self._dtype)
        grad.get_shape().assert_is_compatible_with(self._shape)
        operation: Operation = apply_op(
            "ResourceAccumulatorApplyGradient",
            handle=self._accumulator_ref,
            local_step=_step(local_step),
            gradient=grad,
            name=name,
        )
        return operation

    def take_grad(self, num_required: Any, name: str | None = None) -> Any:
        """The mean or sum, once `num_required` gradients were added; clears the accumulator and increments its step."""
        taken = apply_op(
            "ResourceAccumulatorTakeGradient",
            handle=self._accumulator_ref,
            num_required=num_required,
            dtype=self._dtype,
            name=name,
        )
        taken.set_shape(self._shape)
        return taken


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Sums sparse gradients (IndexedSlices) row by row."""

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        ref = apply_op(
            "SparseConditionalAccumulator",
            dtype=as_dtype(dtype),
            shape=unknown_shape() if shape is None else as_shape(shape),
            shared_name=shared_name or "",
            reduction_type=reduction_type,
            name=name,
        )
        super().__init__(dtype, shape, ref)

    def apply_indexed_slices_grad(self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None) -> Operation:
        """`apply_grad` of IndexedSlices."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self,
        grad_indices: Any,
        grad_values: Any,
        grad_shape: Any = None,
        local_step: Any = 0,
        name: str | None = None,
    ) -> Operation:
        """An op that adds rows: `grad_values[i]` to row `grad_indices[i]` of a tensor of `grad_shape`."""
        operation: Operation = apply_op(
            "SparseAccumulatorApplyGradient",
            handle=self._accumulator_ref,
            local_step=_step(local_step),
            gradient_indices=math.cast(grad_indices, dtypes.int64),
            gradient_values=grad_values,
            gradient_shape=math.cast(
                convert_to_tensor([], dtypes.int64) if grad_shape is None else grad_shape, dtypes.int64
            ),
            has_known_shape=grad_shape is not None,
            name=name,
        )
        return operation

    def take_grad(self, num_required: Any, name: str | None = None) -> Any:
        """(indices, values, shape), once `num_required` gradients were added."""
        return apply_op(
            "SparseAccumulatorTakeGradient",
            handle=self._accumulator_ref,
            num_required=num_required,
            dtype=self._dtype,
            name=name,
        )

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """`take_grad` as IndexedSlices."""
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values=values, indices=indices, dense_shape=shape)


class Barrier:
    """Assembles tuples: components are inserted by key, and a tuple can be taken once it has all its components."""

    def __init__(self, types: Any, shapes: Any = None, shared_name: str | None = None, name: str = "barrier") -> None:
        self._types = [as_dtype(each) for each in (types if isinstance(types, (list, tuple)) else [types])]
        known = shape_list(shapes)
        for position, shape in enumerate(known or ()):
            if shape.num_elements() == 0:
                raise ValueError(f"Empty tensors are not supported, but received shape '{shape}' at index {position}")
        self._shapes = known or [unknown_shape() for _ in self._types]
        self._barrier_ref = apply_op(
            "Barrier", component_types=self._types, shapes=self._shapes, shared_name=shared_name or "", name=name
        )
        self._name = self._barrier_ref.op.name.rpartition("/")[2]

    @property
    def barrier_ref(self) -> Any:
        """The handle of the barrier."""
        return self._barrier_ref

    @property
    def name(self) -> str:
        return str(self._barrier_ref.op.name)

    def insert_many(self, component_index: int, keys: Any, values: Any, name: str | None = None) -> Operation:
        """An op that adds component `component_index` for each of `keys`."""
        operation: Operation = apply_op(
            "BarrierInsertMany",
            handle=self._barrier_ref,
            keys=keys,
            values=values,
            component_index=component_index,
            name=name or f"{self._name}_BarrierInsertMany",
        )
        return operation

    def take_many(
        self, num_elements: Any, allow_small_batch: bool = False, timeout: int | None = None, name: str | None = None
    ) -> Any:
        """(indices, keys, values…) of `num_elements` tuples; the step waits until that many are complete.

        With `allow_small_batch` a closed barrier gives what is left. `timeout`, in ms, is not supported by the kernel.
        """
        taken = apply_op(
            "BarrierTakeMany",
            handle=self._barrier_ref,
            num_elements=num_elements,
            component_types=self._types,
            allow_small_batch=allow_small_batch,
            timeout_ms=-1 if timeout is None else timeout,
            name=name or f"{self._name}_BarrierTakeMany",
        )
        operation = taken[0].op
        rows = TensorShape([None if allow_small_batch else known_value(operation.inputs[1])])
        for output in operation.outputs[:2]:
            output.set_shape(rows)
        for output, shape in zip(operation.outputs[2:], self._shapes, strict=True):
            output.set_shape(rows.concatenate(shape))
        return taken

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """An op after which no new key can be added."""
        operation: Operation = apply_op(
            "BarrierClose",
            handle=self._barrier_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_BarrierClose",
        )
        return operation

    def ready_size(self, name: str | None = None) -> Any:
        """How many tuples are complete, an int32 scalar."""
        return apply_op("BarrierReadySize", handle=self._barrier_ref, name=name or f"{self._name}_BarrierReadySize")

    def incomplete_size(self, name: str | None = None) -> Any:
        """How many tuples lack a component, an int32 scalar."""
        return apply_op(
            "BarrierIncompleteSize", handle=self._barrier_ref, name=name or f"{self._name}_BarrierIncompleteSize"
        )


def _step(value: Any) -> Any:
    return math.cast(convert_to_tensor(value), dtypes.int64)
