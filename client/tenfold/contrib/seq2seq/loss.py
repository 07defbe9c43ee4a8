"""`tf.contrib.seq2seq.sequence_loss`: weighted cross entropy over sequences.

# B batch, T time steps, V vocabulary
Follows TensorFlow 1.15's contrib/seq2seq/python/ops/loss.py.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Any = None,
    name: str | None = None,
) -> Any:
    """The cross entropy of logits (B, T, V) and targets (B, T) under weights (B, T).

    Averages divide by the sum of the weights, sums by the number of those that are not zero, over the batch, the time
    steps or both; what is neither averaged nor summed stays a dimension. Raises ValueError for other ranks and for an
    average and a sum over one dimension.
    """
    if len(logits.get_shape()) != 3:
        raise ValueError("Logits must be a [batch_size x sequence_length x logits] tensor")
    if len(targets.get_shape()) != 2:
        raise ValueError("Targets must be a [batch_size x sequence_length] tensor")
    if len(weights.get_shape()) != 2:
        raise ValueError("Weights must be a [batch_size x sequence_length] tensor")
    if average_across_timesteps and sum_over_timesteps:
        raise ValueError("average_across_timesteps and sum_over_timesteps cannot be set to True at same time.")
    if average_across_batch and sum_over_batch:
        raise ValueError("average_across_batch and sum_over_batch cannot be set to True at same time.")
    with tf.name_scope(name, "sequence_loss"):
        loss_function = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
        flat = tf.reshape(logits, [-1, tf.shape(logits)[2]])
        losses = loss_function(labels=tf.reshape(targets, [-1]), logits=flat) * tf.reshape(weights, [-1])
        if average_across_timesteps and average_across_batch:
            return tf.div_no_nan(tf.reduce_sum(losses), tf.reduce_sum(weights))
        if sum_over_timesteps and sum_over_batch:
            return tf.div_no_nan(tf.reduce_sum(losses), tf.cast(tf.count_nonzero(weights), losses.dtype))
        losses = tf.reshape(losses, tf.shape(logits)[:2])
        if average_across_timesteps or average_across_batch:
            axis = [0] if average_across_batch else [1]
            return tf.div_no_nan(tf.reduce_sum(losses, axis=axis), tf.reduce_sum(weights, axis=axis))
        if sum_over_timesteps or sum_over_batch:
            axis = [0] if sum_over_batch else [1]
            count = tf.cast(tf.count_nonzero(weights, axis=axis), losses.dtype)
            return tf.div_no_nan(tf.reduce_sum(losses, axis=axis), count)
        return losses
