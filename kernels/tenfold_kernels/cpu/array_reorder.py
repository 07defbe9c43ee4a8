"""Ops that reorder elements: Reverse, ReverseSequence, Roll, ConjugateTranspose. Transpose itself is in array.py.

Follows reverse_op.cc, reverse_sequence_op.cc, roll_op.cc and transpose_op.cc.
"""

from __future__ import annotations

import numpy as np

from tenfold_kernels.arrays import Array, as_array, canonical_axis, invalid, shape_text
from tenfold_kernels.cpu.array import build_transpose
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import ANY


@kernel("ConjugateTranspose", views=True, T=ANY)
def build_conjugate_transpose(node: KernelNode) -> Compute:
    transpose = build_transpose(node)
    return lambda x, perm: as_array(np.conj(transpose(x, perm)) if x.dtype.kind == "c" else transpose(x, perm))


@kernel("Reverse", views=True)
def build_reverse(node: KernelNode) -> Compute:
    """Turns round the dimensions whose flag is set."""

    def compute(x: Array, dims: Array) -> Array:
        check_reverse(x, dims)
        return as_array(np.flip(x, tuple(np.flatnonzero(dims).tolist()))).copy()

    return compute


def check_reverse(x: Array, dims: Array) -> None:
    """Raises InvalidArgumentError unless there is a flag for each dimension."""
    if dims.shape != (x.ndim,):
        raise invalid(f"'dims' must have {x.ndim} elements, one a dimension, got shape {shape_text(dims.shape)}")


@kernel("ReverseSequence", views=True)
def build_reverse_sequence(node: KernelNode) -> Compute:
    """For each batch entry, turns round the first seq_lengths[i] elements along seq_dim."""
    seq_attr, batch_attr = int(node.attrs["seq_dim"]), int(node.attrs.get("batch_dim", 0))

    def compute(x: Array, lengths: Array) -> Array:
        seq, batch = sequence_axes(x, lengths, seq_attr, batch_attr)
        out = x.copy()
        source, target = np.moveaxis(x, (batch, seq), (0, 1)), np.moveaxis(out, (batch, seq), (0, 1))
        for i, n in enumerate(lengths.tolist()):
            if n < 0:
                raise invalid(f"seq_lens({i}) < 0")
            if n > x.shape[seq]:
                raise invalid(f"seq_lens({i}) > input.dims({seq})")
            target[i, :n] = source[i, :n][::-1]
        return out

    return compute


def sequence_axes(x: Array, lengths: Array, seq_dim: int, batch_dim: int) -> tuple[int, int]:
    """(the dimension that is turned round, that of the batch), from the front. Raises InvalidArgumentError."""
    seq = canonical_axis(seq_dim, x.ndim, f"seq_dim must be < input rank ( {seq_dim} vs. {x.ndim})")
    batch = canonical_axis(batch_dim, x.ndim, f"batch_dim must be < input rank ( {batch_dim} vs. {x.ndim})")
    if batch == seq:
        raise invalid(f"batch_dim == seq_dim == {seq}")
    if lengths.shape != (x.shape[batch],):
        raise invalid(f"Length of seq_lengths != input.dims({batch}), ({lengths.size} vs. {x.shape[batch]})")
    return seq, batch


@kernel("Roll", views=True)
def build_roll(node: KernelNode) -> Compute:
    def compute(x: Array, shift: Array, axis: Array) -> Array:
        return np.roll(x, tuple(shift.reshape(-1).tolist()), tuple(check_roll(x, shift, axis)))

    return compute


def check_roll(x: Array, shift: Array, axis: Array) -> list[int]:
    """The dimension of each shift, from the front. Raises InvalidArgumentError."""
    if x.ndim < 1:
        raise invalid("input must be 1-D or higher")
    for name, value in (("shift", shift), ("axis", axis)):
        if value.ndim > 1:
            raise invalid(f"{name} must be a scalar or a 1-D vector. Found: {shape_text(value.shape)}")
    if shift.shape != axis.shape:
        raise invalid("shift and axis must have the same size")
    axes = axis.reshape(-1).tolist()
    return [canonical_axis(d, x.ndim, f"axis {d} is out of range for input of {x.ndim} dimensions") for d in axes]
