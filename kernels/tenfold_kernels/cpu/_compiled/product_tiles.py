"""Tiles of a product of matrices in vector registers: what the loops of products.py are made of.

Compiler intrinsics, because no loop that Numba vectorises keeps its sums in registers. Matrices are addresses of
float32 and strides in bytes; no index is checked. Edges are masked: lanes beyond a matrix are neither read nor written.
After an edit here touch products.py too, for the disk cache of its loops watches nothing else.

M rows, N columns, K inner; `row_sums` reads rows of B, `dot_tile` its columns where these lie in memory line by line,
`transpose_block` copies such columns into rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tenfold_kernels.cpu._compiled.intrinsics import (
    BLOCK_ROWS,
    DOT_COLUMNS,
    JOB_WORDS,
    PANEL_INNER,
    PRODUCT_ROWS,
    VECTOR_BYTES,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_I64, _I32, _I1, _I8 = ir.IntType(64), ir.IntType(32), ir.IntType(1), ir.IntType(8)
_FLOAT = ir.FloatType()
_BYTES = 4
#: Elements of a vector.
LANES = VECTOR_BYTES // _BYTES
#: Rows of A that share one address: the others' are it plus 1, 2 or 3 strides, which the processor adds for nothing.
_SHARED = 4
#: Rows of a tile of `dot_tile`: all its sums fit one vector in the end.
DOT_ROWS = LANES // DOT_COLUMNS
#: What it makes is called without the typing context that its definition takes, so it has no type of its own.
_intrinsic: Callable[[Any], Any] = intrinsic


def _number(value: int) -> ir.Constant:
    return ir.Constant(_I64, value)


class _Vectors:
    """Loads, stores and arithmetic of vectors of `lanes` floats, at the builder's position."""

    def __init__(self, builder: Any, lanes: int = LANES) -> None:
        self.builder, self.lanes = builder, lanes
        self.kind, self.masks = ir.VectorType(_FLOAT, lanes), ir.VectorType(_I1, lanes)
        self.zero = ir.Constant(self.kind, None)

    def _library(self, name: str, result: Any, arguments: Sequence[Any]) -> Any:
        kind = ir.FunctionType(result, arguments)
        return cgutils.get_or_insert_function(self.builder.module, kind, name)  # type: ignore[no-untyped-call]

    def at(self, address: Any) -> Any:
        return self.builder.inttoptr(address, self.kind.as_pointer())

    def load(self, address: Any, mask: Any = None) -> Any:
        if mask is None:
            return self.builder.load(self.at(address), align=_BYTES)
        place, align = self.at(address), ir.Constant(_I32, _BYTES)
        name = f"llvm.masked.load.v{self.lanes}f32.p0"
        load = self._library(name, self.kind, [place.type, _I32, self.masks, self.kind])
        return self.builder.call(load, [place, align, mask, self.zero])

    def store(self, value: Any, address: Any, mask: Any = None) -> None:
        if mask is None:
            self.builder.store(value, self.at(address), align=_BYTES)
            return
        place, align = self.at(address), ir.Constant(_I32, _BYTES)
        name = f"llvm.masked.store.v{self.lanes}f32.p0"
        store = self._library(name, ir.VoidType(), [self.kind, place.type, _I32, self.masks])
        self.builder.call(store, [value, place, align, mask])

    def first(self, count: Any) -> Any:
        """The mask of the first `count` lanes; all, if there are fewer."""
        kind = ir.VectorType(_I64, self.lanes)
        numbers = ir.Constant(kind, list(range(self.lanes)))
        return self.builder.icmp_signed("<", numbers, self._spread(count, kind))

    def everywhere(self, address: Any) -> Any:
        """The float at an address in all lanes."""
        place = self.builder.inttoptr(address, _FLOAT.as_pointer())
        return self._spread(self.builder.load(place, align=_BYTES), self.kind)

    def _spread(self, value: Any, kind: Any) -> Any:
        nowhere, first = ir.Constant(kind, ir.Undefined), ir.Constant(_I32, 0)
        one = self.builder.insert_element(nowhere, value, first)
        return self.builder.shuffle_vector(one, nowhere, ir.Constant(ir.VectorType(_I32, self.lanes), [0] * self.lanes))

    def add_product(self, a: Any, b: Any, total: Any) -> Any:
        fused = self._library(f"llvm.fmuladd.v{self.lanes}f32", self.kind, [self.kind] * 3)
        return self.builder.call(fused, [a, b, total])

    def chosen(self, x: Any, y: Any, lanes: Sequence[int]) -> Any:
        """Lanes of x, and from `self.lanes` on those of y."""
        return self.builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(_I32, len(lanes)), list(lanes)))


