"""Diagonals and bands: Diag*, MatrixDiag*, MatrixDiagPart*, MatrixSetDiag*, MatrixBandPart, under old names too.

Diagonal k of a matrix runs from (0, k) for k ≥ 0 and from (−k, 0) for k < 0. Several diagonals are the rows of a block,
the highest first, padded on the side that `align` says. Outputs are fresh. What is checked here serves a GPU's kernels
too: it reads no element. Follows matrix_diag_op.cc and matrix_set_diag_op.cc, diag_op.cc and matrix_band_part_op.cc.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid, one_number, scalar_object, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel


@dataclass(frozen=True, slots=True)
class Diagonal:
    """So many elements from (row, column) of the matrix on, and from column `at` of the block on."""

    length: int
    row: int
    column: int
    at: int

    def places(self) -> tuple[Array, Array, Array]:
        """Row and column numbers in the matrix, and columns in the block."""
        steps = np.arange(self.length)
        return steps + self.row, steps + self.column, steps + self.at


@dataclass(frozen=True, slots=True)
class Band:
    """Diagonals of matrices of one size, the highest first, and how many columns their block has."""

    rows: int
    columns: int
    width: int
    diagonals: tuple[Diagonal, ...]


def _bounds(k: Array) -> tuple[int, int]:
    """The lowest and the highest diagonal."""
    if k.ndim > 1 or k.size not in (1, 2):
        raise invalid(f"diag_index must have one or two elements, received tensor of shape {shape_text(k.shape)}")
    values = [int(v) for v in k.reshape(-1).tolist()]
    low, high = values[0], values[-1]
    if low > high:
        raise invalid(f"lower_diag_index must not be larger than upper_diag_index: {low} > {high}")
    return low, high


def _length(k: int, rows: int, columns: int) -> int:
    return min(rows + min(k, 0), columns - max(k, 0))


def _align(node: KernelNode) -> tuple[bool, bool]:
    """Whether diagonals above, and below, the main one start at the left of a block's row. V2 has no choice."""
    text = text_attr(node, "align", "LEFT_LEFT")
    above, _, below = text.partition("_")
    return above == "LEFT", below == "LEFT"


def _band(low: int, high: int, rows: int, columns: int, node: KernelNode, beyond: bool = False) -> Band:
    """The band of these diagonals. Raises InvalidArgumentError for one that the matrices do not have, unless some may
    lie `beyond` their corners.
    """
    for name, k in () if beyond else (("lower_diag_index", low), ("upper_diag_index", high)):
        if not (-rows < k < columns or k == 0):
            raise invalid(f"{name} is out of bound: {k}. It must be between {-rows} and {columns}")
    left_above, left_below = _align(node)
    width = max(_length(k, rows, columns) for k in range(low, high + 1))
    diagonals = []
    for k in range(high, low - 1, -1):
        count = max(_length(k, rows, columns), 0)
        left = left_above if k >= 0 else left_below
        diagonals.append(Diagonal(count, max(-k, 0), max(k, 0), 0 if left else width - count))
    return Band(rows, columns, width, tuple(diagonals))


def check_padding(padding: Array) -> None:
    """Raises InvalidArgumentError unless it is one number."""
    if padding.size != 1:
        raise invalid(f"padding_value must be a scalar, got shape {shape_text(padding.shape)}")


def band_of_diagonals(
    diagonal: Array, k: Array, num_rows: Array, num_cols: Array, padding: Array, node: KernelNode
) -> Band:
    """The band that MatrixDiagV3 makes matrices of. Raises InvalidArgumentError."""
    low, high = _bounds(k)
    if diagonal.ndim < 1:
        raise invalid(f"diagonal must be at least 1-dim, received shape: {shape_text(diagonal.shape)}")
    if low != high and (diagonal.ndim < 2 or diagonal.shape[-2] != high - low + 1):
        raise invalid(
            "The number of diagonals provided in the input does not match the lower_diag_index and "
            f"upper_diag_index range: {shape_text(diagonal.shape)} for {low} … {high}"
        )
    width = diagonal.shape[-1]
    least_rows, least_columns = width - min(high, 0), width + max(low, 0)
    rows, columns = one_number(num_rows, "num_rows"), one_number(num_cols, "num_cols")
    check_padding(padding)
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    elif rows == -1:
        rows = least_rows
    elif columns == -1:
        columns = least_columns
    if rows < least_rows:
        raise invalid("The number of rows is too small.")
    if columns < least_columns:
        raise invalid("The number of columns is too small.")
    if rows != least_rows and columns != least_columns:
        raise invalid(
            "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal."
        )
    band = _band(low, high, rows, columns, node, beyond=True)
    allow((*(diagonal.shape[:-2] if low != high else diagonal.shape[:-1]), rows, columns), diagonal.dtype)
    return band


