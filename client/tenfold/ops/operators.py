"""What `x + y`, `x / y`, `x < y`, … build. Registers with graph/operators.py; imported with `tenfold`.

An operand that is not a tensor takes the type of the other. `+` makes AddV2, or Add for strings, as TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tenfold.ops.slicing  # noqa: F401  # registers tensor[...]
from tenfold.graph.conversion import convert_to_tensor, is_dense_tensor_like
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.graph.operators import implement_operator
from tenfold.ops import math
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor


def _add(x: Any, y: Any, name: str | None = None) -> Tensor:
    return tensor_op("Add" if x.dtype.base_dtype == dtypes.string else "AddV2", name, x=x, y=y)


def _binary(function: Callable[..., Tensor], name: str) -> Callable[[Any, Any], Any]:
    def operator(x: Any, y: Any) -> Any:
        # Convert the operand whose method this is first, so that a variable is read outside of the operation's scope.
        if is_dense_tensor_like(x):
            x = convert_to_tensor(x)
            with name_scope(None, name, [x, y]) as scope:
                try:
                    y = convert_to_tensor(y, preferred_dtype=x.dtype.base_dtype, name="y")
                except TypeError:
                    if hasattr(type(y), f"__r{name}__"):
                        return NotImplemented
                    raise
                return function(x, y, name=scope)
        y = convert_to_tensor(y)
        with name_scope(None, name, [x, y]) as scope:
            x = convert_to_tensor(x, dtype=y.dtype.base_dtype, name="x")
            return function(x, y, name=scope)

    operator.__name__ = operator.__qualname__ = f"{name} operator"
    return operator


for _symbol, _function, _name in (
    ("__add__", _add, "add"),
    ("__sub__", math.subtract, "sub"),
    ("__mul__", math.multiply, "mul"),
    ("__truediv__", math.truediv, "truediv"),
    ("__floordiv__", math.floordiv, "floordiv"),
    ("__mod__", math.floormod, "mod"),
    ("__pow__", math.pow, "pow"),
    ("__matmul__", math.matmul, "matmul"),
    ("__and__", math.logical_and, "and"),
    ("__or__", math.logical_or, "or"),
    ("__xor__", math.logical_xor, "xor"),
):
    implement_operator(_symbol, _binary(_function, _name))

implement_operator("__lt__", math.less)
implement_operator("__le__", math.less_equal)
implement_operator("__gt__", math.greater)
implement_operator("__ge__", math.greater_equal)
implement_operator("__neg__", math.negative)
implement_operator("__abs__", math.abs)
implement_operator("__invert__", math.logical_not)