def _block(builder: Any, name: str) -> Any:
    return builder.function.append_basic_block(name)


def _phis(builder: Any, kinds: Sequence[Any], values: Sequence[Any], block: Any) -> list[Any]:
    """At the builder's position, with the values that they have when they come from `block`."""
    made = [builder.phi(kind) for kind in kinds]
    _come(made, values, block)
    return made


def _come(phis: Sequence[Any], values: Sequence[Any], block: Any) -> None:
    for phi, value in zip(phis, values, strict=True):
        phi.add_incoming(value, block)


def _row_sums(builder: Any, rows: int, vectors: int, given: Sequence[Any]) -> None:
    """The code of one size of `row_sums`; one vector is masked, two are whole."""
    a, a_row, a_inner, b, b_row, count, c, c_row, columns, add = given
    v = _Vectors(builder)
    masks = [v.first(columns)] if vectors == 1 else [None] * vectors

    def places(start: Any) -> list[tuple[Any, Any]]:
        return [(builder.add(start, _number(i * VECTOR_BYTES)), mask) for i, mask in enumerate(masks)]

    lines = [builder.add(c, builder.mul(c_row, _number(row))) for row in range(rows)]
    twice, thrice = builder.mul(a_row, _number(2)), builder.mul(a_row, _number(3))
    offsets = [_number(0), a_row, twice, thrice]
    starts = [builder.add(a, builder.mul(a_row, _number(row))) for row in range(0, rows, _SHARED)]
    entry = builder.block
    before, body, done = (_block(builder, name) for name in ("before", "body", "done"))
    zeros = [v.zero] * (rows * vectors)
    builder.cbranch(add, before, body)
    builder.position_at_end(before)
    there = [v.load(place, mask) for line in lines for place, mask in places(line)]
    builder.branch(body)

    builder.position_at_end(body)
    kinds = [_I64, _I64, *(_I64 for _ in starts), *(v.kind for _ in zeros)]
    loop = _phis(builder, kinds, [_number(0), b, *starts, *zeros], entry)
    _come(loop, [_number(0), b, *starts, *there], before)
    (step, b_now), shared, sums = loop[:2], loop[2 : 2 + len(starts)], loop[2 + len(starts) :]
    read = [v.load(place, mask) for place, mask in places(b_now)]
    added = []
    for row in range(rows):
        one = v.everywhere(builder.add(shared[row // _SHARED], offsets[row % _SHARED]))
        added += [v.add_product(one, read[i], sums[row * vectors + i]) for i in range(vectors)]
    following = builder.add(step, _number(1))
    ahead = [builder.add(place, a_inner) for place in shared]
    _come(loop, [following, builder.add(b_now, b_row), *ahead, *added], builder.block)
    builder.cbranch(builder.icmp_signed("<", following, count), body, done)

    builder.position_at_end(done)
    for row, line in enumerate(lines):
        for i, (place, mask) in enumerate(places(line)):
            v.store(added[row * vectors + i], place, mask)


@_intrinsic
def row_sums(  # type: ignore[no-untyped-def]
    typing_context, rows, a, a_row, a_inner, b, b_row, count, c, c_row, columns, add
):
    """C[r, n] (+)= Σ over k < count: A[r, k] · B[k, n] for r < rows and n < columns, where columns ≤ 2 · LANES.

    rows ≤ PRODUCT_ROWS; more columns than LANES must be 2 · LANES. count ≥ 1. B's and C's rows are lines in memory,
    A's strides are any. `add`: to what is in C.
    """
    signature = types.void(*(types.int64,) * 11)

    def generate(context, builder, _, args):  # type: ignore[no-untyped-def]
        row_count, *given, columns, add = args
        adds = builder.icmp_signed("!=", add, _number(0))
        wide = builder.zext(builder.icmp_signed(">", columns, _number(LANES)), _I64)
        end = _block(builder, "end")
        choice = builder.switch(builder.add(builder.mul(row_count, _number(2)), wide), end)
        for rows in range(1, PRODUCT_ROWS + 1):
            for vectors in (1, 2):
                block = _block(builder, f"rows{rows}x{vectors}")
                choice.add_case(_number(2 * rows + vectors - 1), block)
                builder.position_at_end(block)
                _row_sums(builder, rows, vectors, [*given, columns, adds])
                builder.branch(end)
        builder.position_at_end(end)
        return context.get_dummy_value()

    return signature, generate


def _gathered(v: _Vectors, sums: Sequence[Any]) -> tuple[Any, list[int]]:
    """One vector whose lanes are the sums of LANES vectors, and which lane has which vector's."""
    vectors, order, parts = list(sums), [[i] for i in range(len(sums))], 1
    while len(vectors) > 1:
        half, width = len(vectors) // 2, v.lanes // parts
        starts = [base + part * width for base in (0, v.lanes) for part in range(parts)]
        low = [start + lane for start in starts for lane in range(width // 2)]
        high = [lane + width // 2 for lane in low]
        pairs = list(zip(vectors[:half], vectors[half:], strict=True))
        vectors = [v.builder.fadd(v.chosen(x, y, low), v.chosen(x, y, high)) for x, y in pairs]
        order = [[*order[i], *order[i + half]] for i in range(half)]
        parts *= 2
    return vectors[0], order[0]


@_intrinsic
def dot_tile(typing_context, a, a_row, rows, b, b_column, columns, count, c, c_row):  # type: ignore[no-untyped-def]
    """C[r, n] = Σ over k < count: A[r, k] · B[k, n] for r < rows and n < columns.

    At most DOT_ROWS and DOT_COLUMNS are done, whatever `rows` and `columns` are. count ≥ 1. A's rows and B's columns
    are lines in memory, as C's rows are.
    """
    signature = types.void(*(types.int64,) * 9)

    def generate(context, builder, _, args):  # type: ignore[no-untyped-def]
        a, a_row, rows, b, b_column, columns, count, c, c_row = args
        v = _Vectors(builder)

        def lines(start: Any, stride: Any, wanted: int, there: Any) -> list[Any]:
            # What is beyond the edge repeats the last line, and is not stored.
            last = builder.sub(there, _number(1))
            kept = [builder.select(builder.icmp_signed("<", _number(i), last), _number(i), last) for i in range(wanted)]
            return [builder.add(start, builder.mul(i, stride)) for i in kept]

        a_lines, b_lines = lines(a, a_row, DOT_ROWS, rows), lines(b, b_column, DOT_COLUMNS, columns)

        def step(at: Any, sums: Sequence[Any], mask: Any = None) -> list[Any]:
            right = [v.load(builder.add(line, at), mask) for line in b_lines]
            left = [v.load(builder.add(line, at), mask) for line in a_lines]
            pairs = [(x, y) for x in left for y in right]
            return [v.add_product(x, y, total) for (x, y), total in zip(pairs, sums, strict=True)]

        rest = builder.and_(count, _number(LANES - 1))
        whole = builder.mul(builder.sub(count, rest), _number(_BYTES))
        entry, zeros = builder.block, [v.zero] * LANES
        body, after, tail, done = (_block(builder, name) for name in ("body", "after", "tail", "done"))
        builder.cbranch(builder.icmp_signed(">", whole, _number(0)), body, after)

        builder.position_at_end(body)
        at, *sums = loop = _phis(builder, [_I64, *(v.kind for _ in zeros)], [_number(0), *zeros], entry)
        added = step(at, sums)
        following = builder.add(at, _number(VECTOR_BYTES))
        _come(loop, [following, *added], builder.block)
        builder.cbranch(builder.icmp_signed("<", following, whole), body, after)

        builder.position_at_end(after)
        sums = _phis(builder, [v.kind for _ in zeros], zeros, entry)
        _come(sums, added, body)
        builder.cbranch(builder.icmp_signed(">", rest, _number(0)), tail, done)

        builder.position_at_end(tail)
        ended = step(whole, sums, v.first(rest))
        builder.branch(done)

        builder.position_at_end(done)
        totals = _phis(builder, [v.kind for _ in zeros], sums, after)
        _come(totals, ended, tail)
        gathered, order = _gathered(v, totals)
        short = _Vectors(builder, DOT_COLUMNS)
        mask = short.first(columns)
        for row in range(DOT_ROWS):
            with builder.if_then(builder.icmp_signed("<", _number(row), rows)):
                lanes = [order.index(row * DOT_COLUMNS + column) for column in range(DOT_COLUMNS)]
                place = builder.add(c, builder.mul(c_row, _number(row)))
                short.store(v.chosen(gathered, gathered, lanes), place, mask)
        return context.get_dummy_value()

    return signature, generate


@_intrinsic
def transpose_block(typing_context, b, b_column, columns, count, panel, panel_row):  # type: ignore[no-untyped-def]
    """panel[k, n] = B[k, n] for k < LANES and n < LANES, where B's columns are lines in memory.

    Columns from `columns` on repeat the last one; zeros where k ≥ count. The panel's rows are panel_row bytes apart.
    """
    signature = types.void(*(types.int64,) * 6)

    def generate(context, builder, _, args):  # type: ignore[no-untyped-def]
        b, b_column, columns, count, panel, panel_row = args
        v = _Vectors(builder)
        mask, last = v.first(count), builder.sub(columns, _number(1))
        found = []
        for i in range(LANES):
            kept = builder.select(builder.icmp_signed("<", _number(i), last), _number(i), last)
            found.append(v.load(builder.add(b, builder.mul(kept, b_column)), mask))
        apart = LANES // 2
        while apart:
            # Swaps the two off-diagonal squares of `apart` lanes in each larger square.
            first = [lane if not lane & apart else LANES + lane - apart for lane in range(LANES)]
            second = [lane + apart if not lane & apart else LANES + lane for lane in range(LANES)]
            for i in range(LANES):
                if not i & apart:
                    x, y = found[i], found[i + apart]
                    found[i], found[i + apart] = v.chosen(x, y, first), v.chosen(x, y, second)
            apart //= 2
        for i, value in enumerate(found):
            v.store(value, builder.add(panel, builder.mul(panel_row, _number(i))))
        return context.get_dummy_value()

    return signature, generate


@_intrinsic
def copy_line(typing_context, source, columns, target):  # type: ignore[no-untyped-def]
    """Copies a line of `columns` floats, 2 · LANES or at most LANES, to aligned memory. Zeros follow up to LANES."""
    signature = types.void(types.int64, types.int64, types.int64)

    def generate(context, builder, _, args):  # type: ignore[no-untyped-def]
        source, columns, target = args
        v = _Vectors(builder)
        with builder.if_else(builder.icmp_signed(">", columns, _number(LANES))) as (wide, narrow):
            with wide:
                found = [v.load(builder.add(source, _number(i * VECTOR_BYTES))) for i in range(2)]
                for i, value in enumerate(found):
                    v.store(value, builder.add(target, _number(i * VECTOR_BYTES)))
            with narrow:
                v.store(v.load(source, v.first(columns)), target)
        return context.get_dummy_value()

    return signature, generate


@_intrinsic
def move_float(typing_context, source, target):  # type: ignore[no-untyped-def]
    """Copies the float at one address to another."""

    def generate(context, builder, _, args):  # type: ignore[no-untyped-def]
        source, target = (builder.inttoptr(address, _FLOAT.as_pointer()) for address in args)
        builder.store(builder.load(source, align=_BYTES), target, align=_BYTES)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@_intrinsic
def put(typing_context, address, value):  # type: ignore[no-untyped-def]
    """Writes an int64."""

    def generate(context, builder, _, args):  # type: ignore[no-untyped-def]
        builder.store(args[1], builder.inttoptr(args[0], _I64.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _reserve(size: int) -> Any:
    """An intrinsic: the address of `size` bytes on the stack, aligned to a vector, until the function returns."""

    @_intrinsic
    def reserved(typing_context):  # type: ignore[no-untyped-def]
        def generate(context, builder, _, args):  # type: ignore[no-untyped-def]
            with builder.goto_entry_block():
                memory = builder.alloca(ir.ArrayType(_I8, size))
                memory.align = VECTOR_BYTES
            return builder.ptrtoint(memory, _I64)

        return types.int64(), generate

    return reserved


#: For a copied panel of B, two vectors wide; and for a job.
panel_memory, job_memory = _reserve(PANEL_INNER * 2 * VECTOR_BYTES), _reserve(8 * JOB_WORDS)
block_memory = _reserve(PANEL_INNER * BLOCK_ROWS * _BYTES)
