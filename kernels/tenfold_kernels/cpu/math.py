"""Elementwise arithmetic, comparison, logic, selection and Cast. See also math_reduction.py and math_matmul.py.

Binary ops broadcast as NumPy does. Integer division by zero is an error, as in TensorFlow's cwise_ops.h; everything
else follows IEEE. Outputs are fresh arrays of the output type, in the memory order of the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_kernels.arrays import (
    Array,
    as_array,
    contiguous,
    incompatible,
    invalid,
    output_type,
    returning_array,
    shape_text,
    truncated_quotient,
)
from tenfold_kernels.cpu._compiled import activations
from tenfold_kernels.cpu._elementwise import of_singles, run
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import ANY, COMPILED, COMPLEX, FLOATING, INTEGER, NUMERIC, REAL, STRING, TENSOR

Binary = Callable[[Array, Array], Any]


def _binary(function: Binary) -> Compute:
    if isinstance(function, np.ufunc):
        ufunc = returning_array(function)

        def compute_ufunc(x: Array, y: Array) -> Any:
            try:
                return ufunc(x, y)
            except ValueError:
                raise incompatible(x, y) from None

        return compute_ufunc

    def compute(x: Array, y: Array) -> Array:
        try:
            z = function(x, y)
        except ValueError:
            raise incompatible(x, y) from None
        return z if type(z) is np.ndarray else np.asarray(z)

    return compute


def _unary(function: Callable[[Array], Any]) -> Compute:
    if isinstance(function, np.ufunc):
        return returning_array(function)

    def compute(x: Array) -> Array:
        y = function(x)
        return y if type(y) is np.ndarray else np.asarray(y)

    return compute


def _register_binary(function: Binary, *ops: str, **types: Any) -> None:
    kernel(*ops, **types)(lambda node: _binary(function))


def _register_unary(function: Callable[[Array], Any], *ops: str, **types: Any) -> None:
    kernel(*ops, **types)(lambda node: _unary(function))


def _nonzero_divisor(y: Array) -> None:
    if not (y.all() if y.ndim else y.item()):
        raise invalid("Integer division by zero")


def _floor_div_int(x: Array, y: Array) -> Any:
    _nonzero_divisor(y)
    return np.floor_divide(x, y)


def _floor_mod_int(x: Array, y: Array) -> Any:
    _nonzero_divisor(y)
    if not y.ndim:
        # NumPy multiplies where the divisor is one number, but not for a remainder: that takes ten times as long.
        return x - np.floor_divide(x, y) * y
    return np.mod(x, y)


def _truncate_mod_int(x: Array, y: Array) -> Any:
    _nonzero_divisor(y)
    return np.fmod(x, y)


def _truncate_div_int(x: Array, y: Array) -> Any:
    _nonzero_divisor(y)
    return truncated_quotient(x, y)


def _truncate_div_unsigned_safe(x: Array, y: Array) -> Any:
    return _truncate_div_int(x, y) if x.dtype.kind == "i" else _floor_div_int(x, y)


def _div_no_nan(x: Array, y: Array) -> Any:
    return np.where(y == 0, x.dtype.type(0), np.true_divide(x, y))


def _mul_no_nan(x: Array, y: Array) -> Any:
    return np.where(y == 0, x.dtype.type(0), np.multiply(x, y))


def _xlogy(x: Array, y: Array) -> Any:
    return np.where(x == 0, x.dtype.type(0), x * np.log(y))


def _power(x: Array, y: Array) -> Any:
    if not y.ndim and y.dtype.kind == "f":
        # what programs write most: a square, and the cube of a GELU
        if y == 2:
            return np.multiply(x, x)
        if y == 3:
            return np.multiply(np.multiply(x, x), x)
    return np.power(x, y)


def _power_int(x: Array, y: Array) -> Any:
    if y.dtype.kind == "i" and (y < 0).any():
        raise invalid("Integers to negative integer powers are not allowed")
    return np.power(x, y)


def _squared_difference(x: Array, y: Array) -> Any:
    d = np.subtract(x, y)
    return np.multiply(d, np.conj(d)) if d.dtype.kind == "c" else np.multiply(d, d)


def _add_string(x: Array, y: Array) -> Any:
    # np.add on object arrays concatenates bytes element by element.
    return as_array(np.add(x, y))


_register_binary(np.add, "Add", T=NUMERIC)
_register_binary(np.add, "AddV2", T=NUMERIC)
_register_binary(_add_string, "Add", T=STRING)
_register_binary(np.subtract, "Sub", T=NUMERIC)
_register_binary(np.multiply, "Mul", T=NUMERIC)
_register_binary(np.true_divide, "RealDiv", "Div", T=FLOATING | COMPLEX)
_register_binary(_truncate_div_unsigned_safe, "Div", "TruncateDiv", T=INTEGER)
_register_binary(lambda x, y: np.trunc(np.true_divide(x, y)), "TruncateDiv", T=FLOATING)
_register_binary(_floor_div_int, "FloorDiv", T=INTEGER)
_register_binary(lambda x, y: np.floor(np.true_divide(x, y)), "FloorDiv", T=FLOATING)
_register_binary(_floor_mod_int, "FloorMod", T=INTEGER)
_register_binary(np.mod, "FloorMod", T=FLOATING)
_register_binary(_truncate_mod_int, "Mod", "TruncateMod", T=INTEGER)
_register_binary(np.fmod, "Mod", "TruncateMod", T=FLOATING)
_register_binary(np.maximum, "Maximum", T=REAL)
_register_binary(np.minimum, "Minimum", T=REAL)
_register_binary(_power, "Pow", T=FLOATING | COMPLEX)
_register_binary(_power_int, "Pow", T=INTEGER)
_register_binary(_squared_difference, "SquaredDifference", T=NUMERIC)
_register_binary(_div_no_nan, "DivNoNan", T=FLOATING | COMPLEX)
_register_binary(_mul_no_nan, "MulNoNan", T=FLOATING | COMPLEX)
_register_binary(_xlogy, "Xlogy", T=FLOATING | COMPLEX)
_register_binary(lambda x, y: np.where(x == 0, x.dtype.type(0), x / y), "Xdivy", T=FLOATING | COMPLEX)
_register_binary(np.arctan2, "Atan2", T=FLOATING)
_register_binary(np.nextafter, "NextAfter", T=FLOATING)
_register_binary(np.less, "Less", T=REAL)
_register_binary(np.less_equal, "LessEqual", T=REAL)
_register_binary(np.greater, "Greater", T=REAL)
_register_binary(np.greater_equal, "GreaterEqual", T=REAL)
_register_binary(np.logical_and, "LogicalAnd")
_register_binary(np.logical_or, "LogicalOr")


@kernel("Complex", T=FLOATING)
def build_complex(node: KernelNode) -> Compute:
    dtype = output_type(node)

    def pair(real: Array, imag: Array) -> Array:
        out = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
        # not a sum: 1j times infinity has a part that is nan
        out.real, out.imag = real, imag
        return out

    return _binary(pair)


@kernel("ApproximateEqual", T=NUMERIC)
def build_approximate_equal(node: KernelNode) -> Compute:
    tolerance = node.attrs.get("tolerance", 1e-5)
    return _binary(lambda x, y: np.abs(x - y) < tolerance)


@kernel("Equal", "NotEqual", T=TENSOR)
def build_equal(node: KernelNode) -> Compute:
    """With incompatible_shape_error=False, shapes that do not broadcast are unequal instead of wrong."""
    function = np.equal if node.op == "Equal" else np.not_equal
    if node.attrs.get("incompatible_shape_error", True):
        return _binary(lambda x, y: function(x, y, dtype=None if x.dtype != object else np.bool_))
    answer = node.op == "NotEqual"

    def compute(x: Array, y: Array) -> Array:
        try:
            return as_array(function(x, y))
        except ValueError:
            return np.array(answer)

    return compute


def sigmoid(x: Array) -> Array:
    y = np.empty_like(x)
    activations.sigmoid_in_numpy(x, y)
    return y


def _sign(x: Array) -> Any:
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.divide(x, size, out=np.zeros_like(x), where=size != 0)
    return np.sign(x)


def _scalar_function(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """An elementwise function that NumPy does not have, by the C library's one."""

    def compute(x: Array) -> Array:
        flat = [function(v) for v in x.ravel().tolist()]
        return np.array(flat, dtype=x.dtype).reshape(x.shape)

    return compute