@kernel("MatrixDiagV2", "MatrixDiagV3")
def build_matrix_diag_v3(node: KernelNode) -> Compute:
    """(diagonals, k, num_rows, num_cols, padding) → matrices; -1 rows or columns are worked out."""

    def compute(diagonal: Array, k: Array, num_rows: Array, num_cols: Array, padding: Array) -> Array:
        band = band_of_diagonals(diagonal, k, num_rows, num_cols, padding, node)
        several = len(band.diagonals) > 1
        batch = diagonal.shape[:-2] if several else diagonal.shape[:-1]
        block = diagonal if several else diagonal[..., None, :]
        out = np.full((*batch, band.rows, band.columns), padding.reshape(()), diagonal.dtype)
        for i, each in enumerate(band.diagonals):
            at_rows, at_columns, at = each.places()
            out[..., at_rows, at_columns] = block[..., i, at]
        return out

    return compute


def matrix_size(x: Array) -> tuple[int, int]:
    """Rows and columns of its matrices. Raises InvalidArgumentError unless it has any."""
    if x.ndim < 2:
        raise invalid(f"input must be at least 2-dim, received shape: {shape_text(x.shape)}")
    return x.shape[-2], x.shape[-1]


def band_of_matrices(x: Array, k: Array, node: KernelNode) -> Band:
    """The band of x's matrices that is read or written. Raises InvalidArgumentError."""
    (rows, columns), (low, high) = matrix_size(x), _bounds(k)
    band = _band(low, high, rows, columns, node)
    allow((*x.shape[:-2], len(band.diagonals), band.width), x.dtype)
    return band


@kernel("MatrixDiagPartV2", "MatrixDiagPartV3")
def build_matrix_diag_part_v3(node: KernelNode) -> Compute:
    """(matrices, k, padding) → a diagonal, or the block of several."""

    def compute(x: Array, k: Array, padding: Array) -> Array:
        band = band_of_matrices(x, k, node)
        check_padding(padding)
        out = np.full((*x.shape[:-2], len(band.diagonals), band.width), padding.reshape(()), x.dtype)
        for i, each in enumerate(band.diagonals):
            at_rows, at_columns, at = each.places()
            out[..., i, at] = x[..., at_rows, at_columns]
        return out if len(band.diagonals) > 1 else np.ascontiguousarray(out[..., 0, :])

    return compute


def check_set_diagonals(x: Array, diagonal: Array, band: Band) -> None:
    """Raises InvalidArgumentError unless there is a diagonal for each of the band."""
    several = (len(band.diagonals),) if len(band.diagonals) > 1 else ()
    expected = (*x.shape[:-2], *several, band.width)
    if diagonal.shape != expected:
        raise invalid(
            "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] is not equal "
            "to the longests diagonal in range [lower_diag_index:upper_diag_index].\nInput shape: "
            f"{shape_text(x.shape)}\nDiagonal shape: {shape_text(diagonal.shape)}\n"
            f"Expected diagonal shape: {shape_text(expected)}"
        )


@kernel("MatrixSetDiagV2", "MatrixSetDiagV3")
def build_matrix_set_diag_v3(node: KernelNode) -> Compute:
    """(matrices, diagonals, k) → the matrices with these diagonals replaced."""

    def compute(x: Array, diagonal: Array, k: Array) -> Array:
        band = band_of_matrices(x, k, node)
        check_set_diagonals(x, diagonal, band)
        block = diagonal if len(band.diagonals) > 1 else diagonal[..., None, :]
        out = x.copy()
        for i, each in enumerate(band.diagonals):
            at_rows, at_columns, at = each.places()
            out[..., at_rows, at_columns] = block[..., i, at]
        return out

    return compute


