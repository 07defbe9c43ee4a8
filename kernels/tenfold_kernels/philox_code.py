"""The machine code of philox_draws.py: numbers of the Philox stream, eight blocks at a time, built with llvmlite.

A random table is made in the first step of a program, which does not wait for Numba, and NumPy takes 40 ns for a
number and 100 for a normal one. The streams are philox.py's, word for word. Logarithm, sine and cosine are computed in
double, with the terms of their series, and then rounded: what a correctly rounded float function gives.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from llvmlite import ir  # type: ignore[import-untyped]

from tenfold_kernels.native_code import compile_module
from tenfold_kernels.philox import LANES, NORMAL, UNIFORM

if TYPE_CHECKING:
    from collections.abc import Sequence

_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
_F32, _F64 = ir.FloatType(), ir.DoubleType()
_MULTIPLIERS, _WEYL = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
_MASK32 = (1 << 32) - 1
_MANTISSA, _MANTISSA_BITS = 0x7FFFFF, 23
#: Least uniform number whose logarithm is taken, and the bound beyond which a truncated normal number is drawn again.
_LEAST, _TRUNCATE = 1e-7, 2.0
#: √½ as bits of a double: mantissas lie between it and √2.
_ROOT_BITS, _EXPONENT_AT = 0x3FE6A09E667F3BCD, 52
#: π/2 in 33 bits, whose products with 0 to 4 are exact, and the rest.
_QUARTER, _QUARTER_REST = 1.57079632673412561417, 6.07710050650619224932e-11
#: Added to a small double, it leaves the nearest integer in the last bits.
_ROUNDER, _ROUNDER_BITS = 6755399441055744.0, 0x4338000000000000
#: Series: of ln((1+s)/(1-s)) / 2s - 1, sin x / x, cos x, in even powers.
_LOG = [1 / (2 * n + 1) for n in range(1, 13)]
_SIN = [(-1) ** n / math.factorial(2 * n + 1) for n in range(9)]
_COS = [(-1) ** n / math.factorial(2 * n) for n in range(9)]


class _Text:
    """Writes arithmetic on vectors of LANES numbers."""

    def __init__(self, builder: Any) -> None:
        self.b = builder

    def all(self, element: Any, value: Any) -> Any:
        """A vector of one constant."""
        return ir.Constant(ir.VectorType(element, LANES), [ir.Constant(element, value)] * LANES)

    def i(self, value: int) -> Any:
        return self.all(_I64, value)

    def d(self, value: float) -> Any:
        return self.all(_F64, value)

    def f(self, value: float) -> Any:
        return self.all(_F32, value)

    def to(self, value: Any, element: Any) -> Any:
        """A conversion between floats of two sizes."""
        kind = ir.VectorType(element, LANES)
        return self.b.fptrunc(value, kind) if element is _F32 else self.b.fpext(value, kind)

    def splat(self, scalar: Any) -> Any:
        """A vector of one value."""
        kind = ir.VectorType(scalar.type, LANES)
        first = self.b.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(_I32, 0))
        return self.b.shuffle_vector(first, first, self.all(_I32, 0))

    def polynomial(self, coefficients: Sequence[float], x: Any) -> Any:
        total = self.d(coefficients[-1])
        for each in reversed(coefficients[:-1]):
            total = self.b.fadd(self.b.fmul(total, x), self.d(each))
        return total

    def blocks(self, key: Any, lower: Any, upper: Any) -> list[Any]:
        """The four words of each counter, in 64 bits each."""
        b, mask, shift = self.b, self.i(_MASK32), self.i(32)
        c0, c1, c2, c3 = b.and_(lower, mask), b.lshr(lower, shift), b.and_(upper, mask), b.lshr(upper, shift)
        k0, k1 = b.and_(key, ir.Constant(_I64, _MASK32)), b.lshr(key, ir.Constant(_I64, 32))
        for _ in range(10):
            p0, p1 = b.mul(self.i(_MULTIPLIERS[0]), c0), b.mul(self.i(_MULTIPLIERS[1]), c2)
            c0, c1, c2, c3 = (
                b.xor(b.xor(b.lshr(p1, shift), c1), self.splat(k0)),
                b.and_(p1, mask),
                b.xor(b.xor(b.lshr(p0, shift), c3), self.splat(k1)),
                b.and_(p0, mask),
            )
            k0, k1 = (
                b.and_(b.add(k, ir.Constant(_I64, weyl)), ir.Constant(_I64, _MASK32))
                for k, weyl in zip((k0, k1), _WEYL, strict=True)
            )
        return [c0, c1, c2, c3]

    def word(self, x: Any) -> Any:
        return self.b.trunc(x, ir.VectorType(_I32, LANES))

    def uniform(self, x: Any) -> Any:
        """float32 in [0, 1) of 23 bits of a word."""
        bits = self.b.and_(self.word(x), self.all(_I32, _MANTISSA))
        return self.b.fmul(self.b.sitofp(bits, ir.VectorType(_F32, LANES)), self.f(2.0**-_MANTISSA_BITS))

    def normals(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Two float32 normals of two words, by Box and Muller."""
        b = self.b
        first, least = self.uniform(x), self.f(_LEAST)
        first = b.select(b.fcmp_ordered("<", first, least), least, first)
        angle = self.to(b.fmul(self.d(2.0 * math.pi), self.to(self.uniform(y), _F64)), _F32)
        log = self.to(self.log(self.to(first, _F64)), _F32)
        radius = self._root(b.fmul(self.f(-2.0), log))
        sin, cos = self.sin_and_cos(self.to(angle, _F64))
        return b.fmul(self.to(sin, _F32), radius), b.fmul(self.to(cos, _F32), radius)

    def _root(self, x: Any) -> Any:
        name = f"llvm.sqrt.v{LANES}f32"
        known = self.b.module.globals.get(name)
        return self.b.call(known or ir.Function(self.b.module, ir.FunctionType(x.type, [x.type]), name), [x])

    def size(self, x: Any) -> Any:
        """The absolute value of float32."""
        bits = self.b.and_(self.b.bitcast(x, ir.VectorType(_I32, LANES)), self.all(_I32, (1 << 31) - 1))
        return self.b.bitcast(bits, x.type)

    def log(self, x: Any) -> Any:
        """Of doubles in (0, 1]."""
        b = self.b
        bits = b.bitcast(x, ir.VectorType(_I64, LANES))
        turns = b.ashr(b.sub(bits, self.i(_ROOT_BITS)), self.i(_EXPONENT_AT))
        mantissa = b.bitcast(b.sub(bits, b.shl(turns, self.i(_EXPONENT_AT))), ir.VectorType(_F64, LANES))
        s = b.fdiv(b.fsub(mantissa, self.d(1)), b.fadd(mantissa, self.d(1)))
        square, twice = b.fmul(s, s), b.fadd(s, s)
        rest = b.fmul(b.fmul(twice, square), self.polynomial(_LOG, square))
        # turns are few: as a double by its last bits
        turns = b.fsub(b.bitcast(b.add(turns, self.i(_ROUNDER_BITS)), ir.VectorType(_F64, LANES)), self.d(_ROUNDER))
        return b.fadd(b.fmul(turns, self.d(math.log(2))), b.fadd(twice, rest))

    def sin_and_cos(self, x: Any) -> tuple[Any, Any]:
        """Of doubles in [0, 2π] with no more bits than a float32 has."""
        b = self.b
        rounded = b.fadd(b.fmul(x, self.d(2 / math.pi)), self.d(_ROUNDER))
        turns, number = b.fsub(rounded, self.d(_ROUNDER)), b.bitcast(rounded, ir.VectorType(_I64, LANES))
        r = b.fsub(b.fsub(x, b.fmul(turns, self.d(_QUARTER))), b.fmul(turns, self.d(_QUARTER_REST)))
        square = b.fmul(r, r)
        tail = b.fmul(b.fmul(r, square), self.polynomial(_SIN[1:], square))
        sin, cos = b.fadd(r, tail), self.polynomial(_COS, square)
        is_odd = b.trunc(number, ir.VectorType(_I1, LANES))
        sign = self.i(63)
        sin_sign = b.shl(b.lshr(number, self.i(1)), sign)
        cos_sign = b.shl(b.lshr(b.add(number, self.i(1)), self.i(1)), sign)
        return self._signed(b.select(is_odd, cos, sin), sin_sign), self._signed(b.select(is_odd, sin, cos), cos_sign)

    def _signed(self, x: Any, sign: Any) -> Any:
        bits = self.b.xor(self.b.bitcast(x, ir.VectorType(_I64, LANES)), sign)
        return self.b.bitcast(bits, x.type)

    def store(self, columns: Sequence[Any], at: Any) -> None:
        """Writes four vectors as rows of four: those of the first lane, then those of the second."""
        b = self.b
        pairs = [i // 2 + LANES * (i % 2) for i in range(2 * LANES)]
        quads = [2 * (i // 4) + i % 2 + 2 * LANES * (i % 4 // 2) for i in range(4 * LANES)]

        def mask(lanes: list[int]) -> Any:
            return ir.Constant(ir.VectorType(_I32, len(lanes)), lanes)

        low = b.shuffle_vector(columns[0], columns[1], mask(pairs))
        high = b.shuffle_vector(columns[2], columns[3], mask(pairs))
        rows = b.shuffle_vector(low, high, mask(quads))
        b.store(rows, b.inttoptr(at, rows.type.as_pointer()), align=4)


def _write(module: Any, kind: str) -> str:
    """(key, counter's low and high half, stride, address of starts or 0, first and last turn, address of the numbers,
    address of flags or 0). Turn t makes blocks 8t to 8t + 7 of the result: block i is `stride`·i on from the counter,
    or starts[i]. Flags, of normals: a byte a block, 1 where all four lie inside ±2.
    """
    name = f"tenfold_draw_{kind}"
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_I64] * 9), name)
    key, low, high, stride, starts, first, last, out, flags = function.args
    entry, head, turn, end = (function.append_basic_block() for _ in range(4))
    b = ir.IRBuilder(entry)
    kind_of_offsets = ir.VectorType(_I64, LANES)
    offsets = b.alloca(kind_of_offsets)
    b.branch(head)
    b.position_at_end(head)
    number = b.phi(_I64)
    number.add_incoming(first, entry)
    b.cbranch(b.icmp_signed("<", number, last), turn, end)
    b.position_at_end(turn)
    text = _Text(b)

    def constant(value: int) -> Any:
        return ir.Constant(_I64, value)

    at = b.mul(number, constant(LANES))
    lanes = ir.Constant(kind_of_offsets, list(range(LANES)))
    with b.if_else(b.icmp_signed("==", starts, constant(0))) as (counted, given):
        with counted:
            b.store(b.mul(b.add(text.splat(at), lanes), text.splat(stride)), offsets)
        with given:
            place = b.inttoptr(b.add(starts, b.mul(at, constant(8))), kind_of_offsets.as_pointer())
            b.store(b.load(place, align=8), offsets)
    lower = b.add(text.splat(low), b.load(offsets))
    carry = b.zext(b.icmp_unsigned("<", lower, text.splat(low)), kind_of_offsets)
    words = text.blocks(key, lower, b.add(text.splat(high), carry))
    if kind == NORMAL:
        numbers = [*text.normals(*words[:2]), *text.normals(*words[2:])]
        with b.if_then(b.icmp_signed("!=", flags, constant(0))):
            inside = [b.fcmp_ordered("<", text.size(each), text.f(_TRUNCATE)) for each in numbers]
            full = b.and_(b.and_(inside[0], inside[1]), b.and_(inside[2], inside[3]))
            bytes_ = ir.VectorType(_I8, LANES)
            b.store(b.zext(full, bytes_), b.inttoptr(b.add(flags, at), bytes_.as_pointer()), align=1)
    else:
        numbers = [(text.uniform if kind == UNIFORM else text.word)(word) for word in words]
    text.store(numbers, b.add(out, b.mul(at, constant(16))))
    number.add_incoming(b.add(number, constant(1)), b.block)
    b.branch(head)
    b.position_at_end(end)
    b.ret_void()
    return name


