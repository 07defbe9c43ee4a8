"""Sequences of numbers: Range, LinSpace, RaggedRange. Outputs are fresh.

Follows sequence_ops.cc and ragged_range_op.cc.
"""

from __future__ import annotations

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid, one_number, output_type, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel

#: Elements of which nobody asks whether there is memory for them.
_SMALL = 1 << 12


@kernel("Range")
def build_range(node: KernelNode) -> Compute:
    dtype = output_type(node)
    whole = np.dtype(dtype).kind in "iu"

    def compute(start: Array, limit: Array, delta: Array) -> Array:
        for name, value in (("start", start), ("limit", limit), ("delta", delta)):
            if value.size != 1:
                raise invalid(f"{name} must be a scalar, not shape {shape_text(value.shape)}")
        first, last, step = start.item(), limit.item(), delta.item()
        if step == 0:
            raise invalid(f"Requires delta != 0: {step}")
        if step > 0 and first > last:
            raise invalid(f"Requires start <= limit when delta > 0: {first}/{last}")
        if step < 0 and first < last:
            raise invalid(f"Requires start >= limit when delta < 0: {first}/{last}")
        if not whole:
            length = np.ceil(abs((float(last) - float(first)) / float(step)))
            if not np.isfinite(length):
                raise invalid(f"Requires ((limit - start) / delta) <= {np.iinfo(np.int64).max}")
            count = int(length)
            allow((count,), dtype, 4)
            # TensorFlow adds the step again and again in the output type; the product is what it rounds to.
            return (np.arange(count) * float(step) + float(first)).astype(dtype)
        count = -(-(last - first) // step)
        if count > _SMALL:
            allow((count,), dtype, 2)
        return np.arange(first, last, step, dtype=dtype)

    return compute


@kernel("LinSpace")
def build_lin_space(node: KernelNode) -> Compute:
    dtype = output_type(node)

    def compute(start: Array, stop: Array, num: Array) -> Array:
        for name, value in (("start", start), ("stop", stop)):
            if value.ndim:
                raise invalid(f"{name} must be a scalar, not shape {shape_text(value.shape)}")
        count = one_number(num, "num")
        if count <= 0:
            raise invalid(f"Requires num > 0: {count}")
        allow((count,), dtype, 4)
        return np.linspace(start[()], stop[()], count, dtype=dtype)

    return compute


@kernel("RaggedRange")
def build_ragged_range(node: KernelNode) -> Compute:
    """(splits, values) of the ranges one after the other; scalars repeat."""
    splits_type, dtype = output_type(node), output_type(node, 1)

    def compute(starts: Array, limits: Array, deltas: Array) -> tuple[Array, Array]:
        for name, value in (("starts", starts), ("limits", limits), ("deltas", deltas)):
            if value.ndim > 1:
                raise invalid(f"{name} must be a scalar or vector, got shape {shape_text(value.shape)}")
        vectors = [v for v in (starts, limits, deltas) if v.ndim]
        if len({len(v) for v in vectors}) > 1:
            raise invalid("starts, limits, and deltas must have the same shape")
        if (deltas == 0).any():
            raise invalid("Requires delta != 0")
        rows = [tuple(v.item() for v in row) for row in np.broadcast(starts, limits, deltas)]
        counts = [np.maximum(0.0, np.ceil((limit - start) / delta)) for start, limit, delta in rows]
        total = sum(counts)
        if not np.isfinite(total):
            raise invalid(f"Requires ((limit - start) / delta) <= {np.iinfo(np.int64).max}")
        allow((int(total),), dtype, 2)
        nothing = np.empty(0, dtype)
        parts = [np.arange(*row, dtype=dtype) if count else nothing for row, count in zip(rows, counts, strict=True)]
        splits = np.cumsum([0, *(len(p) for p in parts)]).astype(splits_type)
        return splits, np.concatenate(parts).astype(dtype, copy=False) if parts else nothing

    return compute
