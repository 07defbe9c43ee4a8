"""Arithmetic element by element: one function an operation, `tf.add`, `tf.exp`, `tf.less`, ….

Binary functions broadcast like NumPy and require both operands of one type. `name` is the name of the operation.
Exported by ops/math.py, which holds the longer functions.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.graph.sparse_tensor import SparseTensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.argument_types import TensorLike
    from tenfold.graph.tensor import Tensor

Function = TypeVar("Function", bound="Callable[..., Tensor]")

# --- one operand ---


def _also_sparse(function: Function) -> Function:
    """`function`, which keeps zero, of a SparseTensor is that of its elements, at their places."""

    @functools.wraps(function)
    def of_either(x: Any, name: str | None = None) -> Any:
        if isinstance(x, SparseTensor):
            return SparseTensor(x.indices, function(x.values, name), x.dense_shape)
        return function(x, name)

    return cast("Function", of_either)


@_also_sparse
def abs(x: Any, name: str | None = None) -> Tensor:
    """The absolute value; of complex numbers a real one."""
    with name_scope(name, "Abs", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            return tensor_op("ComplexAbs", scope, x=x, Tout=x.dtype.real_dtype)
        return tensor_op("Abs", scope, x=x)


@_also_sparse
def negative(x: Any, name: str | None = None) -> Tensor:
    """The value with its sign changed."""
    return tensor_op("Neg", name, x=x)


@_also_sparse
def sign(x: Any, name: str | None = None) -> Tensor:
    """-1, 0 or 1."""
    return tensor_op("Sign", name, x=x)


@_also_sparse
def square(x: Any, name: str | None = None) -> Tensor:
    """x times x."""
    return tensor_op("Square", name, x=x)


@_also_sparse
def sqrt(x: Any, name: str | None = None) -> Tensor:
    """The square root."""
    return tensor_op("Sqrt", name, x=x)


def rsqrt(x: TensorLike, name: str | None = None) -> Tensor:
    """One over the square root."""
    return tensor_op("Rsqrt", name, x=x)


def exp(x: TensorLike, name: str | None = None) -> Tensor:
    """e to the power x."""
    return tensor_op("Exp", name, x=x)


def expm1(x: TensorLike, name: str | None = None) -> Tensor:
    """exp(x) - 1, exact for small x."""
    return tensor_op("Expm1", name, x=x)


def log(x: TensorLike, name: str | None = None) -> Tensor:
    """The natural logarithm."""
    return tensor_op("Log", name, x=x)


def log1p(x: TensorLike, name: str | None = None) -> Tensor:
    """log(1 + x), exact for small x."""
    return tensor_op("Log1p", name, x=x)


def sin(x: TensorLike, name: str | None = None) -> Tensor:
    """The sine."""
    return tensor_op("Sin", name, x=x)


def cos(x: TensorLike, name: str | None = None) -> Tensor:
    """The cosine."""
    return tensor_op("Cos", name, x=x)


def tan(x: TensorLike, name: str | None = None) -> Tensor:
    """The tangent."""
    return tensor_op("Tan", name, x=x)


def asin(x: TensorLike, name: str | None = None) -> Tensor:
    """The arc sine."""
    return tensor_op("Asin", name, x=x)


def acos(x: TensorLike, name: str | None = None) -> Tensor:
    """The arc cosine."""
    return tensor_op("Acos", name, x=x)


def atan(x: TensorLike, name: str | None = None) -> Tensor:
    """The arc tangent."""
    return tensor_op("Atan", name, x=x)


def sinh(x: TensorLike, name: str | None = None) -> Tensor:
    """The hyperbolic sine."""
    return tensor_op("Sinh", name, x=x)


def cosh(x: TensorLike, name: str | None = None) -> Tensor:
    """The hyperbolic cosine."""
    return tensor_op("Cosh", name, x=x)


@_also_sparse
def tanh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic tangent."""
    return tensor_op("Tanh", name, x=x)


def asinh(x: TensorLike, name: str | None = None) -> Tensor:
    """The inverse hyperbolic sine."""
    return tensor_op("Asinh", name, x=x)


def acosh(x: TensorLike, name: str | None = None) -> Tensor:
    """The inverse hyperbolic cosine."""
    return tensor_op("Acosh", name, x=x)


def atanh(x: TensorLike, name: str | None = None) -> Tensor:
    """The inverse hyperbolic tangent."""
    return tensor_op("Atanh", name, x=x)


def sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """1 / (1 + exp(-x))."""
    return tensor_op("Sigmoid", name, x=x)


