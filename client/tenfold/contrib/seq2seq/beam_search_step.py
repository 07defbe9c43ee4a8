"""One step of beam search: scores of all continuations, the K best of each row, and where they came from.

# B batch, K beams, V vocabulary, S memory steps
beam_search_decoder.py calls it in each step. Follows TensorFlow 1.15's
contrib/seq2seq/python/ops/beam_search_decoder.py.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import tenfold as tf
from tenfold.contrib.seq2seq.attention_wrapper import AttentionWrapperState
from tenfold.ops.tensor_array import TensorArray
from tenfold_core.tensor_shape import TensorShape


class BeamSearchDecoderState(
    namedtuple(
        "BeamSearchDecoderState", ("cell_state", "log_probs", "finished", "lengths", "accumulated_attention_probs")
    )
):
    """The state between steps: (B, K, …) each."""

    __slots__ = ()


class BeamSearchDecoderOutput(namedtuple("BeamSearchDecoderOutput", ("scores", "predicted_ids", "parent_ids"))):
    """What a step emits: scores, ids, and the beams that they continue, (B, K) each."""

    __slots__ = ()


def check_rank(value: Any) -> None:
    """Raises ValueError for an unknown rank."""
    if value.shape.ndims is None:
        raise ValueError(f"Expected tensor ({value}) to have known rank, but ndims == None.")


def _mean(parts: Any) -> Any:
    return tf.reduce_mean(tf.stack(list(parts), -1), -1)


def attention_probs_of(cell_state: Any, coverage_penalty_weight: Any) -> Any:
    """The mean attention (B, K, S) of the cells that attend; None without a coverage penalty.

    Raises ValueError if there is a penalty and no cell attends.
    """
    if isinstance(coverage_penalty_weight, (int, float)) and coverage_penalty_weight == 0.0:
        return None
    states = cell_state if isinstance(cell_state, tuple) else ()
    if isinstance(cell_state, AttentionWrapperState):
        states = (cell_state,)
    found = [each.alignments for each in states if isinstance(each, AttentionWrapperState)]
    if not found:
        raise ValueError("coverage_penalty_weight must be 0.0 if no cell is attentional.")
    probs = [_mean(each) if isinstance(each, tuple) else each for each in found]
    return probs[0] if len(probs) == 1 else _mean(probs)


def search_step(
    logits: Any,
    next_cell_state: Any,
    beam_state: Any,
    batch_size: Any,
    beam_width: int,
    end_token: Any,
    length_penalty_weight: Any,
    coverage_penalty_weight: Any,
) -> tuple[BeamSearchDecoderOutput, BeamSearchDecoderState]:
    """(outputs, next state) from the logits (B, K, V) and the cell's next state."""
    known = tf.get_static_value(batch_size)
    rows = None if known is None else int(known)
    words = logits.shape[-1].value or tf.shape(logits)[-1]
    was_finished = beam_state.finished
    going_on = tf.cast(tf.logical_not(was_finished), tf.int64)

    log_probs = _masked(tf.nn.log_softmax(logits), end_token, was_finished)
    total = tf.expand_dims(beam_state.log_probs, 2) + log_probs
    # A beam grows by one with each word but the end.
    grows = tf.one_hot(
        tf.fill([batch_size, beam_width], end_token),
        depth=words,
        on_value=tf.constant(0, tf.int64),
        off_value=tf.constant(1, tf.int64),
        dtype=tf.int64,
    )
    lengths = grows * tf.expand_dims(going_on, 2) + tf.expand_dims(beam_state.lengths, 2)
    covered = attention_probs_of(next_cell_state, coverage_penalty_weight)
    if covered is not None:
        covered = beam_state.accumulated_attention_probs + covered * tf.expand_dims(tf.cast(going_on, tf.float32), 2)
    scores = _scores(total, lengths, length_penalty_weight, coverage_penalty_weight, was_finished, covered)

    best_scores, places = tf.nn.top_k(tf.reshape(scores, [batch_size, -1]), k=tf.convert_to_tensor(beam_width))
    best_scores.set_shape([rows, beam_width])
    places.set_shape([rows, beam_width])
    word_ids = tf.cast(tf.mod(places, words, name="next_beam_word_ids"), tf.int32)
    parents = tf.cast(places / words, tf.int32, name="next_beam_parent_ids")

    def of_parents(value: Any, shape: list[Any], name: str | None = None) -> Any:
        return _gathered(parents, value, batch_size, beam_width, shape, name)

    def part(value: Any) -> Any:
        if isinstance(value, TensorArray):
            return value
        check_rank(value)
        return of_parents(value, [batch_size * beam_width, -1]) if value.shape.ndims >= 2 else value

    was_finished = of_parents(was_finished, [-1])
    finished = tf.logical_or(was_finished, tf.equal(word_ids, end_token), name="next_beam_finished")
    next_state = BeamSearchDecoderState(
        cell_state=tf.nest.map_structure(part, next_cell_state),
        log_probs=_gathered(places, total, batch_size, beam_width * words, [-1], "next_beam_probs"),
        lengths=of_parents(beam_state.lengths, [-1]) + tf.cast(tf.logical_not(was_finished), tf.int64),
        finished=finished,
        accumulated_attention_probs=()
        if covered is None
        else of_parents(covered, [batch_size * beam_width, -1], "next_accumulated_attention_probs"),
    )
    return BeamSearchDecoderOutput(best_scores, word_ids, parents), next_state


