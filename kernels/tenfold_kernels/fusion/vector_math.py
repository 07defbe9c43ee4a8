"""exp, log, tanh and their kin for float32 as plain arithmetic, which LLVM vectorises inside a generated loop.

The C library's functions take one number at a time, and NumPy's vectorised ones need a pass over memory for each op.
These have no branches, only selections, and are within 4 units in the last place of NumPy's, NaN, infinities, zeros
and denormal numbers included (tests/kernels/test_vector_math.py). The coefficients were fitted for this file by
reweighted least squares on Chebyshev nodes. Imports Numba: only generated modules lead here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_F32, _I32 = ir.FloatType(), ir.IntType(32)
#: (eʳ - 1 - r) / r² for |r| ≤ ln 2 / 2, to 3e-9 of eʳ.
_EXP = (0.4999999403953552, 0.1666651964187622, 0.04166839271783829, 0.008368780836462975, 0.001381446490995586)
#: (tanh x - x) / x³ by x², for |x| ≤ 0.625, to 5e-9.
_TANH = (-0.3333328068256378, 0.13331441581249237, -0.05373971164226532, 0.020639078691601753, -0.005704978480935097)
#: (log(1 + f) - f + f²/2) / f³ for 1 + f from √½ to √2, to 8e-10.
_LOG = (
    *(0.3333331346511841, -0.25000008940696716, 0.2000211924314499, -0.1666799634695053, 0.14219550788402557),
    *(-0.12405591458082199, 0.11888174712657928, -0.11675640940666199, 0.06746601313352585),
)
#: ln 2 as a number of 9 bits, whose products with small integers are exact, and the rest.
_LN2_HIGH, _LN2_LOW = 0.693359375, -0.00021219444170128554
_LOG2_E, _SQRT_2 = 1.4426950408889634, 1.4142135381698608
#: Added to a float below 2²², it leaves the nearest integer in the last bits.
_ROUNDER, _ROUNDER_BITS = 12582912.0, 0x4B400000
_SIGN, _MANTISSA, _ONE_BITS, _EXPONENT_AT, _BIAS = 0x80000000, 0x007FFFFF, 0x3F800000, 23, 127
#: The least float32 with all its bits, and what lifts the smaller ones there.
_LEAST_NORMAL, _LIFT, _LIFT_LOG2 = 1.1754943508222875e-38, 8388608.0, 23.0
#: Below and above it eˣ is 0 and infinite.
_EXP_LOW, _EXP_HIGH = -104.0, 89.0
_TANH_SMALL, _LARGE = 0.625, 16777216.0


class _Text:
    """Writes arithmetic on one float32."""

    def __init__(self, builder: Any) -> None:
        self.b = builder

    def f(self, value: float) -> Any:
        return ir.Constant(_F32, value)

    def i(self, value: int) -> Any:
        return ir.Constant(_I32, value)

    def bits(self, x: Any) -> Any:
        return self.b.bitcast(x, _I32)

    def of_bits(self, x: Any) -> Any:
        return self.b.bitcast(x, _F32)

    def less(self, x: Any, y: Any) -> Any:
        return self.b.fcmp_ordered("<", x, y)

    def polynomial(self, coefficients: Sequence[float], x: Any) -> Any:
        total = self.f(coefficients[-1])
        for each in reversed(coefficients[:-1]):
            total = self.b.fadd(self.b.fmul(total, x), self.f(each))
        return total

    def power_of_two(self, n: Any) -> Any:
        """2ⁿ for an integer from -126 to 127."""
        return self.of_bits(self.b.shl(self.b.add(n, self.i(_BIAS)), self.i(_EXPONENT_AT)))

    def exp(self, x: Any) -> Any:
        b = self.b
        x = b.select(self.less(x, self.f(_EXP_LOW)), self.f(_EXP_LOW), x)
        x = b.select(self.less(self.f(_EXP_HIGH), x), self.f(_EXP_HIGH), x)
        rounded = b.fadd(b.fmul(x, self.f(_LOG2_E)), self.f(_ROUNDER))
        n, turns = b.sub(self.bits(rounded), self.i(_ROUNDER_BITS)), b.fsub(rounded, self.f(_ROUNDER))
        r = b.fsub(b.fsub(x, b.fmul(turns, self.f(_LN2_HIGH))), b.fmul(turns, self.f(_LN2_LOW)))
        power = b.fadd(b.fmul(b.fmul(r, r), self.polynomial(_EXP, r)), r)
        power = b.fadd(power, self.f(1))
        # in two steps: the first of them ends outside of what a float can be for no x
        half = b.ashr(n, self.i(1))
        return b.fmul(b.fmul(power, self.power_of_two(half)), self.power_of_two(b.sub(n, half)))

    def sigmoid(self, x: Any) -> Any:
        # as the kernel writes it: 1 / (e⁻ˣ + 1)
        return self.b.fdiv(self.f(1), self.b.fadd(self.exp(self.b.fneg(x)), self.f(1)))

    def tanh(self, x: Any) -> Any:
        b = self.b
        sign = b.and_(self.bits(x), self.i(_SIGN))
        size = self.of_bits(b.and_(self.bits(x), self.i(_SIGN - 1)))
        square = b.fmul(x, x)
        small = b.fadd(x, b.fmul(b.fmul(x, square), self.polynomial(_TANH, square)))
        large = b.fdiv(self.f(2), b.fadd(self.exp(b.fadd(size, size)), self.f(1)))
        large = self.of_bits(b.or_(self.bits(b.fsub(self.f(1), large)), sign))
        return b.select(self.less(size, self.f(_TANH_SMALL)), small, large)

    def log(self, x: Any) -> Any:
        b = self.b
        is_small = self.less(x, self.f(_LEAST_NORMAL))
        lifted = b.select(is_small, b.fmul(x, self.f(_LIFT)), x)
        bits = self.bits(lifted)
        turns = b.sitofp(b.sub(b.lshr(bits, self.i(_EXPONENT_AT)), self.i(_BIAS)), _F32)
        mantissa = self.of_bits(b.or_(b.and_(bits, self.i(_MANTISSA)), self.i(_ONE_BITS)))
        is_high = self.less(self.f(_SQRT_2), mantissa)
        mantissa = b.select(is_high, b.fmul(mantissa, self.f(0.5)), mantissa)
        turns = b.fadd(turns, b.select(is_high, self.f(1), self.f(0)))
        turns = b.fsub(turns, b.select(is_small, self.f(_LIFT_LOG2), self.f(0)))
        f = b.fsub(mantissa, self.f(1))
        square = b.fmul(f, f)
        rest = b.fsub(b.fmul(b.fmul(square, f), self.polynomial(_LOG, f)), b.fmul(square, self.f(0.5)))
        rest = b.fadd(rest, b.fmul(turns, self.f(_LN2_LOW)))
        result = b.fadd(b.fadd(rest, f), b.fmul(turns, self.f(_LN2_HIGH)))
        # NaN and infinity are their own; of 0, and of what is below it
        result = b.select(self.less(x, self.f(float("inf"))), result, x)
        result = b.select(b.fcmp_ordered("==", x, self.f(0)), self.f(float("-inf")), result)
        return b.select(self.less(x, self.f(0)), self.f(float("nan")), result)

    def log1p(self, x: Any) -> Any:
        b = self.b
        total = b.fadd(x, self.f(1))
        # what the sum lost; it cannot be told of a sum that is 0, and is nothing to a large one
        lost = b.fdiv(b.fsub(x, b.fsub(total, self.f(1))), total)
        is_told = b.and_(self.less(self.f(0), total), self.less(total, self.f(_LARGE)))
        return b.fadd(self.log(total), b.select(is_told, lost, self.f(0)))


def _function(write: Callable[[_Text, Any], Any], name: str) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return write(_Text(builder), arguments[0])

    def of_float32(typing_context: Any, x: Any) -> Any:
        return (types.float32(types.float32), generate) if x == types.float32 else None

    of_float32.__name__ = name
    return intrinsic(of_float32)


exp_single = _function(_Text.exp, "exp_single")
log_single = _function(_Text.log, "log_single")
log1p_single = _function(_Text.log1p, "log1p_single")
tanh_single = _function(_Text.tanh, "tanh_single")
sigmoid_single = _function(_Text.sigmoid, "sigmoid_single")
