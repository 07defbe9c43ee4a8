"""Changes of the element type: `tf.cast` and its relatives. Exported by ops/math.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.graph.tensor import Tensor
from tenfold.ops.elementwise import maximum, minimum
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from tenfold.graph.argument_types import DTypeLike, TensorLike, TensorOrSparse


def cast(x: TensorOrSparse, dtype: DTypeLike, name: str | None = None) -> Any:
    """`x` with another element type; `x` itself if it has it already. Of sparse values, casts the elements."""
    wanted = as_dtype(dtype).base_dtype
    if isinstance(x, Tensor) and x.dtype == wanted:
        return x
    if isinstance(x, IndexedSlices):
        return IndexedSlices(cast(x.values, wanted, name), x.indices, x.dense_shape)
    if isinstance(x, SparseTensor):
        return SparseTensor(x.indices, cast(x.values, wanted, name), x.dense_shape)
    with name_scope(name, "Cast", [x]) as scope:
        tensor = convert_to_tensor(x, name="x")
        if tensor.dtype.base_dtype == wanted:
            return tensor
        return apply_op("Cast", scope, x=tensor, DstT=wanted)


def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """`cast`, with values beyond the range of `dtype` clipped to it."""
    wanted = as_dtype(dtype)
    with name_scope(name, "saturate_cast", [value]) as scope:
        value = convert_to_tensor(value, name="value")
        if value.dtype.min < wanted.min:
            value = maximum(value, convert_to_tensor(wanted.min, dtype=value.dtype, name="min"))
        if value.dtype.max > wanted.max:
            value = minimum(value, convert_to_tensor(wanted.max, dtype=value.dtype, name="max"))
        result: Tensor = cast(value, wanted, name=scope)
        return result


def to_float(x: TensorOrSparse, name: str = "ToFloat") -> Any:
    """`cast` to float32."""
    return cast(x, dtypes.float32, name)


def to_double(x: TensorOrSparse, name: str = "ToDouble") -> Any:
    """`cast` to float64."""
    return cast(x, dtypes.float64, name)


def to_int32(x: TensorOrSparse, name: str = "ToInt32") -> Any:
    """`cast` to int32."""
    return cast(x, dtypes.int32, name)


def to_int64(x: TensorOrSparse, name: str = "ToInt64") -> Any:
    """`cast` to int64."""
    return cast(x, dtypes.int64, name)


def bitcast(input: TensorLike, type: Any, name: str | None = None) -> Tensor:
    """The same bytes under another element type."""
    return tensor_op("Bitcast", name, input=input, type=type)


def to_bfloat16(x: TensorOrSparse, name: str = "ToBFloat16") -> Any:
    """`cast` to bfloat16."""
    return cast(x, dtypes.bfloat16, name)


def to_complex64(x: TensorOrSparse, name: str = "ToComplex64") -> Any:
    """`cast` to complex64."""
    return cast(x, dtypes.complex64, name)


def to_complex128(x: TensorOrSparse, name: str = "ToComplex128") -> Any:
    """`cast` to complex128."""
    return cast(x, dtypes.complex128, name)
