"""One small product of matrices in registers: a few rows of A times a few vectors' width of B, over a long inner size.

`tile` is a compiler intrinsic, because no loop that Numba vectorises keeps its sums in registers: the inner loop is
vector loads of B, one broadcast for each row of A and fused multiply-adds, and nothing else. A is read through four
strides, so that the rows may overlap, as the windows of an image do: a convolution needs no copy of them.
`window_tile` is the same where A is not spread: each lane is a channel that meets its own of B alone. Used by
convolve.py and depthwise.py: after an edit here, touch these files too, for the disk cache of their loops watches
nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tenfold_kernels.cpu._compiled.intrinsics import MOST_ROWS, VECTOR_BYTES, WIDTHS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_I64, _I32 = ir.IntType(64), ir.IntType(32)


def _constant(value: int) -> ir.Constant:
    return ir.Constant(_I64, value)


class Loops:
    """Builds the two nested loops of one tile of `rows` × `vectors` into `function`, and what stores its sums."""

    def __init__(self, builder: Any, element: Any, align: int, rows: int, vectors: int) -> None:
        self.builder, self.rows, self.vectors, self.align = builder, rows, vectors, align
        self.lanes = VECTOR_BYTES // align
        self.vector = ir.VectorType(element, self.lanes)
        #: Which lanes are read and written; None for all.
        self.mask: Any = None

    def _phis(self, block: Any, kinds: Sequence[Any]) -> list[Any]:
        self.builder.position_at_end(block)
        return [self.builder.phi(kind) for kind in kinds]

    def build(self, a: Any, b: Any, strides: Sequence[Any], counts: Sequence[Any]) -> list[Any]:
        """Pointers to A and B; a_row, a_out, a_in, b_out, b_in; outer, inner → the sums, row by row."""
        builder = self.builder
        a_row, a_out, a_in, b_out, b_in = strides
        outer, inner = counts
        offsets: list[Any] = [_constant(0)]
        for _ in range(1, self.rows):
            offsets.append(builder.add(offsets[-1], a_row))
        sums = [ir.Constant(self.vector, None)] * (self.rows * self.vectors)
        entry, function = builder.block, builder.function
        outer_head, inner_head, body, latch, done = (
            function.append_basic_block(name) for name in ("outer", "inner", "body", "latch", "done")
        )
        kinds = [_I64, a.type, b.type, *(self.vector for _ in sums)]
        builder.branch(outer_head)
        outers, inners = self._phis(outer_head, kinds), self._phis(inner_head, kinds)
        for phi, value in zip(outers, [_constant(0), a, b, *sums], strict=True):
            phi.add_incoming(value, entry)
        for phi, value in zip(inners, [_constant(0), *outers[1:]], strict=True):
            phi.add_incoming(value, outer_head)
        builder.position_at_end(outer_head)
        builder.cbranch(builder.icmp_signed("<", outers[0], outer), inner_head, done)
        builder.position_at_end(inner_head)
        builder.cbranch(builder.icmp_signed("<", inners[0], inner), body, latch)
        builder.position_at_end(body)
        added = self.multiply(inners[1], offsets, inners[2], inners[3:])
        step = [builder.add(inners[0], _constant(1)), builder.gep(inners[1], [a_in]), builder.gep(inners[2], [b_in])]
        for phi, value in zip(inners, [*step, *added], strict=True):
            phi.add_incoming(value, body)
        builder.branch(inner_head)
        builder.position_at_end(latch)
        step = [builder.add(outers[0], _constant(1)), builder.gep(outers[1], [a_out]), builder.gep(outers[2], [b_out])]
        for phi, value in zip(outers, [*step, *inners[3:]], strict=True):
            phi.add_incoming(value, latch)
        builder.branch(outer_head)
        builder.position_at_end(done)
        return outers[3:]

    def multiply(self, a: Any, offsets: Sequence[Any], b: Any, sums: Sequence[Any]) -> list[Any]:
        """What the sums are after one place more of A and B."""
        builder = self.builder
        columns = [self.read_vector(place) for place in self.places(b)]
        nowhere, first = ir.Constant(self.vector, ir.Undefined), ir.Constant(_I32, 0)
        everywhere = ir.Constant(ir.VectorType(_I32, self.lanes), [0] * self.lanes)
        added = []
        for row, offset in enumerate(offsets):
            one = builder.insert_element(nowhere, builder.load(builder.gep(a, [offset])), first)
            spread = builder.shuffle_vector(one, nowhere, everywhere)
            for at, column in enumerate(columns):
                added.append(self.add_product(spread, column, sums[row * self.vectors + at]))
        return added

    def _library(self, name: str, result: Any, arguments: Sequence[Any]) -> Any:
        kind = ir.FunctionType(result, arguments)
        return cgutils.get_or_insert_function(self.builder.module, kind, name)  # type: ignore[no-untyped-call]

    def add_product(self, x: Any, y: Any, total: Any) -> Any:
        fused = self._library(f"llvm.fmuladd.v{self.lanes}f{self.align * 8}", self.vector, [self.vector] * 3)
        return self.builder.call(fused, [x, y, total])

    def read_vector(self, place: Any) -> Any:
        """The vector at a place, with zeros where the mask has none."""
        if self.mask is None:
            return self.builder.load(place, align=self.align)
        name = f"llvm.masked.load.v{self.lanes}f{self.align * 8}.p0"
        load = self._library(name, self.vector, [place.type, _I32, self.mask.type, self.vector])
        zeros = ir.Constant(self.vector, None)
        return self.builder.call(load, [place, ir.Constant(_I32, self.align), self.mask, zeros])

    def write_vector(self, value: Any, place: Any) -> None:
        if self.mask is None:
            self.builder.store(value, place, align=self.align)
            return
        name = f"llvm.masked.store.v{self.lanes}f{self.align * 8}.p0"
        store = self._library(name, ir.VoidType(), [self.vector, place.type, _I32, self.mask.type])
        self.builder.call(store, [value, place, ir.Constant(_I32, self.align), self.mask])

    def places(self, start: Any) -> Iterator[Any]:
        base = self.builder.bitcast(start, self.vector.as_pointer())
        for at in range(self.vectors):
            yield self.builder.gep(base, [_constant(at)])

    def store(self, sums: Sequence[Any], c: Any, c_row: Any, add: Any) -> None:
        """Writes the sums to C, or adds them to what is there."""
        builder = self.builder
        rows = [builder.gep(c, [builder.mul(_constant(row), c_row)]) for row in range(self.rows)]
        places = [place for row in rows for place in self.places(row)]
        with builder.if_else(add) as (then, otherwise):
            with then:
                for place, value in zip(places, sums, strict=True):
                    self.write_vector(builder.fadd(self.read_vector(place), value), place)
            with otherwise:
                for place, value in zip(places, sums, strict=True):
                    self.write_vector(value, place)


def _starts(context: Any, builder: Any, **arrays: tuple[Any, Any, Any]) -> dict[str, Any]:
    """The addresses at which a tile begins: of each array's type, the array, and an index."""
    return {
        name: builder.gep(context.make_array(kind)(context, builder, value).data, [at])
        for name, (kind, value, at) in arrays.items()
    }


