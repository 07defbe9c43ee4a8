"""What distributions over K classes share. Used by categorical.py and contrib's one_hot_categorical.py and relaxed.py.

# B batch, K classes
"""

from __future__ import annotations

from typing import Any

import tenfold as tf


class OverClasses:
    """Has the tensors `logits` and `probs` (B, K), and the number of classes, which the class itself sets."""

    _logits: Any
    _probs: Any
    _event_size: Any

    @property
    def event_size(self) -> Any:
        """The number of classes, a scalar."""
        return self._event_size

    @property
    def logits(self) -> Any:
        """The logarithms of the probabilities, up to a constant."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._probs

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self._logits)[:-1]

    def _batch_shape(self) -> Any:
        return self._logits.get_shape()[:-1]


class VectorOverClasses(OverClasses):
    """An event is a vector (K,)."""

    def _event_shape_tensor(self) -> Any:
        return tf.shape(self._logits)[-1:]

    def _event_shape(self) -> Any:
        return self._logits.get_shape().with_rank_at_least(1)[-1:]
