"""Arrays, first part: constants, placeholders, shapes, reshaping, joining.

Slicing, gathering and splitting are in ops/slicing.py. Importing this module registers how Python values become
tensors: numbers, strings and arrays as constants, lists with tensors as a Pack. Names of nodes follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.conversion import convert_to_tensor, is_dense_tensor_like, register_tensor_conversion_function
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.graph.sparse_tensor import is_sparse
from tenfold.graph.tensor import Tensor
from tenfold.ops.spelling import warn_once
from tenfold_core import dtypes, opdefs, tensor_util
from tenfold_core.dtypes import DType, as_dtype
from tenfold_core.tensor_shape import Dimension, TensorShape, as_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.argument_types import DTypeLike, ShapeLike, TensorLike, TensorOrSparse


#: `zeros` and `ones` below this many elements are constants, larger ones are filled when the graph runs.
_SMALL = 1000


# --- constants and placeholders ---


def constant(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    shape: TensorLike | None = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """A constant. With `shape`, a shorter value repeats its last element, unless `verify_shape`.

    Raises TypeError if `value` does not fit `dtype`, ValueError if it has too many elements.
    """
    proto = tensor_util.make_tensor_proto(_plain(value), dtype, shape, verify_shape)
    array = tensor_util.proto_to_tensor(proto, held_once=True)
    array.flags.writeable = False
    attrs = {"value": proto, "dtype": as_dtype(int(proto.dtype))}
    op = get_default_graph()._add_operation(opdefs.get("Const"), (), name or "Const", attrs, constant=array)
    return op.outputs[0]


def _plain(value: Any) -> Any:
    """`value` with the Dimensions in it (of `x.shape[0]`) turned into numbers. Raises TypeError for unknown ones."""
    if isinstance(value, Dimension):
        if value.value is None:
            raise TypeError(
                "Dimension(None) has no value to make a constant of; use tf.shape(x) for a size at run time"
            )
        return value.value
    if isinstance(value, (list, tuple)) and _holds(value, _is_dimension):
        return [_plain(item) for item in value]
    return value


def placeholder(dtype: DTypeLike, shape: ShapeLike | None = None, name: str | None = None) -> Tensor:
    """A tensor that every step feeds; a step that needs it and does not feed it fails."""
    return tensor_op("Placeholder", name, dtype=dtype, shape=as_shape(shape))


def placeholder_with_default(input: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    """A tensor that a step may feed; `input` if it does not."""
    return tensor_op("PlaceholderWithDefault", name, input=input, shape=as_shape(shape))


def fill(dims: TensorLike, value: TensorLike, name: str | None = None) -> Tensor:
    """A tensor of shape `dims`, every element `value`."""
    return tensor_op("Fill", name, dims=dims, value=value)


def _filled(kind: str, value: Any, shape: Any, dtype: Any, name: str | None) -> Tensor:
    wanted = as_dtype(dtype).base_dtype
    with name_scope(name, kind, [shape]) as scope:
        if not isinstance(shape, Tensor) and not holds_tensor(shape):
            known = as_shape(_plain(shape))
            elements = known.num_elements()
            # TensorFlow makes no constant where the shape is a bare number, and seeds not given count the nodes.
            if elements is not None and elements < _SMALL and not isinstance(shape, int):
                np_type: Any = object if wanted == dtypes.string else wanted.as_numpy_dtype
                array = np.full([size or 0 for size in known.as_list()], value, dtype=np_type)
                return constant(array, dtype=wanted, name=scope)
            shape = constant(known.as_list(), dtype=dtypes.int32, name="shape_as_tensor")
        else:
            shape = convert_to_tensor(shape, preferred_dtype=dtypes.int32)
        if shape.shape.ndims == 0:
            shape = reshape(shape, [-1])
        return fill(shape, constant(value, dtype=wanted), name=scope)


def zeros(shape: TensorLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of zeros, False or empty strings."""
    wanted = as_dtype(dtype).base_dtype
    return _filled("zeros", False if wanted.is_bool else b"" if wanted == dtypes.string else 0, shape, dtype, name)


