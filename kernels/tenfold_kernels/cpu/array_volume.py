"""ExtractVolumePatches: the windows of volumes as channels. Outputs are fresh. Follows extract_volume_patches_op.cc."""

from __future__ import annotations

import math

import numpy as np

from tenfold_core import errors
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import REAL


@kernel("ExtractVolumePatches", T=REAL)
def build_extract_volume_patches(node: KernelNode) -> Compute:
    """[N, D, H, W, C] → [N, OD, OH, OW, kd · kh · kw · C]; a patch's place outside the volume is zero."""
    for name in ("ksizes", "strides"):
        values = list(node.attrs[name])
        if len(values) != 5 or min(values) < 1:
            raise invalid(f"{name} must be 5 numbers above zero, got {values}")
        if values[0] != 1 or values[4] != 1:
            raise errors.unimplemented(f"{name} of batch and channels must be 1, got {values}")
    ksizes, strides = (list(node.attrs[name])[1:4] for name in ("ksizes", "strides"))
    same = text_attr(node, "padding") == "SAME"

    def compute(x: Array) -> Array:
        if x.ndim != 5:
            raise invalid(f"input must be 5-dimensional{shape_text(x.shape)}")
        outs, pads = [], []
        for size, k, stride in zip(x.shape[1:4], ksizes, strides, strict=True):
            out = max(-(-size // stride) if same else (size - k + stride) // stride, 0)
            more = max((out - 1) * stride + k - size, 0) if same else 0
            outs.append(out)
            pads.append((more // 2, more - more // 2))
        shape = (len(x), *outs, math.prod(ksizes) * x.shape[4])
        allow(shape, x.dtype, 2)
        if not math.prod(shape):
            return np.zeros(shape, x.dtype)
        padded = np.pad(x, [(0, 0), *pads, (0, 0)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, ksizes, axis=(1, 2, 3))
        taken = windows[:, :: strides[0], :: strides[1], :: strides[2]]
        return np.ascontiguousarray(np.moveaxis(taken, 4, -1)).reshape(shape)

    return compute
