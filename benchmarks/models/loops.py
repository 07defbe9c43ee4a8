"""A while loop of 1,000 turns of two scalar ops, forwards and with its gradient: nothing but control flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models import Model, same

if TYPE_CHECKING:
    from models import TF, Wrap

TURNS = 1000


def _loop(tf: TF) -> tuple[Any, dict[Any, Any]]:
    x, a, b = (tf.placeholder(tf.float32, [], name=name) for name in "xab")
    _, y = tf.while_loop(
        lambda turn, _: turn < TURNS, lambda turn, y: (turn + 1, y * a + b), (tf.constant(0), x), parallel_iterations=10
    )
    return y, {x: np.float32(2.5), a: np.float32(0.999), b: np.float32(0.01)}


def scalar_loop(tf: TF, wrap: Wrap = same) -> Model:
    y, feed = _loop(tf)
    return Model(y, None, [feed])


def scalar_loop_gradient(tf: TF, wrap: Wrap = same) -> Model:
    y, feed = _loop(tf)
    gradients = tf.gradients(y, list(feed))
    return Model(y + tf.add_n(gradients), None, [feed])
