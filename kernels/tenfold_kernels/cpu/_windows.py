"""Where a sliding window goes: strides, dilations, padding and layout of convolutions and pools, read from a node.

`Sliding` is fixed when the node is compiled; `place` works out one step's sizes, as the compiled loops want them
(_compiled/windows.py, _compiled/pooling.py). Two dimensions are three with a depth of 1. Follows kernel_shape_util.cc
and the argument checks of conv_ops.cc and pooling_ops_common.cc.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_kernels.arrays import Array, invalid, text_attr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_kernels.registry import KernelNode


#: Positions from one window to the next, or within one: loops multiply them by sizes of images in an int64.
_FURTHEST = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Place:
    """One step's sizes. `geometry` is laid out as _compiled/windows.py describes it."""

    batch: int
    #: Spatial sizes of input, window and output, without a depth that was added.
    sizes: tuple[int, ...]
    window: tuple[int, ...]
    out: tuple[int, ...]
    channels: int
    geometry: Array

    @property
    def lines(self) -> int:
        """How many rows of output positions there are."""
        return self.batch * math.prod(self.out[:-1])


@dataclass(frozen=True, slots=True)
class Sliding:
    """How a window of a node slides. `strides`, `dilations` and `explicit` hold the spatial dimensions only."""

    op: str
    channels_first: bool
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: str
    explicit: tuple[tuple[int, int], ...]

    @property
    def rank(self) -> int:
        return len(self.strides) + 2

    def last(self, x: Array) -> Array:
        """`x` with its channels last, C-contiguous."""
        return np.ascontiguousarray(np.moveaxis(x, 1, -1)) if self.channels_first else np.ascontiguousarray(x)

    def back(self, x: Array) -> Array:
        """The reverse of `last`."""
        return np.ascontiguousarray(np.moveaxis(x, -1, 1)) if self.channels_first else x

    def last_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (shape[0], *shape[2:], shape[1]) if self.channels_first else tuple(shape)

    def back_shape(self, last: tuple[int, ...]) -> tuple[int, ...]:
        """The reverse of `last_shape`."""
        return (last[0], last[-1], *last[1:-1]) if self.channels_first else last

    def place(self, shape: tuple[int, ...], window: tuple[int, ...]) -> Place:
        """For an input of `shape`, channels last. Raises InvalidArgumentError where a window is larger than it."""
        sizes, channels = shape[1:-1], shape[-1]
        outs, befores = [], []
        for i, (size, k) in enumerate(zip(sizes, window, strict=True)):
            out, before = self._along(i, size, k)
            outs.append(out)
            befores.append(before)
        # Two dimensions get a depth of one place.
        one, zero = ((1,), (0,)) if len(sizes) == 2 else ((), ())
        parts: tuple[tuple[int, ...], ...] = (
            *((*one, *values) for values in (sizes, window, outs, self.strides, self.dilations)),
            (*zero, *befores, channels),
        )
        geometry = np.array([value for part in parts for value in part], dtype=np.int64)
        return Place(shape[0], sizes, window, tuple(outs), channels, geometry)

    def _along(self, i: int, size: int, k: int) -> tuple[int, int]:
        stride, reach = self.strides[i], (k - 1) * self.dilations[i] + 1
        before = after = 0
        if self.padding == "SAME":
            out = -(-size // stride)
            before = max((out - 1) * stride + reach - size, 0) // 2
            return out, before
        if self.padding == "EXPLICIT":
            before, after = self.explicit[i]
        out = (size + before + after - reach + stride) // stride
        if out < 0:
            raise invalid(
                f"Computed output size would be negative: {out} [input_size: {size}, effective_filter_size: {reach}, "
                f"stride: {stride}]"
            )
        return out, before


def sliding(node: KernelNode, spatial: int, *, strides: Sequence[int] | None = None) -> Sliding:
    """The `Sliding` of a node in `spatial` dimensions. Raises InvalidArgumentError for attrs that no run can satisfy.

    `strides`, all of them, come from an input in the V2 pools.
    """
    rank = spatial + 2
    first = text_attr(node, "data_format", "NHWC").startswith("NC")
    steps = list(node.attrs["strides"]) if strides is None else list(strides)
    apart = list(node.attrs.get("dilations") or [1] * rank)
    for name, values in (("strides", steps), ("dilations", apart)):
        if len(values) != rank:
            raise invalid(f"Sliding window {name} field must specify {rank} dimensions")
        batch, depth = values[0], values[1 if first else -1]
        if name == "dilations" and (batch != 1 or depth != 1):
            raise invalid("Current implementation does not yet support dilations in the batch and depth dimensions.")
        if name == "strides" and "Pool" not in node.op and (batch != 1 or depth != 1):
            text = "Current implementation does not yet support strides in the batch and depth dimensions."
            raise errors.unimplemented(text)
        if min(values) <= 0:
            raise invalid(
                f"{'Strides' if name == 'strides' else 'Dilated rates'} should be larger than 0, got {values}"
            )
        if max(values) > _FURTHEST:
            raise invalid(f"{name} can be {_FURTHEST} at most, got {values}")
    axes = slice(2, None) if first else slice(1, -1)
    padding = text_attr(node, "padding")
    explicit = list(node.attrs.get("explicit_paddings") or [])
    pairs: tuple[tuple[int, int], ...] = ()
    if padding == "EXPLICIT":
        if len(explicit) != 2 * rank:
            raise invalid(f"explicit_paddings attribute must contain {2 * rank} values, but got: {len(explicit)}")
        if min(explicit) < 0:
            raise invalid(f"All elements of explicit_paddings must be nonnegative, got {explicit}")
        if max(explicit) > _FURTHEST:
            raise invalid(f"All elements of explicit_paddings must be at most {_FURTHEST}, got {explicit}")
        all_pairs = list(zip(explicit[::2], explicit[1::2], strict=True))
        if all_pairs[0] != (0, 0) or all_pairs[1 if first else -1] != (0, 0):
            raise invalid("Nonzero explicit padding in the batch or depth dimensions is not supported")
        pairs = tuple(all_pairs[axes])
    elif explicit:
        raise invalid("explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT")
    return Sliding(node.op, first, tuple(steps[axes]), tuple(apart[axes]), padding, pairs)


_scratch = threading.local()


def scratch(count: int, dtype: Any) -> Array:
    """`count` elements that this thread may write to until its next call; kept for the thread's later calls.

    Callers ask for a few megabytes at most, or for one line of a huge image.
    """
    held: Array | None = getattr(_scratch, "held", None)
    nbytes = count * np.dtype(dtype).itemsize
    if held is None or held.nbytes < nbytes:
        held = _scratch.held = np.empty(nbytes, np.uint8)
    return held[:nbytes].view(dtype)