def _lgamma(v: float) -> float:
    if math.isinf(v) or (v <= 0 and v == math.floor(v)):
        return math.inf
    return math.lgamma(v)


def _reciprocal(x: Array) -> Any:
    if x.dtype.kind in "iu":
        return _truncate_div_unsigned_safe(np.ones_like(x), x)
    return np.reciprocal(x)


_register_unary(np.negative, "Neg", T=NUMERIC)
_register_unary(np.abs, "Abs", T=REAL)
_register_unary(_sign, "Sign", T=NUMERIC)
_register_unary(np.square, "Square", T=NUMERIC)
_register_unary(np.sqrt, "Sqrt", T=FLOATING | COMPLEX)
_register_unary(lambda x: np.reciprocal(np.sqrt(x)), "Rsqrt", T=FLOATING | COMPLEX)
_register_unary(np.exp, "Exp", T=FLOATING | COMPLEX)
_register_unary(np.expm1, "Expm1", T=FLOATING | COMPLEX)
_register_unary(np.log, "Log", T=FLOATING | COMPLEX)
_register_unary(np.log1p, "Log1p", T=FLOATING | COMPLEX)
_register_unary(_reciprocal, "Reciprocal", "Inv", T=NUMERIC)
_register_unary(np.floor, "Floor", T=FLOATING)
_register_unary(np.ceil, "Ceil", T=FLOATING)
# Halves go to the even neighbour, in TensorFlow as in NumPy.
_register_unary(np.rint, "Round", "Rint", T=FLOATING)
_register_unary(lambda x: x.copy(), "Round", T=INTEGER)
_SINGLE = {dtypes.float32}
_register_unary(sigmoid, "Sigmoid", T=(FLOATING | COMPLEX) - _SINGLE)
_register_unary(of_singles(activations.sigmoid_of_singles, sigmoid), "Sigmoid", T=_SINGLE)
_register_unary(np.tanh, "Tanh", T=(FLOATING | COMPLEX) - _SINGLE)
_register_unary(of_singles(activations.tanh_of_singles, returning_array(np.tanh)), "Tanh", T=_SINGLE)
_register_unary(np.sin, "Sin", T=FLOATING | COMPLEX)
_register_unary(np.cos, "Cos", T=FLOATING | COMPLEX)
_register_unary(np.tan, "Tan", T=FLOATING | COMPLEX)
_register_unary(np.arcsin, "Asin", T=FLOATING | COMPLEX)
_register_unary(np.arccos, "Acos", T=FLOATING | COMPLEX)
_register_unary(np.arctan, "Atan", T=FLOATING | COMPLEX)
_register_unary(np.arcsinh, "Asinh", T=FLOATING | COMPLEX)
_register_unary(np.arccosh, "Acosh", T=FLOATING | COMPLEX)
_register_unary(np.arctanh, "Atanh", T=FLOATING | COMPLEX)
_register_unary(np.sinh, "Sinh", T=FLOATING | COMPLEX)
_register_unary(np.cosh, "Cosh", T=FLOATING | COMPLEX)
_register_unary(_scalar_function(math.erf), "Erf", T=FLOATING)
_register_unary(_scalar_function(math.erfc), "Erfc", T=FLOATING)
_register_unary(_scalar_function(_lgamma), "Lgamma", T=FLOATING)
_register_unary(np.isfinite, "IsFinite", T=FLOATING)
_register_unary(np.isnan, "IsNan", T=FLOATING)
_register_unary(np.isinf, "IsInf", T=FLOATING)
_register_unary(np.logical_not, "LogicalNot")
_register_unary(np.conj, "Conj", T=COMPLEX)
for _whole, _part in ((dtypes.complex64, dtypes.float32), (dtypes.complex128, dtypes.float64)):
    _register_unary(np.abs, "ComplexAbs", T=(_whole,), Tout=(_part,))
    _register_unary(np.real, "Real", T=(_whole,), Tout=(_part,), views=True)
    _register_unary(np.imag, "Imag", T=(_whole,), Tout=(_part,), views=True)
    _register_unary(np.angle, "Angle", T=(_whole,), Tout=(_part,))


