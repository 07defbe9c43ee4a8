"""AdagradDecay: Adagrad whose accumulators lose a part of themselves every so many global steps.

A third slot counts how often they did: for each row its first element, for a dense gradient the variable's first. It
may be as large as the variable, or have an element for each row. The updates themselves are Adagrad's loops. Half types
are updated as float32. Follows DeepRec's kernels/training_ali_ops.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenfold_kernels import optimizer_rules
from tenfold_kernels.arrays import Array, contiguous, invalid, shape_text
from tenfold_kernels.cpu._variables import on_variables
from tenfold_kernels.cpu.embedding import ROW_TYPES, given_rows, slots_of, work_type
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCALARS = ("lr", "accum_decay_step", "accum_decay_rate", "accum_baseline", "global_step")


class _Decay(NamedTuple):
    """The inputs after the three variables."""

    lr: float
    every: int
    rate: float
    baseline: float
    step: int

    @classmethod
    def of(cls, inputs: Sequence[Any]) -> _Decay:
        for name, value in zip(_SCALARS, inputs[3:8], strict=True):
            optimizer_rules.check_scalar(name, value)
        made = cls(*(value.item() for value in inputs[3:8]))
        if made.every < 1:
            raise invalid(f"accum_decay_step must be positive, not {made.every}")
        return made

    def apply(self, accum: Array, times: Array) -> None:
        """Lets accumulators [N, …] whose turn it is lose their part; `times` [N] says how often they did."""
        due = times < self.step // self.every
        if due.any():
            accum[due] = np.maximum(accum[due] * accum.dtype.type(self.rate), accum.dtype.type(self.baseline))
            times[due] += 1


def _check_slots(names: Sequence[str], buffers: Sequence[Array]) -> None:
    if any(buffer.shape != buffers[0].shape for buffer in buffers):
        shapes = ", ".join(shape_text(buffer.shape) for buffer in buffers)
        raise invalid(f"{', '.join(names)} do not have the same shape: {shapes}")


@kernel("ApplyAdagradDecay", "ResourceApplyAdagradDecay", T=ROW_TYPES)
def build_dense(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import updates

    loop = updates.loop("adagrad", work_type(node))

    def update(buffers: Sequence[Array], inputs: Sequence[Any]) -> None:
        decay, grad = _Decay.of(inputs), inputs[8]
        _check_slots(("var", "accum", "grad"), [*buffers[:2], grad])
        var, accum = (buffer.reshape(-1) for buffer in buffers[:2])
        decay.apply(accum.reshape(1, -1), buffers[2].reshape(-1)[:1])
        loop(var, accum, contiguous(grad).reshape(-1), decay.lr, 0.0, True)

    return on_variables(node, ("T", "T", "Tstep"), update)


@kernel("SparseApplyAdagradDecay", "ResourceSparseApplyAdagradDecay", T=ROW_TYPES)
def build_sparse(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import sparse_updates

    loop = sparse_updates.loop("adagrad", work_type(node), node.attrs["Tindices"].as_numpy_dtype)

    def update(buffers: Sequence[Array], inputs: Sequence[Any]) -> None:
        decay, grad, indices = _Decay.of(inputs), inputs[8], inputs[9].copy()
        shape = buffers[0].shape
        by_rows = buffers[2].shape == shape[:1]
        _check_slots(("var", "accum", "accum_decay_power")[: 3 - by_rows], buffers[: 3 - by_rows])
        optimizer_rules.check_rows(shape, grad, indices)
        if not grad.size:
            return
        bad = np.flatnonzero((indices < 0) | (indices >= shape[0]))
        if bad.size:
            raise invalid(f"Index {indices[bad[0]]} at offset {bad[0]} in indices is out of range")
        var, accum, power = (buffer.reshape(shape[0], -1) for buffer in buffers)
        _decay_rows(decay, accum, power, indices)
        loop(var, accum, contiguous(grad).reshape(indices.size, -1), indices, decay.lr, 0.0, True)

    return on_variables(node, ("T", "T", "Tstep"), update)


@kernel("KvResourceSparseApplyAdagradDecay", T=ROW_TYPES)
def build_of_embeddings(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import sparse_updates

    work = work_type(node)
    loop = sparse_updates.loop("adagrad", work, np.int64)

    def compute(*inputs: Any) -> None:
        decay, grad, keys = _Decay.of(inputs), inputs[8], inputs[9]
        power = "accum_decay_power"
        table, slots = slots_of(node, ("var", "accum", power), inputs[:3], any_width=[power])
        table.check_gradient("grad", grad, keys)

        def apply(columns: list[Array], rows: Array, places: Array) -> None:
            var, accum, power = columns
            _decay_rows(decay, accum, power, rows)
            loop(var, accum, given_rows(grad, places, work), rows, decay.lr, 0.0, True)

        table.update(slots, keys, apply, decay.step)

    return compute


def _decay_rows(decay: _Decay, accum: Array, power: Array, rows: Array) -> None:
    chosen = np.unique(rows)
    parts, times = accum[chosen], power[chosen, 0]
    decay.apply(parts, times)
    accum[chosen], power[chosen, 0] = parts, times
