"""What is known of a tensor before the graph runs: to shape inference much, to programs what TensorFlow 1.15 tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.graph import known_value

if TYPE_CHECKING:
    from collections.abc import Callable

#: Made of constants → its value, as far as constant_value and not only known_value sees it.
SEEN: dict[str, tuple[Callable[[], Any], Any]] = {
    "Cast": (lambda: tf.cast(tf.constant([1.7]), tf.int32), [1]),
    "Concat": (lambda: tf.concat([tf.constant([1]), tf.range(2, 4)], 0), [1, 2, 3]),
    "Equal": (lambda: tf.equal(tf.constant([1, 2]), 1), [True, False]),
    "Fill": (lambda: tf.fill(tf.constant([2]) + 1, 7), [7, 7, 7]),
    "Pack": (lambda: tf.stack([tf.constant(1), tf.size(tf.zeros([2, 3]))]), [1, 6]),
    "Shape": (lambda: tf.shape(tf.placeholder(tf.float32, [2, 3])), [2, 3]),
    "Rank": (lambda: tf.rank(tf.zeros([2, 3]) + 1.0), 2),
}
UNSEEN: dict[str, tuple[Callable[[], Any], Any]] = {
    "Identity": (lambda: tf.identity(tf.constant(3)), 3),
    "Reshape": (lambda: tf.reshape(tf.constant([[1, 2]]), [-1]), [1, 2]),
    "StridedSlice": (lambda: tf.constant([4, 5])[1], 5),
    "Add": (lambda: tf.constant(4) + 1, 5),
    "Cast of Identity": (lambda: tf.cast(tf.identity(tf.constant(3)), tf.int64), 3),
    "Pack along 1": (lambda: tf.stack([tf.constant([1]), tf.constant([2])], axis=1), [[1, 2]]),
}


@pytest.mark.parametrize("name", [*SEEN, *UNSEEN])
def test_both_reaches(name: str) -> None:
    with tf.Graph().as_default():
        make, value = {**SEEN, **UNSEEN}[name]
        tensor = make()
        public = tf.contrib.util.constant_value(tensor)
        known = known_value(tensor)

    np.testing.assert_array_equal(known, value)
    if name in UNSEEN:
        assert public is None
    else:
        np.testing.assert_array_equal(public, value)


def test_an_assertion_about_what_programs_do_not_see_waits_for_the_step() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        check = tf.assert_less(tf.identity(tf.constant(3)), 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match="did not hold element-wise"):
            tf.assert_less(tf.constant(3), 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match="did not hold element-wise"):
            sess.run(check)
