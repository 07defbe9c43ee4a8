"""Gradients of scatters into a tensor: of what stood there, and of what comes to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op

RNG = np.random.default_rng(59)
#: Two go to one place, but where one replaces the other.
TWICE, ONCE = np.array([[0], [3], [3]], np.int32), np.array([[2], [0], [3]], np.int32)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


@pytest.mark.parametrize(
    ("op", "indices"),
    [
        ("TensorScatterAdd", TWICE),
        ("TensorScatterSub", TWICE),
        ("TensorScatterUpdate", ONCE),
        ("TensorScatterMax", TWICE),
        ("TensorScatterMin", TWICE),
    ],
)
def test_scatter(op: str, indices: np.ndarray) -> None:
    def build(x: Any, u: Any) -> Any:
        return apply_op(op, tensor=x, indices=indices, updates=u)

    assert directional_error(build, [normal(5, 2), normal(3, 2)]) < 1e-6


def test_scatter_of_elements() -> None:
    def build(x: Any, u: Any) -> Any:
        return apply_op("ScatterNdNonAliasingAdd", input=x, indices=np.int64([[0, 1], [2, 0], [0, 1]]), updates=u)

    assert directional_error(build, [normal(3, 2, 2), normal(3, 2)]) < 1e-6


@pytest.mark.parametrize(("op", "sign"), [("TensorScatterMax", 1.0), ("TensorScatterMin", -1.0)])
def test_equal_extremes_share_the_gradient(op: str, sign: float) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = sign * tf.constant([5.0, 1.0, 2.0, 7.0])
        updates = sign * tf.constant([5.0, 5.0, 3.0, 3.0, 6.0])
        y = apply_op(op, tensor=x, indices=[[0], [0], [1], [1], [3]], updates=updates)
        found = session.run(tf.gradients(y, [x, updates], grad_ys=tf.constant([12.0, 8.0, 3.0, 5.0])))

    assert found[0].tolist() == [4, 0, 3, 5]
    assert found[1].tolist() == [4, 4, 4, 4, 0]


SLICES: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "steps": ({"begin": [3, 0], "end": [0, 4], "strides": [-2, 3]}, (2, 2)),
    "a value for all rows": ({"begin": [0, 1], "end": [3, 4], "strides": [1, 1]}, (1, 3)),
    "a row for all": ({"begin": [0, 1], "end": [3, 4], "strides": [1, 1]}, (3,)),
    "from the start": ({"begin": [2, 2], "end": [3, 4], "strides": [1, 1], "begin_mask": 2}, (1, 4)),
    "to the end": ({"begin": [2, 2], "end": [3, 4], "strides": [1, 1], "end_mask": 1}, (2, 2)),
    "dots": ({"begin": [0, 1], "end": [0, 3], "strides": [1, 1], "ellipsis_mask": 1}, (4, 2)),
    "new": ({"begin": [0, 1], "end": [0, 3], "strides": [1, 1], "new_axis_mask": 1}, (1, 2, 5)),
    "a number for a shrunk row": ({"begin": [2, 1], "end": [3, 5], "strides": [1, 1], "shrink_axis_mask": 1}, ()),
    "shrunk": ({"begin": [2, 1], "end": [3, 3], "strides": [1, 1], "shrink_axis_mask": 1}, (2,)),
}  # fmt: skip


@pytest.mark.parametrize("name", SLICES)
def test_a_slice_that_is_replaced(name: str) -> None:
    where, shape = SLICES[name]

    def build(x: Any, value: Any) -> Any:
        return apply_op("TensorStridedSliceUpdate", input=x, value=value, **where)

    assert directional_error(build, [normal(4, 5), normal(*shape)]) < 1e-6
