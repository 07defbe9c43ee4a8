"""What the programs share: variables with seeded values, layers, labelled batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from models import TF

#: Batches of a program, taken in turn.
BATCHES = 16
#: The share of labels that are drawn at random, so that no run of a benchmark learns them all and its gradients vanish.
NOISE = 0.5


def weight(tf: TF, choose: np.random.Generator, name: str, shape: list[int], scale: float) -> Any:
    """A float32 variable of normal values."""
    return tf.Variable((choose.standard_normal(shape) * scale).astype(np.float32), name=name)


def bias(tf: TF, name: str, size: int, value: float = 0.0) -> Any:
    return tf.Variable(np.full([size], value, np.float32), name=name)


def dense(tf: TF, choose: np.random.Generator, x: Any, name: str, rows: int, columns: int) -> Any:
    """[B, rows] → [B, columns], without an activation."""
    w = weight(tf, choose, f"{name}/w", [rows, columns], (2.0 / rows) ** 0.5)
    return tf.matmul(x, w) + bias(tf, f"{name}/b", columns)


def cross_entropy(tf: TF, labels: Any, logits: Any) -> Any:
    """The mean over a batch, float32 []."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def labelled(
    choose: np.random.Generator, batch: int, shape: list[int], classes: int, batches: int = BATCHES
) -> list[tuple[Any, Any]]:
    """Batches of float32 [batch, *shape] in 0..1 and int32 [batch], labelled by a random linear rule, partly wrong."""
    rule = choose.standard_normal([int(np.prod(shape)), classes]).astype(np.float32)
    images = choose.random([batches, batch, *shape], np.float32)
    found = []
    for each in images:
        right = np.argmax((each.reshape(batch, -1) - 0.5) @ rule, 1)
        drawn = choose.integers(classes, size=batch)
        found.append((each, np.where(choose.random(batch) < NOISE, drawn, right).astype(np.int32)))
    return found
