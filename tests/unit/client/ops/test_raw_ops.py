"""tf.raw_ops calls the arguments of ops as TensorFlow does, where definitions have another name."""

from __future__ import annotations

import inspect

import pytest

import tenfold as tf

NAMES = {
    **dict.fromkeys(("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum"), "input axis keep_dims"),
    "ExpandDims": "input axis",
    "Select": "condition x y",
    "Split": "axis value num_split",
    "SplitV": "value size_splits axis num_split",
    "Squeeze": "input axis",
    "Where": "condition",
    "MatMul": "a b transpose_a transpose_b",
}


@pytest.mark.parametrize("op", NAMES)
def test_names(op: str) -> None:
    parameters = inspect.signature(getattr(tf.raw_ops, op)).parameters.values()

    assert [each.name for each in parameters if each.name not in ("name", "grad_a", "grad_b")] == NAMES[op].split()
    assert all(each.kind == each.KEYWORD_ONLY for each in parameters)


def test_calls() -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])

    with tf.Session() as session:
        assert session.run(tf.raw_ops.Sum(input=x, axis=1)).tolist() == [3, 7]
        assert session.run(tf.raw_ops.Split(axis=1, value=x, num_split=2)[1]).tolist() == [[2], [4]]
        chosen = tf.raw_ops.Select(condition=[True, False], x=x, y=-x)
        assert session.run(chosen).tolist() == [[1, 2], [-3, -4]]
    with pytest.raises(TypeError, match="axis"):
        tf.raw_ops.Sum(input=x, reduction_indices=1)
