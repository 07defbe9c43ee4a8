"""The transforms of a minimal-filtering convolution on small tiles of an image, as straight code in vector registers.

`T x Tᵀ` for a tile x of rows × columns × channels, where T is one of a few small constant matrices: a matrix is a
function on a list of vectors here, because its zeros, ones and shared sums are most of the work. Each is a compiler
intrinsic for as many channels as a vector has lanes; Numba's own loops would not be vectorised, for they have dozens
of places that might overlap. Used by winograd.py: after an edit here, touch that file too, for the disk cache of its
loops watches nothing else.

The matrices evaluate and interpolate at the points 0, 1, −1, ½, −2 and ∞ (Winograd 1980; Lavin and Gray 2015). These
six lose a third of the digits that ±½ or ±2 do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tenfold_kernels.cpu._compiled.intrinsics import SIZE, VECTOR_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class _Vectors:
    """Arithmetic on vectors of one element type, as code at the builder's position."""

    def __init__(self, builder: Any, element: Any, align: int) -> None:
        self.builder, self.align = builder, align
        self.lanes = VECTOR_BYTES // align
        self.kind = ir.VectorType(element, self.lanes)
        name = f"llvm.fmuladd.v{self.lanes}f{align * 8}"
        self._fused = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, ir.FunctionType(self.kind, [self.kind] * 3), name
        )

    def add(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b)

    def sub(self, a: Any, b: Any) -> Any:
        return self.builder.fsub(a, b)

    def scaled(self, factor: float, a: Any, b: Any) -> Any:
        """factor · a + b."""
        return self.builder.call(self._fused, [ir.Constant(self.kind, [factor] * self.lanes), a, b])

    def place(self, start: Any, at: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(start, [at]), self.kind.as_pointer())


def _input(v: _Vectors, d: Sequence[Any]) -> list[Any]:
    # Six pixels → the coefficients of the products of all linear factors but one.
    q = [v.sub(v.scaled(1.5, d[i + 1], d[i + 2]), d[i]) for i in range(4)]
    odd, even = v.sub(d[3], d[1]), v.sub(d[4], d[2])
    return [
        v.sub(q[2], q[0]),
        v.add(q[2], q[1]),
        v.sub(q[2], q[1]),
        v.scaled(2.0, odd, even),
        v.scaled(-0.5, odd, even),
        v.sub(q[3], q[1]),
    ]


def _output_2(v: _Vectors, m: Sequence[Any]) -> list[Any]:
    # Six values of the points → 2 outputs, as powers of the points say.
    total, apart = v.add(m[1], m[2]), v.sub(m[1], m[2])
    first = v.add(v.add(m[0], total), v.add(m[3], m[4]))
    return [first, v.add(v.scaled(0.5, m[3], apart), v.scaled(-2.0, m[4], m[5]))]


def _output_4(v: _Vectors, m: Sequence[Any]) -> list[Any]:
    total, apart = v.add(m[1], m[2]), v.sub(m[1], m[2])
    return [
        v.add(v.add(m[0], total), v.add(m[3], m[4])),
        v.scaled(-2.0, m[4], v.scaled(0.5, m[3], apart)),
        v.scaled(4.0, m[4], v.scaled(0.25, m[3], total)),
        v.add(v.scaled(0.125, m[3], apart), v.scaled(-8.0, m[4], m[5])),
    ]


def _spread_2(v: _Vectors, y: Sequence[Any]) -> list[Any]:
    # The adjoint of _output_2: 2 gradients → six values.
    return [y[0], v.add(y[0], y[1]), v.sub(y[0], y[1]), v.scaled(0.5, y[1], y[0]), v.scaled(-2.0, y[1], y[0]), y[1]]


def _spread_4(v: _Vectors, y: Sequence[Any]) -> list[Any]:
    even, odd = v.add(y[0], y[2]), v.add(y[1], y[3])
    half = v.scaled(0.25, y[2], v.scaled(0.5, v.scaled(0.25, y[3], y[1]), y[0]))
    minus_two = v.scaled(4.0, y[2], v.scaled(-2.0, v.scaled(4.0, y[3], y[1]), y[0]))
    return [y[0], v.add(even, odd), v.sub(even, odd), half, minus_two, y[3]]


def _sandwich(matrix: Callable[[_Vectors, Sequence[Any]], list[Any]], taken: int) -> Any:
    """An intrinsic: (x, at, row, column, out, to, out row, out column); places and strides count elements.

    Reads taken × taken vectors of x, writes as many rows and columns of vectors as `matrix` has. No index is checked.
    """

    def transform(typing_context, x, x_at, x_row, x_column, out, to, out_row, out_column):  # type: ignore[no-untyped-def]
        numbers = types.int64
        signature = types.void(x, *(numbers,) * 3, out, *(numbers,) * 3)

        def generate(context, builder, _, args):  # type: ignore[no-untyped-def]
            x_, x_at, x_row, x_column, out_, to, out_row, out_column = args
            v = _Vectors(builder, context.get_data_type(x.dtype), x.dtype.bitwidth // 8)
            source = builder.gep(context.make_array(x)(context, builder, x_).data, [x_at])
            target = builder.gep(context.make_array(out)(context, builder, out_).data, [to])

            def at(start: Any, row: int, row_stride: Any, column: int, column_stride: Any) -> Any:
                offset = builder.add(
                    builder.mul(ir.Constant(ir.IntType(64), row), row_stride),
                    builder.mul(ir.Constant(ir.IntType(64), column), column_stride),
                )
                return v.place(start, offset)

            # Column by column, and then the rows of what that gives.
            columns = []
            for j in range(taken):
                loaded = [builder.load(at(source, i, x_row, j, x_column), align=v.align) for i in range(taken)]
                columns.append(matrix(v, loaded))
            for i in range(len(columns[0])):
                for j, value in enumerate(matrix(v, [column[i] for column in columns])):
                    builder.store(value, at(target, i, out_row, j, out_column), align=v.align)
            return context.get_dummy_value()

        return signature, generate

    transform.__name__ = transform.__qualname__ = f"sandwich{matrix.__name__}"
    return intrinsic(transform)


#: A tile of the image, 6 × 6.
input_tile = _sandwich(_input, SIZE)
#: What products of tiles are worth as 2 × 2 or 4 × 4 outputs, and the adjoints.
output_tile_2, output_tile_4 = _sandwich(_output_2, SIZE), _sandwich(_output_4, SIZE)
spread_tile_2, spread_tile_4 = _sandwich(_spread_2, 2), _sandwich(_spread_4, 4)
