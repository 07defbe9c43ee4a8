"""Reductions: sums, means, extremes and the like over some or all dimensions of a tensor.

`axis` is an int, a list or a vector tensor, None for all dimensions; `keepdims` keeps them with size 1. The older names
`reduction_indices` and `keep_dims` are accepted too. Exported by ops/math.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.named import named
from tenfold.ops import array
from tenfold.ops.casts import cast
from tenfold.ops.elementwise import exp, is_finite, log, not_equal, sqrt, square, subtract
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.argument_types import DTypeLike, TensorLike
    from tenfold.graph.tensor import Tensor


class _Reduction(Protocol):
    def __call__(
        self,
        input_tensor: TensorLike,
        axis: TensorLike | None = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor: ...


def _reduction(op_type: str, doc: str, dtype: Any = None) -> _Reduction:
    def reduce(
        input_tensor: TensorLike,
        axis: TensorLike | None = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        axis = array._alias("axis", axis, "reduction_indices", reduction_indices)
        keep = bool(array._alias("keepdims", keepdims, "keep_dims", keep_dims))
        tensor = convert_to_tensor(input_tensor, dtype, name="input_tensor")
        dims = _all_dimensions(tensor) if axis is None else axis
        result: Tensor = apply_op(op_type, name, input=tensor, reduction_indices=dims, keep_dims=keep)
        if axis is None and not keep:
            result.set_shape([])
        return result

    return named(reduce, f"reduce_{op_type.lower()}", doc)


def _all_dimensions(tensor: Tensor) -> Tensor:
    """The vector 0, 1, …, rank-1: a constant if the rank is known."""
    if tensor.shape.ndims is not None:
        return array.constant(np.arange(tensor.shape.ndims, dtype=np.int32), dtypes.int32)
    return tensor_op("Range", "range", start=0, limit=array.rank(tensor), delta=1)


reduce_sum = _reduction("Sum", "The sum.")
reduce_mean = _reduction("Mean", "The mean.")
reduce_prod = _reduction("Prod", "The product.")
reduce_max = _reduction("Max", "The largest element.")
reduce_min = _reduction("Min", "The smallest element.")
reduce_all = _reduction("All", "True if all elements are true.", dtypes.bool_)
reduce_any = _reduction("Any", "True if any element is true.", dtypes.bool_)
_reduce_norm = _reduction("EuclideanNorm", "")


def reduce_euclidean_norm(
    input_tensor: TensorLike, axis: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of the squares."""
    return _reduce_norm(input_tensor, axis, keepdims, name)


def reduce_variance(
    input_tensor: TensorLike, axis: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean of the squared distances from the mean."""
    with name_scope(name or "reduce_variance"):
        tensor = convert_to_tensor(input_tensor)
        return reduce_mean(square(subtract(tensor, reduce_mean(tensor, axis, True))), axis, keepdims)


def reduce_std(
    input_tensor: TensorLike, axis: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the variance."""
    with name_scope(name or "reduce_std"):
        return sqrt(reduce_variance(input_tensor, axis, keepdims))


def reduce_logsumexp(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """log(sum(exp(x))), without overflow."""
    axis = array._alias("axis", axis, "reduction_indices", reduction_indices)
    keep = bool(array._alias("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "ReduceLogSumExp", [input_tensor]):
        tensor = convert_to_tensor(input_tensor)
        raw = reduce_max(tensor, axis, True)
        # An infinite maximum would make infinity minus infinity.
        shift = array.stop_gradient(apply_op("SelectV2", condition=is_finite(raw), t=raw, e=array.zeros_like(raw)))
        total = log(reduce_sum(exp(subtract(tensor, shift)), axis, keep))
        if not keep:
            shift = array.reshape(shift, array.shape(total))
        return tensor_op("Add", x=total, y=shift)


def count_nonzero(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """How many elements are not zero."""
    axis = array._alias("axis", axis, "reduction_indices", reduction_indices)
    keep = array._alias("keepdims", keepdims, "keep_dims", keep_dims)
    with name_scope(name, "count_nonzero", [input_tensor]):
        tensor = convert_to_tensor(input_tensor, name="input")
        kind = tensor.dtype.base_dtype
        zero = array.constant("" if kind == dtypes.string else False if kind.is_bool else 0, kind)
        counts = reduce_sum(cast(not_equal(tensor, zero), dtypes.int64), axis, keep)
        result: Tensor = cast(counts, dtype)
        return result
