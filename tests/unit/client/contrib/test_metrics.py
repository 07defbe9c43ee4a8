"""tf.contrib.metrics of all values: what is joined over batches, and the area under a curve with every threshold."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf

metrics = tf.contrib.metrics


_FURTHER = [pytest.param(*case, marks=pytest.mark.thorough) for case in ((False, None), (True, 5), (False, 5))]


@pytest.mark.parametrize(("use_resource", "max_size"), [(True, None), *_FURTHER])
def test_batches_are_joined(use_resource: bool, max_size: int | None) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        batch = tf.placeholder(tf.string, [2, None])
        with tf.variable_scope("in", use_resource=use_resource):
            value, update = metrics.streaming_concat(batch, axis=1, max_size=max_size)
        sess.run(tf.local_variables_initializer())

        sizes = [sess.run(update, {batch: [list("abc"), list("def")]}) for _ in range(3)]

        assert sizes == ([3, 6, 9] if max_size is None else [3, 5, 5])
        joined = [b"".join(row) for row in sess.run(value)]
        assert joined == [(b"abc" * 3)[: sizes[-1]], (b"def" * 3)[: sizes[-1]]]
        sess.run(tf.local_variables_initializer())
        assert sess.run(value).shape == (2, 0)


def _pairs(labels: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> float:
    """The share of pairs of a positive and a negative that the scores put in order; ties count half."""
    both = weights[labels == 1, None] * weights[labels == 0]
    gaps = scores[labels == 1, None] - scores[labels == 0]
    return float((both * ((gaps > 0) + 0.5 * (gaps == 0))).sum() / both.sum())


def test_the_area_is_that_of_pairs_in_order() -> None:
    random = np.random.default_rng(3)
    labels = random.integers(0, 2, (3, 8))
    scores = random.integers(0, 4, (3, 8)) / 4.0
    weights = random.uniform(0.5, 2.0, (3, 8))
    with tf.Graph().as_default(), tf.Session() as sess:
        fed = [tf.placeholder(tf.float32, [8]) for _ in range(3)]
        area, update = metrics.streaming_dynamic_auc(fed[0], fed[1], weights=fed[2])
        among, update_among = metrics.auc_with_confidence_intervals(fed[0], fed[1], fed[2])
        sess.run(tf.local_variables_initializer())
        for batch in zip(labels, scores, weights, strict=True):
            feed = dict(zip(fed, batch, strict=True))
            sess.run([update, update_among], feed)
        found, interval = sess.run([area, among], feed)

    expected = _pairs(labels.ravel(), scores.ravel(), weights.ravel())
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(interval.auc, expected, rtol=1e-4)
    assert 0.0 < interval.lower < interval.auc < interval.upper < 1.0


def test_labels_are_checked_and_the_curve_is_named() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        labels = tf.placeholder(tf.int64, [2])
        _, update = metrics.streaming_dynamic_auc(labels, tf.constant([0.1, 0.9]), curve="PR")
        sess.run(tf.local_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="at least one is >1"):
            sess.run(update, {labels: [2, 0]})
        with pytest.raises(ValueError, match="curve must be either ROC or PR, X unknown"):
            metrics.streaming_dynamic_auc(labels, tf.constant([0.1, 0.9]), curve="X")
