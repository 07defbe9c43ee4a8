"""Products of float32 matrices by kernels of our own: whole, or a chunk of the columns or rows, without the GIL.

C_MN = A_MK · B_KN. There are three ways through tiles of product_tiles.py, chosen by how B lies in memory: rows of B,
under few rows of A, are read in place; columns that are lines, under few rows of A, are multiplied as dot products;
else a panel of B, as wide as a tile, is copied to the stack first. A is read in place, but for one whose columns are
lines far apart, or whose rows are: a block of its rows is copied, too, or each element would be looked for on another
page, or too few sets of the cache be used. Used by cpu/_products.py, and in chunks by tenfold_kernels/chunks.py: of one
product, or of a batch of small ones.

A chunk function finds its job in a vector of int64, whose places are `Job`.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy as np

from .compiling import compile_loop, inline
from .intrinsics import (
    BLOCK_ROWS,
    DOT_COLUMNS,
    PANEL_INNER,
    PRODUCT_ROWS,
    VECTOR_BYTES,
    block_memory,
    call_2,
    copy_line,
    dot_tile,
    job_memory,
    load,
    move_float,
    panel_memory,
    put,
    row_sums,
    transpose_block,
)
from .loop_spec import CALLBACK

if TYPE_CHECKING:
    from collections.abc import Callable


class Job(enum.IntEnum):
    """What a job is. A, B and C are addresses, `_ROW` and `_COLUMN` bytes from one to the next; C's rows are lines."""

    M = 0
    N = 1
    K = 2
    A = 3
    A_ROW = 4
    A_COLUMN = 5
    B = 6
    B_ROW = 7
    B_COLUMN = 8
    C = 9
    C_ROW = 10
    #: Whether the columns of C are cut into chunks, else the rows are; and how many a chunk has.
    BY_COLUMNS = 11
    STEP = 12
    #: Whether the product is added to what is in C.
    ADD = 13
    #: Of a batch, of which a chunk has STEP matrices: how many there are, and bytes from one to the next; they are in
    #: groups of INNER, of which A's and B's first ones are so many bytes apart.
    COUNT = 14
    INNER = 15
    A_NEXT = 16
    B_NEXT = 17
    C_NEXT = 18
    A_GROUP = 19
    B_GROUP = 20


# The places in bytes as constants of the loops: Numba reads no enum.
(
    _M, _N, _K, _A, _A_ROW, _A_COLUMN, _B, _B_ROW, _B_COLUMN, _C, _C_ROW, _BY_COLUMNS, _STEP, _ADD,
    _COUNT, _INNER_COUNT, _A_NEXT, _B_NEXT, _C_NEXT, _A_GROUP, _B_GROUP,
) = (8 * int(place) for place in Job)  # fmt: skip
_FLOAT = 4
_LANES = VECTOR_BYTES // _FLOAT
#: Columns of a tile, and rows of a tile of dot products.
_WIDTH, _DOT_ROWS = 2 * _LANES, _LANES // DOT_COLUMNS
#: Inner elements after which tiles begin anew when A has many rows: so much of B stays in the first cache meanwhile.
_INNER, _FEW_ROWS = 256, 64
#: Rows of A above which rows of B are copied, too: where they lie they would push each other out of the first cache.
_MOST_IN_PLACE = 4 * PRODUCT_ROWS
#: Bytes from one column of A to the next, and columns of B, from which a copied block of A pays.
_FAR, _MANY = 1024, 2 * _WIDTH
#: How many times as far apart as they are long the rows of A are where a copied block of them pays: those of one head
#: among others leave most of the first cache's sets empty.
_APART = 2
#: Dot products read A once for each DOT_COLUMNS columns, and are added up at the end: for few rows and long lines.
_DOT_MOST_ROWS, _DOT_LEAST_INNER = 96, 64


@inline
def _tiles(m, columns, k, a, a_row, a_column, b, b_row, c, c_row, add):  # type: ignore[no-untyped-def]
    # All rows of A times one or two vectors of columns of B, whose rows are lines.
    count = (m + PRODUCT_ROWS - 1) // PRODUCT_ROWS
    height = (m + count - 1) // count
    for row in range(0, m, height):
        rows = min(height, m - row)
        row_sums(rows, a + row * a_row, a_row, a_column, b, b_row, k, c + row * c_row, c_row, columns, add)


@inline
def _width_at(column, n):  # type: ignore[no-untyped-def]
    return _WIDTH if n - column >= _WIDTH else min(n - column, _LANES)


@inline
def _in_place(m, n, k, a, a_row, a_column, b, b_row, c, c_row, add):  # type: ignore[no-untyped-def]
    most = _INNER if m > _FEW_ROWS else k
    for inner in range(0, k, most):
        length = min(most, k - inner)
        column = 0
        while column < n:
            columns = _width_at(column, n)
            at = b + inner * b_row + column * _FLOAT
            to = c + column * _FLOAT
            _tiles(m, columns, length, a + inner * a_column, a_row, a_column, at, b_row, to, c_row, add or inner > 0)
            column += columns


