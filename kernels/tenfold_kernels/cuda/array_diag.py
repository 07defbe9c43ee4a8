"""Diagonals and bands: a diagonal is a strided place of a matrix. Follows cpu/array_diag.py in its checks.

Of several diagonals (V2, V3) each is one copy.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tenfold_kernels.cpu import array_diag as checks
from tenfold_kernels.cuda import _moves, _picks
from tenfold_kernels.cuda._types import MOVED, ON_HOST
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, shared_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cuda._arrays import DeviceArray

_MATRIX_OPS = ("MatrixDiag", "MatrixDiagPart", "MatrixSetDiag", "MatrixBandPart")
shared_kernel("Diag", "DiagPart", *_MATRIX_OPS, *(f"Batch{op}" for op in _MATRIX_OPS), host=(EVERYTHING,), T=ON_HOST)
_V3 = tuple(f"{op}{version}" for op in _MATRIX_OPS[:3] for version in ("V2", "V3"))
shared_kernel(*_V3, host=(EVERYTHING,), T=ON_HOST)


@kernel("Diag", device="GPU", T=MOVED)
def build_diag(node: KernelNode) -> Compute:
    def compute(x: DeviceArray) -> DeviceArray:
        checks.check_diag(x)  # type: ignore[arg-type] # its shape and type are all that it reads
        out = _zeros(x, x.shape + x.shape)
        _moves.put(x.reshape((x.size,)), out, _diagonal((), x.size, x.size, x.dtype.itemsize))
        return out

    return compute


@kernel("DiagPart", device="GPU", views=True, T=MOVED)
def build_diag_part(node: KernelNode) -> Compute:
    def compute(x: DeviceArray) -> DeviceArray:
        shape = checks.diag_part_shape(x)  # type: ignore[arg-type] # as above
        size = math.prod(shape)
        return _moves.take(x, _diagonal((), size, size, x.dtype.itemsize)).reshape(shape)

    return compute


@kernel("MatrixDiag", "BatchMatrixDiag", device="GPU", T=MOVED)
def build_matrix_diag(node: KernelNode) -> Compute:
    def compute(x: DeviceArray) -> DeviceArray:
        checks.check_matrix_diag(x)  # type: ignore[arg-type] # as above
        n = x.shape[-1]
        out = _zeros(x, (*x.shape, n))
        _moves.put(x, out, _diagonal(x.shape[:-1], n, n, x.dtype.itemsize))
        return out

    return compute


@kernel("MatrixDiagPart", "BatchMatrixDiagPart", device="GPU", views=True, T=MOVED)
def build_matrix_diag_part(node: KernelNode) -> Compute:
    def compute(x: DeviceArray) -> DeviceArray:
        rows, columns = checks.matrix_size(x)  # type: ignore[arg-type] # as above
        return _moves.take(x, _diagonal(x.shape[:-2], rows, columns, x.dtype.itemsize))

    return compute


@kernel("MatrixSetDiag", "BatchMatrixSetDiag", device="GPU", T=MOVED)
def build_matrix_set_diag(node: KernelNode) -> Compute:
    def compute(x: DeviceArray, diagonal: DeviceArray) -> DeviceArray:
        checks.check_set_diag(x, diagonal)  # type: ignore[arg-type] # as above
        out = _copied(x)
        rows, columns = x.shape[-2:]
        _moves.put(diagonal, out, _diagonal(x.shape[:-2], rows, columns, x.dtype.itemsize))
        return out

    return compute


def _zeros(like: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    out = like.runtime.empty(shape, like.dtype)
    like.runtime.zero(out)
    return out


def _copied(x: DeviceArray) -> DeviceArray:
    out = x.runtime.empty(x.shape, x.dtype)
    x.runtime.copy(x, out)
    return out


def _diagonal(
    batch: tuple[int, ...], rows: int, columns: int, itemsize: int, row: int = 0, column: int = 0
) -> _moves.Place:
    """The diagonal of each matrix of a batch that begins in that row and column, [batch…, length]."""
    strides = _moves.whole_of((*batch, rows, columns), itemsize).strides[:-2]
    shape = (*batch, max(min(rows - row, columns - column), 0))
    return _moves.Place(shape, (*strides, (columns + 1) * itemsize), (row * columns + column) * itemsize)


def _diagonals(
    batch: tuple[int, ...], band: checks.Band, itemsize: int, several: bool
) -> list[tuple[_moves.Place, _moves.Place]]:
    """For each diagonal of a band: its place in the matrices, and in the block of diagonals."""
    block = _moves.whole_of((*batch, *((len(band.diagonals),) if several else ()), band.width), itemsize).strides
    lead = block[: len(batch)]
    found = []
    for number, each in enumerate(band.diagonals):
        matrix = _diagonal(batch, band.rows, band.columns, itemsize, each.row, each.column)
        at = _moves.Place(matrix.shape, (*lead, itemsize), (number * band.width + each.at) * itemsize)
        found.append((matrix, at))
    return found


def _filled(
    x: DeviceArray, shape: tuple[int, ...], padding: DeviceArray, places: Sequence[tuple[_moves.Place, _moves.Place]]
) -> DeviceArray:
    """An array of the padding, but for what x has at the first of two places: it goes to the second."""
    out = x.runtime.empty(shape, x.dtype)
    _moves.fill(out, padding)
    for at, to in places:
        _moves.move(x, at, out, to)
    return out


@kernel("MatrixDiagV2", "MatrixDiagV3", device="GPU", host=("k", "num_rows", "num_cols"), T=MOVED)
def build_matrix_diag_v3(node: KernelNode) -> Compute:
    def compute(x: DeviceArray, k: Array, rows: Array, columns: Array, padding: DeviceArray) -> DeviceArray:
        band = checks.band_of_diagonals(x, k, rows, columns, padding, node)  # type: ignore[arg-type] # as above
        several = len(band.diagonals) > 1
        batch = x.shape[:-2] if several else x.shape[:-1]
        places = _diagonals(batch, band, x.dtype.itemsize, several)
        return _filled(x, (*batch, band.rows, band.columns), padding, [(block, matrix) for matrix, block in places])

    return compute


@kernel("MatrixDiagPartV2", "MatrixDiagPartV3", device="GPU", host=("k",), T=MOVED)
def build_matrix_diag_part_v3(node: KernelNode) -> Compute:
    def compute(x: DeviceArray, k: Array, padding: DeviceArray) -> DeviceArray:
        band = checks.band_of_matrices(x, k, node)  # type: ignore[arg-type] # as above
        checks.check_padding(padding)  # type: ignore[arg-type] # as above
        several, batch = len(band.diagonals) > 1, x.shape[:-2]
        shape = (*batch, *((len(band.diagonals),) if several else ()), band.width)
        return _filled(x, shape, padding, _diagonals(batch, band, x.dtype.itemsize, several))

    return compute


@kernel("MatrixSetDiagV2", "MatrixSetDiagV3", device="GPU", host=("k",), T=MOVED)
def build_matrix_set_diag_v3(node: KernelNode) -> Compute:
    def compute(x: DeviceArray, diagonal: DeviceArray, k: Array) -> DeviceArray:
        band = checks.band_of_matrices(x, k, node)  # type: ignore[arg-type] # as above
        checks.check_set_diagonals(x, diagonal, band)  # type: ignore[arg-type] # as above
        out = _copied(x)
        for matrix, block in _diagonals(x.shape[:-2], band, x.dtype.itemsize, len(band.diagonals) > 1):
            _moves.move(diagonal, block, out, matrix)
        return out

    return compute


@kernel("MatrixBandPart", "BatchMatrixBandPart", device="GPU", host=("num_lower", "num_upper"), T=MOVED)
def build_matrix_band_part(node: KernelNode) -> Compute:
    def compute(x: DeviceArray, lower: Array, upper: Array) -> DeviceArray:
        low, high = checks.band_bounds(x, lower, upper)  # type: ignore[arg-type] # as above
        out = x.runtime.empty(x.shape, x.dtype)
        if out.size:
            arrays = (_picks.as_whole(x), _picks.as_whole(out))
            _picks.launch("arrays.band", out.size, (*x.shape[-2:], low, high), arrays)
        return out

    return compute
