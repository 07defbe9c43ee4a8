"""Row and element updates of variables by index: Scatter*, ScatterNd*, ResourceScatter*, ResourceGather.

All indices are checked before anything is written. Updates to one row are applied one after the other. Additions and
replacements of float tables run compiled (_compiled/rows.py). Follows scatter_op.cc and resource_variable_ops.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold_kernels.arrays import Array, contiguous, invalid, shape_text, truncated_quotient
from tenfold_kernels.cpu._nd_places import check_nd_updates, nd_updater
from tenfold_kernels.cpu._variables import is_resource, variable_of
from tenfold_kernels.cpu.array_gather import check_indices, index_error
from tenfold_kernels.registry import Compute, KernelNode, kernel, lookup
from tenfold_kernels.typesets import ANY, COMPILED, INDEX

#: Operation → the ufunc that combines the old row with the update; None replaces.
_UFUNCS: dict[str, Any] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.true_divide,
    "Min": np.minimum,
    "Max": np.maximum,
    "Update": None,
}

Update = Callable[[Array, Array, Array], None]


def operation_of(op: str) -> str:
    """`ResourceScatterNdAdd` → "Add"."""
    return op.removeprefix("Resource").removeprefix("ScatterNd").removeprefix("Scatter")


def _update_rows(node: KernelNode) -> Update:
    """(buffer, indices, updates as rows) → None."""
    operation, dtype, index = operation_of(node.op), node.input_types[2].base_dtype, node.input_types[1]
    if operation in ("Add", "Sub", "Update") and dtype in COMPILED and index in INDEX:
        return _compiled_update(operation, dtype.as_numpy_dtype, index.as_numpy_dtype)
    if operation == "Div" and dtype.is_integer:
        return _divide_whole
    ufunc = _UFUNCS[operation]

    def plain(buffer: Array, indices: Array, updates: Array) -> None:
        check_indices(indices, buffer.shape[0])
        if ufunc is None:
            # One by one, so that the last of several updates of a row wins.
            for i, row in enumerate(indices.reshape(-1).tolist()):
                buffer[row] = updates[i]
        else:
            ufunc.at(buffer, indices.reshape(-1), updates)

    return plain


def _divide_whole(buffer: Array, indices: Array, updates: Array) -> None:
    """Quotients of integers are cut towards zero, as in C++, each time."""
    check_indices(indices, buffer.shape[0])
    if not updates.all():
        raise invalid("updates must not contain 0")
    for i, row in enumerate(indices.reshape(-1).tolist()):
        buffer[row] = truncated_quotient(buffer[row], updates[i])


def _compiled_update(operation: str, dtype: Any, index: Any) -> Update:
    from tenfold_kernels.cpu._compiled import rows

    add = None if operation == "Update" else rows.scatter_add(dtype, index)
    put = rows.scatter_update(dtype, index)
    sign = dtype(-1 if operation == "Sub" else 1)

    def compute(buffer: Array, indices: Array, updates: Array) -> None:
        limit, *row = buffer.shape
        table, flat, new = buffer, contiguous(indices), contiguous(updates)
        if len(row) != 1 or flat.ndim != 1:
            width = math.prod(row)
            table, flat, new = buffer.reshape(limit, width), flat.reshape(-1), new.reshape(-1, width)
        bad = put(table, flat, new) if add is None else add(table, flat, new, sign)
        if bad >= 0:
            raise index_error(indices, bad, limit)

    return compute


def check_updates(shape: tuple[int, ...], indices: Any, updates: Any) -> None:
    """Raises InvalidArgumentError unless updates has the shape of indices and then of a row, or is a scalar."""
    if not shape:
        raise invalid(f"params must be at least 1-D, got shape {shape_text(shape)}")
    if updates.ndim and updates.shape != (*indices.shape, *shape[1:]):
        raise invalid(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
            f"updates.shape {shape_text(updates.shape)}, indices.shape {shape_text(indices.shape)}, "
            f"params.shape {shape_text(shape)}"
        )


_REF_OPS = tuple(f"Scatter{name}" for name in _UFUNCS)


@kernel(*_REF_OPS, *(f"Resource{op}" for op in _REF_OPS), T=ANY, dtype=ANY)
def build_scatter(node: KernelNode) -> Compute:
    """updates has the shape of indices and then of a row, or is a scalar. Gives the reference, where there is one."""
    update, resource = _update_rows(node), is_resource(node)

    def compute(ref: Any, indices: Array, updates: Array) -> Any:
        variable = variable_of(node, ref)
        with variable.lock:
            buffer = variable.buffer(exclusive=resource, rows=indices)
            check_updates(buffer.shape, indices, updates)
            row = buffer.shape[1:]
            if updates.ndim == 0:
                updates = np.broadcast_to(updates, (*indices.shape, *row))
            if updates.size:
                update(buffer, indices, updates if indices.ndim == 1 else updates.reshape(indices.size, *row))
            elif indices.size:
                check_indices(indices, buffer.shape[0])
        return None if resource else variable

    return compute


_REF_ND_OPS = tuple(f"ScatterNd{name}" for name in ("Add", "Sub", "Min", "Max", "Update"))


@kernel(*_REF_ND_OPS, *(f"Resource{op}" for op in _REF_ND_OPS), T=ANY)
def build_scatter_nd(node: KernelNode) -> Compute:
    update, resource = nd_updater(node, _UFUNCS[operation_of(node.op)]), is_resource(node)

    def compute(ref: Any, indices: Array, updates: Array) -> Any:
        variable = variable_of(node, ref)
        with variable.lock:
            buffer = variable.buffer(exclusive=resource)
            check_nd_updates(indices, updates, buffer.shape)
            update(buffer, indices, updates)
        return None if resource else variable

    return compute


@kernel("ResourceGather", "ResourceGatherNd")
def build_resource_gather(node: KernelNode) -> Compute:
    """Gather straight from the variable, under its lock: no snapshot, so a later update need not copy the table."""
    attrs = {**node.attrs, "Tparams": node.attrs["dtype"], "T": node.attrs["dtype"]}
    types = (node.attrs["dtype"], node.input_types[1])
    batched = int(node.attrs.get("batch_dims", 0))
    op = "GatherNd" if node.op == "ResourceGatherNd" else "GatherV2" if batched else "Gather"
    inner = KernelNode(node.name, op, attrs, types, node.output_types, node.device, node.resources)
    gather = lookup(inner, "CPU")(inner)
    axis = np.array(batched)

    def compute(resource: Array, indices: Array) -> Array:
        variable = variable_of(node, resource)
        with variable.lock:
            table = variable.value
            result: Array = gather(table, indices, axis) if batched else gather(table, indices)
        return result

    return compute