@inline
def _by_panels(m, n, k, a, a_row, a_column, b, b_row, b_column, c, c_row, add):  # type: ignore[no-untyped-def]
    panel, line = panel_memory(), _WIDTH * _FLOAT
    block, block_line = block_memory(), BLOCK_ROWS * _FLOAT
    copied = a_row == _FLOAT and a_column >= _FAR and m > PRODUCT_ROWS and n >= _MANY
    apart = a_column == _FLOAT and a_row >= _APART * k * _FLOAT and m > PRODUCT_ROWS and n >= 2 * _MANY
    blocks = (m + BLOCK_ROWS - 1) // BLOCK_ROWS if copied or apart or m > 2 * BLOCK_ROWS else 1
    most = (m + blocks * PRODUCT_ROWS - 1) // (blocks * PRODUCT_ROWS) * PRODUCT_ROWS
    for inner in range(0, k, PANEL_INNER):
        length = min(PANEL_INNER, k - inner)
        for top in range(0, m, most):
            rows = min(most, m - top)
            left, left_row, left_column = a + inner * a_column + top * a_row, a_row, a_column
            if copied:
                for x in range(length):
                    row = 0
                    while row < rows:
                        count = _width_at(row, rows)
                        copy_line(left + x * a_column + row * _FLOAT, count, block + x * block_line + row * _FLOAT)
                        row += count
                left, left_row, left_column = block, _FLOAT, block_line
            elif apart:
                for row in range(rows):
                    x = 0
                    while x < length:
                        count = _width_at(x, length)
                        copy_line(left + row * a_row + x * _FLOAT, count, block + (row * length + x) * _FLOAT)
                        x += count
                left, left_row = block, length * _FLOAT
            column = 0
            while column < n:
                columns = _width_at(column, n)
                _copy_panel(b + inner * b_row + column * b_column, b_row, b_column, length, columns, panel, line)
                to = c + top * c_row + column * _FLOAT
                _tiles(rows, columns, length, left, left_row, left_column, panel, line, to, c_row, add or inner > 0)
                column += columns


@inline
def _copy_panel(b, b_row, b_column, length, columns, panel, line):  # type: ignore[no-untyped-def]
    if b_column == _FLOAT:
        for row in range(length):
            copy_line(b + row * b_row, columns, panel + row * line)
    elif b_row == _FLOAT:
        for x in range(0, columns, _LANES):
            for y in range(0, length, _LANES):
                source, to = b + x * b_column + y * _FLOAT, panel + y * line + x * _FLOAT
                transpose_block(source, b_column, min(columns - x, _LANES), length - y, to, line)
    else:
        _copy(b, b_row, b_column, length, columns, panel, line)


@inline
def _copy(b, b_row, b_column, rows, columns, panel, line):  # type: ignore[no-untyped-def]
    for row in range(rows):
        for column in range(columns):
            move_float(b + row * b_row + column * b_column, panel + row * line + column * _FLOAT)


@inline
def _by_dots(m, n, k, a, a_row, b, b_column, c, c_row):  # type: ignore[no-untyped-def]
    for column in range(0, n, DOT_COLUMNS):
        for row in range(0, m, _DOT_ROWS):
            at, to = b + column * b_column, c + row * c_row + column * _FLOAT
            dot_tile(a + row * a_row, a_row, m - row, at, b_column, n - column, k, to, c_row)


def chunk(job, number):  # type: ignore[no-untyped-def]
    """One chunk of a job; a job in one piece has a step no smaller than its side. K ≥ 1."""
    m, n, k = load(job + _M), load(job + _N), load(job + _K)
    a, a_row, a_column = load(job + _A), load(job + _A_ROW), load(job + _A_COLUMN)
    b, b_row, b_column = load(job + _B), load(job + _B_ROW), load(job + _B_COLUMN)
    c, c_row, add = load(job + _C), load(job + _C_ROW), load(job + _ADD)
    first = number * load(job + _STEP)
    if load(job + _BY_COLUMNS):
        n = min(load(job + _STEP), n - first)
        b, c = b + first * b_column, c + first * _FLOAT
    else:
        m = min(load(job + _STEP), m - first)
        a, c = a + first * a_row, c + first * c_row
    _multiply(m, n, k, a, a_row, a_column, b, b_row, b_column, c, c_row, add)


def batch_chunk(job, number):  # type: ignore[no-untyped-def]
    """Some matrices of a batch. K ≥ 1."""
    m, n, k = load(job + _M), load(job + _N), load(job + _K)
    a_row, a_column = load(job + _A_ROW), load(job + _A_COLUMN)
    b_row, b_column, c_row = load(job + _B_ROW), load(job + _B_COLUMN), load(job + _C_ROW)
    inner, step = load(job + _INNER_COUNT), load(job + _STEP)
    for i in range(number * step, min((number + 1) * step, load(job + _COUNT))):
        group, place = i // inner, i % inner
        a = load(job + _A) + group * load(job + _A_GROUP) + place * load(job + _A_NEXT)
        b = load(job + _B) + group * load(job + _B_GROUP) + place * load(job + _B_NEXT)
        c = load(job + _C) + i * load(job + _C_NEXT)
        _multiply(m, n, k, a, a_row, a_column, b, b_row, b_column, c, c_row, 0)


