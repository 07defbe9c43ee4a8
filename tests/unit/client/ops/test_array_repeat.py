"""tf.repeat: ranks and sizes known before the run, known in it, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf

DATA = [[1, 2], [3, 4]]
COUNTS: list[tuple[Any, int | None]] = [
    *[([1, 2], 0), ([0, 2], 1), (2, 0), (2, 1), (3, -1)],
    *[([1, 0, 2, 1], None), (2, None)],
]


@pytest.mark.parametrize(("counts", "axis"), COUNTS)
def test_as_numpy_does(counts: Any, axis: int | None) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        result = tf.repeat(DATA, counts, axis)

        assert session.run(result).tolist() == np.repeat(DATA, counts, axis).tolist()


@pytest.mark.parametrize(("counts", "axis"), [case for case in COUNTS if case[1] != -1])
def test_unknown_ranks(counts: Any, axis: int | None) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        data, repeats = tf.placeholder(tf.int32), tf.placeholder(tf.int32)
        result = tf.repeat(data, repeats, axis)
        values = session.run(result, {data: DATA, repeats: counts})

        assert values.tolist() == np.repeat(DATA, counts, axis).tolist()


def test_shapes_known_before_the_run() -> None:
    with tf.Graph().as_default():
        assert tf.repeat(3, 4).shape.as_list() == [4]
        data, counts = tf.placeholder(tf.int32, [3, None]), tf.placeholder(tf.int32)
        assert tf.repeat(data, counts, 0).shape.as_list() == [None, None]


def test_negative_counts_leave_out() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.repeat([7, 8], [-1, 1])).tolist() == [8]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (([1, 2, 3], [2]), ValueError, "Dimensions 3 and 1 are not compatible"),
        (([1, 2], 2.0), TypeError, "repeats must be an integer tensor"),
        (([1, 2], [1, 2], 2), ValueError, r"axis=2 out of bounds: expected -1<=axis<1"),
        (([1, 2], [[1, 2]], 0), ValueError, "rank at most 1"),
        (([1, 2], 1, "x"), TypeError, "axis must be an int; got str"),
    ],
)
def test_what_is_refused(arguments: tuple[Any, ...], error: type[Exception], text: str) -> None:
    with tf.Graph().as_default(), pytest.raises(error, match=text):
        tf.repeat(*arguments)


def test_a_negative_axis_of_an_unknown_rank() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="axis may only be negative"):
        tf.repeat(tf.placeholder(tf.int32), 2, -1)


def test_counts_that_do_not_fit_fail_the_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        counts = tf.placeholder(tf.int32)
        result = tf.repeat([1, 2], counts, 0)

        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(result, {counts: [1, 2, 3]})
