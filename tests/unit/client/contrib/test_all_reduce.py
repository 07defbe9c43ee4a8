"""tf.contrib.all_reduce: every way gives every device the same total."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf

all_reduce = tf.contrib.all_reduce
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"

WAYS: dict[str, Any] = {
    "ring": lambda t: all_reduce.build_ring_all_reduce(t, 1, 2, [0, 2, 3, 1], tf.add, tf.negative),
    "hd": lambda t: all_reduce.build_recursive_hd_all_reduce(t, tf.add, tf.negative),
    "shuffle": lambda t: all_reduce.build_shuffle_all_reduce(t, [CPU] * 3, tf.add_n, tf.negative),
    "nccl": lambda t: all_reduce.build_nccl_all_reduce(t, tf.add, tf.negative),
    "nccl_ring": lambda t: all_reduce.build_nccl_then_ring(t, 1, tf.add, tf.negative),
    "nccl_hd": lambda t: all_reduce.build_nccl_then_recursive_hd(t, tf.add, tf.negative),
    "nccl_shuffle": lambda t: all_reduce.build_nccl_then_shuffle(t, [CPU], tf.add, tf.add_n, tf.negative),
    "shuffle_ring": lambda t: all_reduce.build_shuffle_then_ring(t, [CPU], 1, tf.add_n, tf.add, tf.negative),
    "shuffle_shuffle": lambda t: all_reduce.build_shuffle_then_shuffle(t, [CPU], [CPU], tf.add_n, tf.negative),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_gets_the_total(way: str) -> None:
    values = np.random.RandomState(0).rand(4, 5, 2).astype(np.float32)
    with tf.Graph().as_default(), tf.device(CPU), tf.Session() as session:
        found = session.run(WAYS[way]([tf.constant(value) for value in values]))

    assert len(found) == 4
    for each in found:
        np.testing.assert_allclose(each, -values.sum(0), rtol=1e-6)


def test_what_does_not_fit_is_refused() -> None:
    with tf.Graph().as_default():
        three = [tf.constant([1.0])] * 3
        with pytest.raises(ValueError, match="length 2 or longer"):
            all_reduce.build_ring_all_reduce(three[:1], 1, 1, [0], tf.add)
        with pytest.raises(ValueError, match="power of 2"):
            all_reduce.build_recursive_hd_all_reduce(three, tf.add)
        with pytest.raises(ValueError, match="not supported by NCCL"):
            all_reduce.build_nccl_all_reduce(three, tf.maximum)
        with pytest.raises(ValueError, match="names no task"):
            all_reduce.build_shuffle_then_shuffle(three, [CPU], [CPU], tf.add_n)
        with pytest.raises(ValueError, match="statically known shape"):
            all_reduce.build_shuffle_all_reduce([tf.placeholder(tf.float32)], [CPU], tf.add_n)
