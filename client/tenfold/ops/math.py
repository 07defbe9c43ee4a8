"""Mathematics: division, products, ranges, arg reductions, segments; also exports the family's other files.

Element-wise functions are in ops/elementwise.py, casts in ops/casts.py, reductions in ops/reductions.py. The meaning of
Python's operators (`/` on integers gives floats) is in ops/operators.py. Node names follow
TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_n_to_tensor, convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import tensor_op
from tenfold.ops.array import _alias, identity
from tenfold.ops.casts import (
    bitcast,
    cast,
    saturate_cast,
    to_double,
    to_float,
    to_int32,
    to_int64,
)
from tenfold.ops.elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    cos,
    cosh,
    digamma,
    div_no_nan,
    equal,
    erf,
    erfc,
    exp,
    expm1,
    floor,
    floordiv,
    floormod,
    greater,
    greater_equal,
    is_finite,
    is_inf,
    is_nan,
    less,
    less_equal,
    lgamma,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    pow,
    realdiv,
    reciprocal,
    rint,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    squared_difference,
    subtract,
    tan,
    tanh,
    truncatediv,
    truncatemod,
    xlogy,
)
from tenfold.ops.reductions import (
    count_nonzero,
    reduce_all,
    reduce_any,
    reduce_euclidean_norm,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_std,
    reduce_sum,
    reduce_variance,
)
from tenfold_core import dtypes
from tenfold_core.dtypes import DType, as_dtype

if TYPE_CHECKING:
    from tenfold.graph.argument_types import DTypeLike, TensorLike
    from tenfold.graph.tensor import Tensor

__all__ = [
    "abs",
    "accumulate_n",
    "acos",
    "acosh",
    "add",
    "add_n",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitcast",
    "cast",
    "ceil",
    "cos",
    "cosh",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "digamma",
    "div",
    "div_no_nan",
    "divide",
    "equal",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "floor_div",
    "floordiv",
    "floormod",
    "greater",
    "greater_equal",
    "is_finite",
    "is_inf",
    "is_nan",
    "less",
    "less_equal",
    "lgamma",
    "linspace",
    "log",
    "log1p",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "not_equal",
    "pow",
    "range",
    "realdiv",
    "reciprocal",
    "reduce_all",
    "reduce_any",
    "reduce_euclidean_norm",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_std",
    "reduce_sum",
    "reduce_variance",
    "rint",
    "round",
    "rsqrt",
    "saturate_cast",
    "scalar_mul",
    "segment_sum",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "squared_difference",
    "subtract",
    "tan",
    "tanh",
    "to_double",
    "to_float",
    "to_int32",
    "to_int64",
    "truediv",
    "truncatediv",
    "truncatemod",
    "unsorted_segment_sum",
    "xlogy",
]

mod = floormod
floor_div = floordiv

#: The type that `/` casts to, for types that it does not divide directly.
_TRUEDIV_TYPES = {
    dtypes.uint8: dtypes.float32,
    dtypes.int8: dtypes.float32,
    dtypes.uint16: dtypes.float32,
    dtypes.int16: dtypes.float32,
    dtypes.int32: dtypes.float64,
    dtypes.int64: dtypes.float64,
}
_RANGE_TYPES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


# --- division, sums, logic ---


def truediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """`x / y` as Python 3 means it: integers are divided as floats. Raises TypeError if the types differ."""
    with name_scope(name, "truediv", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", preferred_dtype=x.dtype.base_dtype)
        kind = x.dtype.base_dtype
        if kind != y.dtype.base_dtype:
            raise TypeError(f"x and y must have the same dtype, got {kind!r} != {y.dtype.base_dtype!r}")
        wide = _TRUEDIV_TYPES.get(kind)
        if wide is not None:
            x, y = cast(x, wide), cast(y, wide)
        return realdiv(x, y, name=scope)


def divide(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """`x / y`."""
    return truediv(x, y, name)


def div(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """`x / y` as Python 2 means it: integers are divided with floor."""
    with name_scope(name, "div", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        return realdiv(x, y, scope) if x.dtype.is_floating or x.dtype.is_complex else floordiv(x, y, scope)


def logical_xor(x: TensorLike, y: TensorLike, name: str = "LogicalXor") -> Tensor:
    """True where exactly one is true."""
    return logical_and(logical_or(x, y), logical_not(logical_and(x, y)), name=name)


def add_n(inputs: TensorLike, name: str | None = None) -> Tensor:
    """The sum of tensors with the same shape and type. Raises ValueError for an empty list."""
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ValueError("inputs must be a list of at least one Tensor/IndexedSlices with the same dtype and shape")
    tensors = convert_n_to_tensor(inputs)
    if len(tensors) == 1:
        return tensors[0] if name is None else identity(tensors[0], name=name)
    return tensor_op("AddN", name, inputs=tensors)


def accumulate_n(
    inputs: TensorLike, shape: TensorLike | None = None, tensor_dtype: Any = None, name: str | None = None
) -> Tensor:
    """`add_n` with the shape and type of the tensors checked beforehand."""
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ValueError("inputs must be a list of at least one Tensor with the same dtype and shape")
    tensors = convert_n_to_tensor(inputs)
    kinds = {tensor.dtype.base_dtype for tensor in tensors}
    if len(kinds) > 1 or (tensor_dtype is not None and as_dtype(tensor_dtype) not in kinds):
        raise TypeError(f"accumulate_n takes tensors of one type, got {sorted(kind.name for kind in kinds)}")
    result = add_n(tensors, name)
    if shape is not None:
        result.set_shape(shape)
    return result


def scalar_mul(scalar: Any, x: TensorLike, name: str | None = None) -> Any:
    """`scalar * x`; of IndexedSlices, the values. Raises ValueError unless `scalar` is one."""
    kind = x.dtype.base_dtype if hasattr(x, "dtype") else None
    scalar = convert_to_tensor(scalar, dtype=None if kind is None else as_dtype(kind), name="scalar")
    if scalar.shape.ndims != 0:
        raise ValueError(f"Only scalar multiply works, got shape {scalar.shape}")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(multiply(scalar, x.values, name), x.indices, x.dense_shape)
    return multiply(scalar, x, name)


# --- products ---


def matmul(
    a: TensorLike,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product; of more than two dimensions, for each matrix. The hints `…_is_sparse` are ignored.

    # a (…, M, K), b (…, K, N) → (…, M, N)
    """
    if transpose_a and adjoint_a:
        raise ValueError("Only one of transpose_a and adjoint_a can be True.")
    if transpose_b and adjoint_b:
        raise ValueError("Only one of transpose_b and adjoint_b can be True.")
    with name_scope(name, "MatMul", [a, b]) as scope:
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, name="b", preferred_dtype=a.dtype.base_dtype)
        if a.shape.ndims is None or b.shape.ndims is None or a.shape.ndims > 2 or b.shape.ndims > 2:
            x = _conjugate(a) if transpose_a else a
            y = _conjugate(b) if transpose_b else b
            return tensor_op(
                "BatchMatMulV2", scope, x=x, y=y, adj_x=transpose_a or adjoint_a, adj_y=transpose_b or adjoint_b
            )
        x = _conjugate(a) if adjoint_a else a
        y = _conjugate(b) if adjoint_b else b
        return tensor_op(
            "MatMul", scope, a=x, b=y, transpose_a=transpose_a or adjoint_a, transpose_b=transpose_b or adjoint_b
        )


