"""AdamAsync: Adam with powers of the decay rates that are variables of their own, updated with the weights.

Dense, by rows, and by the ids of an embedding variable; the loops are Adam's and RMSProp's. Half types are
updated as float32. Follows DeepRec's kernels/training_ali_ops.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels import optimizer_rules
from tenfold_kernels.arrays import Array, contiguous, invalid, shape_text
from tenfold_kernels.cpu._variables import locked, on_variables, variable_reader
from tenfold_kernels.cpu.embedding import ROW_TYPES, given_rows, slots_of, work_type
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_RATES = ("lr", "beta1", "beta2", "epsilon")


def _rates(inputs: Sequence[Any]) -> list[float]:
    """lr, beta1, beta2, epsilon: the inputs after the five variables."""
    for name, value in zip(_RATES, inputs[5:9], strict=True):
        optimizer_rules.check_scalar(name, value)
    return [value.item() for value in inputs[5:9]]


def _powers(buffers: Sequence[Array]) -> tuple[float, float]:
    for name, buffer in zip(("beta1_power", "beta2_power"), buffers, strict=True):
        if buffer.size != 1:
            raise invalid(f"{name} is not one number: {shape_text(buffer.shape)}")
    return buffers[0].item(), buffers[1].item()


def _by_rows(node: KernelNode, index: Any) -> Callable[..., int]:
    """(var, m, v, rows of the gradient, indices, powers, rates) → the first bad position, or −1."""
    from tenfold_kernels.cpu._compiled import sparse_updates

    work = work_type(node)
    if node.attrs.get("apply_sparse_rmsprop"):
        rmsprop = sparse_updates.loop("rmsprop", work, index)

        def by_rmsprop(var: Array, m: Array, v: Array, grad: Array, rows: Array, powers: Any, rates: Any) -> int:
            lr, beta1, beta2, epsilon = rates
            return rmsprop(var, v, m, grad, rows, lr, 1.0 - beta2, beta1, epsilon)

        return by_rmsprop
    adam = sparse_updates.loop("adam", work, index)

    def by_adam(var: Array, m: Array, v: Array, grad: Array, rows: Array, powers: Any, rates: Any) -> int:
        return adam(var, m, v, grad, rows, *powers, *rates, 1.0, False)

    return by_adam


@kernel("ApplyAdamAsync", "ResourceApplyAdamAsync", T=ROW_TYPES)
def build_dense(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import updates

    loop = updates.loop("adam", work_type(node))
    nesterov = bool(node.attrs.get("use_nesterov"))

    def update(buffers: Sequence[Array], inputs: Sequence[Any]) -> None:
        rates, grad = _rates(inputs), inputs[9]
        if any(buffer.shape != grad.shape for buffer in buffers[:3]):
            shapes = ", ".join(shape_text(buffer.shape) for buffer in buffers[:3])
            raise invalid(f"var, m, v and grad do not have the same shape: {shapes}, {shape_text(grad.shape)}")
        flat = [buffer.reshape(-1) for buffer in buffers[:3]]
        loop(*flat, contiguous(grad).reshape(-1), *_powers(buffers[3:]), *rates, 1.0, nesterov)
        buffers[3][...] *= rates[1]
        buffers[4][...] *= rates[2]

    return on_variables(node, ["T"] * 5, update)


@kernel("SparseApplyAdamAsync", "ResourceSparseApplyAdamAsync", T=ROW_TYPES)
def build_sparse(node: KernelNode) -> Compute:
    loop = _by_rows(node, node.attrs["Tindices"].as_numpy_dtype)
    rmsprop = bool(node.attrs.get("apply_sparse_rmsprop"))

    def update(buffers: Sequence[Array], inputs: Sequence[Any]) -> None:
        rates, grad, indices = _rates(inputs), inputs[9], inputs[10]
        shape = buffers[0].shape
        if any(buffer.shape != shape for buffer in buffers[1:3]):
            shapes = ", ".join(shape_text(buffer.shape) for buffer in buffers[:3])
            raise invalid(f"var, m and v do not have the same shape: {shapes}")
        optimizer_rules.check_rows(shape, grad, indices)
        tables = [buffer.reshape(shape[0], -1) for buffer in buffers[:3]]
        rows = contiguous(grad).reshape(indices.size, -1) if grad.size else np.zeros((indices.size, 0), grad.dtype)
        bad = loop(*tables, rows, contiguous(indices), _powers(buffers[3:]), rates) if grad.size else -1
        if bad >= 0:
            raise invalid(f"Index {indices[bad]} at offset {bad} in indices is out of range")
        if indices.size and not rmsprop:
            buffers[3][...] *= rates[1]
            buffers[4][...] *= rates[2]

    return on_variables(node, ["T"] * 5, update)


@kernel("KvResourceSparseApplyAdamAsync", T=ROW_TYPES)
def build_of_embeddings(node: KernelNode) -> Compute:
    work, loop = work_type(node), _by_rows(node, np.int64)
    rmsprop = bool(node.attrs.get("apply_sparse_rmsprop"))
    readers = [variable_reader(node) for _ in range(2)]

    def compute(*inputs: Any) -> None:
        rates, grad, keys, step = _rates(inputs), inputs[9], inputs[10], int(inputs[11])
        table, slots = slots_of(node, ("var", "m", "v"), inputs[:3])
        table.check_gradient("grad", grad, keys)
        variables = [read(value) for read, value in zip(readers, inputs[3:5], strict=True)]
        with locked(variables):
            powers = [variable.buffer(exclusive=True) for variable in variables]
            now = _powers(powers)

            def apply(columns: list[Array], rows: Array, places: Array) -> None:
                loop(*columns, given_rows(grad, places, work), rows, now, rates)

            table.update(slots, keys, apply, step)
            if keys.size and not rmsprop:
                powers[0][...] *= rates[1]
                powers[1][...] *= rates[2]

    return compute
