"""Sums the gradients that one tensor receives from its consumers. Called by walker.py.

Dense gradients become one AddN (partial sums per device first, as in TensorFlow's _MultiDeviceAddN); sparse ones
are concatenated, since their rows are added only when they are applied, unless one among them is dense anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import apply_op
from tenfold.graph.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.operation import Operation


class AggregationMethod:
    """How several gradients of one tensor are combined; see `tf.gradients`."""

    #: One AddN over all of them.
    ADD_N = 0
    DEFAULT = ADD_N
    #: Pairwise sums, so that summands can be freed early.
    EXPERIMENTAL_TREE = 1
    #: Accepted for compatibility; the sum is pairwise here.
    EXPERIMENTAL_ACCUMULATE_N = 2


def checked_method(method: int | None) -> int:
    """`method`, or the default for None. Raises ValueError for an unknown one."""
    if method is None:
        return AggregationMethod.DEFAULT
    known = (
        AggregationMethod.ADD_N,
        AggregationMethod.EXPERIMENTAL_TREE,
        AggregationMethod.EXPERIMENTAL_ACCUMULATE_N,
    )
    if method not in known:
        raise ValueError(f"Invalid aggregation_method specified {method}; known are {known}")
    return method


def sum_gradients(op: Operation, grads: Sequence[Any], method: int) -> Any:
    """The sum of `grads`, received for one output of `op`; None if there are none.

    Raises TypeError for a gradient that is neither a Tensor nor an IndexedSlices.
    """
    if not grads:
        return None
    for grad in grads:
        if not isinstance(grad, (Tensor, IndexedSlices)):
            raise TypeError(f"gradients of '{op.name}' must be Tensors or IndexedSlices, not {grad!r}")
    if len(grads) == 1:
        return grads[0]
    if all(isinstance(grad, Tensor) for grad in grads):
        if method == AggregationMethod.ADD_N:
            return _add_n_over_devices(grads)
        with op.graph.name_scope(op.name + "_gradient_sum"):
            total = grads[0]
            for grad in grads[1:]:
                total = apply_op("AddN", inputs=[total, grad])
            return total
    if any(isinstance(grad, Tensor) for grad in grads):
        return _add_n([convert_to_tensor(grad) for grad in grads])
    return _concatenate(grads)


def _add_n_over_devices(grads: Sequence[Tensor]) -> Any:
    by_device: dict[str, list[Tensor]] = {}
    for grad in grads:
        by_device.setdefault(grad.device or "", []).append(grad)
    partial_sums = []
    for device in sorted(by_device):
        tensors = by_device[device]
        with tensors[0].graph.colocate_with(tensors[0].op, ignore_existing=True):
            partial_sums.append(_add_n(tensors))
    return _add_n(partial_sums)


def _add_n(tensors: Sequence[Tensor]) -> Any:
    return tensors[0] if len(tensors) == 1 else apply_op("AddN", inputs=list(tensors))


def _concatenate(slices: Sequence[IndexedSlices]) -> IndexedSlices:
    values = apply_op("ConcatV2", values=[part.values for part in slices], axis=0)
    index_dtype = slices[0].indices.dtype.base_dtype
    indices = apply_op("ConcatV2", values=[_cast(part.indices, index_dtype) for part in slices], axis=0)
    return IndexedSlices(values, indices, slices[0].dense_shape)


def _cast(tensor: Any, dtype: Any) -> Any:
    tensor = convert_to_tensor(tensor)
    return tensor if tensor.dtype.base_dtype == dtype else apply_op("Cast", x=tensor, DstT=dtype)
