"""Diagonals and bands: Diag*, MatrixDiag*, MatrixDiagPart*, MatrixSetDiag*, MatrixBandPart, under old names too.

Diagonal k of a matrix runs from (0, k) for k ≥ 0 and from (−k, 0) for k < 0. Several diagonals are the rows of a block,
the highest first, padded on the side that `align` says. Outputs are fresh. Follows matrix_diag_op.cc and
matrix_set_diag_op.cc, diag_op.cc and matrix_band_part_op.cc.
"""

from __future__ import annotations

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid, one_number, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel


def _band(k: Array) -> tuple[int, int]:
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


def _check_band(low: int, high: int, rows: int, columns: int) -> None:
    for name, k in (("lower_diag_index", low), ("upper_diag_index", high)):
        if not (-rows < k < columns or k == 0):
            raise invalid(f"{name} is out of bound: {k}. It must be between {-rows} and {columns}")


def _align(node: KernelNode) -> tuple[bool, bool]:
    """Whether diagonals above, and below, the main one start at the left of a block's row. V2 has no choice."""
    text = text_attr(node, "align", "LEFT_LEFT")
    above, _, below = text.partition("_")
    return above == "LEFT", below == "LEFT"


def _places(low: int, high: int, rows: int, columns: int, node: KernelNode) -> list[tuple[Array, Array, Array]]:
    """For each diagonal, the highest first: row and column numbers in the matrix, and columns in the block."""
    left_above, left_below = _align(node)
    width = max(_length(k, rows, columns) for k in range(low, high + 1))
    places = []
    for k in range(high, low - 1, -1):
        count = max(_length(k, rows, columns), 0)
        steps = np.arange(count)
        left = left_above if k >= 0 else left_below
        places.append((steps + max(-k, 0), steps + max(k, 0), steps + (0 if left else width - count)))
    return places


def _check_scalar(padding: Array) -> None:
    if padding.ndim:
        raise invalid(f"padding_value must be a scalar, got shape {shape_text(padding.shape)}")


@kernel("MatrixDiagV2", "MatrixDiagV3")
def build_matrix_diag_v3(node: KernelNode) -> Compute:
    """(diagonals, k, num_rows, num_cols, padding) → matrices; -1 rows or columns are worked out."""

    def compute(diagonal: Array, k: Array, num_rows: Array, num_cols: Array, padding: Array) -> Array:
        low, high = _band(k)
        if diagonal.ndim < 1:
            raise invalid(f"diagonal must be at least 1-dim, received shape: {shape_text(diagonal.shape)}")
        several = low != high
        if several and (diagonal.ndim < 2 or diagonal.shape[-2] != high - low + 1):
            raise invalid(
                "The number of diagonals provided in the input does not match the lower_diag_index and "
                f"upper_diag_index range: {shape_text(diagonal.shape)} for {low} … {high}"
            )
        width = diagonal.shape[-1]
        least_rows, least_columns = width - min(high, 0), width + max(low, 0)
        rows, columns = one_number(num_rows, "num_rows"), one_number(num_cols, "num_cols")
        _check_scalar(padding)
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
        _check_band(low, high, rows, columns)
        batch = diagonal.shape[:-2] if several else diagonal.shape[:-1]
        block = diagonal if several else diagonal[..., None, :]
        allow((*batch, rows, columns), diagonal.dtype)
        out = np.full((*batch, rows, columns), padding.reshape(()), diagonal.dtype)
        for i, (at_rows, at_columns, at) in enumerate(_places(low, high, rows, columns, node)):
            out[..., at_rows, at_columns] = block[..., i, at]
        return out

    return compute


def _matrix(x: Array) -> tuple[int, int]:
    if x.ndim < 2:
        raise invalid(f"input must be at least 2-dim, received shape: {shape_text(x.shape)}")
    return x.shape[-2], x.shape[-1]


@kernel("MatrixDiagPartV2", "MatrixDiagPartV3")
def build_matrix_diag_part_v3(node: KernelNode) -> Compute:
    """(matrices, k, padding) → a diagonal, or the block of several."""

    def compute(x: Array, k: Array, padding: Array) -> Array:
        (rows, columns), (low, high) = _matrix(x), _band(k)
        _check_band(low, high, rows, columns)
        places = _places(low, high, rows, columns, node)
        width = max(len(at) for _, _, at in places)
        allow((*x.shape[:-2], len(places), width), x.dtype)
        _check_scalar(padding)
        out = np.full((*x.shape[:-2], len(places), width), padding.reshape(()), x.dtype)
        for i, (at_rows, at_columns, at) in enumerate(places):
            out[..., i, at] = x[..., at_rows, at_columns]
        return out if low != high else np.ascontiguousarray(out[..., 0, :])

    return compute


