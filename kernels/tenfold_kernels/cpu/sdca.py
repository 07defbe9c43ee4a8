"""Stochastic dual coordinate ascent: SdcaOptimizer and its second version, SdcaShrinkL1, SdcaFprint. Outputs are fresh.

A step walks once over a batch, whose examples keep their dual variables in a table of the graph. Features come in
groups, dense ones [B, D] and sparse ones as (example, feature, value). Follows sdca_ops.cc and sdca_internal.cc; the
walk itself is _compiled/dual_ascent.py.

# B examples, D dense features, N entries of sparse features, S sparse weights, each of all groups one after the other
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import Array, contiguous, invalid, shape_text
from tenfold_kernels.cpu._compiled.dual_ascent import LOSSES, ascend
from tenfold_kernels.cpu._variables import variable_of
from tenfold_kernels.hashes import fingerprint128
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

_MASK = (1 << 64) - 1


@kernel("SdcaOptimizer", "SdcaOptimizerV2")
def build_sdca_optimizer(node: KernelNode) -> Compute:
    """New state [B, 4], and how much each group of weights changes. Examples are taken in random order, or, `adaptive`,
    those more often whose dual variable is farther from the best one.

    Raises InvalidArgumentError for labels that the loss does not know, for features without a weight, for a feature
    that an example has twice, and for shapes that do not fit.
    """
    attrs = node.attrs
    sparse, dense = attrs["num_sparse_features"], attrs["num_dense_features"]
    valued = attrs["num_sparse_features_with_values"]
    if sparse + dense == 0:
        raise invalid("Requires at least one feature to train.")
    loss = LOSSES.index(attrs["loss_type"])
    adaptive = attrs.get("adaptive", attrs.get("adaptative"))
    l1, l2 = attrs["l1"], attrs["l2"]
    shrinkage, partitions = l1 / l2 if l2 else np.inf, float(attrs["num_loss_partitions"])
    walk = ascend()
    random = np.random.default_rng()
    sizes = (sparse, sparse, valued, dense, 1, 1, sparse, sparse, dense, 1)

    def compute(*inputs: Array) -> tuple[Array, ...]:
        groups, at = [], 0
        for size in sizes:
            groups.append(inputs[at : at + size])
            at += size
        of_examples, of_features, of_values, dense_in, (weights,), (labels,), ids, sparse_w, dense_w, (state,) = groups
        weights_B = weights.reshape(-1).astype(np.float64)
        labels_B = _labels(loss, labels.reshape(-1).astype(np.float64))
        count = weights_B.size
        for name, value, shape in (("example_labels", labels_B, (count,)), ("example_state_data", state, (count, 4))):
            if value.shape != shape:
                raise invalid(f"Expected shape {shape_text(shape)} for {name}, got {shape_text(value.shape)}")
        ends_B, slots_N, values_N = _entries(count, of_examples, of_features, of_values, ids, sparse_w)
        features_BD, dense_D = _side_by_side(count, dense_in, dense_w)
        sparse_S = _in_a_row(sparse_w)
        of_N = np.repeat(np.arange(count), np.diff(ends_B, prepend=0))
        norms_B = np.einsum("bd,bd->b", features_BD, features_BD) + np.bincount(of_N, values_N * values_N, count)
        state_B4 = state.astype(np.float64)
        if adaptive:
            wx_B = features_BD @ _shrink(dense_D, shrinkage)
            wx_B += np.bincount(of_N, values_N * _shrink(sparse_S, shrinkage)[slots_N], count)
            far_B = np.abs(state_B4[:, 0] + _slopes(loss, labels_B, wx_B))
            smooth = (4.0, 1.0, 0.0, 1.0, 1.0)[loss]
            order_B = _drawn(random, weights_B * np.sqrt(norms_B + l2 * smooth) * far_B)
        else:
            order_B = random.permutation(count)
        sparse_deltas_S, dense_deltas_D = np.zeros_like(sparse_S), np.zeros_like(dense_D)
        walk(
            loss, partitions, l2, shrinkage, order_B, labels_B, weights_B, norms_B, ends_B, slots_N, values_N,
            sparse_S, sparse_deltas_S, features_BD, dense_D, dense_deltas_D, state_B4,
        )  # fmt: skip
        return (
            state_B4.astype(np.float32),
            *_apart(sparse_deltas_S, sparse_w),
            *_apart(dense_deltas_D, dense_w),
        )

    return compute


def _labels(loss: int, labels_B: Array) -> Array:
    """Labels as the loss wants them: 0 becomes −1 where there are two classes."""
    if loss == 1:
        return labels_B
    if loss == 4:
        wrong_B = labels_B < 0
        message = "Only non-negative labels can be used with the Poisson log loss. Found example with label: "
    else:
        wrong_B = (labels_B != 0) & (labels_B != 1)
        message = "Only labels of 0.0 or 1.0 are supported right now. Found example with label: "
    if wrong_B.any():
        raise invalid(f"{message}{labels_B[wrong_B][0]:g}")
    return labels_B if loss == 4 else np.where(labels_B == 0, -1.0, 1.0)


def _entries(
    count: int, examples_in: Sequence[Array], features_in: Sequence[Array], values_in: Sequence[Array],
    ids_in: Sequence[Array], weights_in: Sequence[Array],
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Where each example's entries end [B], and the entries: place of the weight [N], value [N]."""
    examples, slots, values, first = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)], 0
    for group, (example, feature, ids, weights) in enumerate(
        zip(examples_in, features_in, ids_in, weights_in, strict=True)
    ):
        example, feature, ids = example.reshape(-1), feature.reshape(-1), ids.reshape(-1)
        value = values_in[group].reshape(-1) if group < len(values_in) else np.ones(feature.size)
        if not example.size == feature.size == value.size:
            raise invalid(
                f"A sparse feature needs as many examples as features and values, got {example.size}, {feature.size} "
                f"and {value.size}"
            )
        if ids.size != weights.size:
            raise invalid(f"Expected a weight for each of {ids.size} sparse indices, got {weights.size}")
        if example.size and not 0 <= example.min() <= example.max() < count:
            raise invalid(f"Found an example index out of range: there are {count} examples")
        by_id = np.argsort(ids, kind="stable")
        at = np.searchsorted(ids, feature, side="right", sorter=by_id) - 1
        found = by_id[np.maximum(at, 0)] if ids.size else at
        unknown = (at < 0) | (ids[found] != feature) if ids.size else np.ones(feature.size, bool)
        if unknown.any():
            raise invalid(f"Found sparse feature indices out of valid range: {feature[unknown][0]}")
        examples.append(example)
        slots.append(found + first)
        values.append(value)
        first += weights.size
    example_N, slots_N, values_N = np.concatenate(examples), np.concatenate(slots), np.concatenate(values)
    order = np.lexsort((slots_N, example_N))
    example_N, slots_N = example_N[order], np.ascontiguousarray(slots_N[order], np.int64)
    if np.any((np.diff(example_N) == 0) & (np.diff(slots_N) == 0)):
        raise invalid("Duplicate index in sparse vector.")
    ends_B = np.searchsorted(example_N, np.arange(count), side="right").astype(np.int64)
    return ends_B, slots_N, np.ascontiguousarray(values_N[order], np.float64)


