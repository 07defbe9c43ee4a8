"""Losses of `tf.contrib.legacy_seq2seq`, and models for inputs of several lengths.

# B batch, V symbols; lists have logits (B, V), targets (B) and weights (B) a time step
Follows TensorFlow 1.15's contrib/legacy_seq2seq/python/ops/seq2seq.py.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf


def sequence_loss_by_example(
    logits: list[Any],
    targets: list[Any],
    weights: list[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Any = None,
    name: str | None = None,
) -> Any:
    """The weighted cross entropy of each row, (B). Raises ValueError for lists of different lengths."""
    if len(targets) != len(logits) or len(weights) != len(logits):
        raise ValueError(
            f"Lengths of logits, weights, and targets must be the same {len(logits)}, {len(weights)}, {len(targets)}."
        )
    with tf.name_scope(name, "sequence_loss_by_example", logits + targets + weights):
        losses = []
        for logit, target, weight in zip(logits, targets, weights, strict=True):
            if softmax_loss_function is None:
                flat = tf.reshape(target, [-1])
                loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=flat, logits=logit)
            else:
                loss = softmax_loss_function(labels=target, logits=logit)
            losses.append(loss * weight)
        total = tf.add_n(losses)
        # The addend avoids a division by zero where all weights are zero.
        return total / (tf.add_n(weights) + 1e-12) if average_across_timesteps else total


def sequence_loss(
    logits: list[Any],
    targets: list[Any],
    weights: list[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Any = None,
    name: str | None = None,
) -> Any:
    """The weighted cross entropy of all rows, a scalar. Raises ValueError for lists of different lengths."""
    with tf.name_scope(name, "sequence_loss", logits + targets + weights):
        cost = tf.reduce_sum(
            sequence_loss_by_example(
                logits, targets, weights, average_across_timesteps, softmax_loss_function=softmax_loss_function
            )
        )
        return cost / tf.cast(tf.shape(targets[0])[0], cost.dtype) if average_across_batch else cost


def model_with_buckets(
    encoder_inputs: list[Any],
    decoder_inputs: list[Any],
    targets: list[Any],
    weights: list[Any],
    buckets: Any,
    seq2seq: Any,
    softmax_loss_function: Any = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[Any], list[Any]]:
    """`(outputs, losses)` of the model for each bucket (encoder length, decoder length); variables are shared.

    Raises ValueError if the lists are shorter than the last bucket.
    """
    for values, word, at in ((encoder_inputs, "encoder_inputs", 0), (targets, "targets", 1), (weights, "weights", 1)):
        if len(values) < buckets[-1][at]:
            raise ValueError(
                f"Length of {word} ({len(values)}) must be at least that of last bucket ({buckets[-1][at]})."
            )
    loss_function = sequence_loss_by_example if per_example_loss else sequence_loss
    outputs, losses = [], []
    with tf.name_scope(name, "model_with_buckets", encoder_inputs + decoder_inputs + targets + weights):
        for number, (encoder_length, length) in enumerate(buckets):
            with tf.variable_scope(tf.get_variable_scope(), reuse=True if number > 0 else None):
                found, _ = seq2seq(encoder_inputs[:encoder_length], decoder_inputs[:length])
                outputs.append(found)
                losses.append(
                    loss_function(
                        found, targets[:length], weights[:length], softmax_loss_function=softmax_loss_function
                    )
                )
    return outputs, losses
