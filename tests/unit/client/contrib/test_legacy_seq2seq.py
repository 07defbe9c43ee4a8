"""tf.contrib.legacy_seq2seq: what feeds a decoder, shared variables, buckets and losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

legacy = tf.contrib.legacy_seq2seq
B, H = 2, 3


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def ids(*values: int) -> list[Any]:
    return [tf.constant([value] * B) for value in values]


MODELS: dict[str, tuple[Callable[..., Any], int]] = {
    "embedding_rnn_seq2seq": (
        lambda i, o, feed: legacy.embedding_rnn_seq2seq(i, o, tf.nn.rnn_cell.GRUCell(H), 4, 5, 2, feed_previous=feed),
        5,
    ),
    "embedding_tied_rnn_seq2seq": (
        lambda i, o, feed: legacy.embedding_tied_rnn_seq2seq(
            i, o, tf.nn.rnn_cell.BasicLSTMCell(H), 5, 2, feed_previous=feed
        ),
        5,
    ),
    "embedding_attention_seq2seq": (
        lambda i, o, feed: legacy.embedding_attention_seq2seq(
            i, o, tf.nn.rnn_cell.GRUCell(H), 4, 5, 2, num_heads=2, feed_previous=feed
        ),
        5,
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("embedding_rnn_seq2seq", marks=pytest.mark.thorough),
        pytest.param("embedding_tied_rnn_seq2seq", marks=pytest.mark.thorough),
        "embedding_attention_seq2seq",
    ],
)
def test_a_tensor_chooses_what_is_fed(name: str) -> None:
    model, symbols = MODELS[name]
    feed = tf.placeholder_with_default(True, [])
    with tf.variable_scope("root", initializer=tf.random_uniform_initializer(-1, 1, seed=3), reuse=tf.AUTO_REUSE):
        results = {each: model(ids(1, 2), ids(0, 3, 2), each) for each in (feed, True, False)}

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        outputs = {value: sess.run(results[value][0]) for value in (True, False)}
        chosen = {value: sess.run(results[feed], {feed: value}) for value in (True, False)}
    assert outputs[True][0].shape == (B, symbols)
    for value in (True, False):
        np.testing.assert_allclose(chosen[value][0], outputs[value], rtol=1e-5)
    np.testing.assert_allclose(outputs[True][0], outputs[False][0])
    assert not np.allclose(outputs[True][2], outputs[False][2])
    tf.nest.assert_same_structure(chosen[True][1], results[True][1])


def test_encoder_and_decoder_have_variables_of_their_own_unless_tied() -> None:
    inputs = [tf.ones([B, 2])] * 2
    legacy.basic_rnn_seq2seq(inputs, inputs, tf.nn.rnn_cell.GRUCell(H))
    own = len(tf.trainable_variables())
    legacy.tied_rnn_seq2seq(inputs, inputs, tf.nn.rnn_cell.GRUCell(H))

    assert own == 8
    assert len(tf.trainable_variables()) == 12
    assert tf.trainable_variables()[0].op.name == "basic_rnn_seq2seq/rnn/gru_cell/gates/kernel"
    assert tf.trainable_variables()[4].op.name == "basic_rnn_seq2seq/rnn_decoder/gru_cell/gates/kernel"


def test_one_encoder_serves_several_decoders() -> None:
    outputs, states = legacy.one2many_rnn_seq2seq(
        ids(1, 2),
        {"a": ids(0, 1), "b": ids(0, 1, 2)},
        tf.nn.rnn_cell.GRUCell(H),
        {"a": tf.nn.rnn_cell.GRUCell(H), "b": tf.nn.rnn_cell.GRUCell(H)},
        3,
        {"a": 4, "b": 5},
        2,
    )

    assert [each.shape.as_list() for each in outputs["b"]] == [[B, 5]] * 3
    assert [each.shape.as_list() for each in outputs["a"]] == [[B, 4]] * 2
    assert states["a"].shape.as_list() == [B, H]


def test_buckets_share_variables_and_losses_are_weighted() -> None:
    targets, weights = ids(1, 2, 0), [tf.constant(each) for each in ([1.0, 1.0], [1.0, 0.0], [0.0, 0.0])]

    def model(encoder: Any, decoder: Any) -> Any:
        return legacy.embedding_rnn_seq2seq(encoder, decoder, tf.nn.rnn_cell.GRUCell(H), 4, 4, 2)

    outputs, losses = legacy.model_with_buckets(
        ids(1, 2), ids(0, 1, 2), targets, weights, [(1, 1), (2, 3)], model, per_example_loss=True
    )
    alone = legacy.sequence_loss(outputs[1], targets, weights, average_across_batch=False)

    assert [len(each) for each in outputs] == [1, 3]
    assert len(tf.trainable_variables()) == 12
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        values, each, total = sess.run([outputs[1], losses[1], alone])
    shares = [np.exp(value) / np.exp(value).sum(1, keepdims=True) for value in values]
    first, second = -np.log(shares[0][:, 1]), -np.log(shares[1][:, 2])
    np.testing.assert_allclose(each, [(first[0] + second[0]) / 2, first[1]], rtol=1e-5)
    np.testing.assert_allclose(total, each.sum(), rtol=1e-5)
    with pytest.raises(ValueError, match="must be at least that of last bucket"):
        legacy.model_with_buckets(ids(1), ids(0), targets, weights, [(2, 3)], model)
