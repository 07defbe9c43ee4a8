"""Matrices transposed, through tiles of shared memory, so that a warp reads and writes neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import cuda

if TYPE_CHECKING:
    from collections.abc import Callable


def transposer(threads: int, edge: int, element: Any) -> Callable[..., None]:
    """source[batches, rows, columns] → out[batches, columns, rows], for blocks of so many threads.

    Each block takes a tile of edge × edge at a time; `threads` is a multiple of `edge`.
    """
    lines, wide = threads // edge, edge + 1
    # a column more than the tile has, so that a column's elements are in different banks
    cells = edge * wide

    def run(batches, rows, columns, source, out):  # type: ignore[no-untyped-def]
        tile = cuda.shared.array(cells, element)
        across, down = (columns + edge - 1) // edge, (rows + edge - 1) // edge
        x, y = cuda.threadIdx.x % edge, cuda.threadIdx.x // edge
        for t in range(cuda.blockIdx.x, batches * across * down, cuda.gridDim.x):
            matrix = t // (across * down) * rows * columns
            top, left = t // across % down * edge, t % across * edge
            for i in range(y, edge, lines):
                if top + i < rows and left + x < columns:
                    tile[i * wide + x] = source[matrix + (top + i) * columns + left + x]
            cuda.syncthreads()
            for i in range(y, edge, lines):
                if left + i < columns and top + x < rows:
                    out[matrix + (left + i) * rows + top + x] = tile[x * wide + i]
            cuda.syncthreads()

    return run
