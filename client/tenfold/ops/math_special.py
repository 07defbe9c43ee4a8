"""Functions that are composed of others: quotients without NaN, polynomials, logarithms of sums and of beta.

Functions that are exactly one operation are in ops/generated_ops.py. Node names follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array, math

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(1 / (1 + exp(-x))), without overflow."""
    with name_scope(name, "LogSigmoid", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return math.negative(tensor_op("Softplus", None, features=math.negative(x)), name=scope)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return math.div_no_nan(array.constant(1, x.dtype.base_dtype, name="one"), x, name=scope)


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x * y, and 0 where y is 0, even if x is infinite or NaN."""
    with name_scope(name, "multiply_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        return tensor_op("MulNoNan", scope, x=x, y=y)


def polyval(coeffs: Any, x: Any, name: str | None = None) -> Tensor:
    """The polynomial with these coefficients, the highest first, at x."""
    with name_scope(name, "polyval", [x, *coeffs] if isinstance(coeffs, list) else [x]):
        if not isinstance(coeffs, list):
            raise ValueError(f"Argument coeffs must be list type found {type(coeffs)}.")
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            return array.zeros_like(x, name=name)
        terms = [convert_to_tensor(c, name=f"p{i}") for i, c in enumerate(coeffs)]
        total = terms[0]
        for term in terms[1:]:
            total = term + total * x
        return total


def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The running log(sum(exp(x))) along `axis`."""
    with name_scope(name, "CumulativeLogsumexp", [x]) as scope:
        return tensor_op("CumulativeLogsumexp", scope, x=x, axis=axis, exclusive=exclusive, reverse=reverse)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the multivariate beta function along the last dimension."""
    with name_scope(name, "lbeta", [x]):
        x = convert_to_tensor(x, name="x")
        logs = math.reduce_sum(math.lgamma(x), axis=[-1])
        return math.subtract(logs, math.lgamma(math.reduce_sum(x, axis=[-1])))


def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0."""
    return math.div_no_nan(x, y, name)


def bessel_i0(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 0; `bessel_i0e` does not overflow."""
    with name_scope(name, "bessel_i0", [x]):
        return math.exp(math.abs(x)) * tensor_op("BesselI0e", None, x=x)


def bessel_i1(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 1; `bessel_i1e` does not overflow."""
    with name_scope(name, "bessel_i1", [x]):
        return math.exp(math.abs(x)) * tensor_op("BesselI1e", None, x=x)
