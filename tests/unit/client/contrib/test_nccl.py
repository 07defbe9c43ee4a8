"""tf.contrib.nccl: what several devices hold, joined."""

from __future__ import annotations

import pytest

import tenfold as tf

nccl = tf.contrib.nccl


@pytest.mark.parametrize(("name", "expected"), [("all_sum", 9), ("all_prod", 24), ("all_min", 2), ("all_max", 4)])
def test_each_gets_all(name: str, expected: int) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        found = getattr(nccl, name)([tf.constant([value]) for value in (2, 3, 4)])

        assert [value.tolist() for value in sess.run(found)] == [[expected]] * 3


def test_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=">0 tensors"):
        nccl.reduce_sum([])