def shaped_as(y: Any, dy: Any) -> Any:
    """`dy` in the shape of `y`: [1] may stand for a scalar. Raises InvalidArgumentError for another size."""
    if y.shape == dy.shape:
        return dy
    if y.size != dy.size:
        raise invalid(f"The two arguments to a cwise op must have same number of elements, got {y.size} and {dy.size}")
    return dy.reshape(y.shape)


def _gradient(function: Binary) -> Compute:
    def compute(y: Array, dy: Array) -> Array:
        return as_array(function(y, shaped_as(y, dy)))

    return compute


def _register_gradient(function: Binary, op: str) -> None:
    """A gradient helper (y, dy): as many elements in both, no broadcasting in TensorFlow's kernels."""
    kernel(op, T=FLOATING | COMPLEX)(lambda node: _gradient(function))


def _of_conjugate(function: Binary) -> Binary:
    """`function` of y; of a complex y conjugated, and zero where nothing flows back: no nan of 0 times infinity."""

    def gradient(y: Array, dy: Array) -> Array:
        is_complex = y.dtype.kind == "c"
        result = as_array(function(np.conj(y) if is_complex else y, dy))
        # Zero times anything is zero already but at a pole; the smallest element says whether there is one.
        if is_complex or (result.size and np.isnan(result.min())):
            np.copyto(result, 0, where=dy == 0)
        return result

    return gradient