@kernel("MatrixSetDiagV2", "MatrixSetDiagV3")
def build_matrix_set_diag_v3(node: KernelNode) -> Compute:
    """(matrices, diagonals, k) → the matrices with these diagonals replaced."""

    def compute(x: Array, diagonal: Array, k: Array) -> Array:
        (rows, columns), (low, high) = _matrix(x), _band(k)
        _check_band(low, high, rows, columns)
        places = _places(low, high, rows, columns, node)
        width = max(len(at) for _, _, at in places)
        expected = (*x.shape[:-2], len(places), width) if low != high else (*x.shape[:-2], width)
        if diagonal.shape != expected:
            raise invalid(
                "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] is not equal "
                "to the longests diagonal in range [lower_diag_index:upper_diag_index].\nInput shape: "
                f"{shape_text(x.shape)}\nDiagonal shape: {shape_text(diagonal.shape)}\n"
                f"Expected diagonal shape: {shape_text(expected)}"
            )
        block = diagonal if low != high else diagonal[..., None, :]
        out = x.copy()
        for i, (at_rows, at_columns, at) in enumerate(places):
            out[..., at_rows, at_columns] = block[..., i, at]
        return out

    return compute


@kernel("Diag")
def build_diag(node: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        if x.ndim < 1:
            raise invalid("Input must be at least rank 1, got 0")
        allow(x.shape + x.shape, x.dtype, 2)
        return np.diag(x.reshape(-1)).reshape(x.shape + x.shape).copy()

    return compute


@kernel("DiagPart", views=True)
def build_diag_part(node: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        half = x.ndim // 2
        if x.ndim % 2 or not half or x.shape[:half] != x.shape[half:]:
            raise invalid(
                f"The rank of the tensor should be even and its halves equal, got shape {shape_text(x.shape)}"
            )
        size = int(np.prod(x.shape[:half]))
        return x.reshape(size, size).diagonal().reshape(x.shape[:half]).copy()

    return compute


@kernel("MatrixDiag", "BatchMatrixDiag")
def build_matrix_diag(node: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        if x.ndim < 1:
            raise invalid(f"input must be at least 1-dim, received shape: {shape_text(x.shape)}")
        n = x.shape[-1]
        allow((*x.shape, n), x.dtype)
        out = np.zeros((*x.shape, n), dtype=x.dtype)
        out[..., np.arange(n), np.arange(n)] = x
        return out

    return compute


@kernel("MatrixDiagPart", "BatchMatrixDiagPart", views=True)
def build_matrix_diag_part(node: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        if x.ndim < 2:
            raise invalid(f"input must be at least 2-dim, received shape: {shape_text(x.shape)}")
        return x.diagonal(axis1=-2, axis2=-1).copy()

    return compute


@kernel("MatrixSetDiag", "BatchMatrixSetDiag")
def build_matrix_set_diag(node: KernelNode) -> Compute:
    def compute(x: Array, diagonal: Array) -> Array:
        if x.ndim < 2:
            raise invalid(f"input must be at least 2-dim, received shape: {shape_text(x.shape)}")
        out = x.copy()
        n = min(x.shape[-2:])
        if diagonal.shape != (*x.shape[:-2], n):
            raise invalid(
                f"must have diagonal.shape == [{','.join(map(str, (*x.shape[:-2], n)))}], "
                f"received diagonal shape: {shape_text(diagonal.shape)}"
            )
        out[..., np.arange(n), np.arange(n)] = diagonal
        return out

    return compute


@kernel("MatrixBandPart", "BatchMatrixBandPart", views=True)
def build_matrix_band_part(node: KernelNode) -> Compute:
    def compute(x: Array, lower: Array, upper: Array) -> Array:
        if x.ndim < 2:
            raise invalid(f"input must be at least 2-dim, received shape: {shape_text(x.shape)}")
        rows, columns = x.shape[-2:]
        low, high = one_number(lower, "num_lower"), one_number(upper, "num_upper")
        if low > rows or high > columns:
            raise invalid(f"num_lower and num_upper must be at most the matrix's size, got {low} and {high}")
        offset = np.arange(columns) - np.arange(rows)[:, None]
        keep = ((low < 0) | (-offset <= low)) & ((high < 0) | (offset <= high))
        return np.where(keep, x, x.dtype.type(0))

    return compute