def _side_by_side(count: int, features_in: Sequence[Array], weights_in: Sequence[Array]) -> tuple[Array, Array]:
    """The dense features [B, D] and their weights [D]; a group with more weights than features is filled up with 0."""
    parts = [np.empty((count, 0))]
    for features, weights in zip(features_in, weights_in, strict=True):
        if features.ndim != 2 or features.shape[0] != count:
            raise invalid(f"Expected dense features of shape [{count},?], got {shape_text(features.shape)}")
        missing = weights.size - features.shape[1]
        if missing < 0:
            raise invalid(f"More dense features than we have parameters for: {features.shape[1]}")
        parts += [features, np.zeros((count, missing))]
    return np.concatenate(parts, axis=1, dtype=np.float64), _in_a_row(weights_in)


def _in_a_row(weights_in: Sequence[Array]) -> Array:
    return np.concatenate([np.empty(0), *(weights.reshape(-1) for weights in weights_in)], dtype=np.float64)


def _apart(deltas: Array, weights_in: Sequence[Array]) -> list[Array]:
    ends = np.cumsum([weights.size for weights in weights_in])
    parts = np.split(deltas.astype(np.float32), ends[:-1]) if weights_in else []
    return [part.reshape(weights.shape) for part, weights in zip(parts, weights_in, strict=True)]


