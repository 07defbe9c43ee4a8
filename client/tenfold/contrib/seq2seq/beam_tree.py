"""Following beams back: `tile_batch`, `gather_tree` and `gather_tree_from_array` of `tf.contrib.seq2seq`.

# B batch, K beams, T time steps
beam_search_decoder.py uses them; the kernel of GatherTree is in tenfold_kernels/cpu/nn_beams.py. Follows TensorFlow
1.15's contrib/seq2seq/python/ops/beam_search_decoder.py.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold_core.tensor_shape import TensorShape


def _tiled(value: Any, multiplier: int) -> Any:
    value = tf.convert_to_tensor(value, name="t")
    if value.shape.ndims is None or value.shape.ndims < 1:
        raise ValueError("t must have statically known rank")
    shape, known = tf.shape(value), value.shape[0].value
    tiled = tf.tile(tf.expand_dims(value, 1), [1, multiplier, *[1] * (value.shape.ndims - 1)])
    tiled = tf.reshape(tiled, tf.concat(([shape[0] * multiplier], shape[1:]), 0))
    tiled.set_shape(TensorShape([None if known is None else known * multiplier]).concatenate(value.shape[1:]))
    return tiled


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Each row of (B, …) `multiplier` times, one after the other: (B * multiplier, …); of each of a structure.

    Raises ValueError for a scalar or an unknown rank.
    """
    with tf.name_scope(name, "tile_batch"):
        return tf.nest.map_structure(lambda each: _tiled(each, multiplier), t)


def gather_tree(
    step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any, name: str | None = None
) -> Any:
    """The ids of whole beams, (T, B, K), from those of each step and the beams that they came from.

    `max_sequence_lengths` (B): beyond, and after the first `end_token`, there is only `end_token`.
    """
    return tf.raw_ops.GatherTree(
        step_ids=step_ids,
        parent_ids=parent_ids,
        max_sequence_lengths=max_sequence_lengths,
        end_token=end_token,
        name=name,
    )


def gather_tree_from_array(t: Any, parent_ids: Any, sequence_length: Any) -> Any:
    """`t`, (T, B, K, …) or (T, B * K, …), with its beams sorted as they came from one another.

    `parent_ids` is (T, B, K), `sequence_length` (B, K).
    """
    shape = tf.shape(parent_ids)
    steps, rows, beams = (parent_ids.shape[axis].value or shape[axis] for axis in range(3))
    own = tf.tile(tf.reshape(tf.range(beams), [1, 1, -1]), [steps, rows, 1])
    longest = tf.cast(tf.reduce_max(sequence_length, axis=1), tf.int32)
    # No beam has this number, so none is taken for an end.
    found = gather_tree(own, parent_ids, longest, beams + 1)
    inside = tf.transpose(tf.sequence_mask(sequence_length, maxlen=steps), perm=[2, 0, 1])
    found = tf.where(inside, found, own)
    time = tf.tile(tf.reshape(tf.range(steps), [-1, 1, 1]), [1, rows, beams])
    row = tf.tile(tf.reshape(tf.range(rows), [1, -1, 1]), [steps, 1, beams])
    ordered = tf.gather_nd(tf.reshape(t, [steps, rows, beams, -1]), tf.stack([time, row, found], -1))
    return tf.reshape(ordered, tf.shape(t))
