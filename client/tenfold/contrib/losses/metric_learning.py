"""Losses that learn a distance: embeddings of one label are near each other, those of others far.

Labels (batch,), embeddings (batch, dimensions). Follows TensorFlow 1.15's
contrib/losses/python/metric_learning/metric_loss_ops.py, its numbers included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array, math, nn_losses, slicing
from tenfold.ops.control_flow import Print
from tenfold.ops.generated_ops import diag
from tenfold.ops.reductions import reduce_max, reduce_mean, reduce_min, reduce_sum
from tenfold.ops.sparse_math import sparse_minimum, sparse_reduce_sum
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Added under a root at 0, where its gradient is infinite.
_NEAR_ZERO = 1e-16

__all__ = [
    "contrastive_loss", "lifted_struct_loss", "npairs_loss", "npairs_loss_multilabel", "triplet_semihard_loss",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "cluster_loss":
        raise AttributeError(
            "tf.contrib.losses.metric_learning.cluster_loss is not part of Tenfold: it searches medoids in a loop of "
            "its own; triplet_semihard_loss and lifted_struct_loss train such embeddings"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def pairwise_distance(feature: Any, squared: bool = False) -> Any:
    """The distances of all pairs of rows, (batch, batch), exactly 0 on the diagonal."""
    across = reduce_sum(math.square(feature), axis=[1], keepdims=True)
    down = reduce_sum(math.square(array.transpose(feature)), axis=[0], keepdims=True)
    distances = math.add(across, down) - 2.0 * math.matmul(feature, array.transpose(feature))
    distances = math.maximum(distances, 0.0)
    none = math.less_equal(distances, 0.0)
    if not squared:
        distances = math.sqrt(distances + math.cast(none, dtypes.float32) * _NEAR_ZERO)
    distances = math.multiply(distances, math.cast(math.logical_not(none), dtypes.float32))
    return math.multiply(distances, array.ones_like(distances) - diag(array.ones([array.shape(feature)[0]])))


def contrastive_loss(labels: Any, embeddings_anchor: Any, embeddings_positive: Any, margin: float = 1.0) -> Any:
    """Mean of the squared distance of pairs with label 1, and of what others' lacks to `margin`, squared."""
    distances = math.sqrt(reduce_sum(math.squared_difference(embeddings_anchor, embeddings_positive), 1))
    same = math.cast(labels, distances.dtype)
    apart = math.square(math.maximum(margin - distances, 0.0))
    return reduce_mean(same * math.square(distances) + (1.0 - same) * apart, name="contrastive_loss")


def masked_maximum(data: Any, mask: Any, dim: int = 1) -> Any:
    """The largest element where `mask` is 1."""
    least = reduce_min(data, dim, keepdims=True)
    return reduce_max(math.multiply(data - least, mask), dim, keepdims=True) + least


def masked_minimum(data: Any, mask: Any, dim: int = 1) -> Any:
    """The smallest element where `mask` is 1."""
    most = reduce_max(data, dim, keepdims=True)
    return reduce_min(math.multiply(data - most, mask), dim, keepdims=True) + most


def _same_labels(labels: Any) -> tuple[Any, Any, Any]:
    """(which pairs have the same label, the batch size, pairs of two as floats). Raises ValueError for a matrix."""
    labels = convert_to_tensor(labels)
    if labels.get_shape().ndims not in (1, None):
        raise ValueError(f"labels must be a vector, one for each embedding; they have shape {labels.get_shape()}.")
    column = array.reshape(labels, [array.shape(labels)[0], 1])
    same = math.equal(column, array.transpose(column))
    size = array.size(labels)
    return same, size, math.cast(same, dtypes.float32) - diag(array.ones([size]))