def _shrink(weights: Array, shrinkage: float) -> Array:
    shrunk: Array = np.sign(weights) * np.maximum(np.abs(weights) - weights.dtype.type(shrinkage), 0)
    return shrunk


def _slopes(loss: int, labels_B: Array, wx_B: Array) -> Array:
    """The derivative of each example's loss by its prediction."""
    margins = labels_B * wx_B
    slopes: Array = (wx_B if loss == 1 else np.exp(wx_B)) - labels_B
    if loss == 0:
        slopes = -labels_B * np.exp(-np.logaddexp(0.0, margins))
    elif loss == 2:
        slopes = np.where(margins < 1, -labels_B, 0.0)
    elif loss == 3:
        slopes = np.where(margins >= 1, 0.0, np.where(margins <= 0, -labels_B, wx_B - labels_B))
    return slopes


def _drawn(random: np.random.Generator, chances_B: Array) -> Array:
    """So many places, drawn in proportion: one that was drawn k times stays in with chance 10⁻ᵏ. What then is missing
    are those that were never drawn, the likeliest first.
    """
    count, total = chances_B.size, chances_B.sum()
    if not 0 < total < np.inf:
        return random.permutation(count)
    times, missed = np.zeros(count, np.int64), 0
    drawn: list[int] = []
    sums = np.cumsum(chances_B)
    while len(drawn) < count and missed < count:
        place = min(int(np.searchsorted(sums, random.random() * total, side="right")), count - 1)
        if random.random() > 0.1 ** times[place]:
            missed += 1
            continue
        times[place] += 1
        drawn.append(place)
    unseen = np.flatnonzero(times == 0)
    rest = unseen[np.argsort(-chances_B[unseen], kind="stable")][: count - len(drawn)]
    return np.concatenate([np.array(drawn, np.int64), rest])


@kernel("SdcaShrinkL1")
def build_sdca_shrink_l1(node: KernelNode) -> Compute:
    """Brings each weight of the variables nearer to 0 by l1 / l2, and not beyond it."""
    shrinkage = node.attrs["l1"] / node.attrs["l2"] if node.attrs["l2"] else np.inf

    def compute(*weights: Any) -> None:
        for each in weights:
            variable = variable_of(node, each)
            with variable.lock:
                buffer = variable.buffer()
                buffer[...] = _shrink(buffer, shrinkage)

    return compute


@kernel("SdcaFprint")
def build_sdca_fprint(node: KernelNode) -> Compute:
    """Strings [N] to int64 [N, 2]. The first word is never 0 or 1, which keys of tables may stand for."""

    def compute(texts_N: Array) -> Array:
        if texts_N.ndim != 1:
            raise invalid(f"Input must be a vector, got shape {shape_text(texts_N.shape)}")
        words = np.empty((texts_N.size, 2), np.uint64)
        for place, text in enumerate(contiguous(texts_N)):
            low, high = fingerprint128(text)
            words[place] = low if low >= 2 else low + (_MASK - 1), high
        return words.view(np.int64)

    return compute
