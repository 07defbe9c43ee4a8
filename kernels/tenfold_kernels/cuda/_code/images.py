"""Images [N, H, W, C] with other borders: more of them, which hold zeros, or fewer."""

from __future__ import annotations

from numba import cuda


def bordered(n, height, width, depth, from_height, from_width, top, left, zero, source, out):  # type: ignore[no-untyped-def]
    """out[N, height, width, depth] has source[N, from_height, from_width, depth] from row `top` and column `left` on,
    as far as it goes there; zeros elsewhere. Both may be negative. n elements of out.
    """
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        c = i % depth
        pixel = i // depth
        row = pixel // width % height - top
        column = pixel % width - left
        if row >= 0 and row < from_height and column >= 0 and column < from_width:
            image = pixel // (width * height)
            out[i] = source[((image * from_height + row) * from_width + column) * depth + c]
        else:
            out[i] = zero
