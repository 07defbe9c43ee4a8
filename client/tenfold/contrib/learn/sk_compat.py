"""`tf.contrib.learn.SKCompat`: an estimator as scikit-learn has them.

Follows TensorFlow 1.15's `contrib/learn/python/learn/estimators/estimator.py`.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.learn.estimator_parts import input_of, joined
from tenfold.train.hooks import FeedFnHook


class SKCompat:
    """scikit-learn's form of an estimator: arrays in, arrays out. As TensorFlow 1.15's `tf.contrib.learn.SKCompat`."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator

    def fit(
        self,
        x: Any,
        y: Any,
        batch_size: int | None = 128,
        steps: int | None = None,
        max_steps: int | None = None,
        monitors: Any = None,
    ) -> SKCompat:
        """Trains on shuffled batches. Returns itself."""
        input_fn, feed_fn = input_of(x, y, None, None, batch_size, shuffle=True, epochs=None)
        monitors = [*([FeedFnHook(feed_fn)] if feed_fn else ()), *(monitors or ())]
        self._estimator.fit(input_fn=input_fn, steps=steps, max_steps=max_steps, monitors=monitors)
        return self

    def score(
        self,
        x: Any,
        y: Any,
        batch_size: int | None = 128,
        steps: int | None = None,
        metrics: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """The metrics' values on all examples."""
        input_fn, feed_fn = input_of(x, y, None, None, batch_size)
        found: dict[str, Any] = self._estimator._evaluate_model(input_fn, steps, feed_fn, metrics, name)
        return found

    def predict(self, x: Any, batch_size: int | None = 128, outputs: Any = None) -> Any:
        """The predictions of all examples, an array or a dictionary of arrays."""
        input_fn, feed_fn = input_of(x, None, None, None, batch_size)
        return joined(list(self._estimator._infer_model(input_fn, feed_fn, outputs, iterate_batches=True)))