def _masked(log_probs: Any, end_token: Any, finished: Any) -> Any:
    """Log probabilities where finished beams go on with the end only."""
    dtype, words = log_probs.dtype, tf.shape(log_probs)[2]
    row = tf.one_hot(
        end_token, words, dtype=dtype, on_value=tf.constant(0.0, dtype=dtype), off_value=tf.constant(dtype.min, dtype)
    )
    ends = tf.tile(tf.reshape(row, [1, 1, -1]), tf.concat([tf.shape(finished), [1]], 0))
    return tf.where(tf.tile(tf.expand_dims(finished, 2), [1, 1, words]), ends, log_probs)


def _length_penalty(lengths: Any, factor: Any) -> Any:
    factor = tf.convert_to_tensor(factor, name="penalty_factor")
    factor.set_shape(())
    known = tf.get_static_value(factor)
    if known is not None and known == 0:
        return 1.0
    return tf.div((5.0 + tf.cast(lengths, tf.float32)) ** factor, (5.0 + 1.0) ** factor)


def _scores(
    log_probs: Any, lengths: Any, length_penalty_weight: Any, coverage_weight: Any, finished: Any, covered: Any
) -> Any:
    scores = log_probs / tf.cast(_length_penalty(lengths, length_penalty_weight), log_probs.dtype)
    weight = tf.convert_to_tensor(coverage_weight, name="coverage_penalty_weight")
    if weight.shape.ndims != 0:
        raise ValueError(f"coverage_penalty_weight should be a scalar, but saw shape: {weight.shape}")
    if tf.get_static_value(weight) == 0.0:
        return scores
    if covered is None:
        raise ValueError("accumulated_attention_probs can be None only if coverage penalty is disabled.")
    # Steps without any attention are padding, and cost nothing.
    covered = tf.where(tf.equal(covered, 0.0), tf.ones_like(covered), covered)
    penalty = tf.reduce_sum(tf.log(tf.minimum(covered, 1.0)), 2) * tf.cast(finished, tf.float32)
    return scores + tf.expand_dims(penalty * weight, 2)


def _gathered(indices: Any, value: Any, batch_size: Any, size: Any, shape: list[Any], name: str | None = None) -> Any:
    """For each row the entries `indices` (B, K) of its `size`: `value` is reshaped to `shape` for it."""
    with tf.name_scope(name, "tensor_gather_helper"):
        starts = tf.expand_dims(tf.range(batch_size) * size, 1)
        found = tf.gather(tf.reshape(value, shape), tf.reshape(indices + starts, [-1]))
        rank = 1 + len(shape)
        known = tf.get_static_value(batch_size)
        output = tf.reshape(found, tf.shape(value)[:rank], name="output")
        output.set_shape(TensorShape([None if known is None else int(known)]).concatenate(value.shape[1:rank]))
        return output
