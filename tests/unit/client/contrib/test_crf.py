"""tf.contrib.crf against every sequence of tags, counted one by one."""

from __future__ import annotations

import itertools

import numpy as np

import tenfold as tf

crf = tf.contrib.crf
RNG = np.random.RandomState(3)
INPUTS = RNG.randn(4, 3, 3).astype(np.float32)
TRANSITIONS = RNG.randn(3, 3).astype(np.float32)
LENGTHS = [3, 2, 1, 0]


def score(row: int, tags: tuple[int, ...]) -> float:
    unary = sum(INPUTS[row, time, tag] for time, tag in enumerate(tags))
    return float(unary + sum(TRANSITIONS[a, b] for a, b in itertools.pairwise(tags)))


def test_likelihoods_are_shares_of_all_sequences() -> None:
    tags = np.array([[0, 1, 2], [2, 2, 0], [1, 0, 0], [0, 0, 0]])
    with tf.Graph().as_default(), tf.Session() as sess:
        likelihood, _ = crf.crf_log_likelihood(
            INPUTS, tf.constant(tags), tf.constant(LENGTHS), tf.constant(TRANSITIONS)
        )
        found = sess.run(likelihood)

    expected = []
    for row, length in enumerate(LENGTHS):
        scores = [score(row, each) for each in itertools.product(range(3), repeat=length)]
        expected.append(score(row, tuple(tags[row, :length])) - np.log(np.sum(np.exp(scores))))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_decoding_finds_the_best_sequence_in_ops_and_in_numpy() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        tags, scores = sess.run(crf.crf_decode(tf.constant(INPUTS), tf.constant(TRANSITIONS), tf.constant(LENGTHS)))

    for row, length in enumerate(LENGTHS[:3]):
        best = max(itertools.product(range(3), repeat=length), key=lambda each, row=row: score(row, each))  # type: ignore[misc]
        assert tuple(tags[row, :length]) == best
        np.testing.assert_allclose(scores[row], score(row, best), rtol=1e-5)
        in_numpy, its_score = crf.viterbi_decode(INPUTS[row, :length], TRANSITIONS)
        assert tuple(in_numpy) == best
        np.testing.assert_allclose(its_score, scores[row], rtol=1e-5)


def test_sequences_of_one_step_and_several_tags_at_once() -> None:
    allowed = np.array([[[True, True, False]]] * 4)
    with tf.Graph().as_default(), tf.Session() as sess:
        ones = tf.ones([4], tf.int32)
        several = crf.crf_multitag_sequence_score(INPUTS[:, :1], allowed, ones, tf.constant(TRANSITIONS))
        decoded, _ = crf.crf_decode(tf.constant(INPUTS[:, :1]), tf.constant(TRANSITIONS), ones)
        values, tags = sess.run([several, decoded])

    np.testing.assert_allclose(values, np.log(np.exp(INPUTS[:, 0, :2]).sum(1)), rtol=1e-5)
    assert (tags[:, 0] == INPUTS[:, 0].argmax(1)).all()