@inline
def _multiply(m, n, k, a, a_row, a_column, b, b_row, b_column, c, c_row, add):  # type: ignore[no-untyped-def]
    if b_column == _FLOAT and m <= _MOST_IN_PLACE:
        _in_place(m, n, k, a, a_row, a_column, b, b_row, c, c_row, add)
    elif b_row == _FLOAT == a_column and m <= _DOT_MOST_ROWS and k >= _DOT_LEAST_INNER and not add:
        _by_dots(m, n, k, a, a_row, b, b_column, c, c_row)
    else:
        _by_panels(m, n, k, a, a_row, a_column, b, b_row, b_column, c, c_row, add)


@inline
def _describe(job, a, b, c, by_columns, step, add):  # type: ignore[no-untyped-def]
    put(job + _M, a.shape[0])
    put(job + _N, b.shape[1])
    put(job + _K, a.shape[1])
    put(job + _A, a.ctypes.data)
    put(job + _A_ROW, a.strides[0])
    put(job + _A_COLUMN, a.strides[1])
    put(job + _B, b.ctypes.data)
    put(job + _B_ROW, b.strides[0])
    put(job + _B_COLUMN, b.strides[1])
    put(job + _C, c.ctypes.data)
    put(job + _C_ROW, c.strides[0])
    put(job + _BY_COLUMNS, by_columns)
    put(job + _STEP, step)
    put(job + _ADD, add)


def _alone(a, b, c, add, function):  # type: ignore[no-untyped-def]
    job = job_memory()
    _describe(job, a, b, c, 0, a.shape[0], add)
    call_2(function, job, 0)


def _describe_job(a, b, c, by_columns, step, add, job):  # type: ignore[no-untyped-def]
    _describe(job.ctypes.data, a, b, c, by_columns, step, add)
    return job.ctypes.data


def _describe_batch(a, b, c, step, job):  # type: ignore[no-untyped-def]
    to = job.ctypes.data
    _describe(to, a[0, 0], b[0, 0], c[0, 0], 0, step, 0)
    put(to + _COUNT, c.shape[0] * c.shape[1])
    put(to + _INNER_COUNT, c.shape[1])
    put(to + _A_NEXT, a.strides[1])
    put(to + _B_NEXT, b.strides[1])
    put(to + _C_NEXT, c.strides[1])
    put(to + _A_GROUP, a.strides[0])
    put(to + _B_GROUP, b.strides[0])
    return to


def _run(function, job):  # type: ignore[no-untyped-def]
    call_2(function, job, 0)
    return 1


def _alone_in_numpy(a: Any, b: Any, c: Any, add: int, function: int) -> None:
    if add:
        np.add(c, np.matmul(a, b), out=c)
    else:
        np.matmul(a, b, out=c)


def _nothing(*_: Any) -> int:
    return 0


def chunk_address() -> Callable[[], int]:
    """Gives the address of `chunk` as a C function; 0 until it is loaded."""
    return compile_loop(chunk, CALLBACK, np.float32, stand_in=_nothing)


def alone() -> Callable[..., Any]:
    """(a [M, K], b [K, N], c [M, N], add, address of `chunk`): c (+)= a · b. a and b in any strides, c contiguous.

    None of the sizes is 0, and c overlaps neither operand. Raises TypeError for arrays that it does not take.
    """
    return compile_loop(_alone, "v2 v2 w2 n n", np.float32, stand_in=_alone_in_numpy)


def describe_job() -> Callable[..., Any]:
    """(a, b, c, by columns, step, add, job [JOB_WORDS]): fills in the job; its address, 0 until it is loaded."""
    return compile_loop(_describe_job, "v2 v2 w2 n n n x1", np.float32, result="n", stand_in=_nothing)


def batch_chunk_address() -> Callable[[], int]:
    """Gives the address of `batch_chunk` as a C function; 0 until it is loaded."""
    return compile_loop(batch_chunk, CALLBACK, np.float32, stand_in=_nothing)


def describe_batch() -> Callable[..., Any]:
    """(a [G, I, M, K], b [G, I, K, N], c [G, I, M, N], step, job [JOB_WORDS]): fills in the job of a batch; its
    address, 0 until it is loaded. a and b in any strides, c contiguous. None of the sizes is 0.
    """
    return compile_loop(_describe_batch, "v4 v4 w4 n x1", np.float32, result="n", stand_in=_nothing)


def run() -> Callable[..., Any]:
    """(address of a chunk function, address of a job): its first chunk, here; 1, or 0 until it is loaded."""
    return compile_loop(_run, "n n", np.float32, result="n", stand_in=_nothing)
