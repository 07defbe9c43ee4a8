"""CheckNumerics and ClipByValue: values that must lie, or are put, within bounds.

Follows check_numerics_op.cc and clip_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.arrays import Array, as_array, invalid, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING, NUMERIC

if TYPE_CHECKING:
    from tenfold_core import errors


@kernel("CheckNumerics", views=True, T=FLOATING)
def build_check_numerics(node: KernelNode) -> Compute:
    message = text_attr(node, "message")

    def compute(x: Array) -> Array:
        if not np.isfinite(x).all():
            raise bad_values(message, bool(np.isinf(x).any()), bool(np.isnan(x).any()))
        return x

    return compute


def bad_values(message: str, inf: bool, nan: bool) -> errors.OpError:
    """What CheckNumerics raises for what it has found."""
    found = [name for name, is_there in (("Inf", inf), ("NaN", nan)) if is_there]
    return invalid(f"{message} : Tensor had {' and '.join(found)} values")


@kernel("ClipByValue", T=NUMERIC)
def build_clip_by_value(node: KernelNode) -> Compute:
    """The lower bound wins over the upper one. The parts of a complex number are clipped each on its own."""

    def clip(x: Array, low: Array, high: Array) -> Array:
        return as_array(np.maximum(np.minimum(x, high), low))

    def compute(x: Array, low: Array, high: Array) -> Array:
        if any(bound.ndim and bound.shape != x.shape for bound in (low, high)):
            raise invalid(
                "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. "
                f"input shape: {shape_text(x.shape)}clip_value_min shape: {shape_text(low.shape)}"
                f"clip_value_max shape: {shape_text(high.shape)}"
            )
        if x.dtype.kind != "c":
            return clip(x, low, high)
        out = np.empty(x.shape, x.dtype)
        out.real, out.imag = clip(x.real, low.real, high.real), clip(x.imag, low.imag, high.imag)
        return out

    return compute
