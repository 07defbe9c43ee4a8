"""CTC by the functions of `tf.nn`: losses against a sum over alignments, decoders, dense labels as sparse ones."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tenfold as tf

T, B, N = 5, 2, 4
LOGITS = np.random.default_rng(3).standard_normal((T, B, N)).astype(np.float32)
LABELS = [[0, 1, 1], [2, 0]]


def collapsed(path: Any, blank: int) -> list[int]:
    return [label for label, _ in itertools.groupby(path) if label != blank]


def by_alignments(logits: Any, labels: list[int], blank: int) -> float:
    steps = np.log(np.exp(logits) / np.exp(logits).sum(-1, keepdims=True))
    found = [
        sum(steps[t, label] for t, label in enumerate(path))
        for path in itertools.product(range(logits.shape[-1]), repeat=len(logits))
        if collapsed(path, blank) == labels
    ]
    return -float(np.logaddexp.reduce(found))


def test_the_loss_is_that_of_all_alignments_whatever_class_is_blank() -> None:
    sparse = tf.SparseTensorValue([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]], np.int32([0, 1, 1, 2, 0]), [B, 3])
    dense = np.int32([[1, 2, 2], [3, 1, 0]])
    lengths = {"label_length": [3, 2], "logit_length": [T, T]}
    with tf.Graph().as_default(), tf.Session() as session:
        labels = tf.SparseTensor(*sparse)
        losses = session.run(
            [
                tf.nn.ctc_loss(labels, LOGITS, [T, T]),
                tf.nn.ctc_loss(labels, LOGITS.swapaxes(0, 1), [T, T], time_major=False),
                tf.nn.ctc_loss_v2(labels, LOGITS, blank_index=-1, **lengths),
                tf.nn.ctc_loss_v2(dense, LOGITS[:, :, [3, 0, 1, 2]], **lengths),
            ]
        )
        gradient = tf.gradients(tf.nn.ctc_loss_v2(dense, tf.constant(LOGITS), **lengths), tf.constant(0.0))
        with pytest.raises(TypeError, match="to be a SparseTensor"):
            tf.nn.ctc_loss(dense, LOGITS, [T, T])
        with pytest.raises(ValueError, match="blank_index must be given"):
            tf.nn.ctc_loss_v2(labels, LOGITS, **lengths)

    expected = [by_alignments(LOGITS[:, b], LABELS[b], N - 1) for b in range(B)]
    for loss in losses:
        np.testing.assert_allclose(loss, expected, rtol=1e-4)
    assert gradient == [None]


def test_decoders() -> None:
    sure = np.full((4, 1, 3), -9, np.float32)
    for t, label in enumerate((0, 0, 2, 1)):
        sure[t, 0, label] = 9
    with tf.Graph().as_default(), tf.Session() as session:
        (greedy,), _ = session.run(tf.nn.ctc_greedy_decoder(sure, [4]))
        (best, _), logarithms = session.run(tf.nn.ctc_beam_search_decoder(sure, [4], beam_width=4, top_paths=2))
        (second,), _ = session.run(tf.nn.ctc_beam_search_decoder_v2(sure, [4]))

    assert greedy.values.tolist() == best.values.tolist() == second.values.tolist() == [0, 1]
    assert logarithms[0, 0] > logarithms[0, 1]


def test_repeated_and_unique_labels() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        labels, lengths = session.run(tf.nn.collapse_repeated([[1, 1, 2, 2], [3, 3, 3, 4]], [4, 2]))
        values, places = session.run(tf.nn.ctc_unique_labels([[3, 4, 4, 3], [1, 1, 1, 1]]))

    assert labels.tolist() == [[1, 2], [3, 0]]
    assert lengths.tolist() == [2, 1]
    assert values.tolist() == [[3, 4, 0, 0], [1, 0, 0, 0]]
    assert places.tolist() == [[0, 1, 1, 0], [0, 0, 0, 0]]