def _conjugate(x: Tensor) -> Tensor:
    return tensor_op("Conj", None, input=x) if x.dtype.is_complex else x


# --- ranges, positions, segments ---


def range(
    start: TensorLike,
    limit: TensorLike | None = None,
    delta: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str = "range",
) -> Tensor:
    """`start, start + delta, …` up to, excluding `limit`; `range(limit)` starts at 0."""
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "Range", [start, limit, delta]) as scope:
        wanted = None if dtype is None else as_dtype(dtype)
        parts = [
            convert_to_tensor(value, dtype=wanted, name=label)
            for value, label in ((start, "start"), (limit, "limit"), (delta, "delta"))
        ]
        if wanted is None:
            kinds: set[DType] = {part.dtype.base_dtype for part in parts}
            if not kinds <= set(_RANGE_TYPES):
                raise TypeError(f"range takes int32, int64, float32 and float64, got {sorted(k.name for k in kinds)}")
            wanted = max(kinds, key=_RANGE_TYPES.index)
            parts = [cast(part, wanted) for part in parts]
        return tensor_op("Range", scope, start=parts[0], limit=parts[1], delta=parts[2])


def linspace(start: TensorLike, stop: Any, num: TensorLike, name: str | None = None) -> Tensor:
    """`num` evenly spaced values from `start` to `stop`, both included."""
    return tensor_op("LinSpace", name, start=start, stop=stop, num=num)


def argmax(
    input: TensorLike,
    axis: TensorLike | None = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: DTypeLike = dtypes.int64,
) -> Tensor:
    """The position of the largest element along `axis` (default 0; older name `dimension`)."""
    axis = _alias("axis", axis, "dimension", dimension)
    return tensor_op("ArgMax", name, input=input, dimension=0 if axis is None else axis, output_type=output_type)


def argmin(
    input: TensorLike,
    axis: TensorLike | None = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: DTypeLike = dtypes.int64,
) -> Tensor:
    """The position of the smallest element along `axis` (default 0; older name `dimension`)."""
    axis = _alias("axis", axis, "dimension", dimension)
    return tensor_op("ArgMin", name, input=input, dimension=0 if axis is None else axis, output_type=output_type)


def cumsum(
    x: TensorLike, axis: TensorLike = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The running sum along `axis`."""
    return tensor_op("Cumsum", name, x=x, axis=axis, exclusive=exclusive, reverse=reverse)


def cumprod(
    x: TensorLike, axis: TensorLike = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The running product along `axis`."""
    return tensor_op("Cumprod", name, x=x, axis=axis, exclusive=exclusive, reverse=reverse)


def unsorted_segment_sum(
    data: TensorLike, segment_ids: TensorLike, num_segments: Any, name: str | None = None
) -> Tensor:
    """Sums the slices of `data` that have the same segment id."""
    return tensor_op("UnsortedSegmentSum", name, data=data, segment_ids=segment_ids, num_segments=num_segments)


def segment_sum(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Sums the slices of `data` that have the same segment id; the ids are sorted."""
    return tensor_op("SegmentSum", name, data=data, segment_ids=segment_ids)
