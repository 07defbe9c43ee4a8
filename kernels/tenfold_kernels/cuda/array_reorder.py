"""ReverseSequence, Roll and Reverse. Transpose and ReverseV2 are in array_move.py."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.cpu.array_reorder import check_reverse, check_roll, sequence_axes
from tenfold_kernels.cuda import _moves, _picks
from tenfold_kernels.cuda._types import INDICES, MOVED, ON_HOST
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, shared_kernel

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cuda._arrays import DeviceArray

shared_kernel("Reverse", "ReverseSequence", "Roll", host=(EVERYTHING,), T=ON_HOST)


@kernel("Reverse", device="GPU", views=True, host=("dims",), T=MOVED)
def build_reverse(node: KernelNode) -> Compute:
    """Turns round the dimensions whose flag is set."""

    def compute(x: DeviceArray, dims: Array) -> DeviceArray:
        check_reverse(x, dims)  # type: ignore[arg-type] # its shape is all that it reads
        if not x.size:
            return x
        place = _moves.whole(x)
        turned = np.flatnonzero(dims).tolist()
        strides = tuple([-s if i in turned else s for i, s in enumerate(place.strides)])
        begin = sum((x.shape[i] - 1) * place.strides[i] for i in turned)
        return _moves.take(x, _moves.Place(x.shape, strides, begin))

    return compute


@kernel("ReverseSequence", device="GPU", T=MOVED, Tlen=INDICES)
def build_reverse_sequence(node: KernelNode) -> Compute:
    """For each batch entry, turns round the first seq_lengths[i] elements along seq_dim. The lengths are in the GPU's
    memory and not checked, as on TensorFlow's GPUs: one that is too large counts as all, a negative one as none.
    """
    seq_attr, batch_attr = int(node.attrs["seq_dim"]), int(node.attrs.get("batch_dim", 0))

    def compute(x: DeviceArray, lengths: DeviceArray) -> DeviceArray:
        seq, batch = sequence_axes(x, lengths, seq_attr, batch_attr)  # type: ignore[arg-type] # shapes are all it reads
        out = x.runtime.empty(x.shape, x.dtype)
        if out.size:
            steps = [math.prod(x.shape[axis + 1 :]) for axis in (batch, seq)]
            numbers = (x.shape[batch], steps[0], x.shape[seq], steps[1])
            arrays = (lengths, _picks.as_whole(x), _picks.as_whole(out))
            _picks.launch("arrays.reverse_sequences", out.size, numbers, arrays)
        return out

    return compute


@kernel("Roll", device="GPU", views=True, host=("shift", "axis"), T=MOVED)
def build_roll(node: KernelNode) -> Compute:
    """A copy of each block that stays together: two for each dimension that is shifted."""

    def compute(x: DeviceArray, shift: Array, axis: Array) -> DeviceArray:
        axes = check_roll(x, shift, axis)  # type: ignore[arg-type] # its shape is all that it reads
        if not x.size:
            return x
        total = [0] * x.ndim
        for d, by in zip(axes, shift.reshape(-1).tolist(), strict=True):
            total[d] = (total[d] + by) % x.shape[d]
        if not any(total):
            return x
        out = x.runtime.empty(x.shape, x.dtype)
        strides = _moves.whole(x).strides
        # of each dimension: (where a piece begins, where it goes, its length)
        pieces = [
            [(0, by, size - by), (size - by, 0, by)] if by else [(0, 0, size)]
            for by, size in zip(total, x.shape, strict=True)
        ]
        for block in itertools.product(*pieces):
            shape = tuple([length for _, _, length in block])
            begin, end = (
                sum(piece[which] * stride for piece, stride in zip(block, strides, strict=True)) for which in (0, 1)
            )
            _moves.move(x, _moves.Place(shape, strides, begin), out, _moves.Place(shape, strides, end))
        return out

    return compute
