"""The largest, the n-th, and whether a class is among the best: TopK, NthElement, InTopK. Outputs are fresh.

Follows topk_op.cc, nth_element_op.cc and in_topk_op.cc.
"""

from __future__ import annotations

import math

import numpy as np

from tenfold_kernels.arrays import Array, Shaped, as_array, invalid, one_number, output_type, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import REAL


@kernel("NthElement", T=REAL)
def build_nth_element(node: KernelNode) -> Compute:
    """The n-th smallest (largest with `reverse`) of the last dimension, counted from 0."""
    reverse = bool(node.attrs.get("reverse"))

    def compute(x: Array, n: Array) -> Array:
        if n.ndim:
            raise invalid(f"N must be scalar but has rank {n.ndim}")
        at = int(n)
        if at < 0:
            raise invalid(f"Need n >= 0, got {at}")
        if x.ndim < 1:
            raise invalid(f"Input must be >= 1-D, got shape {shape_text(x.shape)}")
        if at >= x.shape[-1]:
            raise invalid(f"Input must have at least n+1 columns, got {x.shape[-1]} for n = {at}")
        at = x.shape[-1] - at - 1 if reverse else at
        return as_array(np.partition(x, at, axis=-1)[..., at].copy())

    return compute


def check_top_k(x: Shaped, count: int) -> None:
    """Raises InvalidArgumentError unless rows of x have `count` elements."""
    if count < 0:
        raise invalid(f"Need k >= 0, got {count}")
    if x.ndim < 1:
        raise invalid(f"input must be >= 1-D, got shape {shape_text(x.shape)}")
    if x.shape[-1] < count:
        raise invalid(f"input must have at least k columns. Had {x.shape[-1]}, needed {count}")


@kernel("TopK", "TopKV2", T=REAL)
def build_top_k(node: KernelNode) -> Compute:
    """The k largest of the last dimension, largest first; of equal ones the lower index comes first. A nan is as
    small as −inf.
    """
    fixed = node.attrs.get("k") if node.op == "TopK" else None
    index_type = output_type(node, 1)

    def compute(x: Array, k: Array | None = None) -> tuple[Array, Array]:
        count = int(fixed) if k is None else one_number(k, "k")  # type: ignore[arg-type]
        check_top_k(x, count)
        # A stable sort of the reversed rows, read backwards, keeps the lower index first among equals.
        size = x.shape[-1]
        rows = x.reshape(-1, size) if size else x.reshape(math.prod(x.shape[:-1]), 0)
        shape = *x.shape[:-1], count
        keys = rows
        if rows.dtype.kind not in "iu" and np.isnan(np.add.reduce(rows, None)):  # one of inf − inf does no harm
            keys = np.where(np.isnan(rows), rows.dtype.type(-np.inf), rows)
        if len(rows) == 1:
            places = (size - 1) - keys[0, ::-1].argsort(kind="stable")[::-1][:count]
            return rows[0].take(places).reshape(shape), places.reshape(shape).astype(index_type)
        order = (size - 1) - keys[:, ::-1].argsort(axis=1, kind="stable")[:, ::-1][:, :count]
        found = rows[np.arange(len(rows))[:, np.newaxis], order]  # np.take_along_axis finds that out by and by
        return found.reshape(shape), order.reshape(shape).astype(index_type)

    return compute


def check_in_top_k(predictions: Shaped, targets: Shaped) -> None:
    """Raises InvalidArgumentError unless they are [B, C] and [B]."""
    if predictions.ndim != 2:
        raise invalid(f"predictions must be 2-dimensional, got shape {shape_text(predictions.shape)}")
    if targets.ndim != 1:
        raise invalid(f"targets must be 1-dimensional, got shape {shape_text(targets.shape)}")
    if predictions.shape[0] != targets.shape[0]:
        raise invalid(
            f"First dimension of predictions {predictions.shape[0]} must match length of targets {targets.shape[0]}"
        )


@kernel("InTopK", "InTopKV2")
def build_in_top_k(node: KernelNode) -> Compute:
    """Whether fewer than k predictions are greater than the target's; false for a target that is not finite."""
    fixed = node.attrs.get("k") if node.op == "InTopK" else None

    def compute(predictions: Array, targets: Array, k: Array | None = None) -> Array:
        count = int(fixed) if k is None else one_number(k, "k")  # type: ignore[arg-type]
        check_in_top_k(predictions, targets)
        inside = (targets >= 0) & (targets < predictions.shape[1])
        rows = np.arange(targets.size)
        if not predictions.shape[1]:
            return np.zeros(targets.size, np.bool_)
        value = predictions[rows, np.where(inside, targets, 0)]
        finite = np.isfinite(predictions).all(axis=1)
        return as_array(inside & finite & ((predictions > value[:, None]).sum(axis=1) < count))

    return compute