def _write_take(module: Any) -> str:
    """(count, addresses of candidates, of rows' numbers, of how much of each is filled: a byte, of the rows).

    Takes the candidates inside ±2, four for each row, into the rows, which have four places each.
    """
    name = "tenfold_take_inside"
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_I64] * 5), name)
    count, candidates, numbers, filled, rows = function.args
    entry, head, turn, end = (function.append_basic_block() for _ in range(4))
    b = ir.IRBuilder(entry)
    have = b.alloca(_I64)
    b.branch(head)
    b.position_at_end(head)
    i = b.phi(_I64)
    i.add_incoming(ir.Constant(_I64, 0), entry)
    b.cbranch(b.icmp_signed("<", i, count), turn, end)
    b.position_at_end(turn)

    def place(address: Any, index: Any, kind: Any) -> Any:
        size = ir.Constant(_I64, 8 if kind is _I64 else 4 if kind is _F32 else 1)
        return b.inttoptr(b.add(address, b.mul(index, size)), kind.as_pointer())

    one, four = ir.Constant(_I64, 1), ir.Constant(_I64, 4)
    b.store(b.zext(b.load(place(filled, i, _I8)), _I64), have)
    row = b.mul(b.load(place(numbers, i, _I64)), four)
    for column in range(4):
        x = b.load(place(candidates, b.add(b.mul(i, four), ir.Constant(_I64, column)), _F32))
        above = b.fcmp_ordered("<", ir.Constant(_F32, -_TRUNCATE), x)
        inside = b.and_(above, b.fcmp_ordered("<", x, ir.Constant(_F32, _TRUNCATE)))
        now = b.load(have)
        with b.if_then(b.and_(inside, b.icmp_signed("<", now, four))):
            b.store(x, place(rows, b.add(row, now), _F32))
            b.store(b.add(now, one), have)
    b.store(b.trunc(b.load(have), _I8), place(filled, i, _I8))
    i.add_incoming(b.add(i, one), b.block)
    b.branch(head)
    b.position_at_end(end)
    b.ret_void()
    return name


def compile_draw(kind: str) -> tuple[dict[str, int], object]:
    """The addresses of `tenfold_draw_KIND`, and for NORMAL of `tenfold_take_inside`; and what keeps the
    code: not to be freed. Blocks and raises as `compile_module`.
    """
    module = ir.Module(f"tenfold_draw_{kind}")
    names = [_write(module, kind)]
    if kind == NORMAL:
        names.append(_write_take(module))
    engine = compile_module(module, for_this_processor=True)
    return {name: engine.get_function_address(name) for name in names}, engine
