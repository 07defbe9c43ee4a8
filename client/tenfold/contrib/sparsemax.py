"""`tf.contrib.sparsemax`: a softmax whose small probabilities are exactly 0, and its loss.

Follows TensorFlow 1.15's contrib/sparsemax.
"""

from __future__ import annotations

from typing import Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math, slicing
from tenfold.ops.nn import top_k
from tenfold.ops.reductions import reduce_sum
from tenfold_core import dtypes

__all__ = ["sparsemax", "sparsemax_loss"]


def sparsemax(logits: Any, name: str | None = None) -> Any:
    """The nearest point to the logits among probabilities: (batch, classes), rows that sum to 1."""
    with name_scope(name, "sparsemax", [logits]):
        logits = convert_to_tensor(logits, name="logits")
        kind = logits.dtype
        rows, classes = array.shape(logits)[0], array.shape(logits)[1]
        largest_first, _ = top_k(logits, k=classes)
        sums = math.cumsum(largest_first, axis=1)
        ranks = math.range(1, math.cast(classes, kind) + 1, dtype=kind)
        # How many classes get more than 0.
        support = reduce_sum(math.cast(1 + ranks * largest_first > sums, dtypes.int32), axis=1)
        places = array.stack([math.range(0, rows), math.maximum(support, 1) - 1], axis=1)
        threshold = (slicing.gather_nd(sums, places) - 1) / math.cast(support, kind)
        found = math.maximum(math.cast(0, kind), logits - array.expand_dims(threshold, 1))
        lost = math.logical_or(math.equal(support, 0), math.is_nan(sums[:, -1]))
        return slicing.where(lost, array.fill([rows, classes], math.cast(float("nan"), kind)), found)


def sparsemax_loss(logits: Any, sparsemax: Any, labels: Any, name: str | None = None) -> Any:
    """The loss (batch,) of what `sparsemax` gave for the logits, against labels that sum to 1."""
    with name_scope(name, "sparsemax_loss", [logits, sparsemax, labels]):
        z = convert_to_tensor(logits, name="logits")
        p = convert_to_tensor(sparsemax, name="sparsemax")
        q = convert_to_tensor(labels, name="labels")
        counted = math.logical_or(p > 0, math.is_nan(p))
        of_support = slicing.where(counted, p * (z - 0.5 * p), array.zeros_like(p))
        # 0 · infinity counts 0.
        nothing = math.logical_and(math.equal(q, 0), math.is_inf(z))
        of_labels = slicing.where(nothing, array.zeros_like(z), q * (0.5 * q - z))
        return reduce_sum(of_support + of_labels, axis=1)
