"""Shapes of reductions' gradients: constants where the graph knows them, and the same numbers where it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients import reduction

VALUES = np.random.default_rng(3).permutation(24).astype(np.float64).reshape(2, 3, 4)
KNOWN = ([None, 3, 4], [None, None, None], None)
AXES: tuple[Any, ...] = ([1], [2, -3], [], -2)


def expected(op: str, axes: Any, weights: Any) -> Any:
    """The gradient by hand: of each element, what came in for the result that it is a part of, times its share."""
    reduced = tuple(sorted({axis % 3 for axis in np.ravel(axes).astype(int)}))
    whole = np.broadcast_to(np.reshape(weights, [1 if i in reduced else d for i, d in enumerate((2, 3, 4))]), (2, 3, 4))
    if op == "Mean":
        return whole / max(1, np.prod([(2, 3, 4)[i] for i in reduced]))
    if op == "Max":
        return whole * (VALUES.max(reduced, keepdims=True) == VALUES)
    return whole


@pytest.mark.parametrize("op", ["Mean", "Max"])
def test_whatever_is_known_the_numbers_are_the_same(op: str) -> None:
    rng = np.random.default_rng(5)
    wanted, found, names = [], [], []
    with tf.Graph().as_default(), tf.Session() as session:
        late = {axes_key: tf.placeholder(tf.int32, np.shape(axes)) for axes_key, axes in enumerate(AXES)}
        xs = [tf.placeholder(tf.float64, shape) for shape in KNOWN]
        for number, axes in enumerate(AXES):
            reduced = tuple(sorted({axis % 3 for axis in np.ravel(axes).astype(int)}))
            weights = rng.standard_normal(VALUES.sum(reduced).shape)
            for shape, x in zip(KNOWN, xs, strict=True):
                for given in (np.array(axes, np.int32), late[number]):
                    y = getattr(tf.raw_ops, op)(input=x, axis=given, keep_dims=False)
                    found += tf.gradients(y, x, tf.constant(weights))
                    wanted.append(expected(op, axes, weights))
                    names.append((axes, shape, given is late[number]))
        feeds = {x: VALUES for x in xs} | {late[i]: np.array(axes, np.int32) for i, axes in enumerate(AXES)}
        values = session.run(found, feeds)
    for value, want, name in zip(values, wanted, names, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-12, err_msg=str(name))


def static(shape: Any, axes: Any, op: str = "Sum") -> Any:
    x = tf.placeholder(tf.float32, shape)
    return getattr(tf.raw_ops, op)(input=x, axis=np.array(axes, np.int32), keep_dims=False).op


def test_what_is_known_is_a_constant() -> None:
    with tf.Graph().as_default():
        for shape, axes, kept, multiples in (
            ([2, 3], [0], [1, 3], [2, 1]),
            ([None, 3], [1], [-1, 1], [1, 3]),
            ([None, 3], [0], [1, 3], None),
            ([None, None], [0], [1, -1], None),
            ([None, None], [-1, 0], [1, 1], None),
            ([None, None, 3], [2], None, [1, 1, 3]),
            ([None, None], [], None, [1, 1]),
            ([], [], [], []),
            ([0, 3], [0], [1, 3], [0, 1]),
            (None, [0], None, None),
        ):
            op = static(shape, axes)
            for found, wanted in ((reduction.kept_shape(op), kept), (reduction._multiples(op, [1]), multiples)):
                assert isinstance(found, np.ndarray) is (wanted is not None), (shape, axes, found)
                if wanted is not None:
                    assert (found.dtype, found.tolist()) == (np.int32, wanted), (shape, axes)


def test_how_many_are_reduced() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        for shape, axes, count in (
            ([2, 3, 4], [0, 2], 8),
            ([None, 3, 4], [-1, 1], 12),
            ([2, 3], [], 1),
            ([], [], 1),
            ([0, 3], [0], 0),
            ([None, 3], [0], None),
            (None, [0], None),
        ):
            op = static(shape, axes, "Mean")
            found = reduction.reduced_count(op, tf.float64)
            assert found.dtype == tf.float64
            assert (found.op.type == "Const") is (count is not None), shape
            if count is not None:
                assert session.run(found) == count
            else:
                x = op.inputs[0]
                sizes = [session.run(found, {x: np.zeros(s)}) for s in ((5, 3), (0, 3))]
                assert sizes == [5, 0]
                if shape is None:
                    assert session.run(found, {x: np.zeros((5, 0))}) == 0, "of no result, and no division by 0"


def test_the_product_of_the_others() -> None:
    values = np.array([[2.0, 0.0, 3.0], [4.0, 5.0, 0.5]])
    rows = [[0, 6, 0], [2.5, 2, 20]]
    columns = [[4, 5, 0.5], [2, 0, 3]]
    every = [[0, 2 * 3 * 4 * 5 * 0.5, 0], [0, 0, 0]]
    with tf.Graph().as_default(), tf.Session() as session:
        unknown, axes = tf.placeholder(tf.float64), tf.placeholder(tf.int32)
        for given, wanted in (([-1], rows), ([0], columns), ([0, 1], every)):
            late = tf.raw_ops.Prod(input=unknown, axis=axes, keep_dims=False).op
            known = tf.raw_ops.Prod(input=tf.constant(values), axis=given, keep_dims=False).op
            half = tf.raw_ops.Prod(input=unknown, axis=given, keep_dims=False).op
            found = [reduction.product_of_others(op) for op in (late, known, half)]
            for each in session.run(found, {unknown: values, axes: given}):
                assert each.tolist() == wanted, given
