"""Arguments that most programs write as constants, held by variables that change: no kernel remembers what it read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.arange(24, dtype=np.float32).reshape(4, 6)
#: Op, the argument before and after its update, and the same in NumPy.
CASES: dict[str, tuple[Callable[[Any], Any], Any, Any, Callable[[Any], Any]]] = {
    "slice": (lambda a: tf.slice(X, a, [2, 2]), [0, 1], [2, 4], lambda a: X[a[0] : a[0] + 2, a[1] : a[1] + 2]),
    "slice size": (lambda a: tf.slice(X, [1, 1], a), [1, 1], [3, 2], lambda a: X[1 : 1 + a[0], 1 : 1 + a[1]]),
    "strided slice": (lambda a: tf.strided_slice(X, a, [4], [2]), [0], [1], lambda a: X[a[0] : 4 : 2]),
    "element": (lambda a: tf.constant(X)[a[0], a[1]], [0, 0], [3, 5], lambda a: X[a[0], a[1]]),
    "gather": (lambda a: tf.gather(X, [1, 0], axis=a), 0, 1, lambda a: np.take(X, [1, 0], a)),
    "concat": (lambda a: tf.concat([X, X], a), 0, 1, lambda a: np.concatenate([X, X], a)),
    "split": (lambda a: tf.split(X, 2, axis=a)[1], 0, 1, lambda a: np.split(X, 2, a)[1]),
    "split sizes": (lambda a: tf.split(X, a, axis=1, num=2)[0], [2, 4], [5, 1], lambda a: X[:, : a[0]]),
    "pad": (lambda a: tf.pad(X, a), [[0, 1], [0, 0]], [[2, 0], [1, 1]], lambda a: np.pad(X, a)),
    "reshape": (lambda a: tf.reshape(X, a), [2, 12], [12, 2], lambda a: X.reshape(a)),
    "expand dims": (lambda a: tf.expand_dims(X, a), 0, 2, lambda a: np.expand_dims(X, a)),
    "sum": (lambda a: tf.reduce_sum(X, a), 0, 1, lambda a: X.sum(int(a))),
    "argmax": (lambda a: tf.argmax(X, a), 0, 1, lambda a: X.argmax(int(a))),
    "cumsum": (lambda a: tf.cumsum(X, a), 0, 1, lambda a: X.cumsum(int(a))),
    "reverse": (lambda a: tf.reverse(X, a), [0], [1], lambda a: np.flip(X, int(a[0]))),
    "tile": (lambda a: tf.tile(X, a), [1, 2], [2, 1], lambda a: np.tile(X, a)),
    "transpose": (lambda a: tf.transpose(X, a), [0, 1], [1, 0], lambda a: X.transpose(a)),
    "roll": (lambda a: tf.roll(X, a, [1]), [0], [2], lambda a: np.roll(X, a[0], 1)),
    "fill": (lambda a: tf.fill(a, 7.0), [1, 2], [3, 1], lambda a: np.full(a, 7.0)),
    "one hot": (lambda a: tf.one_hot([0, 1], a), 2, 3, lambda a: np.eye(int(a))[:2]),
    "range": (lambda a: tf.range(0, 10, a), 2, 3, lambda a: np.arange(0, 10, int(a))),
    "broadcast": (lambda a: tf.broadcast_to([1.0], a), [2, 1], [1, 3], lambda a: np.ones(a)),
    "top k": (lambda a: tf.nn.top_k(X, a)[0], 1, 2, lambda a: -np.sort(-X, 1)[:, : int(a)]),
}


@pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("case", CASES)
def test_the_next_step_reads_the_new_argument(case: str, resource: bool) -> None:
    build, before, after, expected = CASES[case]
    with tf.Graph().as_default():
        argument = tf.Variable(np.array(before, np.int32), use_resource=resource, validate_shape=False)
        result = build(argument)
        update = tf.assign(argument, np.array(after, np.int32), validate_shape=False)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for value in (before, before, after, after):
                if value is after:
                    session.run(update)
                found, held = session.run([result, argument])
                assert held.tolist() == value
                np.testing.assert_array_equal(found, expected(np.array(value)))