_register_gradient(lambda y, dy: dy * (1 - y * y), "TanhGrad")


def _sqrt_grad(y: Array, dy: Array) -> Array:
    result = as_array(np.multiply(dy, y.dtype.type(0.5)))
    result /= y
    return result


def _rsqrt_grad(y: Array, dy: Array) -> Array:
    result = as_array(np.multiply(dy, y))
    result *= y.dtype.type(-0.5)
    result *= y * y
    return result


def _reciprocal_grad(y: Array, dy: Array) -> Array:
    result = as_array(np.multiply(y, y))
    np.negative(result, out=result)
    result *= dy
    return result


_register_gradient(_of_conjugate(_sqrt_grad), "SqrtGrad")
_register_gradient(_of_conjugate(_rsqrt_grad), "RsqrtGrad")
_register_gradient(_of_conjugate(_reciprocal_grad), "ReciprocalGrad")
_register_gradient(_of_conjugate(_reciprocal_grad), "InvGrad")


@kernel("SigmoidGrad", T=COMPILED)
def build_sigmoid_grad(node: KernelNode) -> Compute:
    dtype = output_type(node)
    grad, one = activations.sigmoid_grad(dtype), dtype(1)

    def compute(y: Array, dy: Array) -> Array:
        y, dy = contiguous(y), contiguous(shaped_as(y, dy))
        out = np.empty_like(y)
        run(grad, (y.reshape(-1), dy.reshape(-1), out.reshape(-1)), one)
        return out

    return compute


@kernel("SigmoidGrad", T=(FLOATING | COMPLEX) - COMPILED)
def build_sigmoid_grad_other(node: KernelNode) -> Compute:
    return _gradient(lambda y, dy: dy * y * (1 - y))


@kernel("Cast", SrcT=ANY, DstT=ANY, views=True)
def build_cast(node: KernelNode) -> Compute:
    """Truncates floats towards zero; a bool is (x != 0); complex to real keeps the real part. Same type: no copy."""
    source, target = node.input_types[0].base_dtype, node.output_types[0]
    if source is target:
        return lambda x: x
    if "string" in (source.name, target.name) or "resource" in (source.name, target.name):
        raise errors.unimplemented(f"Cast {source.op_name} to {target.op_name} is not supported")
    np_target = output_type(node)
    if source.is_complex and not target.is_complex:
        return lambda x: as_array(x.real != 0) if target.is_bool else x.real.astype(np_target)
    return lambda x: x.astype(np_target)


@kernel("Select", T=ANY, views=True)
def build_select(node: KernelNode) -> Compute:
    """t and e of one shape; the condition has it too, or is a scalar, or a vector that picks whole rows."""

    def compute(condition: Array, t: Array, e: Array) -> Array:
        if t.shape != e.shape:
            raise invalid(
                f"'then' and 'else' must have the same size. but received: {list(t.shape)} vs. {list(e.shape)}"
            )
        if condition.ndim == 0:
            return t if condition else e
        if condition.shape != t.shape:
            if condition.ndim != 1 or t.ndim == 0 or condition.shape[0] != t.shape[0]:
                raise invalid(
                    "Number of batches of 'then' must match size of 'cond', but saw: "
                    f"{t.shape[0] if t.ndim else 1} vs. {condition.size}"
                    if condition.ndim == 1 and t.ndim
                    else f"'cond' must be a vector, but saw shape: {list(condition.shape)}"
                )
            condition = condition.reshape((-1,) + (1,) * (t.ndim - 1))
        return as_array(np.where(condition, t, e))

    return compute


@kernel("SelectV2", T=ANY)
def build_select_v2(node: KernelNode) -> Compute:
    """All three broadcast together."""

    def compute(condition: Array, t: Array, e: Array) -> Array:
        try:
            return as_array(np.where(condition, t, e))
        except ValueError:
            raise invalid(
                f"condition {shape_text(condition.shape)}, then {shape_text(t.shape)}, and else {shape_text(e.shape)} "
                "must be broadcastable"
            ) from None

    return compute
