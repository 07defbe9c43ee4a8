"""Gradients of what reads rows of a variable: which come as slices and which as a whole, and where shapes are asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.graph.op_builder import apply_op

TABLE = np.arange(12.0).reshape(3, 2, 2)


def gradient_of(op: str, indices: Any, *, known: bool = True, ps: bool = False) -> tuple[Any, np.ndarray]:
    """(the gradient as the rule gives it, its dense value); the rows read are weighted 1, 2, 3 … in their order."""
    given = np.asarray(indices, np.int32)
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(TABLE, use_resource=True)
        at = tf.placeholder(tf.int32, given.shape if known else None)
        rows = apply_op(op, resource=variable.handle, indices=at, dtype=tf.float64)
        weights = tf.reshape(tf.range(1.0, tf.cast(tf.size(rows) + 1, tf.float64)), tf.shape(rows))
        (gradient,) = tf.gradients(tf.reduce_sum(rows * tf.cast(weights, tf.float64)), variable.handle)
        session.run(variable.initializer)
        value = session.run(tf.convert_to_tensor(gradient), {at: given})
        return gradient, value


def expected(op: str, indices: Any) -> np.ndarray:
    given = np.asarray(indices)
    found = np.zeros_like(TABLE)
    places = [(row,) for row in given.reshape(-1)] if op == "ResourceGather" else [
        tuple(each) for each in given.reshape(-1, given.shape[-1])
    ]  # fmt: skip
    weight = 1.0
    for place in places:
        size = found[place].size
        found[place] += np.arange(weight, weight + size).reshape(found[place].shape)
        weight += size
    return found


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("op", "indices", "is_sliced"),
    [
        ("ResourceGather", [2, 0, 2], True),
        ("ResourceGather", [[2, 0], [1, 2]], True),
        ("ResourceGather", 1, True),
        ("ResourceGatherNd", [[2], [0], [2]], True),
        ("ResourceGatherNd", [[2, 1], [0, 0], [2, 1]], False),
        ("ResourceGatherNd", [[[2], [0]], [[1], [2]]], False),
        ("ResourceGatherNd", [1], False),
        ("ResourceGatherNd", [[2, 1, 0]], False),
    ],
)
def test_rows_of_a_variable(op: str, indices: Any, is_sliced: bool, known: bool) -> None:
    gradient, value = gradient_of(op, indices, known=known)

    assert isinstance(gradient, tf.IndexedSlices) is (is_sliced and (known or op == "ResourceGather"))
    assert value.tolist() == expected(op, indices).tolist()


def test_the_shape_of_a_variable_is_asked_where_it_is() -> None:
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps"):
            variable = tf.Variable(TABLE, use_resource=True)
        with tf.device("/job:worker"):
            for op in ("ResourceGather", "ResourceGatherNd"):
                indices = np.zeros((1, 1), np.int64)
                rows = apply_op(op, resource=variable.handle, indices=indices, dtype=tf.float64)
                tf.gradients(rows, variable.handle)
        asked = [each for each in graph.get_operations() if each.type == "VariableShape"]

        assert len(asked) == 2
        assert {each.device for each in asked} == {"/job:ps"}
        assert asked[1].outputs[0].dtype == tf.int64