def ones(shape: TensorLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of ones."""
    return _filled("ones", bool(as_dtype(dtype).is_bool) or 1, shape, dtype, name)


def zeros_like(
    tensor: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Zeros in the shape of `tensor`; a constant if the shape is known and `optimize` is set."""
    with name_scope(name, "zeros_like", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        wanted = tensor.dtype.base_dtype if dtype is None else as_dtype(dtype)
        if optimize and tensor.shape.is_fully_defined() and wanted != dtypes.variant:
            return zeros(tensor.shape, wanted, name=scope)
        if wanted != tensor.dtype.base_dtype:
            return zeros(_shape(tensor, optimize=optimize), wanted, name=scope)
        return tensor_op("ZerosLike", scope, x=tensor)


def ones_like(
    tensor: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Ones in the shape of `tensor`."""
    with name_scope(name, "ones_like", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        sizes = _shape(tensor, optimize=optimize)
        result = ones(sizes, tensor.dtype.base_dtype if dtype is None else dtype, name=scope)
        result.set_shape(tensor.shape)
        return result


# --- shapes ---


def _dense_shape(input: Any) -> Any:
    """The dense shape of a sparse tensor; None for anything else."""
    if isinstance(input, Tensor) or not hasattr(input, "dense_shape"):
        return None
    # IndexedSlices have a dense_shape too, but convert to dense tensors.
    return convert_to_tensor(input.dense_shape, dtype=dtypes.int64) if is_sparse(input) else None


def _shape(input: Any, name: str | None = None, optimize: bool = True, out_type: DType = dtypes.int32) -> Tensor:
    with name_scope(name, "Shape", [input]) as scope:
        sparse = _dense_shape(input)
        if sparse is not None:
            return tensor_op("Cast", scope, x=sparse, DstT=out_type)
        tensor = convert_to_tensor(input)
        if optimize and tensor.shape.is_fully_defined():
            return constant(np.array(tensor.shape.as_list(), out_type.as_numpy_dtype), out_type, name=scope)
        return tensor_op("Shape", scope, input=tensor, out_type=out_type)


def shape(input: TensorOrSparse, name: str | None = None, out_type: DTypeLike = dtypes.int32) -> Tensor:
    """The shape of `input` as a vector; a constant if it is known before the graph runs."""
    return _shape(input, name, out_type=as_dtype(out_type))


def shape_n(input: TensorLike, out_type: DTypeLike = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """The shapes of several tensors."""
    result: list[Tensor] = apply_op("ShapeN", name, input=input, out_type=out_type)
    return result


def size(input: TensorOrSparse, name: str | None = None, out_type: DTypeLike = dtypes.int32) -> Tensor:
    """The number of elements."""
    with name_scope(name, "Size", [input]) as scope:
        sparse = _dense_shape(input)
        if sparse is not None:
            sizes = tensor_op("Cast", None, x=sparse, DstT=as_dtype(out_type))
            return tensor_op("Prod", scope, input=sizes, reduction_indices=[0])
        tensor = convert_to_tensor(input)
        elements = tensor.shape.num_elements()
        if elements is not None:
            return constant(elements, as_dtype(out_type), name=scope)
        return tensor_op("Size", scope, input=tensor, out_type=out_type)


def rank(input: TensorOrSparse, name: str | None = None) -> Tensor:
    """The number of dimensions."""
    with name_scope(name, "Rank", [input]) as scope:
        sparse = _dense_shape(input)
        if sparse is not None:
            return tensor_op("Size", scope, input=sparse, out_type=dtypes.int32)
        tensor = convert_to_tensor(input)
        if tensor.shape.ndims is not None:
            return constant(tensor.shape.ndims, dtypes.int32, name=scope)
        return tensor_op("Rank", scope, input=tensor)


def reshape(tensor: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    """The elements of `tensor` in another shape; one size may be -1."""
    return tensor_op("Reshape", name, tensor=tensor, shape=shape)


def expand_dims(
    input: TensorLike, axis: TensorLike | None = None, name: str | None = None, dim: TensorLike | None = None
) -> Tensor:
    """Inserts a dimension of size 1 at `axis` (older name `dim`)."""
    axis = _alias("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return tensor_op("ExpandDims", name, input=input, dim=axis)


def squeeze(input: TensorLike, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Tensor:
    """Removes the dimensions of size 1 at `axis` (older name `squeeze_dims`), or all of them."""
    axis = _alias("axis", axis, "squeeze_dims", squeeze_dims)
    axes = [] if axis is None else [axis] if np.isscalar(axis) else list(axis)
    return tensor_op("Squeeze", name, input=input, squeeze_dims=axes)


def transpose(
    a: TensorLike, perm: TensorLike | None = None, name: str = "transpose", conjugate: bool = False
) -> Tensor:
    """Permutes the dimensions; reverses them if `perm` is None."""
    with name_scope(name, "transpose", [a]) as scope:
        a = convert_to_tensor(a, name="a")
        if perm is None:
            if a.shape.ndims is not None:
                perm = np.arange(a.shape.ndims - 1, -1, -1, dtype=np.int32)
            else:
                count = rank(a)
                perm = (count - 1) - tensor_op("Range", "range", start=0, limit=count, delta=1)
        result: Tensor = apply_op("Transpose", scope, x=a, perm=perm)
        if conjugate and a.dtype.is_complex:
            result = apply_op("Conj", None, input=result)
        return result


def broadcast_to(input: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    """`input` broadcast to `shape`."""
    return tensor_op("BroadcastTo", name, input=input, shape=shape)


def broadcast_static_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The static shape that two tensors broadcast to. Raises ValueError if they cannot."""
    from tenfold_core.opdefs.shape_fns import broadcast_shapes

    return broadcast_shapes(as_shape(shape_x), as_shape(shape_y))


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape vector that two tensors with these shape vectors broadcast to."""
    return tensor_op("BroadcastArgs", None, s0=shape_x, s1=shape_y)


# --- pass-through ---


def identity(input: TensorLike, name: str | None = None) -> Tensor:
    """The same value under another name, and possibly on another device."""
    return tensor_op("Identity", name, input=input)


def identity_n(input: TensorLike, name: str | None = None) -> list[Tensor]:
    """`identity` of a list, of any types."""
    result: list[Tensor] = apply_op("IdentityN", name, input=input)
    return result


def stop_gradient(input: TensorLike, name: str | None = None) -> Tensor:
    """The same value; its gradient is None, as for a constant."""
    return tensor_op("StopGradient", name, input=input)


def prevent_gradient(input: TensorLike, message: str = "", name: str | None = None) -> Tensor:
    """The same value; asking for a gradient through it raises LookupError with `message`."""
    return tensor_op("PreventGradient", name, input=input, message=message)


# --- joining and padding ---


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Joins tensors of one shape along a new dimension. Raises ValueError if `axis` is out of range."""
    if axis == 0 and not isinstance(values, Tensor):
        try:
            # A constant if all parts are known, else a Pack.
            return convert_to_tensor(values, name=name)
        except (TypeError, ValueError):
            pass  # The Pack below raises a clearer error.
    first = convert_to_tensor(values[0]).shape
    if first.ndims is not None and not -(first.ndims + 1) <= axis < first.ndims + 1:
        raise ValueError(f"axis = {axis} not in [{-(first.ndims + 1)}, {first.ndims + 1})")
    return tensor_op("Pack", name, values=list(values), axis=axis)


def concat(values: Any, axis: TensorLike, name: str = "concat") -> Tensor:
    """Joins tensors along the dimension `axis`.

    The argument order of releases before 1.0, `concat(axis, values)`, is accepted too: an axis is not a list.
    """
    if isinstance(values, int) and not isinstance(values, bool) and isinstance(axis, (list, tuple)):
        warn_once("tf.concat(axis, values)", "tf.concat(values, axis)")
        values, axis = axis, values
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        # Like TensorFlow, check the axis even for a single value.
        with name_scope(name):
            convert_to_tensor(axis, name="concat_dim", dtype=dtypes.int32).shape.assert_has_rank(0)
            return identity(values[0], name=name)
    return tensor_op("ConcatV2", name, values=values, axis=axis)


def tile(input: TensorLike, multiples: TensorLike, name: str | None = None) -> Tensor:
    """`input` repeated `multiples[i]` times along dimension i."""
    return tensor_op("Tile", name, input=input, multiples=multiples)


def pad(
    tensor: TensorLike, paddings: TensorLike, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0
) -> Tensor:
    """Adds `paddings[i] = (before, after)` elements around dimension i; mode CONSTANT, REFLECT or SYMMETRIC."""
    match mode.upper():
        case "CONSTANT":
            if isinstance(constant_values, Tensor) or constant_values != 0:
                return tensor_op("PadV2", name, input=tensor, paddings=paddings, constant_values=constant_values)
            return tensor_op("Pad", name, input=tensor, paddings=paddings)
        case "REFLECT" | "SYMMETRIC":
            return tensor_op("MirrorPad", name, input=tensor, paddings=paddings, mode=mode.upper())
    raise ValueError(f"Unknown padding mode: {mode}; CONSTANT, REFLECT or SYMMETRIC would be right")


# --- conversion of Python values ---


def _alias(name: str, value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument that also has an older name. Raises ValueError if both are given."""
    if old_value is None:
        return value
    if value is not None:
        raise ValueError(f"Cannot specify both '{name}' and '{old_name}'")
    return old_value


#: Python types that hold no tensor; checking for them first makes long lists of numbers fast.
_SCALARS = frozenset((int, float, bool, complex, str, bytes, type(None)))


def _is_dimension(value: Any) -> bool:
    return isinstance(value, Dimension)


def _holds(values: Any, test: Callable[[Any], bool]) -> bool:
    """True if an item of a nested list passes `test`."""
    for item in values:
        kind = type(item)
        if kind in _SCALARS:
            continue
        if kind is list or kind is tuple:
            if _holds(item, test):
                return True
        elif test(item):
            return True
    return False


def holds_tensor(value: TensorLike) -> bool:
    """Whether the value is a tensor or a variable, or a list with one in it."""
    return _holds(value, is_dense_tensor_like) if isinstance(value, (list, tuple)) else is_dense_tensor_like(value)


def _first_tensor_dtype(values: Any) -> DType | None:
    for item in values:
        if isinstance(item, (list, tuple)):
            found = _first_tensor_dtype(item)
            if found is not None:
                return found
        elif is_dense_tensor_like(item):
            base: DType = as_dtype(item.dtype).base_dtype
            return base
    return None


def _constant_of(value: Any, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
    return constant(value, dtype, name=name or "Const")


def _shape_constant(
    value: TensorShape, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Any:
    if not value.is_fully_defined():
        raise ValueError(f"Cannot convert a partially known TensorShape to a Tensor: {value}")
    sizes = value.as_list()
    if dtype is None:
        dtype = dtypes.int64 if any(s is not None and s > dtypes.int32.max for s in sizes) else dtypes.int32
    elif dtype not in (dtypes.int32, dtypes.int64):
        raise TypeError(f"Cannot convert a TensorShape to dtype: {dtype}")
    return constant(np.array(sizes, dtype.as_numpy_dtype), dtype, name=name or "shape_as_tensor")


def _dimension_constant(
    value: Dimension, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Any:
    if value.value is None:
        raise ValueError(f"Cannot convert an unknown Dimension to a Tensor: {value}")
    return constant(value.value, dtype or dtypes.int32, name=name or "shape_as_tensor")


def _packed(values: Any, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
    """A list with tensors in it becomes a Pack of its items; where another type is wanted, of their casts."""
    if not holds_tensor(values):
        return NotImplemented
    found = _first_tensor_dtype(values)
    if dtype is not None and found is not None and dtype.base_dtype != found:
        return _pack(_cast(values, dtype.base_dtype), dtype.base_dtype, name or "packed")
    return _pack(values, found, name or "packed")


def _cast(values: Any, dtype: DType) -> Any:
    """The nested lists, with every tensor in them of this type."""
    if isinstance(values, (list, tuple)):
        return [_cast(item, dtype) for item in values]
    if not is_dense_tensor_like(values) or values.dtype.base_dtype == dtype:
        return values
    return tensor_op("Cast", x=values, DstT=dtype)


def _pack(values: Any, dtype: DType | None, name: str) -> Tensor:
    with name_scope(name) as scope:
        items = []
        for index, item in enumerate(values):
            if is_dense_tensor_like(item):
                if dtype is not None and item.dtype.base_dtype != dtype:
                    raise TypeError(
                        f"Cannot convert a list containing a tensor of dtype {item.dtype.base_dtype!r} to {dtype!r} "
                        f"(Tensor is: {item!r})"
                    )
                items.append(convert_to_tensor(item, dtype))
            elif isinstance(item, (list, tuple)) and holds_tensor(item):
                items.append(_pack(item, dtype, str(index)))
            else:
                items.append(constant(item, dtype, name=str(index)))
        return tensor_op("Pack", scope, values=items, axis=0)


register_tensor_conversion_function((list, tuple), _packed, priority=99)
register_tensor_conversion_function(TensorShape, _shape_constant)
register_tensor_conversion_function(Dimension, _dimension_constant)
register_tensor_conversion_function(object, _constant_of, priority=200)


def is_tensor(x: object) -> bool:
    """True for what TensorFlow counts as a tensor: tensors, sparse tensors, indexed slices, variables."""
    return is_dense_tensor_like(x) or isinstance(x, IndexedSlices) or type(x).__name__ == "SparseTensor"
