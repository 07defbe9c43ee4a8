"""`tensorflow.python.ops.inplace_ops`: changes of rows of a tensor. Here each gives a new tensor."""

from __future__ import annotations

from typing import Any

from tenfold.graph import convert_to_tensor
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array


def _changed(op_type: str, x: Any, i: Any, v: Any) -> Any:
    """The rows `i` of `x` changed by `v`; all of them for None, one for a scalar."""
    x = convert_to_tensor(x)
    v = convert_to_tensor(v, x.dtype)
    if i is None:
        flat = apply_op(op_type, None, x=array.reshape(x, [1, -1]), i=[0], v=array.reshape(v, [1, -1]))
        return array.reshape(flat, array.shape(x))
    i = convert_to_tensor(i)
    if i.shape.ndims == 0:
        i, v = array.reshape(i, [1]), array.expand_dims(v, 0)
    return apply_op(op_type, None, x=x, i=i, v=v)


def alias_inplace_update(x: Any, i: Any, v: Any) -> Any:
    """`x[i, :] = v`."""
    return _changed("InplaceUpdate", x, i, v)


def alias_inplace_add(x: Any, i: Any, v: Any) -> Any:
    """`x[i, :] += v`."""
    return _changed("InplaceAdd", x, i, v)


def alias_inplace_sub(x: Any, i: Any, v: Any) -> Any:
    """`x[i, :] -= v`."""
    return _changed("InplaceSub", x, i, v)


inplace_update, inplace_add, inplace_sub = alias_inplace_update, alias_inplace_add, alias_inplace_sub


def empty_like(x: Any, init: bool | None = None) -> Any:
    """A tensor of `x`'s shape and type; of zeros, whether `init` asks for them or not."""
    return array.zeros_like(x)
