"""Values that are known before the graph runs: constants, shapes, and small arithmetic over them.

`known_value` gives a value or None, as static shape inference needs it; `constant_value` knows less, what programs of
TensorFlow count on: a static assertion is raised no earlier. `constant_value_as_shape` gives as much of a shape vector
as is known. Follows tensor_util.py and the constant evaluation of shape_refiner.cc; bounded in size and depth so that
building a graph never computes with data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.tensor_shape import TensorShape, unknown_shape
from tenfold_core.tensor_util import proto_to_tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor

#: Results larger than this are not computed; constants themselves may have any size.
_MAX_ELEMENTS = 1000
_MAX_DEPTH = 32

_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "AddV2": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Neg": np.negative,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "LogicalNot": np.logical_not,
    "Select": np.where,
    "SelectV2": np.where,
}
#: Integer division needs a divisor without zeros.
_DIVISIONS: dict[str, Callable[..., Any]] = {
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
}
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "Prod": np.prod,
    "Sum": np.sum,
    "Max": np.max,
    "Min": np.min,
    "All": np.all,
    "Any": np.any,
}


#: What TensorFlow 1.15's constant_value looks through; into all their inputs, of the latter into none.
_LOOKED_THROUGH = frozenset(("Range", "Cast", "Concat", "ConcatV2", "Pack", "Equal", "NotEqual"))
_LOOKED_AT = frozenset(("Const", "Shape", "Size", "Rank"))


def constant_value(tensor: Tensor, partial: bool = False) -> Any:
    """As `known_value` where TensorFlow 1.15's `tf.contrib.util.constant_value` knows the value, otherwise None."""
    if not hasattr(tensor, "op") or partial or _in_reach(tensor, 0):
        return known_value(tensor, partial)
    return None


def _in_reach(tensor: Tensor, depth: int) -> bool:
    op = tensor.op
    if op.type in _LOOKED_AT:
        return True
    if depth > _MAX_DEPTH:
        return False
    if op.type == "Fill":
        # Its shape comes from shape inference.
        return _in_reach(op.inputs[1], depth + 1)
    if op.type not in _LOOKED_THROUGH or (op.type == "Pack" and op._attrs["axis"] != 0):
        return False
    return all(_in_reach(item, depth + 1) for item in op.inputs)


def known_value(tensor: Tensor, partial: bool = False) -> Any:
    """The value of `tensor` as a read-only array, or None if it is not known before the graph runs.

    With `partial`, a Pack of which only some elements are known gives an object array with None for the others. What
    is not a tensor is its own value.
    """
    if not hasattr(tensor, "op"):
        return tensor
    if partial and tensor.op.type == "Pack":
        parts = [known_value(item) for item in tensor.op.inputs]
        if parts and all(p is None or p.ndim == 0 for p in parts) and any(p is None for p in parts):
            value = np.empty(len(parts), dtype=object)
            value[:] = [None if p is None else p.item() for p in parts]
            return value
    return _value(tensor, 0)


def _value(tensor: Tensor, depth: int) -> Any:
    op = tensor.op
    if op.type == "Const":
        if op.constant is None:
            # An imported constant is decoded at the first use of its value.
            op.constant = proto_to_tensor(op._attrs["value"], held_once=True)
            op.constant.flags.writeable = False
        return op.constant
    # A step may feed this tensor with another value; like TensorFlow, this assumes that none does.
    if depth > _MAX_DEPTH:
        return None
    elements = tensor.shape.num_elements()
    if elements is None and op.type not in ("Range", "Fill"):
        return None
    if elements is not None and elements > _MAX_ELEMENTS:
        return None
    try:
        value = _evaluate(op, tensor.value_index, depth + 1)
    except (ValueError, TypeError, IndexError, OverflowError):
        # The shape function or the kernel raises a clearer error, which names the operation.
        return None
    if value is None or tensor.dtype.is_carried:
        return None
    array = np.asarray(value, dtype=tensor.dtype.base_dtype.as_numpy_dtype)
    array.flags.writeable = False
    return array


def _inputs(op: Operation, depth: int) -> list[Any] | None:
    values = []
    for tensor in op.inputs:
        value = _value(tensor, depth)
        if value is None:
            return None
        values.append(value)
    return values


def _evaluate(op: Operation, index: int, depth: int) -> Any:
    kind = op.type
    if kind in ("Shape", "ShapeN"):
        shape = op.inputs[index].shape
        return np.array(shape.as_list()) if shape.is_fully_defined() else None
    if kind == "Size":
        return op.inputs[0].shape.num_elements()
    if kind == "Rank":
        return op.inputs[0].shape.ndims
    if kind == "StridedSlice":
        return _strided_slice(op, depth)
    if kind not in _EVALUATED:
        return None
    values = _inputs(op, depth)
    if values is None:
        return None
    if kind in _ELEMENTWISE:
        return _ELEMENTWISE[kind](*values)
    if kind in _DIVISIONS:
        return None if not np.all(values[1]) else _DIVISIONS[kind](*values)
    if kind in _REDUCTIONS:
        axis = tuple(int(a) for a in values[1].reshape(-1))
        return _REDUCTIONS[kind](values[0], axis=axis, keepdims=bool(op._attrs["keep_dims"]))
    return _EVALUATED[kind](op, values, index)


def _range(op: Operation, values: list[Any], index: int) -> Any:
    start, limit, delta = (v.item() for v in values)
    if delta == 0 or abs((limit - start) / delta) > _MAX_ELEMENTS:
        return None
    return np.arange(start, limit, delta)


def _fill(op: Operation, values: list[Any], index: int) -> Any:
    return None if np.prod(values[0], dtype=np.int64) > _MAX_ELEMENTS else np.full(values[0], values[1])