def check_diag(x: Array) -> None:
    """Raises InvalidArgumentError for a scalar."""
    if x.ndim < 1:
        raise invalid("Input must be at least rank 1, got 0")
    allow(x.shape + x.shape, x.dtype, 2)


@kernel("Diag")
def build_diag(node: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        check_diag(x)
        return np.diag(x.reshape(-1)).reshape(x.shape + x.shape).copy()

    return compute


def diag_part_shape(x: Array) -> tuple[int, ...]:
    """The shape of the diagonal: half of x's. Raises InvalidArgumentError where the halves differ."""
    half = x.ndim // 2
    if x.ndim % 2 or not half or x.shape[:half] != x.shape[half:]:
        raise invalid(f"The rank of the tensor should be even and its halves equal, got shape {shape_text(x.shape)}")
    shape: tuple[int, ...] = x.shape[:half]
    return shape


@kernel("DiagPart", views=True)
def build_diag_part(node: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        shape = diag_part_shape(x)
        size = math.prod(shape)
        return x.reshape(size, size).diagonal().reshape(shape).copy()

    return compute


def check_matrix_diag(x: Array) -> None:
    """Raises InvalidArgumentError for a scalar."""
    if x.ndim < 1:
        raise invalid(f"input must be at least 1-dim, received shape: {shape_text(x.shape)}")
    allow((*x.shape, x.shape[-1]), x.dtype)


@kernel("MatrixDiag", "BatchMatrixDiag")
def build_matrix_diag(node: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        check_matrix_diag(x)
        n = x.shape[-1]
        out = np.full((*x.shape, n), b"" if x.dtype.hasobject else 0, dtype=x.dtype)
        out[..., np.arange(n), np.arange(n)] = x
        return out

    return compute


@kernel("MatrixDiagPart", "BatchMatrixDiagPart", views=True)
def build_matrix_diag_part(node: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        matrix_size(x)
        return x.diagonal(axis1=-2, axis2=-1).copy()

    return compute


def check_set_diag(x: Array, diagonal: Array) -> None:
    """Raises InvalidArgumentError unless `diagonal` has the shape of the diagonals of x's matrices."""
    n = min(matrix_size(x))
    if diagonal.shape != (*x.shape[:-2], n):
        raise invalid(
            f"must have diagonal.shape == [{','.join(map(str, (*x.shape[:-2], n)))}], "
            f"received diagonal shape: {shape_text(diagonal.shape)}"
        )


@kernel("MatrixSetDiag", "BatchMatrixSetDiag")
def build_matrix_set_diag(node: KernelNode) -> Compute:
    def compute(x: Array, diagonal: Array) -> Array:
        check_set_diag(x, diagonal)
        out = x.copy()
        n = diagonal.shape[-1]
        out[..., np.arange(n), np.arange(n)] = diagonal
        return out

    return compute


def band_bounds(x: Array, lower: Array, upper: Array) -> tuple[int, int]:
    """How many diagonals below and above the main one are kept; negative: all. Raises InvalidArgumentError."""
    rows, columns = matrix_size(x)
    low, high = one_number(lower, "num_lower"), one_number(upper, "num_upper")
    if low > rows or high > columns:
        raise invalid(f"num_lower and num_upper must be at most the matrix's size, got {low} and {high}")
    return low, high


@kernel("MatrixBandPart", "BatchMatrixBandPart", views=True)
def build_matrix_band_part(node: KernelNode) -> Compute:
    def compute(x: Array, lower: Array, upper: Array) -> Array:
        low, high = band_bounds(x, lower, upper)
        rows, columns = x.shape[-2:]
        offset = np.arange(columns) - np.arange(rows)[:, None]
        keep = ((low < 0) | (-offset <= low)) & ((high < 0) | (offset <= high))
        return np.where(keep, x, scalar_object(b"") if x.dtype.hasobject else x.dtype.type(0))

    return compute