def triplet_semihard_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Any:
    """For each pair of a label, `margin` plus its squared distance less that of the nearest other that is farther.

    Where no other is farther, the farthest other counts. Averaged over pairs; negative ones count 0.
    """
    same, size, positives = _same_labels(labels)
    distances = pairwise_distance(embeddings, squared=True)
    other = math.logical_not(same)
    tiled = array.tile(distances, [size, 1])
    farther = math.logical_and(
        array.tile(other, [size, 1]), math.greater(tiled, array.reshape(array.transpose(distances), [-1, 1]))
    )
    farther_as_floats = math.cast(farther, dtypes.float32)
    some = math.greater(reduce_sum(farther_as_floats, 1, keepdims=True), 0.0)
    some = array.transpose(array.reshape(some, [size, size]))
    outside = array.transpose(array.reshape(masked_minimum(tiled, farther_as_floats), [size, size]))
    inside = array.tile(masked_maximum(distances, math.cast(other, dtypes.float32)), [1, size])
    losses = math.add(margin, distances - slicing.where(some, outside, inside))
    total = reduce_sum(math.maximum(math.multiply(losses, positives), 0.0))
    return math.truediv(total, reduce_sum(positives), name="triplet_semihard_loss")


def lifted_struct_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Any:
    """The lifted structured loss: each pair of a label against all others of both its ends."""
    same, size, positives = _same_labels(labels)
    distances = pairwise_distance(embeddings)
    other = math.cast(math.logical_not(same), dtypes.float32)
    lacking = margin - distances
    largest = masked_maximum(lacking, other)
    largest = math.maximum(largest, array.transpose(largest))
    exponents = array.tile(lacking, [size, 1]) - array.reshape(array.transpose(largest), [-1, 1])
    terms = math.multiply(math.exp(exponents), array.tile(other, [size, 1]))
    left = array.reshape(reduce_sum(terms, 1, keepdims=True), [size, size])
    losses = largest + math.log(left + array.transpose(left)) + distances
    squares = math.square(math.maximum(math.multiply(losses, positives), 0.0))
    pairs = reduce_sum(positives) / 2.0
    return math.truediv(0.25 * reduce_sum(squares), pairs, name="liftedstruct_loss")


def _regularization(anchor: Any, positive: Any, reg_lambda: float) -> Any:
    norms = [reduce_mean(reduce_sum(math.square(each), 1)) for each in (anchor, positive)]
    return math.multiply(0.25 * reg_lambda, norms[0] + norms[1], name="l2loss")


def _npairs(same: Any, anchor: Any, positive: Any, reg_lambda: float, print_losses: bool) -> Any:
    l2loss = _regularization(anchor, positive, reg_lambda)
    similarity = math.matmul(anchor, positive, transpose_b=True)
    shares = same / reduce_sum(same, 1, keepdims=True)
    losses = nn_losses.softmax_cross_entropy_with_logits(logits=similarity, labels=shares)
    loss = reduce_mean(losses, name="xentropy")
    if print_losses:
        loss = Print(loss, ["cross entropy:", loss, "l2loss:", l2loss])
    return l2loss + loss


def npairs_loss(
    labels: Any,
    embeddings_anchor: Any,
    embeddings_positive: Any,
    reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> Any:
    """Cross entropy of each anchor's similarity with all positives, plus `reg_lambda` / 4 times their squared norms."""
    same, _, _ = _same_labels(labels)
    return _npairs(math.cast(same, dtypes.float32), embeddings_anchor, embeddings_positive, reg_lambda, print_losses)


def npairs_loss_multilabel(
    sparse_labels: Sequence[Any],
    embeddings_anchor: Any,
    embeddings_positive: Any,
    reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> Any:
    """`npairs_loss` of examples with several labels each, a SparseTensor for each: shared labels count.

    Raises TypeError for dense labels.
    """
    if not all(isinstance(each, SparseTensor) for each in sparse_labels):
        raise TypeError(f"sparse_labels must be a list of SparseTensors, but got {sparse_labels}")
    with name_scope("NpairsLossMultiLabel"):
        shared = [
            array.stack([math.cast(sparse_reduce_sum(sparse_minimum(a, b)), dtypes.float32) for b in sparse_labels])
            for a in sparse_labels
        ]
        return _npairs(array.stack(shared), embeddings_anchor, embeddings_positive, reg_lambda, print_losses)
