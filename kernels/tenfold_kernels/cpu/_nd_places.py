"""Places in a tensor by index tuples, which are the last dimension of `indices`: for GatherNd and the ops that scatter.

An index tuple may name fewer dimensions than there are: it means all that the others say. Follows scatter_nd_op.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import Array, as_shape, invalid, shape_text, text_attr

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.registry import KernelNode


def good_rows(node: KernelNode) -> Callable[[Array, tuple[int, ...]], Array] | None:
    """What tells which index tuples lie inside a shape, for a node that shall pass over the others; else None.

    Raises InvalidArgumentError for a `bad_indices_policy` that there is not.
    """
    policy = text_attr(node, "bad_indices_policy")
    if policy not in ("", "DEFAULT", "ERROR", "IGNORE"):
        raise invalid(f"bad_indices_policy is {policy!r}; it must be DEFAULT, ERROR or IGNORE.")
    if policy != "IGNORE":
        return None

    def good(indices: Array, shape: tuple[int, ...]) -> Array:
        limits = np.array(shape[: indices.shape[-1]], dtype=np.int64)
        return np.asarray(((indices >= 0) & (indices < limits)).all(axis=-1))

    return good


def nd_index(indices: Array, shape: tuple[int, ...], what: str) -> tuple[Array, ...]:
    """Splits index tuples (last dimension) into one array a dimension. Raises InvalidArgumentError on a bad tuple."""
    depth = indices.shape[-1]
    limits = np.array(shape[:depth], dtype=np.int64)
    bad = ((indices < 0) | (indices >= limits)).any(axis=-1)
    if bad.any():
        where = np.unravel_index(int(bad.reshape(-1).argmax()), bad.shape)
        at = ",".join(str(int(i)) for i in where)
        values = ", ".join(str(int(v)) for v in indices[where])
        raise invalid(f"indices[{at}] = [{values}] does not index into {what} {shape_text(shape)}")
    return tuple(indices[..., i] for i in range(depth))


def update_place(out: Array, indices: Array) -> tuple[Array, tuple[Array, ...]]:
    """A view of `out`, and the index into it where updates go. Index tuples of no numbers mean all of `out`, each time.

    Raises InvalidArgumentError on a bad tuple.
    """
    if indices.shape[-1]:
        return out, nd_index(indices, out.shape, "shape")
    return out[np.newaxis], (np.zeros(indices.shape[:-1], np.intp),)


def nd_updater(node: KernelNode, meet: Any) -> Callable[[Array, Array, Array], Array]:
    """(out, indices, updates) → out with the updates worked in by the ufunc `meet`, or put in place of what is there.

    What the node's `bad_indices_policy` passes over is left out; else a bad index raises InvalidArgumentError.
    """
    good = good_rows(node)

    def update(out: Array, indices: Array, updates: Array) -> Array:
        if good is not None:
            inside = good(indices, out.shape)
            indices, updates = indices[inside], updates[inside]
        place, index = update_place(out, indices)
        if meet is None:
            place[index] = updates
        else:
            meet.at(place, index, updates)
        return out

    return update


def check_nd_updates(indices: Array, updates: Array, shape: tuple[int, ...]) -> None:
    """Whether the three shapes go together. Raises InvalidArgumentError."""
    if indices.ndim < 1:
        raise invalid(f"Indices shape must have rank at least one. Found: {shape_text(indices.shape)}")
    if updates.ndim < 1:
        raise invalid(f"Updates shape must have rank at least one. Found: {shape_text(updates.shape)}")
    if not shape:
        raise invalid(f"Output must be at least 1-D, got shape: {shape_text(shape)}")
    if (indices.size or updates.size) and not (indices.size and updates.size and math.prod(shape)):
        raise invalid(f"Indices and updates specified for empty output.  indices shape: {shape_text(indices.shape)}")
    depth = indices.shape[-1]
    outer = indices.ndim - 1
    if updates.shape[:outer] != indices.shape[:-1]:
        raise invalid(
            f"Dimensions [0,{outer}) of indices[shape={shape_text(indices.shape)}] must match dimensions "
            f"[0,{outer}) of updates[shape={shape_text(updates.shape)}]"
        )
    if depth > len(shape) or updates.shape[outer:] != shape[depth:]:
        raise invalid(
            f"Dimensions [{depth},{len(shape)}) of input[shape={shape_text(shape)}] must match dimensions "
            f"[{outer},{updates.ndim}) of updates[shape={shape_text(updates.shape)}]"
        )


def scattered_shape(indices: Array, updates: Array, shape: Array) -> tuple[int, ...]:
    """The shape that ScatterNd gives. Raises InvalidArgumentError."""
    if shape.ndim != 1:
        raise invalid("Shape must be a vector")
    dims = as_shape(shape, dtype=updates.dtype)
    check_nd_updates(indices, updates, dims)
    return dims
