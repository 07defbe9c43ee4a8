"""Features among the predictions, and gradients that are clipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

forward = tf.contrib.estimator.forward_features


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph
    tf.summary.FileWriterCache.clear()


def estimator(folder: Path) -> Any:
    def model_fn(features: Any, mode: str) -> Any:
        return tf.estimator.EstimatorSpec(mode, predictions={"double": features["x"] * 2})

    return tf.estimator.Estimator(model_fn, str(folder))


def input_fn() -> Any:
    words = tf.SparseTensor([[0, 0]], tf.constant(["a"]), [1, 2])
    return {"x": tf.constant([1.0]), "key": tf.constant([7]), "words": words}


@pytest.mark.parametrize(
    ("keys", "defaults", "expected"),
    [
        ("key", None, {"double", "key"}),
        (["key", "x"], None, {"double", "key", "x"}),
        (None, {"words": ""}, {"double", "key", "words", "x"}),
    ],
)
def test_features_are_predicted(tmp_path: Path, keys: Any, defaults: Any, expected: set[str]) -> None:
    found = next(forward(estimator(tmp_path), keys, defaults).predict(input_fn))

    assert set(found) == expected
    assert found["double"] == 2.0


@pytest.mark.parametrize(
    ("keys", "error", "words"),
    [
        (7, TypeError, "keys should be either a string or a list of strings"),
        ([7], TypeError, "All items in the given keys list should be a string"),
        ("other", ValueError, 'Key "other" is not in features dict'),
        ("words", ValueError, r"Feature \(words\) should be a Tensor"),
    ],
)
def test_what_is_refused(tmp_path: Path, keys: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        next(forward(estimator(tmp_path), keys).predict(input_fn))


def test_a_norm_of_gradients_is_bounded() -> None:
    a, b = tf.Variable(3.0), tf.Variable([4.0])
    optimizer = tf.contrib.estimator.clip_gradients_by_norm(tf.train.GradientDescentOptimizer(1.0), 1.0)
    step = optimizer.minimize(3 * a + 4 * b[0])

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        values = session.run([a, b])

    np.testing.assert_allclose(values[0], 3 - 0.6, rtol=1e-6)
    np.testing.assert_allclose(values[1], [4 - 0.8], rtol=1e-6)
