"""Grey-scale dilation: Dilation2D and its gradients. Outputs are fresh. Follows dilation_ops.cc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, contiguous, invalid, output_type, shape_text, text_attr
from tenfold_kernels.cpu.math_reduction import lowest_finite
from tenfold_kernels.cpu.nn_conv import wide_type
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import REAL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _across_space(node: KernelNode, name: str) -> list[int]:
    values = list(node.attrs[name])
    if len(values) != 4:
        raise invalid(f"{name} must specify 4 dimensions, got {values}")
    if values[0] != 1 or values[3] != 1:
        raise errors.unimplemented(f"{name} is only supported across spatial dimensions, got {values}")
    if not 1 <= min(values) <= max(values) < 1 << 31:
        raise invalid(f"{name} must be in [1, 2^31), got {values}")
    return values[1:3]


def _geometry(node: KernelNode) -> Callable[[Array, Array], tuple[tuple[int, ...], Array]]:
    """Of an image and a filter: the output's shape and the sizes that the loops take. Raises InvalidArgumentError."""
    strides, rates = _across_space(node, "strides"), _across_space(node, "rates")
    same = text_attr(node, "padding") == "SAME"

    def place(x: Array, filter_: Array) -> tuple[tuple[int, ...], Array]:
        if x.ndim != 4 or filter_.ndim != 3:
            raise invalid(
                f"input must be 4-dimensional and filter 3-dimensional: {shape_text(x.shape)}, "
                f"{shape_text(filter_.shape)}"
            )
        if x.shape[3] != filter_.shape[2]:
            raise invalid(f"input and filter must have the same depth: {x.shape[3]} vs {filter_.shape[2]}")
        outs, befores = [], []
        for i in range(2):
            size, reach = x.shape[i + 1], (filter_.shape[i] - 1) * rates[i] + 1
            out = -(-size // strides[i]) if same else (size - reach + strides[i]) // strides[i]
            befores.append(max((out - 1) * strides[i] + reach - size, 0) // 2 if same else 0)
            outs.append(max(out, 0))
        return (len(x), *outs, x.shape[3]), np.array([*strides, *rates, *befores], np.int64)

    return place


def _wide(wide: Any, arrays: Sequence[Array]) -> list[Array]:
    return [contiguous(x.astype(wide, copy=False)) for x in arrays]


@kernel("Dilation2D", T=REAL)
def build_dilation2d(node: KernelNode) -> Compute:
    """The largest of image + filter over each window: [N, H, W, C] and [kh, kw, C] → [N, OH, OW, C]."""
    from tenfold_kernels.cpu._compiled import dilation

    place, dtype = _geometry(node), output_type(node)
    wide = wide_type(dtype)
    run, least = dilation.dilate(wide), wide(lowest_finite(dtype))

    def compute(x: Array, filter_: Array) -> Array:
        shape, sizes = place(x, filter_)
        allow(shape, wide)
        out = np.empty(shape, wide)
        run(*_wide(wide, (x, filter_)), sizes, least, out)
        return out.astype(dtype, copy=False)

    return compute


@kernel("Dilation2DBackpropInput", "Dilation2DBackpropFilter", T=REAL)
def build_dilation2d_gradient(node: KernelNode) -> Compute:
    """(image, filter, the output's gradient) → that of the image, or of the filter."""
    from tenfold_kernels.cpu._compiled import dilation

    of_image = node.op.endswith("Input")
    place, dtype = _geometry(node), output_type(node)
    wide = wide_type(dtype)
    run = (dilation.to_image if of_image else dilation.to_filter)(wide)
    least = wide(lowest_finite(dtype))

    def compute(x: Array, filter_: Array, gradient: Array) -> Array:
        shape, sizes = place(x, filter_)
        if gradient.shape != shape:
            raise invalid(
                f"out_backprop has incompatible size: {shape_text(gradient.shape)}, expected {shape_text(shape)}"
            )
        out = np.zeros(x.shape if of_image else filter_.shape, wide)
        if out.size:
            run(*_wide(wide, (x, filter_, gradient)), sizes, least, out)
        return out.astype(dtype, copy=False)

    return compute
