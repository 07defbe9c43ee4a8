"""Losses over very many classes, computed on a few sampled ones: `tf.nn.nce_loss`, `tf.nn.sampled_softmax_loss`.

candidate_sampling.py draws the classes; embedding.py looks up the rows, so that tables may be split over several tasks.
Exported by ops/nn.py. Follows TF 1.15's ops/nn_impl.py, node by node, because the default seeds depend on the number of
nodes made before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, slicing
from tenfold.ops import math as m
from tenfold.ops.candidate_sampling import compute_accidental_hits, log_uniform_candidate_sampler
from tenfold.ops.embedding import embedding_lookup
from tenfold.ops.nn_losses import sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits_v2
from tenfold.ops.partitioned_variable import PartitionedVariable
from tenfold.ops.sparse import sparse_to_dense
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def _row_sums(x: Tensor) -> Tensor:
    """The sums of a matrix's rows, by a product with ones, whose gradient is cheap."""
    ones = array.ones(array.stack([array.shape(x)[1], 1]), x.dtype)
    return array.reshape(m.matmul(x, ones), [-1])


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    remove_accidental_hits: bool,
    partition_strategy: str,
    name: str | None,
    seed: int | None = None,
) -> tuple[Tensor, Tensor]:
    """(logits, labels) of the true classes and of the sampled ones, less the log of their expected counts.

    # B batch, D features, T true classes, S sampled: inputs [B, D], labels [B, T] -> [B, T + S] both
    """
    shards = list(weights) if isinstance(weights, (list, PartitionedVariable)) else [weights]
    with name_scope(name, "compute_sampled_logits", [*shards, biases, inputs, labels]):
        if labels.dtype != dtypes.int64:
            labels = m.cast(labels, dtypes.int64)
        flat = array.reshape(labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(
                labels, num_true, num_sampled, unique=True, range_max=num_classes, seed=seed
            )
        sampled, true_count, sampled_count = (array.stop_gradient(value) for value in sampled_values)
        sampled = m.cast(sampled, dtypes.int64)
        ids = array.concat([flat, sampled], 0)
        # One look-up for both, so that a parameter server gets one request.
        rows = embedding_lookup(shards, ids, partition_strategy=partition_strategy)
        if rows.dtype != inputs.dtype:
            rows = m.cast(rows, inputs.dtype)
        # Made twice, as in TensorFlow: the default seeds of later draws depend on the number of nodes.
        true_w = slicing.slice(rows, [0, 0], array.stack([array.shape(flat)[0], -1]))
        sampled_w = slicing.slice(rows, array.stack([array.shape(flat)[0], 0]), [-1, -1])
        sampled_logits = m.matmul(inputs, sampled_w, transpose_b=True)
        offsets = embedding_lookup(biases, ids, partition_strategy=partition_strategy)
        if offsets.dtype != inputs.dtype:
            offsets = m.cast(offsets, inputs.dtype)
        true_b = slicing.slice(offsets, [0], array.shape(flat))
        sampled_b = slicing.slice(offsets, array.shape(flat), [-1])
        width = array.shape(true_w)[1:2]
        per_example = array.concat([[-1, num_true], width], 0)
        products = m.multiply(array.expand_dims(inputs, 1), array.reshape(true_w, per_example))
        dots = _row_sums(array.reshape(products, array.concat([[-1], width], 0)))
        true_logits = array.reshape(dots, [-1, num_true]) + array.reshape(true_b, [-1, num_true])
        sampled_logits = sampled_logits + sampled_b
        if remove_accidental_hits:
            sampled_logits = sampled_logits + _hits(labels, sampled, num_true, num_sampled, sampled_logits.dtype)
        true_logits = true_logits - m.log(true_count)
        sampled_logits = sampled_logits - m.log(sampled_count)
        logits = array.concat([true_logits, sampled_logits], 1)
        targets = [array.ones_like(true_logits) / num_true, array.zeros_like(sampled_logits)]
        return logits, array.concat(targets, 1)


def _hits(labels: Any, sampled: Any, num_true: int, num_sampled: int, dtype: Any) -> Tensor:
    """What to add to the sampled logits so that sampled classes that are true ones have no effect."""
    rows, columns, weights = compute_accidental_hits(labels, sampled, num_true=num_true)
    rows = array.reshape(rows, [-1, 1])
    columns = array.reshape(m.cast(columns, dtypes.int32), [-1, 1])
    places = array.concat([rows, columns], 1, "sparse_indices")
    shape = array.concat([array.shape(labels)[:1], array.expand_dims(num_sampled, 0)], 0)
    if weights.dtype != dtype:
        weights = m.cast(weights, dtype)
    return sparse_to_dense(places, shape, weights, default_value=0.0, validate_indices=False)


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str | None = "nce_loss",
) -> Tensor:
    """Noise-contrastive estimation: per example the loss of distinguishing its classes from `num_sampled` drawn ones.

    # weights [num_classes, D] or shards of it, biases [num_classes], labels [B, num_true], inputs [B, D] -> [B]
    """
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        name,
    )
    losses = sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name="sampled_losses")
    return _row_sums(losses)


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str | None = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """The softmax loss over each example's classes and `num_sampled` drawn ones; for training only.

    # weights [num_classes, D] or shards of it, biases [num_classes], labels [B, num_true], inputs [B, D] -> [B]
    """
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        name,
        seed,
    )
    targets = array.stop_gradient(targets, name="labels_stop_gradient")
    losses: Tensor = softmax_cross_entropy_with_logits_v2(labels=targets, logits=logits)
    return losses