@intrinsic
def tile(  # type: ignore[no-untyped-def]
    typing_context, rows, vectors, a, a_at, a_row, a_out, a_in, b, b_at, b_out, b_in, outer, inner, c, c_at, c_row, add
):
    """C[r, n] (+)= Σ over i < outer, j < inner: A[a_at + r·a_row + i·a_out + j·a_in] · B[b_at + i·b_out + j·b_in + n].

    rows ≤ MOST_ROWS, `vectors` one of WIDTHS: n < vectors · lanes. a, b and c are flat arrays of one float type; no
    index is checked. C's rows are c_row apart.
    """
    numbers = types.int64
    signature = types.void(numbers, numbers, a, *(numbers,) * 4, b, *(numbers,) * 5, c, numbers, numbers, types.boolean)

    def generate(context, builder, _, args):  # type: ignore[no-untyped-def]
        rows, vectors, a_, a_at, *a_strides, b_, b_at, b_out, b_in, outer, inner, c_, c_at, c_row, add = args
        element = context.get_data_type(a.dtype)
        start = _starts(context, builder, a=(a, a_, a_at), b=(b, b_, b_at), c=(c, c_, c_at))
        end = builder.function.append_basic_block("end")
        key = builder.add(builder.mul(rows, _constant(8)), vectors)
        choice = builder.switch(key, end)
        for row_count in range(1, MOST_ROWS + 1):
            for width in WIDTHS:
                block = builder.function.append_basic_block(f"tile{row_count}x{width}")
                choice.add_case(_constant(row_count * 8 + width), block)
                builder.position_at_end(block)
                loops = Loops(builder, element, a.dtype.bitwidth // 8, row_count, width)
                sums = loops.build(start["a"], start["b"], (*a_strides, b_out, b_in), (outer, inner))
                loops.store(sums, start["c"], c_row, add)
                builder.branch(end)
        builder.position_at_end(end)
        return context.get_dummy_value()

    return signature, generate


class _Apart(Loops):
    """A tile whose lanes do not meet: A is read a vector at a time, as B is."""

    def multiply(self, a: Any, offsets: Sequence[Any], b: Any, sums: Sequence[Any]) -> list[Any]:
        columns, added = [self.read_vector(place) for place in self.places(b)], []
        for row, offset in enumerate(offsets):
            for at, place in enumerate(self.places(self.builder.gep(a, [offset]))):
                added.append(self.add_product(self.read_vector(place), columns[at], sums[row * self.vectors + at]))
        return added

    def only(self, channels: Any) -> None:
        """Leaves alone the lanes from `channels` on."""
        numbers = ir.Constant(ir.VectorType(_I64, self.lanes), list(range(self.lanes)))
        nowhere = ir.Constant(numbers.type, ir.Undefined)
        one = self.builder.insert_element(nowhere, channels, ir.Constant(_I32, 0))
        zeros = ir.Constant(ir.VectorType(_I32, self.lanes), [0] * self.lanes)
        self.mask = self.builder.icmp_signed("<", numbers, self.builder.shuffle_vector(one, nowhere, zeros))


@intrinsic
def window_tile(  # type: ignore[no-untyped-def]
    typing_context, rows, channels, a, a_at, a_row, a_out, a_in, b, b_at, b_out, b_in, outer, inner, c, c_at, c_row, add
):
    """C[r, n] (+)= Σ over i < outer, j < inner: A[a_at + r·a_row + i·a_out + j·a_in + n] · B[b_at + i·b_out + j·b_in
    + n].

    rows ≤ MOST_ROWS; n < channels, which are two vectors or at most one. Otherwise as `tile`.
    """
    numbers = types.int64
    signature = types.void(numbers, numbers, a, *(numbers,) * 4, b, *(numbers,) * 5, c, numbers, numbers, types.boolean)

    def generate(context, builder, _, args):  # type: ignore[no-untyped-def]
        rows, channels, a_, a_at, *a_strides, b_, b_at, b_out, b_in, outer, inner, c_, c_at, c_row, add = args
        element, size = context.get_data_type(a.dtype), a.dtype.bitwidth // 8
        start = _starts(context, builder, a=(a, a_, a_at), b=(b, b_, b_at), c=(c, c_, c_at))
        is_wide = builder.zext(builder.icmp_signed(">", channels, _constant(VECTOR_BYTES // size)), _I64)
        end = builder.function.append_basic_block("end")
        choice = builder.switch(builder.add(builder.mul(rows, _constant(2)), is_wide), end)
        for row_count in range(1, MOST_ROWS + 1):
            for width in (1, 2):
                block = builder.function.append_basic_block(f"window{row_count}x{width}")
                choice.add_case(_constant(row_count * 2 + width - 1), block)
                builder.position_at_end(block)
                loops = _Apart(builder, element, size, row_count, width)
                if width == 1:
                    loops.only(channels)
                sums = loops.build(start["a"], start["b"], (*a_strides, b_out, b_in), (outer, inner))
                loops.store(sums, start["c"], c_row, add)
                builder.branch(end)
        builder.position_at_end(end)
        return context.get_dummy_value()

    return signature, generate
