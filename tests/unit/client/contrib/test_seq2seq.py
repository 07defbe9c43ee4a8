"""tf.contrib.seq2seq: decoders against the loops and searches that they stand for, attention, losses, errors."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

seq2seq = tf.contrib.seq2seq
B, T, D, H, V = 3, 4, 5, 6, 7
RNG = np.random.RandomState(5)
INPUTS = RNG.randn(B, T, D).astype(np.float32)
LENGTHS = [4, 2, 3]


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def ran(fetches: Any) -> Any:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches)


def test_training_is_dynamic_rnn() -> None:
    cell = tf.nn.rnn_cell.LSTMCell(H)
    start = cell.zero_state(B, tf.float32)
    with tf.variable_scope("decoder") as scope:
        expected = tf.nn.dynamic_rnn(cell, INPUTS, LENGTHS, start, scope=scope)
    decoder = seq2seq.BasicDecoder(cell, seq2seq.TrainingHelper(INPUTS, LENGTHS), start)
    outputs, state, lengths = seq2seq.dynamic_decode(decoder, impute_finished=True)

    (found, last, ends), (values, end) = ran([(outputs.rnn_output, state, lengths), expected])
    assert outputs.rnn_output.shape.as_list() == [B, None, H]
    np.testing.assert_allclose(found, values, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last.c, end.c, rtol=1e-5, atol=1e-6)
    assert ends.tolist() == LENGTHS


def searched(decoder_of: Callable[[Any, Any, Any], Any], rows: int, **kwargs: Any) -> Any:
    """Outputs of a decoder of (cell, embedding, output layer) with the same weights each time."""
    with tf.variable_scope("model", reuse=tf.AUTO_REUSE, initializer=tf.random_uniform_initializer(-1, 1, seed=4)):
        embedding = tf.get_variable("embedding", [V, D])
        cell = tf.nn.rnn_cell.GRUCell(H, name="gru")
        layer = tf.layers.Dense(V, name="words", _reuse=tf.AUTO_REUSE)
        return seq2seq.dynamic_decode(decoder_of(cell, embedding, layer), maximum_iterations=5, **kwargs)


def test_a_search_of_one_beam_is_greedy_and_more_beams_are_no_worse() -> None:
    state = np.random.RandomState(0).randn(2, H).astype(np.float32)

    def beams(width: int) -> Any:
        start = seq2seq.tile_batch(tf.constant(state), width)
        return searched(
            lambda cell, embedding, layer: seq2seq.BeamSearchDecoder(
                cell, embedding, tf.fill([2], 1), 0, start, width, output_layer=layer
            ),
            2,
        )

    greedy, _, _ = searched(
        lambda cell, embedding, layer: seq2seq.BasicDecoder(
            cell, seq2seq.GreedyEmbeddingHelper(embedding, tf.fill([2], 1), 0), tf.constant(state), layer
        ),
        2,
    )
    one, first, _ = beams(1)
    many, best, _ = beams(4)

    ids, single, several, log_probs, log_prob = ran(
        [greedy.sample_id, one.predicted_ids, many.predicted_ids, best.log_probs, first.log_probs]
    )
    for row in range(2):
        upto = next((at + 1 for at, word in enumerate(ids[row]) if word == 0), ids.shape[1])
        assert single[row, :upto, 0].tolist() == ids[row, :upto].tolist()
    assert several.shape[2] == 4
    assert (log_probs[:, 0] >= log_prob[:, 0] - 1e-5).all()


def test_sampling_and_schedules_feed_what_they_say() -> None:
    lengths = tf.constant(LENGTHS)
    table = tf.constant(np.eye(V, D, dtype=np.float32))
    never = seq2seq.ScheduledEmbeddingTrainingHelper(tf.constant(INPUTS), lengths, table, 0.0)
    always = seq2seq.ScheduledOutputTrainingHelper(tf.constant(INPUTS), lengths, 1.0)
    ids = never.sample(0, tf.zeros([B, V]), ())
    _, as_given, _ = never.next_inputs(0, tf.zeros([B, V]), (), ids)
    chosen = always.sample(0, tf.ones([B, D]), ())
    _, own, _ = always.next_inputs(0, tf.ones([B, D]), (), chosen)
    sampler = seq2seq.SampleEmbeddingHelper(table, [1, 1], 0, softmax_temperature=1e-3, seed=1)
    sampled = sampler.sample(0, tf.constant([[0.0, 1.0, 0.0], [3.0, 2.0, 1.0]]), ())

    values = ran([ids, as_given, own, sampled])
    assert values[0].tolist() == [-1, -1, -1]
    np.testing.assert_allclose(values[1], INPUTS[:, 1])
    np.testing.assert_allclose(values[2], np.ones([B, D]))
    assert values[3].tolist() == [1, 0]


def test_luong_attention_by_hand() -> None:
    memory = RNG.randn(B, T, 2).astype(np.float32)
    query = RNG.randn(B, H).astype(np.float32)
    mechanism = seq2seq.LuongAttention(H, memory, LENGTHS)
    cell = seq2seq.AttentionWrapper(_Given(query), mechanism, output_attention=True, alignment_history=True)
    output, state = cell(tf.zeros([B, 1]), cell.zero_state(B, tf.float32))

    kernel = tf.trainable_variables()[0]
    assert kernel.op.name == "memory_layer/kernel"
    values, share, weights, history = ran([output, state.alignments, kernel, state.alignment_history.stack()])
    scores = np.einsum("bh,bth->bt", query, memory @ weights)
    scores[np.arange(T) >= np.array(LENGTHS)[:, None]] = -np.inf
    expected = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(share, expected, rtol=1e-4)
    np.testing.assert_allclose(history[0], expected, rtol=1e-4)
    np.testing.assert_allclose(values, np.einsum("bt,btd->bd", expected, memory), rtol=1e-4, atol=1e-6)


class _Given(tf.contrib.rnn.RNNCell):  # type: ignore[misc]
    """A cell that always gives the same output."""

    def __init__(self, output: np.ndarray) -> None:
        super().__init__()
        self._given = output

    state_size = property(lambda self: 1)
    output_size = property(lambda self: H)

    def call(self, inputs: Any, state: Any) -> Any:
        return tf.constant(self._given), state


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        pytest.param("LuongAttention", "attention_g kernel", marks=pytest.mark.thorough),
        ("BahdanauAttention", "attention_b attention_g attention_v kernel kernel"),
        pytest.param("LuongMonotonicAttention", "attention_g attention_score_bias kernel", marks=pytest.mark.thorough),
        ("BahdanauMonotonicAttention", "attention_b attention_g attention_score_bias attention_v kernel kernel"),
    ],
)
def test_each_mechanism_trains_in_a_decoder(name: str, variables: str) -> None:
    option = "scale" if name.startswith("Luong") else "normalize"
    mechanism = getattr(seq2seq, name)(H, tf.constant(INPUTS), tf.constant(LENGTHS), **{option: True})
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(H), [mechanism], attention_layer_size=[2])
    start = cell.zero_state(B, tf.float32).clone(cell_state=tf.ones([B, H]))
    decoder = seq2seq.BasicDecoder(cell, seq2seq.TrainingHelper(INPUTS, LENGTHS), start)
    outputs, _, _ = seq2seq.dynamic_decode(decoder)
    gradients = tf.gradients(outputs.rnn_output, tf.trainable_variables())

    own = [
        v.op.name
        for v in tf.trainable_variables()
        if "gru_cell" not in v.op.name and "attention_layer" not in v.op.name
    ]
    assert sorted(each.rsplit("/")[-1] for each in own) == variables.split()
    assert all(np.isfinite(each).all() for each in ran(gradients))


@pytest.mark.parametrize("mode", ["recursive", "hard"])
def test_monotonic_attention_moves_forward(mode: str) -> None:
    chosen = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]], np.float32)
    before = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], np.float32)

    found = ran(seq2seq.monotonic_attention(chosen, before, mode))
    np.testing.assert_allclose(found, [[0, 1, 0], [0, 0, 1]], atol=1e-6)


def test_monotonic_attention_in_parallel_is_the_recursion() -> None:
    chosen, before = RNG.uniform(0.1, 0.9, [2, B, T]).astype(np.float32)

    one, two = ran([seq2seq.monotonic_attention(chosen, before, mode) for mode in ("recursive", "parallel")])
    np.testing.assert_allclose(one, two, rtol=1e-4)


def test_gather_tree_follows_parents() -> None:
    steps = np.array([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]], np.int32)
    parents = np.array([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]], np.int32)
    values = tf.constant(steps.astype(np.float32))[..., tf.newaxis]

    ids, found = ran(
        [
            seq2seq.gather_tree(steps, parents, [3], 10),
            seq2seq.gather_tree_from_array(values, tf.constant(parents), tf.constant([[3, 3, 3]])),
        ]
    )
    assert ids[:, 0].T.tolist() == [[2, 6, 7], [2, 5, 8], [2, 6, 9]]
    assert found[:, 0, :, 0].T.tolist() == ids[:, 0].T.tolist()


def test_losses_are_weighted_means() -> None:
    logits = RNG.randn(B, T, V).astype(np.float32)
    targets = RNG.randint(0, V, [B, T]).astype(np.int32)
    weights = (np.arange(T) < np.array(LENGTHS)[:, None]).astype(np.float32)
    losses = weights * -np.log(
        np.take_along_axis(np.exp(logits) / np.exp(logits).sum(-1, keepdims=True), targets[..., None], -1)[..., 0]
    )
    inputs = [tf.constant(each) for each in (logits, targets, weights)]
    expected = {
        (True, True): losses.sum() / weights.sum(),
        (True, False): losses.sum(1) / weights.sum(1),
        (False, True): losses.sum(0) / weights.sum(0),
        (False, False): losses,
    }
    found = ran({key: seq2seq.sequence_loss(*inputs, *key) for key in itertools.product((True, False), repeat=2)})

    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-5)
    with pytest.raises(ValueError, match="cannot be set to True at same time"):
        seq2seq.sequence_loss(*inputs, sum_over_batch=True)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: seq2seq.dynamic_decode(None), TypeError, "Expected decoder to be type Decoder"),
        (lambda: seq2seq.BasicDecoder(tf.nn.rnn_cell.GRUCell(1), None, None), TypeError, "helper must be a Helper"),
        (lambda: seq2seq.GreedyEmbeddingHelper(tf.zeros([2, 2]), 1, 0), ValueError, "start_tokens must be a vector"),
        (lambda: seq2seq.TrainingHelper(INPUTS, 1), ValueError, "Expected sequence_length to be a vector"),
        (lambda: seq2seq.tile_batch(tf.constant(1), 2), ValueError, "t must have statically known rank"),
        (
            lambda: seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(1), None),
            TypeError,
            "attention_mechanism must be an AttentionMechanism",
        ),
        (lambda: seq2seq.monotonic_attention([[0.5]], [[1.0]], "soft"), ValueError, "mode must be 'recursive'"),
        (lambda: seq2seq.BasicDecoderV2, AttributeError, "a layer of Keras"),
    ],
)
def test_what_is_refused(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_samples_have_the_shape_that_is_asked_for() -> None:
    from tenfold.contrib.seq2seq.helper import bernoulli_sample, categorical_sample

    sure = tf.constant([[50.0, -50.0, -50.0], [-50.0, -50.0, 50.0]])
    with tf.Session() as sess:
        bits, many, ids, each = sess.run(
            [
                bernoulli_sample(logits=sure, dtype=tf.bool),
                bernoulli_sample(probs=[0.0, 1.0], sample_shape=[2, 1]),
                categorical_sample(sure),
                categorical_sample(sure, tf.int64, sample_shape=4),
            ]
        )
    assert bits.tolist() == [[True, False, False], [False, False, True]]
    assert many.tolist() == [[[0, 1]], [[0, 1]]]
    assert (ids.tolist(), ids.dtype) == ([0, 2], np.int32)
    assert (each.tolist(), each.dtype) == ([[0, 2]] * 4, np.int64)
