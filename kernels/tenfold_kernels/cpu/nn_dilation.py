"""Grey-scale dilation: Dilation2D. Outputs are fresh. Follows dilation_ops.cc."""

from __future__ import annotations

import numpy as np

from tenfold_kernels.arrays import Array, invalid, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import REAL


@kernel("Dilation2D", T=REAL)
def build_dilation2d(node: KernelNode) -> Compute:
    """The largest of image + filter over each window: [N, H, W, C] and [kh, kw, C] → [N, OH, OW, C]."""
    strides, rates = list(node.attrs["strides"])[1:3], list(node.attrs["rates"])[1:3]
    same = text_attr(node, "padding") == "SAME"

    def compute(x: Array, kernel_: Array) -> Array:
        if x.ndim != 4 or kernel_.ndim != 3:
            raise invalid(
                f"input must be 4-dimensional and filter 3-dimensional: {shape_text(x.shape)}, "
                f"{shape_text(kernel_.shape)}"
            )
        if x.shape[3] != kernel_.shape[2]:
            raise invalid(f"input and filter must have the same depth: {x.shape[3]} vs {kernel_.shape[2]}")
        outs, befores = [], []
        for i in range(2):
            size, reach = x.shape[i + 1], (kernel_.shape[i] - 1) * rates[i] + 1
            out = -(-size // strides[i]) if same else (size - reach + strides[i]) // strides[i]
            befores.append(max((out - 1) * strides[i] + reach - size, 0) // 2 if same else 0)
            outs.append(max(out, 0))
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        best = np.full((len(x), *outs, x.shape[3]), lowest, x.dtype)
        for i in range(kernel_.shape[0]):
            rows = np.arange(outs[0]) * strides[0] - befores[0] + i * rates[0]
            keep_rows = np.flatnonzero((rows >= 0) & (rows < x.shape[1]))
            for j in range(kernel_.shape[1]):
                columns = np.arange(outs[1]) * strides[1] - befores[1] + j * rates[1]
                keep = np.flatnonzero((columns >= 0) & (columns < x.shape[2]))
                seen = x[:, rows[keep_rows]][:, :, columns[keep]] + kernel_[i, j]
                at = np.ix_(np.arange(len(x)), keep_rows, keep, np.arange(x.shape[3]))
                best[at] = np.maximum(best[at], seen)
        return best

    return compute