@_also_sparse
def erf(x: Any, name: str | None = None) -> Tensor:
    """The error function."""
    return tensor_op("Erf", name, x=x)


def erfc(x: TensorLike, name: str | None = None) -> Tensor:
    """1 - erf(x)."""
    return tensor_op("Erfc", name, x=x)


def lgamma(x: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""
    return tensor_op("Lgamma", name, x=x)


def digamma(x: TensorLike, name: str | None = None) -> Tensor:
    """The derivative of lgamma."""
    return tensor_op("Digamma", name, x=x)


def floor(x: TensorLike, name: str | None = None) -> Tensor:
    """The largest integer not above x."""
    return tensor_op("Floor", name, x=x)


def ceil(x: TensorLike, name: str | None = None) -> Tensor:
    """The smallest integer not below x."""
    return tensor_op("Ceil", name, x=x)


def rint(x: TensorLike, name: str | None = None) -> Tensor:
    """The nearest integer, ties to even."""
    return tensor_op("Rint", name, x=x)


def round(x: TensorLike, name: str | None = None) -> Tensor:
    """The nearest integer, ties to even."""
    return tensor_op("Round", name, x=x)


def reciprocal(x: TensorLike, name: str | None = None) -> Tensor:
    """1 / x."""
    return tensor_op("Reciprocal", name, x=x)


def is_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """True where x is not a number."""
    return tensor_op("IsNan", name, x=x)


def is_finite(x: TensorLike, name: str | None = None) -> Tensor:
    """True where x is finite."""
    return tensor_op("IsFinite", name, x=x)


def is_inf(x: TensorLike, name: str | None = None) -> Tensor:
    """True where x is infinite."""
    return tensor_op("IsInf", name, x=x)


def logical_not(x: TensorLike, name: str | None = None) -> Tensor:
    """True where x is false."""
    return tensor_op("LogicalNot", name, x=x)


# --- two operands ---


def add(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x + y."""
    return tensor_op("Add", name, x=x, y=y)


def subtract(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x - y."""
    return tensor_op("Sub", name, x=x, y=y)


def multiply(x: TensorLike, y: Any, name: str | None = None) -> Tensor:
    """x * y."""
    return tensor_op("Mul", name, x=x, y=y)


def realdiv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y for floating types."""
    return tensor_op("RealDiv", name, x=x, y=y)


def floordiv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y rounded towards minus infinity."""
    return tensor_op("FloorDiv", name, x=x, y=y)


def floormod(x: TensorLike, y: Any, name: str | None = None) -> Tensor:
    """The remainder of floordiv; its sign is that of y."""
    return tensor_op("FloorMod", name, x=x, y=y)


def truncatediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y rounded towards zero."""
    return tensor_op("TruncateDiv", name, x=x, y=y)


def truncatemod(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The remainder of truncatediv."""
    return tensor_op("TruncateMod", name, x=x, y=y)


def div_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0."""
    return tensor_op("DivNoNan", name, x=x, y=y)


def pow(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x to the power y."""
    return tensor_op("Pow", name, x=x, y=y)


def maximum(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The larger of x and y."""
    return tensor_op("Maximum", name, x=x, y=y)


def minimum(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """The smaller of x and y."""
    return tensor_op("Minimum", name, x=x, y=y)


def squared_difference(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """(x - y) squared."""
    return tensor_op("SquaredDifference", name, x=x, y=y)


def atan2(y: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The angle of the point (x, y); `y` comes first."""
    return tensor_op("Atan2", name, y=y, x=x)


def equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """True where x equals y."""
    return tensor_op("Equal", name, x=x, y=y)


def not_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """True where x differs from y."""
    return tensor_op("NotEqual", name, x=x, y=y)


def less(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """True where x < y."""
    return tensor_op("Less", name, x=x, y=y)


def less_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """True where x <= y."""
    return tensor_op("LessEqual", name, x=x, y=y)


def greater(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """True where x > y."""
    return tensor_op("Greater", name, x=x, y=y)


def greater_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """True where x >= y."""
    return tensor_op("GreaterEqual", name, x=x, y=y)


def logical_and(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """True where both are true."""
    return tensor_op("LogicalAnd", name, x=x, y=y)


def logical_or(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """True where one or both are true."""
    return tensor_op("LogicalOr", name, x=x, y=y)


def xlogy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x * log(y), and 0 where x is 0."""
    return tensor_op("Xlogy", name, x=x, y=y)