def _concat_offset(op: Operation, values: list[Any], index: int) -> Any:
    axis = int(values[0])
    offset = np.zeros_like(values[1])
    offset[axis] = sum(int(shape[axis]) for shape in values[1 : index + 1])
    return offset


_EVALUATED: dict[str, Any] = {
    **dict.fromkeys((*_ELEMENTWISE, *_DIVISIONS, *_REDUCTIONS)),
    "Identity": lambda op, v, i: v[0],
    "StopGradient": lambda op, v, i: v[0],
    "Cast": lambda op, v, i: v[0].astype(op._attrs["DstT"].as_numpy_dtype),
    "Pack": lambda op, v, i: np.stack(v, axis=op._attrs["axis"]),
    "ConcatV2": lambda op, v, i: np.concatenate(v[:-1], axis=int(v[-1])),
    "Concat": lambda op, v, i: np.concatenate(v[1:], axis=int(v[0])),
    "ConcatOffset": _concat_offset,
    "Range": _range,
    "Fill": _fill,
    "Reshape": lambda op, v, i: v[0].reshape(v[1]),
    "ExpandDims": lambda op, v, i: np.expand_dims(v[0], int(v[1])),
    "Squeeze": lambda op, v, i: np.squeeze(v[0], axis=tuple(op._attrs["squeeze_dims"]) or None),
    "GatherV2": lambda op, v, i: np.take(v[0], v[1], axis=int(v[2])) if not op._attrs.get("batch_dims") else None,
    "Gather": lambda op, v, i: np.take(v[0], v[1], axis=0),
    "Transpose": lambda op, v, i: np.transpose(v[0], v[1]),
    "ZerosLike": lambda op, v, i: np.zeros_like(v[0]),
}


def slice_index(op: Operation, begin: Any, end: Any, strides: Any) -> tuple[Any, ...]:
    """The NumPy index that a StridedSlice with these vectors means, masks applied."""
    a = op._attrs
    index: list[Any] = []
    for i in range(len(begin)):
        bit = 1 << i
        if a["ellipsis_mask"] & bit:
            index.append(Ellipsis)
        elif a["new_axis_mask"] & bit:
            index.append(None)
        elif a["shrink_axis_mask"] & bit:
            index.append(int(begin[i]))
        else:
            index.append(
                slice(
                    None if a["begin_mask"] & bit else int(begin[i]),
                    None if a["end_mask"] & bit else int(end[i]),
                    int(strides[i]),
                )
            )
    return tuple(index)


def _strided_slice(op: Operation, depth: int) -> Any:
    vectors = [_value(tensor, depth) for tensor in op.inputs[1:4]]
    if any(v is None for v in vectors):
        return None
    index = slice_index(op, *vectors)
    source = op.inputs[0]
    value = _value(source, depth)
    if value is not None:
        return value[index]
    # One known dimension of a shape that is not known as a whole: `tf.shape(x)[1]`.
    if source.dtype.is_integer and source.shape.ndims == 1:
        known = _partial_shape(source, depth)
        if known.ndims is not None:
            picked = np.array(known.as_list(), dtype=object)[index]
            if not any(p is None for p in np.ravel(picked)):
                return picked.astype(np.int64) if isinstance(picked, np.ndarray) else picked
    return None


def constant_value_as_shape(tensor: Tensor) -> TensorShape:
    """What is known of the shape that the vector `tensor` holds; -1 in it means an unknown dimension.

    Raises ValueError if `tensor` is neither a vector nor the scalar -1 (a wholly unknown shape).
    """
    if tensor.shape.ndims == 0:
        value = known_value(tensor)
        if value is None or value != -1:
            raise ValueError(
                "Received a scalar with unknown value as shape; require a statically known scalar "
                f"with value '-1' to describe an unknown shape, or a vector; got {tensor!r}"
            )
        return unknown_shape()
    return _partial_shape(tensor, 0)


def _partial_shape(tensor: Tensor, depth: int) -> TensorShape:
    op = tensor.op
    value = _value(tensor, depth)
    if value is not None:
        return TensorShape([None if d < 0 else int(d) for d in value.reshape(-1)])
    ndims = tensor.shape.as_list()[0] if tensor.shape.ndims == 1 else None
    if depth > _MAX_DEPTH:
        return unknown_shape(ndims)
    depth += 1
    if op.type == "Shape":
        return op.inputs[0].shape
    if op.type == "ShapeN":
        return op.inputs[tensor.value_index].shape
    if op.type in ("Identity", "Cast"):
        return _partial_shape(op.inputs[0], depth) if op.inputs[0].dtype.is_integer else unknown_shape(ndims)
    if op.type == "Pack" and op._attrs["axis"] == 0:
        parts = [_value(item, depth) for item in op.inputs]
        return TensorShape([None if p is None or p.ndim != 0 or p < 0 else int(p) for p in parts])
    if op.type in ("Concat", "ConcatV2"):
        pieces = op.inputs[1:] if op.type == "Concat" else op.inputs[:-1]
        result = TensorShape([])
        for piece in pieces:
            result = result.concatenate(_partial_shape(piece, depth))
        return result
    if op.type == "StridedSlice":
        vectors = [_value(item, depth) for item in op.inputs[1:4]]
        if all(v is not None for v in vectors):
            known = _partial_shape(op.inputs[0], depth)
            if known.ndims is not None:
                picked = np.array([*known.as_list(), None], dtype=object)[:-1][slice_index(op, *vectors)]
                if isinstance(picked, np.ndarray) and picked.ndim == 1:
                    return TensorShape(picked.tolist())
    return unknown_shape(ndims)
