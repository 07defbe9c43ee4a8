"""Pictures in PNG files: DecodePng and EncodePng. The format is in _png.py. Outputs are fresh.

Follows decode_image_op.cc and encode_png_op.cc.
"""

from __future__ import annotations

import math

import numpy as np

from tenfold_kernels.arrays import Array, invalid, output_type, shape_text
from tenfold_kernels.cpu._png import decode_png, encode_png
from tenfold_kernels.registry import Compute, KernelNode, kernel


@kernel("DecodePng")
def build_decode_png(node: KernelNode) -> Compute:
    """A file → uint8 or uint16 [height, width, channels]."""
    from tenfold_kernels.cpu._compiled import png

    channels, dtype = int(node.attrs.get("channels", 0)), output_type(node)
    if channels not in (0, 1, 3, 4):
        raise invalid(f"`channels` must be 0, 1, 3 or 4 but got {channels}")
    png.unfilter()  # compiled now, not in the first step

    def compute(contents: Array) -> Array:
        if contents.ndim:
            raise invalid(f"`contents` must be scalar but got shape{shape_text(contents.shape)}")
        return decode_png(contents.item(), channels, dtype)

    return compute


@kernel("EncodePng")
def build_encode_png(node: KernelNode) -> Compute:
    """uint8 or uint16 [..., height, width, 1 to 4] → files [...]."""
    compression = int(node.attrs.get("compression", -1))
    if not -1 <= compression <= 9:
        raise invalid(f"compression should be in [-1,9], got {compression}")

    def compute(images: Array) -> Array:
        if images.ndim < 3:
            raise invalid(f"images must be at least rank 3{shape_text(images.shape)}")
        if not 1 <= images.shape[-1] <= 4:
            raise invalid(f"image must have 1, 2, 3, or 4 channels, got {images.shape[-1]}")
        if 0 in images.shape[-3:]:
            raise invalid(f"image must have pixels, got shape {shape_text(images.shape)}")
        batch = images.shape[:-3]
        files = np.empty(math.prod(batch), dtype=object)
        files[:] = [encode_png(image, compression) for image in images.reshape(-1, *images.shape[-3:])]
        return files.reshape(batch)

    return compute
